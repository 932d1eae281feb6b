import type { Operation, Priority } from './run-options.ts';
import type { Work } from './work.ts';

/** What work inherits from the request, event or step that it serves. */
export interface AmbientContext {
  /** When the customer gives up, on the scale of `Clock.now`. */
  readonly patienceEndsAt?: number | undefined;
  /** Aborts when the customer cancels. */
  readonly signal?: AbortSignal | undefined;
  /** True when a layer upstream retries: then calls made here are attempted once. */
  readonly ownedUpstream?: boolean | undefined;
  /** Which attempt of the layer upstream this is. */
  readonly attempt?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The key under which the outer work is repeated; calls made here derive theirs from it. */
  readonly idempotencyKey?: string | undefined;
}

/** Keeps the ambient context: AsyncLocalStorage, or anything of its shape. */
export interface AmbientStore {
  getStore(): AmbientContext | undefined;
  run<T>(ambientContext: AmbientContext | undefined, fn: () => T): T;
  /** Wraps `operation` so that the runs inside it inherit patience, priority and signal of its own attempt. */
  ambient?<T>(work: Work, operation: Operation<T>): Operation<T>;
}

let store: AmbientStore | undefined;

/** Called by `holdfast/ambient`, so that core itself imports nothing of the platform. */
export function setAmbientStore(newStore: AmbientStore | undefined): void {
  store = newStore;
}

/** The ambient context of the running code. Undefined unless `holdfast/ambient` is loaded and an edge has set one. */
export function ambientContext(): AmbientContext | undefined {
  return store?.getStore();
}

/**
 * Runs `fn` with `inner` as its ambient context. Patience only shrinks: a later end than that of the outer context is cut to
 * it. Without `holdfast/ambient` this just runs `fn`.
 */
export function withAmbient<T>(inner: AmbientContext, fn: () => T): T {
  if (!store) return fn();
  const outer = store.getStore();
  // Without a copy: `inner.signal` may be a getter that makes the signal when it is first read.
  if (!outer) return store.run(inner, fn);
  const patienceEndsAt = Math.min(inner.patienceEndsAt ?? Infinity, outer.patienceEndsAt ?? Infinity);
  return store.run({ ...outer, signal: outer.signal, ...inner, patienceEndsAt }, fn);
}

/** Wraps `operation` so that the runs inside it inherit from its work; returns it as it is without `holdfast/ambient`. */
export function ambient<T>(work: Work, operation: Operation<T>): Operation<T> {
  return store?.ambient?.(work, operation) ?? operation;
}

/** Runs `fn` without an ambient context: shared calls, pools and intervals belong to no single caller. */
export function withoutAmbient<T>(fn: () => T): T {
  return store?.getStore() ? store.run(undefined, fn) : fn();
}
