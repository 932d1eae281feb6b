import type { Operation, Priority } from './run-options.ts';
import type { Work } from './work.ts';

/** What work inherits from the request, event or step that it serves. */
export interface AmbientContext {
  /** When the customer gives up, on the scale of `Clock.now`. */
  readonly patienceEndsAt?: number | undefined;
  /** Aborts when the customer has gone. */
  readonly signal?: AbortSignal | undefined;
  /** True when a layer upstream retries: then calls made here are attempted once. */
  readonly ownedUpstream?: boolean | undefined;
  /** Which attempt of the layer upstream this is. */
  readonly attempt?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The key under which the outer work is repeated; calls made here derive theirs from it. */
  readonly idempotencyKey?: string | undefined;
}

/** Where ambientContext are kept: AsyncLocalStorage, or anything of its shape. */
export interface AmbientStore {
  getStore(): AmbientContext | undefined;
  run<T>(ambientContext: AmbientContext | undefined, fn: () => T): T;
  /** `operation` inside the limits of its own work, for the runs that it makes. */
  ambient?<T>(work: Work, operation: Operation<T>): Operation<T>;
}

let store: AmbientStore | undefined;

/** Lets `holdfast/ambient` bring the store: core itself imports nothing of the platform's. */
export function setAmbientStore(given: AmbientStore | undefined): void {
  store = given;
}

/** What surrounds the running code; `undefined` unless `holdfast/ambient` is loaded and an edge has written. */
export function ambientContext(): AmbientContext | undefined {
  return store?.getStore();
}

/**
 * Runs `fn` inside `inner`. Time only shrinks: a later end than the one that already holds is cut to it.
 * Without `holdfast/ambient` this runs `fn` and nothing else.
 */
export function withAmbient<T>(inner: AmbientContext, fn: () => T): T {
  if (!store) return fn();
  const outer = store.getStore();
  // As it is: an edge may make its signal only when somebody asks for it, and it is met here once an event.
  if (!outer) return store.run(inner, fn);
  const patienceEndsAt = Math.min(inner.patienceEndsAt ?? Infinity, outer.patienceEndsAt ?? Infinity);
  return store.run({ ...outer, signal: outer.signal, ...inner, patienceEndsAt }, fn);
}

/** `operation` inside the limits of its own work; as it is without `holdfast/ambient`. */
export function ambient<T>(work: Work, operation: Operation<T>): Operation<T> {
  return store?.ambient?.(work, operation) ?? operation;
}

/** Runs `fn` outside of whatever surrounds it: shared flights, pools and intervals serve nobody in particular. */
export function withoutAmbient<T>(fn: () => T): T {
  return store?.getStore() ? store.run(undefined, fn) : fn();
}
