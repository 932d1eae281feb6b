/**
 * undici, when it is first loaded, puts an agent of its own behind the global `fetch`, over whatever is there: a proxy, say.
 * This module is imported before undici and `global-dispatcher.ts` after it, so that everything stays as it was.
 */
const legacy: unique symbol = Symbol.for('undici.globalDispatcher.1') as never;

export const before: unknown = (globalThis as { [legacy]?: unknown })[legacy];
