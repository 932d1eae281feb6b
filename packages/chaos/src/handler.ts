import { type Clock, sleep, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type Chaos, type ChaosOptions, chaosOptions, RunningChaos } from './chaos.ts';
import { failure } from './failures.ts';
import type { ChaosSpec, FaultSettings } from './spec.ts';
import type { Fault, Subject } from './strike.ts';
import { untilAborted } from './until-aborted.ts';

/** The options of `chaosHandler`. */
export interface ChaosHandlerOptions<Args extends unknown[]> extends ChaosOptions {
  /**
   * Returns the method, path and target of a call. The option `match` of a fault compares them. Default: a
   * call has none of them.
   */
  readonly subject?: ((...args: Args) => Omit<Subject, 'number'>) | undefined;
}

const known: Readonly<Record<keyof ChaosHandlerOptions<[]>, true>> = { subject: true, ...chaosOptions };

/** A handler with faults. Its property `chaos` changes the faults and counts them. */
export type ChaosHandler<Args extends unknown[], Result> = ((...args: Args) => Promise<Awaited<Result>>) & {
  readonly chaos: Chaos;
};

/**
 * Creates a handler that fails as `spec` says. A hanging call ends when the first `signal` among its
 * arguments aborts.
 */
export function chaosHandler<Args extends unknown[], Result>(
  spec: ChaosSpec,
  handler: (...args: Args) => Result,
  options: ChaosHandlerOptions<Args> = {},
): ChaosHandler<Args, Result> {
  assertKnownFields(known, options);
  const { clock = systemClock, subject } = options;
  const chaos = new RunningChaos('handler', spec, options);
  const order = new CallOrder(clock);

  async function handle(...args: Args): Promise<Awaited<Result>> {
    const place = order.join();
    const fault = chaos.strike(subject?.(...args) ?? {});
    try {
      return await (fault ? suffer(fault, place, args) : handler(...args));
    } finally {
      order.leave(place);
    }
  }

  async function suffer(fault: Fault, place: number, args: Args): Promise<Awaited<Result>> {
    const signal = signalIn(args);
    if (fault.requestDelayMs > 0) await sleep(clock, fault.requestDelayMs, signal);
    if (fault.reorder) await order.stepAside(place, fault.reorder, signal);
    await endsEarly('request', fault, signal);
    const result = await call(fault.duplicate, () => handler(...args));
    if (fault.responseDelayMs > 0) await sleep(clock, fault.responseDelayMs, signal);
    await endsEarly('response', fault, signal);
    return result;
  }

  async function endsEarly(
    direction: 'request' | 'response',
    { ending }: Fault,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (ending?.kind !== 'hang' && ending?.kind !== 'error') return;
    if (ending.direction !== direction && !(ending.direction === 'both' && direction === 'request')) return;
    if (ending.kind === 'error') throw failure(ending.code, ending.message);
    await untilAborted(signal);
  }

  return Object.assign(handle, { chaos });
}

/**
 * Calls the handler once, or twice if `duplicate` is given. If both calls run at the same time, it waits for
 * both.
 */
async function call<Result>(
  duplicate: FaultSettings<'duplicate'> | undefined,
  handle: () => Result,
): Promise<Awaited<Result>> {
  if (!duplicate) return await handle();
  if (!duplicate.together) {
    await handle();
    return await handle();
  }
  const both = await Promise.allSettled([(async () => handle())(), (async () => handle())()]);
  for (const each of both) if (each.status === 'rejected') throw each.reason;
  return (both[0] as PromiseFulfilledResult<Awaited<Result>>).value;
}

/** The order in which calls began. It lets a call wait until `by` later calls have ended. */
class CallOrder {
  readonly #clock: Clock;
  readonly #aside = new Set<{ readonly place: number; left: number; wake(): void }>();
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  join(): number {
    return ++this.#last;
  }

  leave(place: number): void {
    for (const waiting of this.#aside) {
      if (waiting.place < place && --waiting.left === 0) waiting.wake();
    }
  }

  async stepAside(
    place: number,
    { by, within }: FaultSettings<'reorder'>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const overtaken = new AbortController();
    const waiting = { place, left: by, wake: () => overtaken.abort() };
    this.#aside.add(waiting);
    try {
      await sleep(
        this.#clock,
        within,
        signal ? AbortSignal.any([signal, overtaken.signal]) : overtaken.signal,
      );
    } catch (error) {
      if (signal?.aborted || !overtaken.signal.aborted) throw error;
    } finally {
      this.#aside.delete(waiting);
    }
  }
}

function signalIn(args: readonly unknown[]): AbortSignal | undefined {
  for (const each of args) {
    const { signal } = (each ?? {}) as { signal?: unknown };
    if (signal instanceof AbortSignal) return signal;
  }
  return undefined;
}
