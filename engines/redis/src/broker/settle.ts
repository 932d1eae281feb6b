import {
  clampMs,
  commitFailed,
  diagnosisOf,
  FeatureMissingError,
  LEASE_LOST,
  type Lease,
  type NewlyParked,
  parkedTopic,
  type ReplayedEvent,
  type Settlement,
  type SettlementResult,
  TOOK,
  TOPIC_UNKNOWN,
  type Triage,
} from '@holdfast/contracts';
import { noTransaction } from '../features.ts';
import { type RedisClient, scriptOf } from '../script-runner.ts';
import { bodyOf, envelopeOf, triesOf, triesText } from './event-text.ts';
import * as scripts from './lua/settle.ts';
import { markKey, topicKey } from './topic-keys.ts';

export interface SettlerSettings {
  readonly prefix: string;
  readonly keepMarksMs: number;
  /**
   * The triage of the option `store`, which keeps parked events. `undefined`: parked events go to the
   * dead-letter topic.
   */
  readonly triage: Triage | undefined;
  /** Stores an event in another topic. Resolves to false if the topic does not exist. */
  move(topic: string, id: string, body: string, tries: string, replay: string | undefined): Promise<boolean>;
  /** Called after events were parked in a dead-letter topic, so that the topic is listed. */
  onParked(topic: string): Promise<void>;
}

/** A leased event that must be written to the store or another topic before it is removed from its topic. */
type Deferred = [body: string, tries: string, replay: string];
type Answer = 0 | 1 | Deferred;

interface Item {
  readonly index: number;
  readonly settlement: Settlement<never>;
}

/** The member that stands for this lease in the sorted set `:leased`. */
export function leaseName({ token, id }: Lease): string {
  return `${token}\0${id}`;
}

export function redisSettler(client: RedisClient, settings: SettlerSettings) {
  const { prefix, keepMarksMs, triage } = settings;
  const run = scriptOf(client, 'broker_settle', scripts.settle);

  /**
   * Runs the script for the settlements of one topic. The script wants acknowledgements first, so the answers
   * are sorted back into the order of `items`.
   */
  async function runScript(
    topic: string,
    items: readonly Item[],
    mode: 'first' | 'written',
  ): Promise<Answer[]> {
    const isAck = ({ settlement: { kind } }: Item) => kind === 'ack' || kind === 'discard';
    const isWritten = mode === 'written';
    const acks: number[] = [];
    const others: number[] = [];
    for (const [at, item] of items.entries()) {
      const blocks = item.settlement.kind === 'park' && item.settlement.holdsKey === true;
      (isAck(item) || (isWritten && !blocks) ? acks : others).push(at);
    }
    const order = [...acks, ...others];
    const args: (string | number)[] = [triage && !isWritten ? 1 : 0, clampMs(keepMarksMs), acks.length];
    for (const at of acks) args.push(leaseName(items[at]!.settlement.lease));
    const marks: (string | number)[] = [];
    for (const [position, at] of order.entries()) {
      const { marks: handlers = [], lease } = items[at]!.settlement;
      for (const handler of handlers) marks.push(position + 1, markKey(prefix, handler, lease.id));
    }
    args.push(marks.length / 2, ...marks);
    for (const at of others) {
      const { settlement } = items[at]!;
      args.push(leaseName(settlement.lease), ...(isWritten ? blockArgs : argsOf(settlement)));
    }
    const keys = [topicKey(prefix, topic), topicKey(prefix, parkedTopic(topic))];
    const answers = (await run(keys, args)) as Answer[];
    const inOrder: Answer[] = [];
    for (const [position, at] of order.entries()) inOrder[at] = answers[position]!;
    return inOrder;
  }

  function argsOf(settlement: Settlement<never>): (string | number)[] {
    switch (settlement.kind) {
      case 'retry': {
        const story = JSON.stringify(settlement.story);
        const isFree = settlement.holdsKey === false ? 1 : 0;
        return ['retry', clampMs(settlement.delayMs), JSON.stringify(settlement.error), story, isFree, ''];
      }
      case 'snooze':
        return ['snooze', clampMs(settlement.delayMs), '', '', 0, ''];
      case 'park': {
        if (triage) return ['defer', 0, '', '', 0, ''];
        const diagnosis = JSON.stringify(diagnosisOf(settlement, 0));
        return ['park', 0, '', '', settlement.holdsKey ? 1 : 0, diagnosis];
      }
      case 'reroute':
        return [settlement.to === settlement.lease.topic ? 'requeue' : 'defer', 0, '', '', 0, ''];
      default:
        return [settlement.kind, 0, '', '', 0, ''];
    }
  }

  /**
   * Writes events to the store or to another topic. Returns the items whose events can be removed from their
   * topic.
   */
  async function writeElsewhere(topic: string, deferred: readonly [Item, Deferred][]): Promise<Item[]> {
    const parked: NewlyParked[] = [];
    const resolved: ReplayedEvent[] = [];
    const written: Item[] = [];
    for (const [item, [body, tries, replay]] of deferred) {
      const { settlement } = item;
      const { id, token } = settlement.lease;
      const sequence = token.split(':')[1]!;
      const state = triesOf(tries);
      const isParked = state.diagnosis !== undefined;
      const envelope = envelopeOf(id, sequence, topic, body, replay === '' ? undefined : replay, isParked);
      if (settlement.kind === 'park') {
        const { keepMs } = settlement;
        const diagnosis = diagnosisOf(settlement, state.attempts);
        parked.push({ ...envelope, diagnosis, ...(keepMs !== undefined && { keepMs }) });
      } else if (settlement.kind === 'reroute') {
        const { originTopic, firstSeenAt, expiresAt } = envelope;
        const moved = bodyOf({ ...definedOf(envelope), past: { originTopic, firstSeenAt } }, expiresAt);
        const { lastError, story } = state;
        const wasMoved = await settings.move(
          settlement.to,
          id,
          moved,
          triesText({ lastError, story }),
          envelope.replay,
        );
        if (!wasMoved) continue;
      } else resolved.push({ id, operation: replay });
      written.push(item);
    }
    if (parked.length > 0) await triage!.put(parked);
    if (resolved.length > 0) await triage!.resolve(resolved);
    return written;
  }

  async function settleTopic(
    topic: string,
    items: readonly Item[],
    results: SettlementResult[],
  ): Promise<void> {
    const answers = await runScript(topic, items, 'first');
    const deferred: [Item, Deferred][] = [];
    for (const [at, item] of items.entries()) {
      const answer = answers[at]!;
      if (typeof answer === 'object') deferred.push([item, answer]);
      else if (answer === 1) results[item.index] = TOOK;
    }
    if (!triage && items.some(({ settlement }) => settlement.kind === 'park'))
      await settings.onParked(parkedTopic(topic));
    if (deferred.length === 0) return;
    const written = await writeElsewhere(topic, deferred);
    for (const [{ index }] of deferred) results[index] = TOPIC_UNKNOWN;
    const ended = await runScript(topic, written, 'written');
    for (const [at, { index }] of written.entries()) results[index] = ended[at] === 1 ? TOOK : LEASE_LOST;
  }

  return async (batch: readonly Settlement<never>[]): Promise<SettlementResult[]> => {
    const results: SettlementResult[] = batch.map(() => LEASE_LOST);
    const byTopic = new Map<string, Item[]>();
    for (const [index, settlement] of batch.entries()) {
      if (settlement.kind === 'ack' && settlement.commit) {
        results[index] = commitFailed(new FeatureMissingError('sharedTransaction', noTransaction));
        continue;
      }
      const { topic } = settlement.lease;
      const items = byTopic.get(topic);
      if (items) items.push({ index, settlement });
      else byTopic.set(topic, [{ index, settlement }]);
    }
    await Promise.all(Array.from(byTopic, ([topic, items]) => settleTopic(topic, items, results)));
    return results;
  };
}

const blockArgs = ['block', 0, '', '', 0, ''];

function definedOf(envelope: ReturnType<typeof envelopeOf>) {
  const { payload, type, key, tenant, headers, correlationId, idempotencyKey } = envelope;
  return {
    ...{ payload, headers, correlationId, idempotencyKey },
    ...(type !== undefined && { type }),
    ...(key !== undefined && { key }),
    ...(tenant !== undefined && { tenant }),
  };
}
