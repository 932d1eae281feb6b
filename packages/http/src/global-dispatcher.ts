import { savedDispatcher } from './save-global-dispatcher.ts';

const current = Symbol.for('undici.globalDispatcher.2');
const legacy = Symbol.for('undici.globalDispatcher.1');
const host = globalThis as unknown as Record<symbol, { dispatch?: unknown } | undefined>;

if (savedDispatcher !== undefined) host[legacy] = savedDispatcher as object;

/**
 * Returns true if the global `fetch` uses undici's default dispatcher. A user's own global dispatcher, such
 * as a proxy, must not be bypassed.
 */
export function hasPlainGlobalDispatcher(): boolean {
  const old = host[legacy];
  if (old?.constructor.name !== 'Dispatcher1Wrapper') return isPlain(old);
  return isPlain(host[current]);
}

function isPlain(dispatcher: { dispatch?: unknown } | undefined): boolean {
  if (dispatcher === undefined) return true;
  // An agent with interceptors has the same constructor, but its own `dispatch`.
  return (
    dispatcher.constructor.name === 'Agent' &&
    dispatcher.dispatch === Object.getPrototypeOf(dispatcher).dispatch
  );
}
