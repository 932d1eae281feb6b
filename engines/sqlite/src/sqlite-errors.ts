import { HoldfastError } from 'holdfast';

/** The file or the system refused a call. Nothing of it has been stored. */
export class SqliteError extends HoldfastError {
  constructor(
    code: 'BUSY' | 'FULL' | 'CLOSED' | 'SCHEMA_TOO_NEW' | 'NO_STORE' | 'FAILED',
    message: string,
    options?: ErrorOptions,
  ) {
    super(`HOLDFAST_SQLITE_${code}`, message, options);
  }
}

/** The primary result codes of SQLite that are not reported as FAILED. */
const busy = 5;
const locked = 6;
const ioError = 10;
const full = 13;

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === busy || code === locked;
}

export function isFull(error: unknown): boolean {
  const code = resultCode(error);
  return code === full || (code !== undefined && /no space|disk.*full/i.test((error as Error).message));
}

/** Errors of the driver become a `SqliteError`; others stay as they are. */
export function toSqliteError(error: unknown, file: string): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  const { message } = error as Error;
  if (isFull(error)) {
    return new SqliteError('FULL', `there is no space left for ${file}: nothing of this was stored`, {
      cause: error,
    });
  }
  if (isBusy(error)) return new SqliteError('BUSY', `another process keeps ${file} locked`, { cause: error });
  const what = code === ioError ? 'cannot be read or written' : 'refused';
  return new SqliteError('FAILED', `${file} ${what}: ${message}`, { cause: error });
}

function resultCode(error: unknown): number | undefined {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown };
  // Extended codes carry the primary one in their last byte.
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode & 0xff : undefined;
}
