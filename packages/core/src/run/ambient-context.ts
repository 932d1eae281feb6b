import type { Operation, Priority } from './run-options.ts';
import type { Work } from './work.ts';

/** What a run inherits from the request, event or step around it. */
export interface AmbientContext {
  /** When the original caller stops waiting, on the scale of `Clock.now`. */
  readonly patienceEndsAt?: number | undefined;
  /** Aborts when the original caller cancels. */
  readonly signal?: AbortSignal | undefined;
  /** True when a caller upstream already retries: then runs in this context make only one attempt. */
  readonly ownedUpstream?: boolean | undefined;
  /** The number of the current attempt of the caller upstream. */
  readonly attempt?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The idempotency key of the outer work. Calls inside it derive their own keys from this one. */
  readonly idempotencyKey?: string | undefined;
}

/** Stores the ambient context: an AsyncLocalStorage, or an object of the same shape. */
export interface AmbientStore {
  getStore(): AmbientContext | undefined;
  run<T>(ambientContext: AmbientContext | undefined, fn: () => T): T;
  /** Wraps `operation` so that the runs inside it inherit the patience, priority and signal of each attempt. */
  ambient?<T>(work: Work, operation: Operation<T>): Operation<T>;
}

let store: AmbientStore | undefined;

/**
 * Sets the store. Only `holdfast/ambient` calls this, so that the main entry point `holdfast` imports no module of the
 * platform.
 */
export function setAmbientStore(newStore: AmbientStore | undefined): void {
  store = newStore;
}

/**
 * The ambient context of the running code. It is undefined unless `holdfast/ambient` is loaded and a server, a consumer
 * or a run with `ambient: true` has set a context.
 */
export function ambientContext(): AmbientContext | undefined {
  return store?.getStore();
}

/**
 * Runs `fn` with `inner` as its ambient context. Patience can only become shorter: if `inner` ends later than the outer
 * context, the end of the outer context is used. Without `holdfast/ambient` this just runs `fn`.
 */
export function withAmbient<T>(inner: AmbientContext, fn: () => T): T {
  if (!store) return fn();
  const outer = store.getStore();
  // `inner` is not copied, because `inner.signal` may be a getter that creates the signal when it is first read.
  if (!outer) return store.run(inner, fn);
  const patienceEndsAt = Math.min(inner.patienceEndsAt ?? Infinity, outer.patienceEndsAt ?? Infinity);
  return store.run({ ...outer, signal: outer.signal, ...inner, patienceEndsAt }, fn);
}

/**
 * Wraps `operation` so that the runs inside it inherit from `work`. Without `holdfast/ambient` it returns `operation`.
 */
export function ambient<T>(work: Work, operation: Operation<T>): Operation<T> {
  return store?.ambient?.(work, operation) ?? operation;
}

/**
 * Runs `fn` without an ambient context. Shared calls, pools and intervals need this: they belong to no single caller.
 */
export function withoutAmbient<T>(fn: () => T): T {
  return store?.getStore() ? store.run(undefined, fn) : fn();
}
