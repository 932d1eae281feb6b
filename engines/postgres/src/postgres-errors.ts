import { TopicError } from '@holdfast/contracts';
import { HoldfastError, OptionsError } from 'holdfast';

/** The server cannot be reached, or the connection was lost. Repeat the call: it may or may not have been executed. */
export class PostgresUnavailableError extends HoldfastError {
  constructor(cause: unknown) {
    super('HOLDFAST_POSTGRES_UNAVAILABLE', `PostgreSQL cannot be reached: ${messageOf(cause)}`, { cause });
  }
}

/** The server has no disk, memory or connections left. Nothing was stored. */
export class PostgresFullError extends HoldfastError {
  constructor(cause: unknown) {
    const { code } = cause as { code: string };
    const what = code === diskFull ? 'The disk of PostgreSQL is full' : 'PostgreSQL has no room left';
    super('HOLDFAST_POSTGRES_FULL', `${what}: ${messageOf(cause)}`, { cause });
  }
}

/** The schema has a version that this package cannot use, or does not exist although `mustExist` is true. */
export class PostgresSchemaError extends HoldfastError {
  constructor(schema: string, found?: number, wanted?: number) {
    const wrong =
      found === undefined
        ? 'holds no store of ours'
        : `is at version ${found}, and this package works with version ${wanted}`;
    super('HOLDFAST_POSTGRES_SCHEMA', `schema ${JSON.stringify(schema)} ${wrong}`);
  }
}

const diskFull = '53100';
const invalidCharacter = '22021';
/** Our SQL functions raise this SQLSTATE for an unknown topic. */
const unknownTopic = 'HF404';
const systemCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** Converts driver errors to error classes of this package, if a caller can act on them. */
export function toPostgresError(error: unknown): unknown {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string };
  if (code === unknownTopic) return new TopicError(message, 'was never declared');
  if (isUnavailable(code, message)) return new PostgresUnavailableError(error);
  if (code.startsWith('53')) return new PostgresFullError(error);
  return error;
}

/** If PostgreSQL refused a text with NUL, returns an error that shows this text. */
export function explainNul(error: unknown, values: readonly unknown[]): unknown {
  if ((error as { code?: string } | undefined)?.code !== invalidCharacter) return error;
  const text = values.flat().find((value) => typeof value === 'string' && value.includes('\0'));
  return new OptionsError('a text for PostgreSQL', text, 'one without NUL');
}

/** True: the query timed out in the driver, and the connection still waits for the server. */
export function isUnanswered(error: unknown): boolean {
  return (error as Error | undefined)?.message === 'Query read timeout';
}

/** True for a serialization failure or a deadlock: nothing was stored, so the call can be repeated. */
export function isCollision(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: string };
  return code === '40001' || code === '40P01';
}

function isUnavailable(code: string, message: string): boolean {
  // 08: connection errors. 57P01 to 57P03: the server stops or starts. 25006: the server is now a read-only standby.
  if (/^(08|57P0[1-3]|25006)/.test(code) || systemCodes.has(code)) return true;
  // The server stops when the disk of its write-ahead log is full. Whether the commit succeeded is unknown.
  if (code === diskFull && message.includes('pg_wal')) return true;
  // These driver errors have no code.
  return (
    code === '' &&
    /^(Connection terminated|Client (has encountered|was closed)|timeout exceeded|Query read timeout)/.test(
      message,
    )
  );
}

function messageOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: string; code?: string };
  return message || code || String(error);
}
