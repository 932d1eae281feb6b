import { HoldfastError } from 'holdfast';

/** A call failed because of the file, its locks or the disk. The call has stored nothing. */
export class SqliteError extends HoldfastError {
  constructor(
    code: 'BUSY' | 'FULL' | 'CLOSED' | 'SCHEMA_TOO_NEW' | 'NO_STORE' | 'FAILED',
    message: string,
    options?: ErrorOptions,
  ) {
    super(`HOLDFAST_SQLITE_${code}`, message, options);
  }
}

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

/** Converts a driver error to a `SqliteError`. Returns any other error unchanged. */
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
  // The last byte of an extended result code is the primary code.
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode & 0xff : undefined;
}
