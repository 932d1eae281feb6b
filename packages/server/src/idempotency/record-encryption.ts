import type { Payload } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';

/**
 * Encrypts recorded responses, for example with AES-GCM. Both functions are synchronous, because transactions
 * of SQLite are. `scope` is the owner of the record.
 */
export interface RecordEncryption {
  encrypt(record: Uint8Array, scope: string): Uint8Array;
  /**
   * Throws if `encrypted` cannot be decrypted. In this case, the response is not replayed, and the request is
   * not executed again.
   */
  decrypt(encrypted: Uint8Array, scope: string): Uint8Array;
}

export function encryptRecord(
  encryption: RecordEncryption | undefined,
  record: Payload,
  scope: string,
): Payload {
  return encryption ? encryption.encrypt(bytesOf(record), scope) : record;
}

export function decryptRecord(
  encryption: RecordEncryption | undefined,
  record: Payload,
  scope: string,
): Payload {
  return encryption ? encryption.decrypt(bytesOf(record), scope) : record;
}

export function assertEncryption(encryption: RecordEncryption | undefined): RecordEncryption | undefined {
  if (encryption === undefined) return undefined;
  const { encrypt, decrypt } = encryption;
  if (typeof encrypt === 'function' && typeof decrypt === 'function') return encryption;
  const wanted = 'an object with the functions `encrypt` and `decrypt`';
  throw new OptionsError('idempotency.encryption', encryption, wanted);
}

function bytesOf(record: Payload): Uint8Array {
  return typeof record === 'string' ? Buffer.from(record) : record;
}
