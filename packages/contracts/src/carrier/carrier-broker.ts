import { type Clock, type Random, systemClock, systemRandom } from 'holdfast';
import type { Broker, Ordering, Published, SettledEvent, Settlement, TopicSettings } from '../broker.ts';
import { FeatureMissingError, TopicError } from '../contract-errors.ts';
import { assertControl, type Controls } from '../controls.ts';
import type { Engine } from '../engine.ts';
import { type NewEvent, parkedTopic } from '../envelope.ts';
import { type FeatureName, type Features, whyMissing } from '../features.ts';
import { assertBounds, assertOrderingChange, assertTopic, assertWaitingQuestion } from '../for-engines.ts';
import { memoryEngine } from '../memory/engine.ts';
import { LEASE_LOST, type SettlementResult } from '../settlement-result.ts';
import { assertEvents } from '../size-limits.ts';
import { timeOrderedId } from '../time-ordered-id.ts';
import { newMessage, readEvent } from './carried-event.ts';
import { type LeasedEntry, settleCarried } from './carried-settlements.ts';
import { CarriedTopic } from './carried-topic.ts';
import type { Carrier, Message, QueueName } from './carrier.ts';
import { carrierFeatures } from './features.ts';
import { HeldLeases } from './held-leases.ts';
import { assertStore } from './store.ts';

/** The options that all engines on message brokers share. */
export interface CarrierOptions {
  /**
   * An engine beside the message broker, such as SQLite or PostgreSQL. It stores retries, parked events,
   * controls and the order of keys. `close` does not close it. Default: none, and retries stay in the broker.
   */
  readonly store?: Engine | undefined;
  /**
   * The suffix of dead-letter topics: the topic `orders` has the dead-letter topic `orders.dlq`. Not used
   * with a store. Default: `.dlq`.
   */
  readonly parkedSuffix?: string | undefined;
  /**
   * The most first attempts of a topic that wait in this process for a lease, and the most retries. Default:
   * `2000`.
   */
  readonly prefetchMax?: number | undefined;
  /**
   * While waiting first attempts of a topic have more payload bytes than this, no more are fetched. The same
   * limit applies to its retries. Default: `33554432` (32 MiB).
   */
  readonly prefetchBytesMax?: number | undefined;
  /**
   * If no consumer leases events of a topic for this long, in ms, waiting events are given back to the
   * server. Default: `30000`.
   */
  readonly idleMs?: number | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
}

/** The default values of `CarrierOptions`. */
export const carrierDefaults = {
  parkedSuffix: parkedTopic(''),
  prefetchMax: 2000,
  prefetchBytesMax: 32 * 1024 * 1024,
  idleMs: 30_000,
} as const;

/**
 * A `Broker` that works through a carrier (the adapter for a message broker such as Kafka). `close` gives fetched
 * messages back and closes the carrier.
 */
export interface CarrierBroker extends Broker {
  readonly features: Features;
  close(): Promise<void>;
}

/**
 * Builds a `Broker` on a carrier (the adapter for a message broker such as Kafka). A carrier only sends and
 * receives messages. This function adds leases and retries.
 */
export function carrierBroker<Handle>(carrier: Carrier<Handle>, options: CarrierOptions = {}): CarrierBroker {
  const { clock = systemClock, random = systemRandom } = options;
  const { parkedSuffix = carrierDefaults.parkedSuffix, ...prefetch } = {
    ...carrierDefaults,
    ...definedOf(options),
  };
  const { prefetchMax, prefetchBytesMax, idleMs } = prefetch;
  const store = assertStore(options.store);
  const features = carrierFeatures(carrier, store);
  const newId = timeOrderedId(clock, random);
  const leases = new HeldLeases<Handle>(newId());
  const controls = store?.broker.controls ?? localControls(clock, random, features);
  const known = new Map<string, CarriedTopic<Handle>>();
  const { limits } = carrier;
  let settleCalls = 0;

  function missing(feature: FeatureName): FeatureMissingError {
    return new FeatureMissingError(feature, whyMissing(features, feature)!);
  }

  function topicWith(topic: string, ordering: TopicSettings['ordering']): CarriedTopic<Handle> {
    const made = known.get(topic);
    if (made?.ordering === ordering) return made;
    const fetching = { topic, carrier, clock, leases, prefetchMax, prefetchBytesMax, idleMs };
    const carried = new CarriedTopic<Handle>({ ...fetching, ordering, store, controls });
    known.set(topic, carried);
    return carried;
  }

  async function hasTopic(topic: string): Promise<boolean> {
    return known.has(topic) || carrier.has(topic);
  }

  async function topicOf(topic: string): Promise<CarriedTopic<Handle>> {
    const carried = known.get(topic);
    if (carried) return carried;
    if (!(await carrier.has(topic))) throw new TopicError(topic, 'was never declared');
    const { ordering } = (await store?.broker.declare(topic)) ?? { ordering: 'none' as const };
    return topicWith(topic, ordering);
  }

  const settings = {
    carrier,
    clock,
    store,
    hasTopic,
    // A consumer of a dead-letter topic may park an event again (set it aside for an operator). The event
    // stays in that topic: there is no `orders.dlq.dlq`.
    parkedTopic: (topic: string) => (topic.endsWith(parkedSuffix) ? topic : topic + parkedSuffix),
  };

  async function declare(topic: string, wanted: Partial<TopicSettings>): Promise<TopicSettings> {
    assertTopic(topic, wanted);
    const { ordering, keepSettledMs } = wanted;
    if (ordering === 'key' && !store) throw missing('ordering');
    if (keepSettledMs !== undefined && keepSettledMs > 0 && !carrier.history) throw missing('retention');
    const stored = (await store?.broker.declare(topic))?.ordering ?? 'none';
    if (ordering !== undefined && ordering !== stored) await assertMayChange(topic, stored, ordering);
    const ensured = {
      ordering: ordering ?? stored,
      ...(keepSettledMs !== undefined && { keepSettledMs }),
    };
    const result = await carrier.ensure(topic, ensured);
    // Change the store last, because the carrier may refuse the settings. The ordering in the store never
    // goes back from `key` to `none`.
    if (ordering !== undefined) await store?.broker.declare(topic, { ordering });
    const parked = settings.parkedTopic(topic);
    if (!store && parked !== topic) await carrier.ensure(parked, { ordering: 'none' });
    topicWith(topic, result.ordering);
    return result;
  }

  async function assertMayChange(topic: string, stored: Ordering, wanted: Ordering): Promise<void> {
    if (!(await hasTopic(topic))) return assertOrderingChange(topic, stored, wanted, false);
    const { waiting, delayed, delivered } = await carrier.counts(topic);
    assertOrderingChange(topic, stored, wanted, waiting + delayed + delivered > 0);
  }

  async function publish(topic: string, events: readonly NewEvent[]): Promise<Published[]> {
    assertEvents(events, limits);
    const { ordering } = await topicOf(topic);
    const now = clock.epochMs();
    const ids = events.map(({ id }) => id ?? newId());
    const queued: Record<QueueName, { place: number; message: Message }[]> = { hot: [], retry: [] };
    const stored: { place: number; event: NewEvent }[] = [];
    for (const [place, event] of events.entries()) {
      const message = newMessage(event, ids[place]!, topic, now, carrier);
      const isTried = event.past?.moved !== undefined;
      const waits = isTried || message.delayMs > 0;
      // With key order, a delayed event also goes to the `hot` queue: it must not overtake earlier events of
      // its key.
      const keepsPlace = ordering === 'key' && event.key !== undefined && !isTried;
      if (store && waits && !keepsPlace) stored.push({ place, event: { ...event, id: ids[place]! } });
      else queued[waits && !keepsPlace ? 'retry' : 'hot'].push({ place, message });
    }
    const published = ids.map((id) => ({ id, duplicate: false }));
    const isDuplicate = (place: number) => {
      published[place] = { id: ids[place]!, duplicate: true };
    };
    const send = async (queue: QueueName) => {
      const items = queued[queue];
      if (items.length === 0) return;
      const messages = items.map(({ message }) => message);
      const places = ((await carrier.send(topic, queue, messages)) ?? []).map((index) => items[index]!.place);
      for (const place of ordering === 'key' ? await notInStore(places) : places) isDuplicate(place);
    };
    // The server already has messages with these ids. But the store may have a parked event that blocks its
    // key. In this case the new event replaces the parked event, and is no duplicate.
    const notInStore = async (places: readonly number[]) => {
      const unkeyed = places.map((place) => ({ ...withoutKey(events[place]!), id: ids[place]! }));
      const taken = places.length > 0 ? await store!.broker.publishBehind(topic, unkeyed) : [];
      return places.filter((_, index) => !taken[index]);
    };
    const storeAll = async () => {
      if (stored.length === 0) return;
      const answers = await store!.broker.publish(
        topic,
        stored.map(({ event }) => event),
      );
      for (const [index, { duplicate }] of answers.entries())
        if (duplicate) isDuplicate(stored[index]!.place);
    };
    await Promise.all([send('hot'), send('retry'), storeAll()]);
    return published;
  }

  async function settle(batch: readonly Settlement[]): Promise<SettlementResult[]> {
    const results: SettlementResult[] = batch.map(() => LEASE_LOST);
    const ours: LeasedEntry<Handle>[] = [];
    const places: number[] = [];
    const theirs: number[] = [];
    const now = clock.now();
    const call = ++settleCalls;
    for (const [index, settlement] of batch.entries()) {
      const { lease } = settlement;
      if (!leases.isOurs(lease)) {
        theirs.push(index);
        continue;
      }
      const entry = leases.find(lease, now);
      const topic = known.get(lease.topic);
      if (!entry || !topic || entry.settleCall === call) continue;
      entry.settleCall = call;
      ours.push({ topic, entry, settlement });
      places.push(index);
    }
    const settleOurs = async () => {
      const settled = await settleCarried(ours, settings);
      for (const [at, place] of places.entries()) results[place] = settled[at]!;
    };
    const settleTheirs = async () => {
      if (!store || theirs.length === 0) return;
      const settled = await store.broker.settle(theirs.map((index) => batch[index]!));
      for (const [at, index] of theirs.entries()) results[index] = settled[at]!;
    };
    await Promise.all([settleOurs(), settleTheirs()]);
    return results;
  }

  return {
    limits,
    features,
    controls,
    declare: (topic, wanted = {}) => declare(topic, wanted),
    topics: () => carrier.topics(),
    publish,
    settle,

    publishWithin() {
      throw missing('sharedTransaction');
    },

    async lease(topic, request) {
      return (await topicOf(topic)).lease(request);
    },

    async extend(wanted, leaseMs) {
      const theirs = wanted.filter((lease) => !leases.isOurs(lease));
      const extended = theirs.length > 0 ? await store?.broker.extend(theirs, leaseMs) : undefined;
      const now = clock.now();
      return wanted.map((lease) => {
        if (!leases.isOurs(lease)) return extended?.[theirs.indexOf(lease)] ?? false;
        const entry = leases.find(lease, now);
        if (entry?.lease) entry.lease.endsAt = now + leaseMs;
        return entry !== undefined;
      });
    },

    async counts(topic) {
      const { intake } = await topicOf(topic);
      const { waiting, delayed, delivered } = await carrier.counts(topic);
      const stored = await store?.broker.counts(topic);
      const waitsHere = intake.backlog.size;
      return {
        ...(stored ?? {
          behind: 0,
          held: 0,
          suspect: 0,
          blocking: 0,
          oldestReadyMs: 0,
          nextDueInMs: undefined,
        }),
        ready: waiting + waitsHere + (stored?.ready ?? 0),
        delayed: delayed + (stored?.delayed ?? 0),
        leased: Math.max(0, delivered - waitsHere) + (stored?.leased ?? 0),
        asOf: clock.epochMs(),
      };
    },

    async waiting(topic, page, question = {}) {
      assertWaitingQuestion(question);
      if (!store) throw missing('waitingList');
      return store.broker.waiting(topic, page, question);
    },

    async due(topic, bounds) {
      assertBounds(bounds);
      if (!store) throw missing('waitingList');
      return store.broker.due(topic, bounds);
    },

    async retryNow(topic, ids, act) {
      if (!store) throw missing('waitingList');
      return store.broker.retryNow(topic, ids, act);
    },

    async unblock(topic, ids, act) {
      if (!store) throw missing('parkedHoldsKey');
      return store.broker.unblock(topic, ids, act);
    },

    doorbell(topic, ring) {
      let isOver = false;
      const offs = [store?.broker.doorbell(topic, ring)];
      // A topic that was never declared has no events, so ignore the error.
      void topicOf(topic).then(
        ({ intake }) => void (isOver || offs.push(intake.doorbell(ring))),
        () => {},
      );
      return () => {
        isOver = true;
        for (const off of offs) off?.();
      };
    },

    async history(topic, range) {
      if (!carrier.history) throw missing('retention');
      await topicOf(topic);
      const { items, cursor } = await carrier.history(topic, range);
      const events = items.map((arrival): SettledEvent => {
        const { dueAt: _, diagnosis: __, ...event } = readEvent(arrival, topic, 'hot');
        return { ...event, how: 'ack', settledAt: arrival.at };
      });
      return { items: events, cursor };
    },

    async close() {
      try {
        await Promise.all(Array.from(known.values(), ({ intake }) => intake.close()));
      } finally {
        await carrier.close();
      }
    },
  };
}

/**
 * Returns controls that apply only in this process. It refuses `quarantine`, because the held events would
 * fill its memory.
 */
function localControls(clock: Clock, random: Random, features: Features): Controls {
  const { controls } = memoryEngine({ clock, random });
  return {
    ...controls,
    async impose(control, act, forMs) {
      const why = whyMissing(features, 'quarantine');
      if (control?.kind === 'quarantine' && why !== undefined) {
        assertControl(control, act, forMs);
        throw new FeatureMissingError('quarantine', why);
      }
      return controls.impose(control, act, forMs);
    },
  };
}

function withoutKey({ key: _, ...event }: NewEvent): NewEvent {
  return event;
}

function definedOf(options: CarrierOptions): Partial<typeof carrierDefaults> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
