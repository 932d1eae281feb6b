import { readFileSync } from 'node:fs';
import { eventOf } from './event-of.ts';
import { type Effect, effectsIn, isBroker, type Place } from './place.ts';

export interface Findings {
  /** How many events were published, and answered. */
  events: number;
  lost: number;
  /** On a store: effects in it that were made twice. On a broker: effects of handlers that began after their event was done. */
  repeated: number;
  outOfOrder: number;
  /** The same since the server was first restarted, if a restart of this server itself changes the order of its messages. */
  outOfOrderByServer: number;
  /** Effects that were made again, under the same idempotency key, by handlers that began before their event was done. */
  externalRepeats: number;
}

/** Written into the record before each restart of the server, and when it is back. */
export const restartBegins = 'restart';
export const restartEnds = 'restarted';

/**
 * What was promised to the publisher, against what was done. ElasticMQ, which stands for SQS, does not keep the order of a
 * FIFO queue over its own restart: without us, of 200 messages in 5 groups, 5 to 25 came out of order after each of 8
 * restarts, and none without one.
 */
export async function audit(place: Place, log: string): Promise<Findings> {
  const record = recordIn(log);
  assertSameKeys(record.effects);
  const kept = isBroker(place.engine) ? undefined : await effectsIn(place);
  const made = new Set((kept ?? record.effects).map(({ eventId }) => eventId));
  const again = record.effects.length - new Set(record.effects.map(({ eventId }) => eventId)).size;
  const inTime = record.effects.filter(({ isSuperseded }) => !isSuperseded);
  const misplaced = [...new Set([...disorder(firstOfEach(inTime)), ...disorder(lastOfEach(inTime))])];
  const byServer = place.engine === 'sqs' ? misplaced.filter(({ isRestarted }) => isRestarted).length : 0;
  const repeated = kept ? kept.length - made.size : record.effects.filter(({ isLate }) => isLate).length;
  return {
    events: record.published,
    lost: numbersBelow(record.published).filter((number) => !made.has(eventOf(number).id)).length,
    repeated,
    outOfOrder: disorder(kept ?? []).length + misplaced.length - byServer,
    outOfOrderByServer: byServer,
    externalRepeats: kept ? again : again - repeated,
  };
}

/** The publisher goes on after what it has the answer for; what it had none for it publishes again. */
export function firstUnpublished(log: string): number {
  return recordIn(log).published;
}

/** True: all published events have an effect on record. */
export function isAllHandled(log: string): boolean {
  const { published, effects } = recordIn(log);
  const made = new Set(effects.map(({ eventId }) => eventId));
  return numbersBelow(published).every((number) => made.has(eventOf(number).id));
}

interface RecordedEffect extends Effect {
  readonly key: string;
  /** Its event was done before the handler began. */
  readonly isLate: boolean;
  /** Another process had begun the event again before this effect: the lease of this handler was over. */
  readonly isSuperseded: boolean;
  /** The server was restarted before. */
  readonly isRestarted: boolean;
}

interface RecordKept {
  /** All below this number were answered. */
  readonly published: number;
  readonly effects: readonly RecordedEffect[];
}

function recordIn(log: string): RecordKept {
  let published = 0;
  const effects: RecordedEffect[] = [];
  const done = new Set<string>();
  /** Handlers that began before their event was done: `<event> <process>`. */
  const early = new Set<string>();
  /** The process that began an event last. */
  const handledBy = new Map<string, string>();
  let isRestarted = false;
  for (const line of readFileSync(log, 'utf8').split('\n').slice(0, -1)) {
    const [what, eventId = '', word = '', lane, number, key = '', pid = ''] = line.split(' ');
    if (what === 'published') published = Number(word);
    else if (what === 'done') done.add(eventId);
    else if (what === 'begun') {
      handledBy.set(eventId, word);
      if (done.has(eventId)) early.delete(`${eventId} ${word}`);
      else early.add(`${eventId} ${word}`);
    } else if (what === restartBegins) isRestarted = true;
    else if (what === 'effect') {
      const isLate = done.has(eventId) && !early.has(`${eventId} ${pid}`);
      const isSuperseded = (handledBy.get(eventId) ?? pid) !== pid;
      effects.push({
        ...{ eventId, lane: `${word} ${lane}`, number: Number(number), key },
        ...{ isLate, isSuperseded, isRestarted },
      });
    }
  }
  return { published, effects };
}

function assertSameKeys(effects: readonly RecordedEffect[]): void {
  const keys = new Map<string, string>();
  for (const { eventId, key } of effects) {
    if ((keys.get(eventId) ?? key) !== key)
      throw new Error(`A repeat must have the same idempotency key, ${eventId} had another.`);
    keys.set(eventId, key);
  }
}

function numbersBelow(end: number): number[] {
  return Array.from({ length: end }, (_, number) => number);
}

function firstOfEach<E extends Effect>(effects: readonly E[]): E[] {
  const seen = new Set<string>();
  return effects.filter(({ eventId }) => !seen.has(eventId) && seen.add(eventId));
}

/** An effect that is made again must still come before those of later events. */
function lastOfEach<E extends Effect>(effects: readonly E[]): E[] {
  const last = new Map(effects.map((effect, index) => [effect.eventId, index]));
  return effects.filter(({ eventId }, index) => last.get(eventId) === index);
}

/** Effects that came after one of the same key which should have followed them. */
function disorder<E extends Effect>(effects: readonly E[]): E[] {
  const latest = new Map<string, number>();
  return effects.filter(({ lane, number }) => {
    const isOvertaken = number < (latest.get(lane) ?? -1);
    if (!isOvertaken) latest.set(lane, number);
    return isOvertaken;
  });
}
