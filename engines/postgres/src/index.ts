export type { PostgresPool, PostgresTransaction } from './database.ts';
export { openPostgres, type PostgresEngine, type PostgresOptions, postgresFeatures } from './engine.ts';
export { PostgresFullError, PostgresSchemaError, PostgresUnavailableError } from './postgres-errors.ts';
export type { PostgresWarning } from './vacuum-watch.ts';
