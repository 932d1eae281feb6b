import type { Operation, Priority } from './run-options.ts';
import type { Work } from './work.ts';

/** What a run inherits from the request, event or run around it. */
export interface AmbientContext {
  /** When the original caller stops waiting for the result, on the scale of `Clock.now`. */
  readonly patienceEndsAt?: number | undefined;
  /** Aborts when the original caller cancels. */
  readonly signal?: AbortSignal | undefined;
  /** True: an outer caller already retries, so runs in this context make only one attempt. */
  readonly ownedUpstream?: boolean | undefined;
  /**
   * True: this service only passes requests on, so runs in this context make only one attempt. The called
   * servers may still retry: the `Holdfast` header does not forbid it.
   */
  readonly packaging?: boolean | undefined;
  /** The number of the attempt that the outer caller is making. */
  readonly attempt?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The idempotency key of the outer work. Calls inside it derive their own keys from it. */
  readonly idempotencyKey?: string | undefined;
}

/** Stores the ambient context (what runs inherit), like an AsyncLocalStorage. */
export interface AmbientStore {
  getStore(): AmbientContext | undefined;
  run<T>(ambientContext: AmbientContext | undefined, fn: () => T): T;
  /**
   * Wraps `operation` so that the runs inside it inherit the time limit, the priority and the signal of its
   * attempt.
   */
  ambient?<T>(work: Work, operation: Operation<T>): Operation<T>;
}

let store: AmbientStore | undefined;

/**
 * Sets the store. Only `holdfast/ambient` calls this function, so that `holdfast` itself imports no module of
 * Node.
 */
export function setAmbientStore(newStore: AmbientStore | undefined): void {
  store = newStore;
}

/**
 * Returns what the current code inherits. Undefined unless `holdfast/ambient` is loaded and a server, a
 * consumer or a run has set a context.
 */
export function ambientContext(): AmbientContext | undefined {
  return store?.getStore();
}

/** Whether another caller or service retries, so that a run in this context must make only one attempt. */
export function isRetriedElsewhere(context: AmbientContext | undefined): boolean {
  return context !== undefined && (context.ownedUpstream === true || context.packaging === true);
}

/**
 * Runs `fn` with `inner` as its ambient context. An inherited time limit can only become shorter. Without
 * `holdfast/ambient`, it only calls `fn`.
 */
export function withAmbient<T>(inner: AmbientContext, fn: () => T): T {
  if (!store) return fn();
  const outer = store.getStore();
  // `inner` is passed on without a copy, because its `signal` may be a getter that creates the signal.
  if (!outer) return store.run(inner, fn);
  const patienceEndsAt = Math.min(inner.patienceEndsAt ?? Infinity, outer.patienceEndsAt ?? Infinity);
  return store.run({ ...outer, signal: outer.signal, ...inner, patienceEndsAt }, fn);
}

/**
 * Wraps `operation` so that the runs inside it inherit from `work`. Without `holdfast/ambient`, it returns
 * `operation` unchanged.
 */
export function ambient<T>(work: Work, operation: Operation<T>): Operation<T> {
  return store?.ambient?.(work, operation) ?? operation;
}

/**
 * Runs `fn` without an ambient context. Use it for calls that several callers share, because such a call must
 * not end with one caller.
 */
export function withoutAmbient<T>(fn: () => T): T {
  return store?.getStore() ? store.run(undefined, fn) : fn();
}
