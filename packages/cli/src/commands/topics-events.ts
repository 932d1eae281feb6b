import type { Broker } from '@holdfast/contracts';
import { actFlags, actOf, byHand, harmlessActFlags } from '../acts.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { imposeControl, liftControl } from '../impose-control.ts';
import { allPages, eventIds, idsIn } from '../parked-ids.ts';
import { wholeId } from '../short-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { knownTopic } from '../topics.ts';

export const topicsSkip: Command = {
  name: 'topics skip',
  summary: 'park events instead of handling them, the next time they are taken',
  operands: '<topic> <id…>',
  flags: { ...storeFlag, ...actFlags, undo: { says: 'let them be handled' } },
  examples: ["topics skip orders 14e22cc7 --why 'it crashes the consumer'"],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const { topic, ids } = await chosen(given, engine);
      const act = actOf(given, terminal);
      const codes: number[] = [];
      for (const eventId of ids) {
        const control = { kind: 'skip', topic, eventId } as const;
        codes.push(
          await (given.flags.undo
            ? liftControl(engine, control, act, given, terminal)
            : imposeControl(engine, control, act, given, terminal)),
        );
      }
      return Math.max(...codes);
    }),
};

export const topicsRetry: Command = {
  name: 'topics retry',
  summary: 'make delayed events due now',
  operands: '<topic> [id…]',
  flags: { ...storeFlag, all: { says: 'everything that is delayed' }, ...harmlessActFlags },
  examples: ["topics retry orders 14e22cc7 --why 'the bank is back'", 'topics retry orders --all'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const { broker } = engine;
      const act = actOf(given, terminal, byHand);
      if (!given.flags.all) {
        const { topic, ids } = await chosen(given, engine);
        return report(given, terminal.out, ids, await broker.retryNow(topic, ids, act), 'due now', 'delayed');
      }
      if (given.operands.length !== 1) throw new UsageError('say a topic with --all, or ids: not both.');
      const topic = await knownTopic(given.operands[0]!, broker);
      let count = 0;
      for await (const ids of delayedIds(broker, topic))
        count += (await broker.retryNow(topic, ids, act)).filter(Boolean).length;
      terminal.out(given.flags.json ? JSON.stringify({ topic, count }) : `${count} events are due now.`);
      return 0;
    }),
};

export const topicsUnblock: Command = {
  name: 'topics unblock',
  summary: 'let later events of a key go on although this parked one came first',
  operands: '<topic> <id…>',
  flags: { ...storeFlag, ...actFlags },
  examples: ["topics unblock orders 14e22cc7 --why 'the order of these does not matter'"],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const { broker } = engine;
      const { topic, ids } = await chosen(given, engine);
      const changed = await broker.unblock(topic, ids, actOf(given, terminal));
      return report(given, terminal.out, ids, changed, 'no longer in the way', 'in the way of others');
    }),
};

/** Reads all ids first. The caller makes the events due, and that changes the list. */
async function* delayedIds(broker: Broker, topic: string): AsyncIterable<readonly string[]> {
  const all: (readonly string[])[] = [];
  for await (const ids of waitingIds(broker, topic, 'delayed')) all.push(ids);
  yield* all;
}

function waitingIds(broker: Broker, topic: string, state?: 'delayed'): AsyncIterable<readonly string[]> {
  const question = state === undefined ? {} : { state };
  return idsIn(
    allPages((page) => broker.waiting(topic, page, question)),
    'id',
  );
}

/** Returns the whole ids of waiting or parked events. The user may have shortened them. */
async function chosen(
  { operands }: Given,
  { broker, triage }: OpenStore,
): Promise<{ topic: string; ids: string[] }> {
  const [name, ...given] = operands;
  if (name === undefined || given.length === 0)
    throw new UsageError('the name of a topic and ids of events are needed.');
  const topic = await knownTopic(name, broker);
  const ids: string[] = [];
  for (const id of given) {
    const waiting = await wholeId('events', id, waitingIds(broker, topic));
    ids.push(...(waiting === undefined ? await eventIds(triage, [id]) : [waiting]));
  }
  return { topic, ids };
}

function report(
  given: Given,
  out: (line: string) => void,
  ids: readonly string[],
  changed: readonly boolean[],
  isNow: string,
  was: string,
): number {
  ids.forEach((id, index) => {
    const isDone = changed[index] === true;
    if (given.flags.json) out(JSON.stringify({ id, isDone }));
    else out(isDone ? `${id} is ${isNow}.` : `${id} was not ${was}.`);
  });
  return changed.every(Boolean) ? 0 : 1;
}
