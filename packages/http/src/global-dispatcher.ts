import { before } from './save-global-dispatcher.ts';

const current = Symbol.for('undici.globalDispatcher.2');
const legacy = Symbol.for('undici.globalDispatcher.1');
const host = globalThis as unknown as Record<symbol, { dispatch?: unknown } | undefined>;

if (before !== undefined) host[legacy] = before as object;

/** Whether the dispatcher behind the global `fetch` is nobody's choice: then ours can take its place. */
export function hasPlainGlobalDispatcher(): boolean {
  const old = host[legacy];
  if (old?.constructor.name !== 'Dispatcher1Wrapper') return isPlain(old);
  return isPlain(host[current]);
}

function isPlain(dispatcher: { dispatch?: unknown } | undefined): boolean {
  if (dispatcher === undefined) return true;
  // One that was composed looks like what it is made of, but for the method.
  return (
    dispatcher.constructor.name === 'Agent' &&
    dispatcher.dispatch === Object.getPrototypeOf(dispatcher).dispatch
  );
}
