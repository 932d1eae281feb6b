import { type WaitingQuestion, type WaitingState, waitingStates } from '@holdfast/contracts';
import { spanText } from '@holdfast/events';
import { type Command, type Given, UsageError } from '../command.ts';
import { errorLine } from '../error-line.ts';
import { countOf, textOf } from '../given-values.ts';
import { cursorOf, pasteable } from '../page-cursor.ts';
import { shortNames } from '../short-ids.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad } from '../styled-text.ts';
import { type Cell, table } from '../table.ts';
import { oneLine } from '../text-width.ts';
import { date } from '../times.ts';
import { topicOperand } from '../topics.ts';

export const topicsWaiting: Command = {
  name: 'topics waiting',
  summary: 'events of a topic that are not finished, in the order of publication',
  operands: '<topic>',
  flags: {
    ...storeFlag,
    state: { value: 'state', many: true, says: `one of ${waitingStates.join(', ')}` },
    key: { value: 'key', says: 'with this key' },
    tenant: { value: 'tenant', says: 'of this tenant' },
    due: { says: 'in the order in which they are due' },
    limit: { value: 'count', says: 'at most so many; 20 unless given' },
    cursor: { value: 'cursor', says: 'the page after this one' },
  },
  examples: ['topics waiting orders --state delayed --due', 'topics waiting orders --key customer-7'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ broker, controls }) => {
      const topic = await topicOperand(given, broker);
      const cursor = cursorOf(given);
      const page = { limit: countOf(given, 'limit', 1) ?? 20, ...(cursor !== undefined && { cursor }) };
      const { items, cursor: next } = await broker.waiting(topic, page, questionOf(given));
      if (given.flags.json) {
        for (const item of items) terminal.out(JSON.stringify(item));
        if (next !== undefined) terminal.err(`holdfast: there are more, with --cursor ${pasteable(next)}`);
        return 0;
      }
      if (items.length === 0) {
        terminal.out('Nothing waits here.');
        return 0;
      }
      const { now } = await controls.active();
      const short = shortNames(
        items.map(({ id }) => id),
        terminal,
      );
      const due = (dueAt: number) => {
        if (terminal.columns === undefined) return date(dueAt);
        return dueAt <= now ? `${spanText(now - dueAt)} ago` : `in ${spanText(dueAt - now)}`;
      };
      const rows = items.map(
        ({ id, key = '', tenant = '', state, attempts, dueAt, owner = '', lastError }) => [
          ...[short(id), key, tenant, state === 'suspect' || state === 'blocking' ? bad(state) : state],
          ...[String(attempts), due(dueAt), owner],
          lastError ? bad(oneLine(errorLine(lastError.type, lastError.message), 120)) : ('' as Cell),
        ],
      );
      const headings = [
        { heading: 'ID', whole: true },
        ...['KEY', 'TENANT', 'STATE'],
        { heading: 'FAILED', align: 'right' },
        { heading: 'DUE', whole: true },
        'TAKEN BY',
        { heading: 'LAST ERROR', below: true },
      ] as const;
      terminal.out(table(headings, rows, terminal.columns));
      if (next !== undefined) terminal.out(`\nmore with --cursor ${pasteable(next)}`);
      return 0;
    }),
};

function questionOf(given: Given): WaitingQuestion {
  const states = given.lists.state ?? [];
  for (const state of states) {
    if (!(waitingStates as readonly string[]).includes(state))
      throw new UsageError(`--state: expected one of ${waitingStates.join(', ')}, got "${state}".`);
  }
  const [key, tenant] = [textOf(given, 'key'), textOf(given, 'tenant')];
  return {
    ...(states.length > 0 && { state: states as WaitingState[] }),
    ...(key !== undefined && { key }),
    ...(tenant !== undefined && { tenant }),
    ...(given.flags.due && { order: 'due' as const }),
  };
}
