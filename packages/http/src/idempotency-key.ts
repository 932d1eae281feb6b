import { type AmbientContext, fnv1a, OptionsError, type Random } from 'holdfast';
import { type Field, text } from 'holdfast/fields';

/** Methods that are idempotent by definition (RFC 9110, section 9.2.2, and the draft of QUERY). */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PUT', 'DELETE']);

export function isRepeatable(method: string): boolean {
  return method === 'GET' || repeatable.has(method.toUpperCase());
}

/** The request that an idempotency key is made for. */
export interface KeyedRequest {
  readonly method: string;
  /**
   * The URL. With several `endpoints` it is only the part after the base URL, which is the same for all of
   * them.
   */
  readonly url: string;
}

/**
 * How a request with a method such as POST gets its Idempotency-Key. `derive`: from the key of the event or
 * request that is being handled. `auto`: derived if possible, otherwise random. A key in the caller's headers
 * always comes first.
 */
export type Idempotency = 'off' | 'auto' | 'derive' | ((request: KeyedRequest) => string | undefined);

/** Returns the Idempotency-Key of one call; undefined: the call gets no key. */
export type KeyMaker = (
  request: KeyedRequest,
  ambient: AmbientContext | undefined,
  random: Random,
) => string | undefined;

export function keyMaker(source: Idempotency = 'off'): KeyMaker | undefined {
  if (source === 'off') return undefined;
  if (typeof source === 'function') return (request) => assertKey(source(request));
  if (source === 'derive') return derive;
  if (source === 'auto') return (request, ambient, random) => derive(request, ambient) ?? uuid(random);
  throw new OptionsError('idempotency', source, 'off, auto, derive or a function');
}

/**
 * Accepts only a non-empty string. A promise must be refused: as text it would be the same key, `[object
 * Promise]`, for every request.
 */
export const keyField: Field<string, string> = { ...text(), kind: 'a text that is not empty' };

function assertKey(key: string | undefined): string | undefined {
  if (key === undefined || keyField.read(key, '') !== undefined) return key;
  throw new OptionsError('idempotency', key, keyField.kind);
}

/**
 * For each event or request that is being handled (its `AmbientContext`): how often each method and URL was
 * called.
 */
const calls = new WeakMap<AmbientContext, Map<string, number>>();

/**
 * Derives a key from the key of the handled event, the method, the URL and a counter. If the event is handled
 * again, its n-th call of this URL gets the same key as before.
 */
function derive({ method, url }: KeyedRequest, ambient: AmbientContext | undefined): string | undefined {
  if (ambient?.idempotencyKey === undefined) return undefined;
  let counts = calls.get(ambient);
  if (!counts) {
    counts = new Map();
    calls.set(ambient, counts);
  }
  const call = fingerprint(`${method} ${url}`);
  const count = (counts.get(call) ?? 0) + 1;
  counts.set(call, count);
  return `${headerSafe(ambient.idempotencyKey)}.${call}.${count}`;
}

/**
 * Returns a text that is valid in a header. Long keys, and keys with other characters than visible ASCII, are
 * hashed.
 */
function headerSafe(key: string): string {
  if (/^[!#-+\--[\]-~]{1,220}$/.test(key)) return key;
  return fingerprint(`1 ${key}`) + fingerprint(`2 ${key}`);
}

/**
 * Returns two 32-bit hashes as text. That is enough to distinguish the calls that one event or request makes.
 */
function fingerprint(text: string): string {
  let second = 0x1b873593;
  for (let index = 0; index < text.length; index++) {
    second = Math.imul(second ^ text.charCodeAt(index), 0x85ebca6b) ^ (second >>> 13);
  }
  return hex(fnv1a(text)) + hex(second);
}

function uuid(random: Random): string {
  const digits = [0, 0, 0, 0].map(() => hex(random() * 2 ** 32)).join('');
  const variant = '89ab'[Math.floor(random() * 4)] as string;
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0');
}
