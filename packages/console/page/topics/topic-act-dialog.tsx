import { useState } from 'preact/hooks';
import type { Question } from '../../src/api/routes.ts';
import { ask } from '../api.ts';
import { grouped } from '../format.ts';
import { ActDialog } from '../parts/act-dialog.tsx';
import { LastingField, lastingBody, lastingFlag, usualLasting } from '../parts/lasting.tsx';
import { shellWord } from '../shell-word.ts';
import { tellDone } from '../undo.ts';
import type { TopicState } from './topic-state.ts';

type Imposed = Question<'PUT /controls'>['body']['control'];

interface Act {
  readonly title: string;
  readonly verb: string;
  readonly says: string;
  readonly done: string;
  /** The control to set. If the form is incomplete: the name of the missing field. */
  readonly control: Imposed | { readonly missing: string };
  readonly command: string;
}

export const topicActs = ['pause', 'quarantine', 'reroute', 'concurrency', 'skip'] as const;
export type TopicActName = (typeof topicActs)[number];

/**
 * Sets a control of a topic. The topic `assembly/<program>` stands for a program of assemblies (work of
 * several steps).
 */
export function TopicActDialog({
  name,
  topic,
  counts,
  eventId = '',
  again,
  close,
}: {
  readonly name: TopicActName;
  readonly topic: string;
  readonly counts?: TopicState['counts'] | undefined;
  readonly eventId?: string | undefined;
  readonly again: () => void;
  readonly close: () => void;
}) {
  const [lasting, setLasting] = useState(usualLasting);
  const [fields, setFields] = useState<Readonly<Record<string, string>>>({ which: 'tenant', eventId });
  const set = (field: string) => (value: string) => setFields((before) => ({ ...before, [field]: value }));
  const { title, verb, says, done, control, command } = acts[name](topic, fields, counts);
  const isForEver = name === 'skip';
  return (
    <ActDialog
      title={title}
      verb={verb}
      command={`${command}${isForEver ? '' : lastingFlag(lasting)}`}
      close={close}
      act={async (why, key) => {
        if ('missing' in control) throw new Error(`${control.missing} is missing`);
        const answer = await ask('PUT /controls', {
          body: { control, ...(isForEver ? {} : lastingBody(lasting)), why },
          headers: { 'idempotency-key': key },
        });
        again();
        await tellDone(done, `control:${answer.control.id}`);
      }}
    >
      <p>{says}</p>
      <div class="fields">
        <Fields name={name} topic={topic} fields={fields} set={set} />
        {!isForEver && <LastingField value={lasting} onChange={setLasting} />}
      </div>
    </ActDialog>
  );
}

interface FieldsProps {
  readonly name: TopicActName;
  readonly topic: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly set: (field: string) => (value: string) => void;
}

function Fields({ name, topic, fields, set }: FieldsProps) {
  const text = (field: string, says: string, hint = '') => (
    <label class="field">
      <span>{says}</span>
      <input
        class="input"
        value={fields[field] ?? ''}
        placeholder={hint}
        onInput={(event) => set(field)(event.currentTarget.value)}
      />
    </label>
  );
  const choice = (field: string, says: string, options: readonly (readonly [string, string])[]) => (
    <label class="field">
      <span>{says}</span>
      <select value={fields[field] ?? ''} onChange={(event) => set(field)(event.currentTarget.value)}>
        {options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
  switch (name) {
    case 'pause':
      if (topic.startsWith('assembly/')) return null;
      return choice('only', 'What waits?', [
        ['', 'everything'],
        ['retries', 'retries only'],
      ]);
    case 'quarantine':
      return (
        <>
          {choice('which', 'Whose events?', [
            ['tenant', 'of one tenant'],
            ['key', 'of one key'],
          ])}
          {text('whose', fields.which === 'key' ? 'Key' : 'Tenant')}
        </>
      );
    case 'reroute':
      return (
        <>
          {text('to', 'To which topic?')}
          {text('type', 'Only events of this type', 'all types')}
        </>
      );
    case 'concurrency':
      return text('count', 'Handlers at once', '2');
    case 'skip':
      return text('eventId', 'Id of the event');
  }
}

const acts: Readonly<
  Record<
    TopicActName,
    (topic: string, fields: Readonly<Record<string, string>>, counts: TopicState['counts'] | undefined) => Act
  >
> = {
  pause(topic, { only }, counts) {
    const isRetries = only === 'retries';
    const { verb, name } = commandOf(topic, 'pause');
    const waiting = counts ? ` ${grouped(counts.ready)} are ready now.` : '';
    return {
      title: `Pause ${name}`,
      verb: isRetries ? 'Pause retries' : 'Pause',
      says: isRetries
        ? 'First attempts go on; retries wait until it ends. No attempt is used up by waiting.'
        : `No process takes anything more of ${name}; what is in hand ends. What is due waits, and no attempt is used up.${waiting}`,
      done: `${name} is paused.`,
      control: { kind: 'pause', topic, ...(isRetries && { only: 'retries' as const }) },
      command: `holdfast ${verb} ${shellWord(name)}${isRetries ? ' --only-retries' : ''}`,
    };
  },
  quarantine(topic, { which, whose = '' }) {
    const { verb, name } = commandOf(topic, 'quarantine');
    const by = which === 'key' ? 'key' : 'tenant';
    return {
      title: `Quarantine a part of ${name}`,
      verb: 'Quarantine',
      says: 'What belongs to it is held; everything else goes on. Released, it goes on where it was.',
      done: `${by} ${whose} of ${name} is quarantined.`,
      control: whose === '' ? { missing: `the ${by}` } : { kind: 'quarantine', topic, [by]: whose },
      command: `holdfast ${verb} ${shellWord(name)} --${by} ${shellWord(whose || '…')}`,
    };
  },
  reroute(topic, { to = '', type = '' }) {
    return {
      title: `Reroute ${topic}`,
      verb: 'Reroute',
      says: 'Consumers move events to the other topic instead of handling them. Ids and keys stay the same. Those that were moved do not come back by themselves.',
      done: `${topic} goes to ${to}.`,
      control:
        to === ''
          ? { missing: 'the other topic' }
          : { kind: 'reroute', topic, to, ...(type !== '' && { type }) },
      command: `holdfast topics reroute ${shellWord(topic)} --to ${shellWord(to || '…')}${type === '' ? '' : ` --type ${shellWord(type)}`}`,
    };
  },
  concurrency(topic, { count = '' }) {
    const handlers = Number(count);
    const isNumber = /^[1-9]\d*$/.test(count);
    return {
      title: `Limit ${topic}`,
      verb: 'Limit',
      says: 'Each consumer of the topic runs at most so many handlers at once. It never raises what the code allows.',
      done: `${topic} is limited to ${count} at once.`,
      control: isNumber
        ? { kind: 'concurrency', topic, concurrencyMax: handlers }
        : { missing: 'a whole number of handlers, 1 or more,' },
      command: `holdfast topics concurrency ${shellWord(topic)} ${count || '…'}`,
    };
  },
  skip(topic, { eventId = '' }) {
    return {
      title: `Skip an event of ${topic}`,
      verb: 'Skip',
      says: 'The next time it is taken it is parked instead of handled. It can be replayed from the parking lot.',
      done: `${eventId} is skipped.`,
      control: eventId === '' ? { missing: 'the id of the event' } : { kind: 'skip', topic, eventId },
      command: `holdfast topics skip ${shellWord(topic)} ${shellWord(eventId || '…')}`,
    };
  },
};

/** Programs of assemblies (work of several steps) have other terminal commands than topics. */
function commandOf(topic: string, verb: string): { readonly verb: string; readonly name: string } {
  return topic.startsWith('assembly/')
    ? { verb: `assembly ${verb}`, name: topic.slice('assembly/'.length) }
    : { verb: `topics ${verb}`, name: topic };
}
