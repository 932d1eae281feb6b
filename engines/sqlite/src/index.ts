export { openSqlite, type SqliteEngine, type SqliteOptions, sqliteFeatures } from './open-sqlite.ts';
export { SqliteError } from './sqlite-errors.ts';
export type { MonotonicClock } from './store-clock.ts';
