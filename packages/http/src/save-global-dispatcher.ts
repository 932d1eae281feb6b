/**
 * Saves the dispatcher of the global `fetch`, which may be a proxy. undici replaces it when undici is loaded for the
 * first time, so this module is imported before undici. `global-dispatcher.ts` is imported after undici and restores
 * the saved dispatcher.
 */
const legacy: unique symbol = Symbol.for('undici.globalDispatcher.1') as never;

export const savedDispatcher: unknown = (globalThis as { [legacy]?: unknown })[legacy];
