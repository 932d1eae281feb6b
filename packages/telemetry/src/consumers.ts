import { type Clock, systemClock, Timer } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Labels, Metric } from './metrics.ts';
import type { Family, Observation, Sample } from './observe.ts';

/** The members of a consumer of `@holdfast/events` that the metrics use. */
export interface ConsumerLike {
  readonly name: string;
  readonly topic: string;
  state(): {
    readonly running: number;
    readonly counters: {
      readonly succeeded: number;
      readonly successAfterRetry: number;
      readonly retryAttempts: number;
      readonly discarded: number;
      readonly rerouted: number;
      readonly dlqRate: number;
      readonly parkedBecause: Readonly<Record<string, number>>;
    };
  };
  lag(): Promise<LagLike>;
}

interface LagLike {
  readonly oldestReadyMs: number;
  readonly nextDueInMs: number | undefined;
  readonly asOf?: number;
}

/** All metrics of consumers. A test compares the documentation with this table. */
export const eventMetrics = {
  handled: {
    name: 'holdfast_events_handled_total',
    type: 'counter',
    labels: ['consumer', 'topic', 'outcome'],
    help: 'Events that came to an end other than the parking lot: succeeded, succeeded_after_retry, discarded, rerouted.',
  },
  retryAttempts: {
    name: 'holdfast_events_retry_attempts_total',
    type: 'counter',
    labels: ['consumer', 'topic'],
    help: 'Attempts at events that failed and will be made again.',
  },
  parked: {
    name: 'holdfast_events_parked_total',
    type: 'counter',
    labels: ['consumer', 'topic', 'reason'],
    help: 'Events that were set aside in the parking lot, by stop reason.',
  },
  dlqRate: {
    name: 'holdfast_events_dlq_rate',
    type: 'gauge',
    labels: ['consumer', 'topic'],
    help: 'Of the events that came to an end since the start, the part that was parked, 0 to 1.',
  },
  running: {
    name: 'holdfast_events_running',
    type: 'gauge',
    labels: ['consumer', 'topic'],
    help: 'Handlers that run now.',
  },
  waiting: {
    name: 'holdfast_events_waiting',
    type: 'gauge',
    labels: ['topic', 'state'],
    help: 'Events in the store that are not settled, by where they are.',
  },
  oldestAge: {
    name: 'holdfast_events_oldest_ready_seconds',
    type: 'gauge',
    labels: ['topic'],
    help: 'How long the oldest due event has been due: the lag.',
  },
  nextDue: {
    name: 'holdfast_events_next_due_seconds',
    type: 'gauge',
    labels: ['topic'],
    help: 'Until the next waiting event falls due; absent where none waits.',
  },
  storeAway: {
    name: 'holdfast_events_store_unreachable',
    type: 'gauge',
    labels: ['topic'],
    help: '1 where the store did not say how many wait.',
  },
} as const satisfies Record<string, Metric>;

type Key = keyof typeof eventMetrics;

/** The timeout for reading the lag from a store. A hanging store must not delay the other metrics. */
const lagMs = 1000;

export interface ConsumerObservationOptions {
  /** The clock for the timeout of store reads. Default: the system's. */
  readonly clock?: Clock | undefined;
}

/**
 * Returns the metrics of consumers and of the events that wait in their stores. A store that does not answer
 * within a second is reported as unreachable.
 */
export function observeConsumers(
  consumers: readonly ConsumerLike[],
  options: ConsumerObservationOptions = {},
): Observation {
  assertKnownFields({ clock: true }, options);
  const { clock = systemClock } = options;
  /** The lag (waiting events) of each topic, as last read; `undefined` if the store did not answer. */
  const lags = new Map<string, LagLike | undefined>();
  let watched: readonly ConsumerLike[] = consumers;

  return {
    async refresh() {
      const byTopic = new Map(watched.map((each) => [each.topic, each]));
      await Promise.all(
        [...byTopic].map(async ([topic, consumer]) => {
          // If the store fails, it is reported as unreachable. The other metrics are not affected.
          const asked = (async () => consumer.lag())();
          lags.set(topic, await within(clock, lagMs, asked).catch(() => undefined));
        }),
      );
    },
    snapshot() {
      const samples = new Map<Key, Map<string, Sample>>();
      const put = (key: Key, labels: Labels, value: number) => {
        const kept = samples.get(key) ?? new Map<string, Sample>();
        const identity = JSON.stringify(labels);
        // Consumers with the same name and topic share one sample. Its value is the sum of their counts; for
        // `dlqRate`, it is the highest value.
        const before = kept.get(identity)?.value ?? 0;
        kept.set(identity, { labels, value: key === 'dlqRate' ? Math.max(before, value) : before + value });
        samples.set(key, kept);
      };
      for (const consumer of watched) readState(consumer, put);
      for (const [topic, lag] of watched.length > 0 ? lags : []) readLag(topic, lag, put);
      return Object.entries(eventMetrics).map(
        ([key, metric]): Family => ({ ...metric, samples: [...(samples.get(key as Key)?.values() ?? [])] }),
      );
    },
    stop() {
      watched = [];
    },
  };
}

/** Combines several observations, so that one metrics endpoint can serve all of them. */
export function together(...observations: readonly Observation[]): Observation {
  return {
    snapshot: () => joined(observations.flatMap((each) => each.snapshot())),
    async refresh() {
      await Promise.all(observations.map((each) => each.refresh?.()));
    },
    stop() {
      for (const each of observations) each.stop();
    },
  };
}

/** Combines metrics that have the same name. If two samples have the same labels, the first one is kept. */
function joined(families: readonly Family[]): Family[] {
  const byName = new Map<string, { family: Family; samples: Map<string, Sample> }>();
  for (const family of families) {
    const { samples } = byName.get(family.name) ?? { samples: new Map<string, Sample>() };
    for (const sample of family.samples) {
      const identity = JSON.stringify(sample.labels);
      if (!samples.has(identity)) samples.set(identity, sample);
    }
    byName.set(family.name, { family, samples });
  }
  return [...byName.values()].map(({ family, samples }) => ({ ...family, samples: [...samples.values()] }));
}

function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timeout = new Timer(clock, () => resolve(undefined));
    timeout.setIn(ms);
    promise.then(resolve, reject).finally(() => timeout.clear());
  });
}

type Put = (key: Key, labels: Labels, value: number) => void;

function readState(consumer: ConsumerLike, put: Put): void {
  const { name, topic } = consumer;
  const { running, counters } = consumer.state();
  const labels = { consumer: name, topic };
  const { succeeded, successAfterRetry, discarded, rerouted } = counters;
  put('handled', { ...labels, outcome: 'succeeded' }, succeeded - successAfterRetry);
  put('handled', { ...labels, outcome: 'succeeded_after_retry' }, successAfterRetry);
  put('handled', { ...labels, outcome: 'discarded' }, discarded);
  put('handled', { ...labels, outcome: 'rerouted' }, rerouted);
  put('retryAttempts', labels, counters.retryAttempts);
  put('dlqRate', labels, counters.dlqRate);
  put('running', labels, running);
  for (const [reason, parked] of Object.entries(counters.parkedBecause)) {
    put('parked', { ...labels, reason }, parked);
  }
}

function readLag(topic: string, lag: LagLike | undefined, put: Put): void {
  put('storeAway', { topic }, Number(lag === undefined));
  if (lag === undefined) return;
  const { oldestReadyMs, nextDueInMs, asOf: _, ...states } = lag;
  put('oldestAge', { topic }, oldestReadyMs / 1000);
  if (nextDueInMs !== undefined) put('nextDue', { topic }, nextDueInMs / 1000);
  for (const [state, events] of Object.entries(states)) put('waiting', { topic, state }, events as number);
}
