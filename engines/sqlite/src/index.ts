export type { MonotonicClock } from './monotonic-clock.ts';
export { openSqlite, type SqliteEngine, type SqliteOptions, sqliteFeatures } from './open-sqlite.ts';
export { SqliteError } from './sqlite-errors.ts';
