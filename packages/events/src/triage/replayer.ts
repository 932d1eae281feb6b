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
import { type Clock, OptionsError, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { pause } from '../consumer/pause.ts';

export interface ReplayerOptions {
  readonly engine?: Pick<Engine, 'triage' | 'broker'> | undefined;
  readonly triage?: Triage | undefined;
  /** Where released events go. */
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
  /** Told after each step. What it throws ends the run, not the replay. */
  readonly onProgress?: ((operation: ReplayOperation) => void) | undefined;
  /** Ends the run; the replay stays where it is, for another to go on with. */
  readonly signal?: AbortSignal | undefined;
}

export interface Replayer {
  /** How many events a replay with this filter would release now. */
  dryRun(filter: ParkedFilter): Promise<number>;
  /** Stores the operation; nothing is released before someone runs it. */
  begin(request: Partial<ReplayRequest> & Pick<ReplayRequest, 'filter'>, act: Act): Promise<ReplayOperation>;
  /** Moves an operation until it is over. Several may run the same one. */
  run(id: string, options?: ReplayRun): Promise<ReplayOperation>;
  /** Asks it to stop; what is not released goes back. False: it was over. */
  stop(id: string, act: Act): Promise<boolean>;
  /** Operations that are not over: begun and never run, or left by a process that died. The oldest first. */
  unfinished(): Promise<readonly ReplayOperation[]>;
}

/** Operations that are looked through for unfinished ones; older ones are over. */
const lookedThroughMax = 1000;

/** Runs replays. Everything about them is in the store: any process may go on where another was killed. */
export function replayer(options: ReplayerOptions): Replayer {
  refuseUnknown(known, options);
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
      const whole = checked({ ...defaultReplay, ...request });
      assertFilterNotEmpty(whole.filter);
      // Asked with nothing: a topic that is not there would keep all that is selected, and take none of it.
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
        if (step.waitMs > 0) await pause(clock, step.waitMs, signal);
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
      } while (cursor !== undefined && seen < lookedThroughMax);
      return found.reverse();
    },
  };
}

function checked(request: ReplayRequest): ReplayRequest {
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
