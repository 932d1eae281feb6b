import { type AmbientContext, fnv1a, OptionsError, type Random } from 'holdfast';
import { type Field, text } from 'holdfast/fields';

/** Methods that may be sent again by their definition (RFC 9110, 9.2.2, and the QUERY draft). */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PUT', 'DELETE']);

export function isRepeatable(method: string): boolean {
  return method === 'GET' || repeatable.has(method.toUpperCase());
}

/** The request that a key is made for. */
export interface KeyedRequest {
  readonly method: string;
  /** The URL; with several endpoints, the part that is the same for all of them. */
  readonly url: string;
}

/**
 * Where the keys of requests that are not safe to repeat come from. `off`: there are none. `auto`: one is made for each
 * operation. `derive`: one is derived from the key of the ambient context. A function gives one. A key in the request's headers
 * always comes first.
 */
export type Idempotency = 'off' | 'auto' | 'derive' | ((request: KeyedRequest) => string | undefined);

/** Makes the key of one operation; undefined: the operation has no key. */
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

/** Only a text: a promise, for example, would become the same text for every request. An empty text is no key. */
export const keyField: Field<string, string> = { ...text(), kind: 'a text that is not empty' };

function assertKey(key: string | undefined): string | undefined {
  if (key === undefined || keyField.read(key, '') !== undefined) return key;
  throw new OptionsError('idempotency', key, keyField.kind);
}

/** How often each method and URL was called inside one ambient context. */
const calls = new WeakMap<AmbientContext, Map<string, number>>();

/**
 * When the same work runs again, its n-th call to the same method and URL gets the same key. Two calls never share a key.
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

/** The key of an event can be any text; that of a request has at most 255 visible characters, without a comma. */
function headerSafe(key: string): string {
  if (/^[!#-+\--[\]-~]{1,220}$/.test(key)) return key;
  return fingerprint(`1 ${key}`) + fingerprint(`2 ${key}`);
}

/** FNV-1a and a second 32-bit hash: they only have to tell the calls of one piece of work apart. */
function fingerprint(text: string): string {
  let second = 0x1b873593;
  for (let index = 0; index < text.length; index++) {
    second = Math.imul(second ^ text.charCodeAt(index), 0x85ebca6b) ^ (second >>> 13);
  }
  return hex(fnv1a(text)) + hex(second);
}

/** Version 4, from the given source of random numbers. */
function uuid(random: Random): string {
  const digits = [0, 0, 0, 0].map(() => hex(random() * 2 ** 32)).join('');
  const variant = '89ab'[Math.floor(random() * 4)] as string;
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0');
}
