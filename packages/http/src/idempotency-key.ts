import { type AmbientContext, OptionsError, type Random } from 'holdfast';
import { type Field, text } from 'holdfast/fields';

/** What a key is asked for. */
export interface Keyed {
  readonly method: string;
  /** The URL, or with several endpoints the part that is the same for all of them. */
  readonly url: string;
}

/**
 * Where the keys of requests that are not safe to repeat come from: nowhere, made for each operation, derived from that of the
 * surrounding work, or said by a function. One that is in the request's headers is always taken.
 */
export type Idempotency = 'off' | 'auto' | 'derive' | ((request: Keyed) => string | undefined);

/** Makes the key of one operation, if it is to have one. */
export type KeyMaker = (
  request: Keyed,
  around: AmbientContext | undefined,
  random: Random,
) => string | undefined;

export function keyMaker(said: Idempotency = 'off'): KeyMaker | undefined {
  if (said === 'off') return undefined;
  if (typeof said === 'function') return (request) => demandKey(said(request));
  if (said === 'derive') return derive;
  if (said === 'auto') return (request, around, random) => derive(request, around) ?? uuid(random);
  throw new OptionsError('idempotency', said, 'off, auto, derive or a function');
}

/** A promise, say, would be the same text for every request; and what is empty is no key. */
export const keyField: Field<string, string> = { ...text(), kind: 'a text that is not empty' };

function demandKey(key: string | undefined): string | undefined {
  if (key === undefined || keyField.read(key, '') !== undefined) return key;
  throw new OptionsError('idempotency', key, keyField.kind);
}

/** How often each kind of call was made inside one piece of work. */
const calls = new WeakMap<AmbientContext, Map<string, number>>();

/**
 * The same work, run again, makes the same calls in the same order: the n-th call to one place gets the same key. Two calls
 * never share one.
 */
function derive({ method, url }: Keyed, around: AmbientContext | undefined): string | undefined {
  if (around?.idempotencyKey === undefined) return undefined;
  let counts = calls.get(around);
  if (!counts) {
    counts = new Map();
    calls.set(around, counts);
  }
  const place = fingerprint(`${method} ${url}`);
  const count = (counts.get(place) ?? 0) + 1;
  counts.set(place, count);
  return `${headerSafe(around.idempotencyKey)}.${place}.${count}`;
}

/** Of events, keys can be any text; of requests, at most 255 visible characters, and no comma between two of them. */
function headerSafe(key: string): string {
  if (/^[!#-+\--[\]-~]{1,220}$/.test(key)) return key;
  return fingerprint(`1 ${key}`) + fingerprint(`2 ${key}`);
}

/** Two rounds of 32-bit FNV-1a: tells the calls of one piece of work apart, and no more is asked of it. */
function fingerprint(text: string): string {
  let low = 0x811c9dc5;
  let high = 0x1b873593;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x85ebca6b) ^ (high >>> 13);
  }
  return hex(low) + hex(high);
}

/** Version 4, from the chance that was given. */
function uuid(random: Random): string {
  const digits = [0, 0, 0, 0].map(() => hex(random() * 2 ** 32)).join('');
  const variant = '89ab'[Math.floor(random() * 4)] as string;
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0');
}
