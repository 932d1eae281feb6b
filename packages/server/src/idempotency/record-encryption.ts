import type { Payload } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';

/**
 * Keeps what is recorded unreadable for whoever can read the store: AES-GCM with a key of yours, for instance. Both are done when
 * they return, because a record may be made inside a transaction. `scope` says whose it is, and can choose the key.
 */
export interface Sealing {
  seal(record: Uint8Array, scope: string): Uint8Array;
  /** Throws where it cannot; the request is then neither replayed nor executed. */
  open(sealed: Uint8Array, scope: string): Uint8Array;
}

export function sealed(sealing: Sealing | undefined, record: Payload, scope: string): Payload {
  if (!sealing) return record;
  return sealing.seal(typeof record === 'string' ? Buffer.from(record) : record, scope);
}

export function opened(sealing: Sealing | undefined, record: Payload, scope: string): Payload {
  if (!sealing) return record;
  return sealing.open(typeof record === 'string' ? Buffer.from(record) : record, scope);
}

export function demandSealing(sealing: Sealing | undefined): Sealing | undefined {
  if (sealing === undefined) return undefined;
  if (typeof sealing.seal === 'function' && typeof sealing.open === 'function') return sealing;
  throw new OptionsError('idempotency.sealing', sealing, 'an object with the functions `seal` and `open`');
}
