/**
 * Saves the global dispatcher of `fetch`, which may be a proxy. Loading undici replaces this dispatcher, so this module
 * must be imported before undici. `global-dispatcher.ts` restores the dispatcher.
 */
const legacy: unique symbol = Symbol.for('undici.globalDispatcher.1') as never;

export const savedDispatcher: unknown = (globalThis as { [legacy]?: unknown })[legacy];
