import { OptionsError } from 'holdfast';

/** Throws if `engine` is a promise: the caller forgot `await`, for example before `openSqlite(…)`. */
export function assertAwaited(engine: unknown): void {
  if (typeof (engine as PromiseLike<unknown> | undefined)?.then === 'function')
    throw new OptionsError('engine', 'a promise', 'an engine: await it first, as in `await openSqlite(…)`');
}
