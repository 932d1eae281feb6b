import {
  type Act,
  advanceOperation,
  assertFilterNotEmpty,
  type Broker,
  type ChangeRequest,
  defaultReplay,
  type Engine,
  type Operation,
  type OperationRequest,
  type ParkedFilter,
  type PublishReplay,
  type ReplayRequest,
  setRate,
  stopOperation,
  type Triage,
} from '@holdfast/contracts';
import { type Clock, OptionsError, sleep, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { assertAwaited } from '../publish/assert-awaited.ts';

/** The options of `operations`. Required is `engine`, or `triage` and `broker`. */
export interface OperationsOptions {
  /** The engine with the store of parked events. Give either `engine` or `triage`. Default: none. */
  readonly engine?: Pick<Engine, 'triage' | 'broker'> | undefined;
  /** The store of parked events, if it is not the one of `engine`. Default: that of `engine`. */
  readonly triage?: Triage | undefined;
  /** The broker to which replays publish events again. Only replays need it. Default: that of `engine`. */
  readonly broker?: Pick<Broker, 'publish'> | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof OperationsOptions, true>> = {
  engine: true,
  triage: true,
  broker: true,
  clock: true,
};

/**
 * How `run` reports progress and can be aborted. After an abort, the operation stays unfinished and can be
 * resumed.
 */
export interface OperationRun {
  /**
   * Called after each step with the new state of the operation. If it throws, `run` rejects; the operation
   * can be run again.
   */
  readonly onProgress?: ((operation: Operation) => void) | undefined;
  /** Aborts this call of `run`. The operation stays unfinished, and can be run again. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The request of an operation: a replay, which needs only `kind` and `filter`, or a discard, restore, keep or
 * undo.
 */
export type AnyRequest = (Partial<ReplayRequest> & Pick<ReplayRequest, 'kind' | 'filter'>) | ChangeRequest;

/**
 * Runs operations that change many parked events: replay, discard, restore and keep. The last three can be
 * undone.
 */
export interface OperationRunner {
  /** Returns how many events an operation with this filter would change now. */
  dryRun(filter: ParkedFilter): Promise<number>;
  /**
   * Stores a new operation. No event is changed until `run` is called. If an operation with this `id` is
   * already stored, `begin` returns it.
   */
  begin(request: AnyRequest, act: Act, id?: string): Promise<Operation>;
  /** Runs an operation to its end. Several processes may run the same operation. */
  run(id: string, options?: OperationRun): Promise<Operation>;
  /**
   * Stops an operation. Events that it has not changed yet stay as they are. Returns false if the operation
   * does not exist, is already stopping or has ended.
   */
  stop(id: string, act: Act): Promise<boolean>;
  /**
   * Changes how many events per second a replay publishes. Returns false if the replay does not exist or has
   * ended.
   */
  setRate(id: string, rate: number, act: Act): Promise<boolean>;
  /** Returns the operations that have not ended, the oldest first. */
  unfinished(): Promise<readonly Operation[]>;
}

/**
 * Creates an operation runner. All state of an operation is in the store, so any process can continue it
 * after a crash.
 */
export function operations(options: OperationsOptions): OperationRunner {
  assertKnownFields(known, options);
  const { engine, clock = systemClock } = options;
  assertAwaited(engine);
  const triage = options.triage ?? engine?.triage;
  const broker = options.broker ?? engine?.broker;
  if (!triage) throw new OptionsError('triage', triage, 'a triage, or an engine that has one');
  const publish: PublishReplay = async (topic, events) => {
    if (!broker) throw new OptionsError('broker', broker, 'a broker, or an engine that has one');
    return broker.publish(topic, events);
  };

  return {
    async dryRun(filter) {
      assertFilterNotEmpty(filter);
      return triage.count({ ...filter, isFree: true });
    },

    async begin(request, act, id) {
      const whole = wholeRequest(request);
      // Publishing no events rejects if the topic does not exist. Without this check, the replay could never
      // publish its events.
      if (whole.kind === 'replay' && whole.to !== undefined) await publish(whole.to, []);
      return triage.operations.begin(whole, act, id);
    },

    async run(id, { onProgress, signal } = {}) {
      for (;;) {
        signal?.throwIfAborted();
        const step = await advanceOperation(triage, id, clock, publish);
        if (!step) throw new OptionsError('id', id, 'the id of an operation');
        onProgress?.(step.operation);
        if (step.waitMs === undefined) return step.operation;
        if (step.waitMs > 0) await sleep(clock, step.waitMs, signal);
      }
    },

    stop: (id, act) => stopOperation(triage, id, act),
    async setRate(id, rate, act) {
      assertRate(rate);
      return setRate(triage, id, rate, act);
    },

    async unfinished() {
      const found: Operation[] = [];
      let cursor: string | undefined;
      do {
        const page = await triage.operations.list(
          { unfinished: true },
          { limit: 100, ...(cursor !== undefined && { cursor }) },
        );
        found.push(...page.items);
        ({ cursor } = page);
      } while (cursor !== undefined);
      return found.reverse();
    },
  };
}

const kinds: readonly OperationRequest['kind'][] = ['replay', 'discard', 'restore', 'keep', 'undo'];

function wholeRequest(request: AnyRequest): OperationRequest {
  if (!kinds.includes(request?.kind))
    throw new OptionsError('kind', request?.kind, `one of ${kinds.join(', ')}`);
  if (request.kind === 'undo') return request;
  assertFilterNotEmpty(request.filter);
  if (request.kind !== 'replay') return request;
  return assertReplay({ ...defaultReplay, ...request });
}

function assertReplay(request: ReplayRequest): ReplayRequest {
  const { rate, canary, canaryMs, outstandingMax, stopAbove } = request;
  assertRate(rate);
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

function assertRate(rate: number): void {
  if (!(rate > 0)) throw new OptionsError('rate', rate, 'events a second, above 0');
}
