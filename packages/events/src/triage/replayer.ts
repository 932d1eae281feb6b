import {
  type Act,
  advanceReplay,
  assertFilterNotEmpty,
  type Broker,
  defaultReplay,
  type Engine,
  type ParkedFilter,
  type PublishReplay,
  type ReplayOperation,
  type ReplayRequest,
  stopReplay,
  type Triage,
} from '@holdfast/contracts';
import { type Clock, OptionsError, sleep, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';

export interface ReplayerOptions {
  readonly engine?: Pick<Engine, 'triage' | 'broker'> | undefined;
  readonly triage?: Triage | undefined;
  /** The broker to which events are published again. */
  readonly broker?: Pick<Broker, 'publish'> | undefined;
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof ReplayerOptions, true>> = {
  engine: true,
  triage: true,
  broker: true,
  clock: true,
};

export interface ReplayRun {
  /** Called after each step. If it throws, this call of `run` ends; the replay can be run again. */
  readonly onProgress?: ((operation: ReplayOperation) => void) | undefined;
  /** Ends this call of `run`. The replay stays in the store and can be run again. */
  readonly signal?: AbortSignal | undefined;
}

export interface Replayer {
  /** Returns how many events a replay with this filter would publish now. */
  dryRun(filter: ParkedFilter): Promise<number>;
  /** Stores a new replay operation. No event is published until `run` is called. */
  begin(request: Partial<ReplayRequest> & Pick<ReplayRequest, 'filter'>, act: Act): Promise<ReplayOperation>;
  /** Runs a replay operation to its end. Several processes may run the same operation. */
  run(id: string, options?: ReplayRun): Promise<ReplayOperation>;
  /**
   * Stops a replay operation. Its events that are not published yet stay parked. False: there is no such operation, or
   * it is stopping or has ended already.
   */
  stop(id: string, act: Act): Promise<boolean>;
  /** Returns the operations that have not ended, the oldest first. These include operations whose process died. */
  unfinished(): Promise<readonly ReplayOperation[]>;
}

/** `unfinished` only reads the latest 1000 operations. */
const scannedMax = 1000;

/**
 * Creates a replayer, which publishes parked events again. All state is in the store, so any process can continue a
 * replay after a crash.
 */
export function replayer(options: ReplayerOptions): Replayer {
  assertKnownFields(known, options);
  const { engine, clock = systemClock } = options;
  const triage = options.triage ?? engine?.triage;
  const broker = options.broker ?? engine?.broker;
  if (!triage) throw new OptionsError('triage', triage, 'a triage, or an engine that has one');
  if (!broker) throw new OptionsError('broker', broker, 'a broker, or an engine that has one');
  const publish: PublishReplay = (topic, events) => broker.publish(topic, events);

  return {
    async dryRun(filter) {
      assertFilterNotEmpty(filter);
      return triage.count({ ...filter, isFree: true });
    },

    async begin(request, act) {
      const whole = assertRequest({ ...defaultReplay, ...request });
      assertFilterNotEmpty(whole.filter);
      // Publishing an empty batch rejects if the topic does not exist. Without this check, the replay would select
      // events and never publish them.
      if (whole.to !== undefined) await publish(whole.to, []);
      return triage.replays.begin(whole, act);
    },

    async run(id, { onProgress, signal } = {}) {
      for (;;) {
        signal?.throwIfAborted();
        const step = await advanceReplay(triage, id, clock, publish);
        if (!step) throw new OptionsError('id', id, 'the id of a replay');
        onProgress?.(step.operation);
        if (step.waitMs === undefined) return step.operation;
        if (step.waitMs > 0) await sleep(clock, step.waitMs, signal);
      }
    },

    stop: (id, act) => stopReplay(triage, id, act),

    async unfinished() {
      const found: ReplayOperation[] = [];
      let cursor: string | undefined;
      let seen = 0;
      do {
        const page = await triage.replays.list({ limit: 100, ...(cursor !== undefined && { cursor }) });
        found.push(...page.items.filter(({ endedAt }) => endedAt === undefined));
        seen += page.items.length;
        ({ cursor } = page);
      } while (cursor !== undefined && seen < scannedMax);
      return found.reverse();
    },
  };
}

function assertRequest(request: ReplayRequest): ReplayRequest {
  const { rate, canary, canaryMs, outstandingMax, stopAbove } = request;
  if (!(rate > 0)) throw new OptionsError('rate', rate, 'events a second, above 0');
  for (const [path, value, least] of [
    ['canary', canary, 0],
    ['outstandingMax', outstandingMax, 1],
  ] as const) {
    if (!Number.isInteger(value) || value < least)
      throw new OptionsError(path, value, `a whole number from ${least}`);
  }
  if (!(canaryMs >= 0)) throw new OptionsError('canaryMs', canaryMs, 'a number of ms from 0');
  if (!(stopAbove >= 0 && stopAbove <= 1))
    throw new OptionsError('stopAbove', stopAbove, 'a number from 0 to 1');
  return request;
}
