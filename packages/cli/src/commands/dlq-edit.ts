import {
  type Edit,
  type EditChange,
  editDiff,
  type Headers,
  type ParkedEvent,
  type Payload,
} from '@holdfast/contracts';
import { newJsonMistake, operations, PayloadFieldError, withPayloadField } from '@holdfast/events';
import { actFlags, actOf } from '../acts.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { readText } from '../files.ts';
import { onlyOperand, textOf } from '../given-values.ts';
import { pair } from '../parked-flags.ts';
import { eventIds } from '../parked-ids.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad, good, styled } from '../styled-text.ts';
import { withCommand } from '../suggested-command.ts';
import type { Terminal } from '../terminal.ts';
import { followReplay } from './dlq-replay.ts';

export const dlqEdit: Command = {
  name: 'dlq edit',
  summary: 'change payload or headers of a parked event; the original is kept',
  operands: '<id>',
  flags: {
    ...storeFlag,
    set: { value: 'path=value', many: true, says: 'a field of a JSON payload: payload.lines.0.price=12' },
    payload: { value: 'file', says: 'take the whole payload from this file' },
    'as-text': { says: 'take the file even if it is not JSON and the payload was' },
    original: { says: 'put payload and headers back as they were before the first edit' },
    header: { value: 'name=value', many: true, says: 'set this header; without a value, remove it' },
    'dry-run': { says: 'only show what would change' },
    replay: { says: 'then replay it' },
    ...actFlags,
  },
  examples: [
    "dlq edit 14e22cc7 --set payload.total=12.5 --why 'the total was a text' --replay",
    'dlq edit 14e22cc7 --payload fixed.json --dry-run',
    "dlq edit 14e22cc7 --original --why 'the wrong event'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const [id = ''] = await eventIds(engine.triage, [onlyOperand(given, 'the id of an event')]);
      const event = await engine.triage.get(id);
      if (!event) {
        terminal.err(`holdfast: no event ${id} is parked here.`);
        return 1;
      }
      if (event.status !== 'parked' || event.operation !== undefined) {
        const why =
          event.status === 'parked' ? `it belongs to operation ${event.operation}` : `it is ${event.status}`;
        terminal.err(`holdfast: ${id} was not edited: ${why}.`);
        return 1;
      }
      const edit = await editOf(given, event);
      const changes = editDiff(event, { ...event, ...edit });
      if (given.flags.json) terminal.out(JSON.stringify({ id, version: event.version, changes }));
      else printChanges(changes, terminal);
      if (changes.length === 0) {
        terminal.err(`holdfast: nothing would change in event ${id}.`);
        return 1;
      }
      if (given.flags['dry-run']) return 0;
      const act = actOf(given, terminal);
      // With the version, the edit fails if another user has edited the event in the meantime.
      if (!(await engine.triage.edit(id, { ...edit, version: event.version }, act))) {
        terminal.err(`holdfast: event ${id} is not parked here any more.`);
        return 1;
      }
      if (!given.flags.json) {
        const undo = `dlq edit ${id} --original --why …`;
        const says = `${id} is edited. Put it back as it was before the first edit with`;
        if (given.flags.original) terminal.out(`${id} is as it was before the first edit.`);
        else if (given.flags.replay) terminal.out(`${id} is edited.`);
        else terminal.out(withCommand(says, undo, given, terminal));
      }
      if (!given.flags.replay) return 0;
      const runner = operations({ engine });
      const request = { kind: 'replay', filter: { ids: [id] }, canary: 0, expected: 1 } as const;
      const replay = await runner.begin(request, act);
      return followReplay(engine, runner, replay.id, given, terminal);
    }),
};

function printChanges(changes: readonly EditChange[], terminal: Terminal): void {
  for (const { path, before, after } of changes) {
    if (before !== undefined) terminal.out(styled(bad(`- ${path}: ${before}`)));
    if (after !== undefined) terminal.out(styled(good(`+ ${path}: ${after}`)));
  }
}

async function editOf(given: Given, event: ParkedEvent): Promise<Edit> {
  const file = textOf(given, 'payload');
  const fields = given.lists.set ?? [];
  const changed = given.lists.header ?? [];
  if (given.flags.original) {
    if (file !== undefined || fields.length > 0 || changed.length > 0)
      throw new UsageError('--original: it changes all, so leave --set, --payload and --header out.');
    return { ...(event.original ?? { payload: event.payload }) };
  }
  if (file === undefined && fields.length === 0 && changed.length === 0)
    throw new UsageError('what is to change? Say --set, --payload, --header or --original.');
  let payload: Payload | undefined = file === undefined ? undefined : await readText(file);
  const mistake =
    payload === undefined || given.flags['as-text'] ? undefined : newJsonMistake(event.payload, payload);
  if (mistake !== undefined)
    throw new UsageError(`--payload: ${file} is not JSON: ${mistake}. If that is meant, say --as-text.`);
  for (const field of fields) payload = withField(payload ?? event.payload, field);
  return {
    ...(payload !== undefined && { payload }),
    ...(changed.length > 0 && { headers: withHeaders(event.headers, changed) }),
  };
}

function withHeaders(headers: Headers, changed: readonly string[]): Headers {
  const result: Record<string, string> = { ...headers };
  for (const each of changed) {
    const [name, value] = pair(each, 'header');
    if (value === '') delete result[name];
    else result[name] = value;
  }
  return result;
}

/** Sets one field, as in `payload.lines.0.price=12`. A value that is not valid JSON is taken as a string. */
function withField(payload: Payload, field: string): string {
  const [path, text] = pair(field, 'set');
  try {
    return withPayloadField(payload, path, jsonOrText(text));
  } catch (error) {
    if (error instanceof PayloadFieldError) throw new UsageError(`--set: ${error.message}.`);
    throw error;
  }
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a string that the user has typed without quotes
  }
}
