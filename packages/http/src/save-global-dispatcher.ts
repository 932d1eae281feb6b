/**
 * When undici is first loaded, it replaces the dispatcher of the global `fetch`, which may be a proxy. This module is imported
 * before undici and saves that dispatcher; `global-dispatcher.ts` is imported after it, and restores it.
 */
const legacy: unique symbol = Symbol.for('undici.globalDispatcher.1') as never;

export const savedDispatcher: unknown = (globalThis as { [legacy]?: unknown })[legacy];
