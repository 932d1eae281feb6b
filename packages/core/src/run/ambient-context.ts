import type { Operation, Priority } from './run-options.ts';
import type { Work } from './work.ts';

/** What a run inherits from the request, event or step around it. */
export interface AmbientContext {
  /** When the original caller stops waiting, on the scale of `Clock.now`. */
  readonly patienceEndsAt?: number | undefined;
  /** Aborts when the original caller cancels. */
  readonly signal?: AbortSignal | undefined;
  /** True: a caller upstream already retries, so runs in this context make only one attempt. */
  readonly ownedUpstream?: boolean | undefined;
  /** True: this service only passes work on, so runs in this context make only one attempt. Servers are not told. */
  readonly packaging?: boolean | undefined;
  /** The number of the current attempt of the caller upstream. */
  readonly attempt?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The idempotency key of the outer work. Calls inside it derive their keys from it. */
  readonly idempotencyKey?: string | undefined;
}

/** Stores the ambient context, like an AsyncLocalStorage. */
export interface AmbientStore {
  getStore(): AmbientContext | undefined;
  run<T>(ambientContext: AmbientContext | undefined, fn: () => T): T;
  /** Wraps `operation` so that runs inside it inherit the time limit, priority and signal of each attempt. */
  ambient?<T>(work: Work, operation: Operation<T>): Operation<T>;
}

let store: AmbientStore | undefined;

/** Sets the store. Only `holdfast/ambient` calls this, so that `holdfast` itself imports no platform module. */
export function setAmbientStore(newStore: AmbientStore | undefined): void {
  store = newStore;
}

/**
 * What the running code inherits. Undefined unless `holdfast/ambient` is loaded and a server, a consumer or a run has
 * set it.
 */
export function ambientContext(): AmbientContext | undefined {
  return store?.getStore();
}

/** Whether another layer retries, so that this one makes a single attempt. */
export function isRetriedElsewhere(context: AmbientContext | undefined): boolean {
  return context !== undefined && (context.ownedUpstream === true || context.packaging === true);
}

/**
 * Runs `fn` with `inner` as its ambient context. The time limit can only become shorter. Without `holdfast/ambient` it
 * just runs `fn`.
 */
export function withAmbient<T>(inner: AmbientContext, fn: () => T): T {
  if (!store) return fn();
  const outer = store.getStore();
  // `inner` is not copied, because its `signal` may be a getter that creates the signal.
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

/** Runs `fn` without an ambient context, because shared calls and intervals belong to no single caller. */
export function withoutAmbient<T>(fn: () => T): T {
  return store?.getStore() ? store.run(undefined, fn) : fn();
}
