import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnswerOf } from '../../src/api/routes.ts';
import { ask } from '../api.ts';
import { many, span } from '../format.ts';
import { ActButton, ActDialog } from '../parts/act-dialog.tsx';
import { shellWord } from '../shell-word.ts';
import { tell } from '../toast.tsx';
import type { FilterWords } from './lot-url.ts';

type Rule = AnswerOf<'GET /rules'>['items'][number];

/** Lists the rules. A rule acts automatically on newly parked events that match its filter. */
export function RulesDialog({
  rules,
  close,
  changed,
}: {
  readonly rules: readonly Rule[];
  readonly close: () => void;
  readonly changed: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [removed, setRemoved] = useState<Rule>();
  useEffect(() => {
    if (removed) return;
    const box = dialog.current;
    box?.showModal();
    return () => box?.close();
  }, [removed]);
  if (removed)
    return (
      <ActDialog
        title={`Delete the rule “${removed.name}”`}
        verb="Delete the rule"
        command={`holdfast dlq rules rm ${shellWord(removed.name)}`}
        isDestructive
        close={() => setRemoved(undefined)}
        act={async (why, key) => {
          await ask('DELETE /rules/:name', {
            path: { name: removed.name },
            body: { why },
            headers: { 'idempotency-key': key },
          });
          changed();
          tell(`The rule “${removed.name}” is deleted. The audit log can bring it back.`);
        }}
      >
        <p class="soft">
          Events that match <code>{removed.filter}</code> stay parked from now on. What the rule has done
          stays done.
        </p>
      </ActDialog>
    );
  return (
    <dialog
      ref={dialog}
      aria-labelledby="rules-title"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header>
        <h2 id="rules-title">Rules</h2>
      </header>
      <div class="body">
        <p class="soft">
          A process that runs <code>maintenance</code> applies them to newly parked events; the first that
          matches counts.
        </p>
        {rules.length === 0 && (
          <p>There is no rule. Choose events, and make one of what they have in common.</p>
        )}
        <ul class="rules">
          {rules.map((rule) => (
            <li key={rule.name}>
              <span>
                <b>{rule.name}</b>
                <small>
                  {rule.action}
                  {rule.afterMs > 0 && ` after ${span(rule.afterMs)}`}: <code>{rule.filter}</code>
                </small>
              </span>
              <ActButton isTiny onClick={() => setRemoved(rule)}>
                Delete…
              </ActButton>
            </li>
          ))}
        </ul>
      </div>
      <footer>
        <button type="button" class="btn first" onClick={close}>
          Close
        </button>
      </footer>
    </dialog>
  );
}

const actions: readonly (readonly [Rule['action'], string])[] = [
  ['replay', 'replay it'],
  ['discard', 'discard it'],
  ['notify', 'tell somebody'],
];

export function MakeRuleDialog({
  filter,
  of,
  close,
  done,
}: {
  readonly filter: FilterWords;
  readonly of: string;
  readonly close: () => void;
  readonly done: () => void;
}) {
  const [name, setName] = useState('');
  const [action, setAction] = useState<Rule['action']>('notify');
  const [minutes, setMinutes] = useState('10');
  const [matches, setMatches] = useState<number>();
  // A rule applies to events that are parked in the future. So leave out times, status and ids.
  const { from, to, status, id, ...words } = filter;
  const asked = JSON.stringify(words);
  useEffect(() => {
    ask('PUT /rules/:name', {
      path: { name: 'dry' },
      body: { filter: JSON.parse(asked), action: 'notify', dry: true },
    }).then(
      (answer) => setMatches(answer.matches),
      () => setMatches(undefined),
    );
  }, [asked]);
  const afterMs = Math.round(Number(minutes) * 6e4);
  const isFilled = name.trim() !== '' && afterMs >= 0;
  return (
    <ActDialog
      title={`Make a rule ${of}`}
      verb="Make the rule"
      canSend={isFilled}
      isDestructive={action === 'discard'}
      command={`holdfast dlq rules set ${shellWord(name)} ${flagsOf(words)} --action ${action} --after ${minutes}m`}
      close={close}
      act={async (why, key) => {
        await ask('PUT /rules/:name', {
          path: { name: name.trim() },
          body: { filter: words, action, afterMs, why },
          headers: { 'idempotency-key': key },
        });
        done();
        tell(`The rule “${name.trim()}” is set.`);
      }}
    >
      <p class="soft">
        It applies to events that are parked from now on and match <code>{flagsOf(words)}</code>
        {matches !== undefined && `; of those that are parked now, it would match ${many(matches, 'event')}`}.
      </p>
      <div class="fields">
        <label class="field">
          <span>Name</span>
          <input class="input" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Then</span>
          <select value={action} onChange={(event) => setAction(event.currentTarget.value as Rule['action'])}>
            {actions.map(([value, says]) => (
              <option key={value} value={value}>
                {says}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>After minutes</span>
          <input
            class="input"
            inputMode="decimal"
            value={minutes}
            onInput={(event) => setMinutes(event.currentTarget.value)}
          />
        </label>
      </div>
    </ActDialog>
  );
}

function flagsOf(words: object): string {
  return Object.entries(words)
    .flatMap(([name, values]) => [values].flat().map((value) => `--${name} ${shellWord(String(value))}`))
    .join(' ');
}
