import type { Clock } from 'holdfast';
import type { Settlement } from '../broker.ts';
import { FeatureMissingError } from '../contract-errors.ts';
import { diagnosisOf } from '../diagnosis.ts';
import type { NewEvent } from '../envelope.ts';
import { whyMissing } from '../features.ts';
import { clampMs } from '../for-engines.ts';
import {
  commitFailed,
  LEASE_LOST,
  type SettlementResult,
  TOOK,
  TOPIC_UNKNOWN,
} from '../settlement-result.ts';
import type { NewlyParked, ReplayedEvent } from '../triage.ts';
import type { Entry } from './backlog.ts';
import { type Change, copyMessage, movedEvent, newlyParked } from './carried-event.ts';
import type { CarriedTopic } from './carried-topic.ts';
import type { Carrier, Message, QueueName } from './carrier.ts';
import { carrierFeatures } from './features.ts';
import type { Store } from './store.ts';

export interface SettlementSettings<Handle> {
  readonly carrier: Carrier<Handle>;
  readonly clock: Clock;
  readonly store: Store | undefined;
  parkedTopic(topic: string): string;
  hasTopic(topic: string): Promise<boolean>;
}

export interface LeasedEntry<Handle> {
  readonly topic: CarriedTopic<Handle>;
  readonly entry: Entry<Handle>;
  readonly settlement: Settlement;
}

/**
 * Settles events that the message broker has delivered: for example acknowledges, retries or parks them. It first
 * writes what becomes of every event (for example the copy for its retry, or the parked event), and only then
 * acknowledges the messages. After a crash in between, some events are handled again, but none is lost.
 */
export async function settleCarried<Handle>(
  leased: readonly LeasedEntry<Handle>[],
  settings: SettlementSettings<Handle>,
): Promise<SettlementResult[]> {
  const refused = await refusalsOf(leased, settings);
  const accepted = refused ? leased.filter((_, index) => refused[index] === undefined) : leased;
  const writes = new Writes(settings);
  for (const { entry, settlement } of accepted)
    if (entry.written !== settlement.kind) writes.plan(entry, settlement);
  await writes.perform();
  for (const { entry, settlement } of accepted) entry.written = settlement.kind;

  const ended = accepted.filter(({ settlement }) => settlement.kind !== 'return');
  const done = ended.length > 0 ? await settings.carrier.done(ended.map(({ entry }) => entry.handle)) : [];
  const lost = new Set(ended.filter((_, index) => done[index] === false));
  for (const item of accepted) {
    if (item.settlement.kind !== 'return') item.topic.intake.forget(item.entry);
    else item.topic.giveBack(item.entry);
  }
  return leased.map((item, index) => refused?.[index] ?? (lost.has(item) ? LEASE_LOST : TOOK));
}

/**
 * Returns for each settlement why it is refused, if it is. `undefined`: the batch has only settlements that
 * are never refused.
 */
async function refusalsOf<Handle>(
  leased: readonly LeasedEntry<Handle>[],
  settings: SettlementSettings<Handle>,
): Promise<(SettlementResult | undefined)[] | undefined> {
  const mayBeRefused = ({ settlement }: LeasedEntry<Handle>) =>
    settlement.kind === 'reroute' || (settlement.kind === 'ack' && settlement.commit !== undefined);
  if (!leased.some(mayBeRefused)) return undefined;
  return Promise.all(leased.map((item) => refusalOf(item, settings)));
}

async function refusalOf<Handle>(
  { settlement }: LeasedEntry<Handle>,
  { carrier, store, hasTopic }: SettlementSettings<Handle>,
): Promise<SettlementResult | undefined> {
  if (settlement.kind === 'ack' && settlement.commit) {
    const why = whyMissing(carrierFeatures(carrier, store), 'sharedTransaction')!;
    return commitFailed(new FeatureMissingError('sharedTransaction', why));
  }
  if (settlement.kind === 'reroute' && !(await hasTopic(settlement.to))) return TOPIC_UNKNOWN;
  return undefined;
}

class Writes<Handle> {
  readonly #settings: SettlementSettings<Handle>;
  readonly #messages = new Map<string, { topic: string; queue: QueueName; messages: Message[] }>();
  readonly #moved = new Map<string, NewEvent[]>();
  readonly #parked: NewlyParked[] = [];
  readonly #resolved: ReplayedEvent[] = [];
  readonly #marks: { handler: string; eventId: string }[] = [];
  readonly #now: number;

  constructor(settings: SettlementSettings<Handle>) {
    this.#settings = settings;
    this.#now = settings.clock.epochMs();
  }

  plan(entry: Entry<Handle>, settlement: Settlement): void {
    const { event } = entry;
    const { store } = this.#settings;
    for (const handler of settlement.marks ?? []) this.#marks.push({ handler, eventId: event.id });
    switch (settlement.kind) {
      case 'ack':
      case 'discard':
        if (event.replay !== undefined) this.#resolved.push({ id: event.id, operation: event.replay });
        break;
      case 'retry': {
        const { error, story, holdsKey } = settlement;
        const delayMs = clampMs(settlement.delayMs);
        const change = {
          attempts: event.attempts + 1,
          nextDelayMs: delayMs,
          lastError: error,
          story,
          delayMs,
        };
        this.#repeat(entry, change, holdsKey);
        break;
      }
      case 'snooze': {
        const delayMs = clampMs(settlement.delayMs);
        this.#repeat(entry, { snoozes: event.snoozes + 1, nextDelayMs: delayMs, delayMs });
        break;
      }
      case 'park': {
        const diagnosis = diagnosisOf(settlement, event.attempts);
        if (!store) {
          this.#send(this.#settings.parkedTopic(event.topic), 'hot', entry, { diagnosis });
          break;
        }
        this.#parked.push(newlyParked(event, diagnosis, settlement));
        if (settlement.holdsKey && event.key !== undefined)
          this.#move(event.topic, movedEvent(event, this.#now, { blocking: true }));
        break;
      }
      case 'reroute':
        this.#send(settlement.to, 'hot', entry, { attempts: 0, snoozes: 0, nextDelayMs: undefined });
    }
  }

  async perform(): Promise<void> {
    const { carrier, store } = this.#settings;
    if (store?.ledger && this.#marks.length > 0) await store.ledger.mark(this.#marks);
    await Promise.all([
      ...Array.from(this.#messages.values(), ({ topic, queue, messages }) =>
        carrier.send(topic, queue, messages),
      ),
      ...Array.from(this.#moved, ([topic, events]) => store!.broker.publish(topic, events)),
      this.#parked.length > 0 && store!.triage.put(this.#parked),
      store && this.#resolved.length > 0 && store.triage.resolve(this.#resolved),
    ]);
  }

  #repeat(entry: Entry<Handle>, change: Change, holdsKey?: boolean): void {
    const { topic } = entry.event;
    if (!this.#settings.store) this.#send(topic, 'retry', entry, change);
    else {
      const moved = { ...change, ...(holdsKey === false && { holdsKey }) };
      this.#move(topic, movedEvent(entry.event, this.#now, moved));
    }
  }

  #move(topic: string, event: NewEvent): void {
    const moved = this.#moved.get(topic) ?? [];
    moved.push(event);
    this.#moved.set(topic, moved);
  }

  #send(topic: string, queue: QueueName, { event, messageId }: Entry<Handle>, change: Change): void {
    const message = copyMessage(event, change, messageId, this.#now, this.#settings.carrier);
    const name = `${queue} ${topic}`;
    const sent = this.#messages.get(name) ?? { topic, queue, messages: [] };
    sent.messages.push(message);
    this.#messages.set(name, sent);
  }
}
