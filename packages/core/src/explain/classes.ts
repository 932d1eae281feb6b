import type { RetryOn } from '../classify/classifier.ts';
import type { Plan } from '../plan.ts';
import { sayMs } from './spoken.ts';

/** What each pack takes for a failure that passes. */
const packSentences: Readonly<Record<string, string>> = {
  network: 'connections that were refused, reset, lost or timed out, and names that were not found',
  http: 'statuses 408, 425, 429 and 5xx, but not 501 and 505 to 519',
  sql: 'lost connections, deadlocks, serialization failures, locks and lack of room in a database',
  grpc: 'DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED and UNAVAILABLE',
  aws: 'what AWS calls throttled or transient, and statuses 429, 500, 502, 503 and 504',
  kafka: 'what Kafka or its client calls retriable',
  any: 'every error',
};

/** Which failures are tried again. */
export function sayRetried(
  plan: Plan,
  retryOn: readonly RetryOn[] | undefined,
  isGuarded: boolean,
): string[] {
  const usual = ['network', 'http'].filter((name) => plan.packs.some(({ pack }) => pack === name));
  const packs = (retryOn ?? usual).map((each) => {
    if (typeof each === 'function') return 'what a function of your own says';
    const name = typeof each === 'string' ? each : each.pack;
    const sentence = packSentences[name];
    return sentence ? `${name}: ${sentence}` : `${name}: a pack of your own`;
  });
  const marked = 'errors marked with `transient` or `retryAfter`';
  return isGuarded ? [...packs, 'attempts that took too long', marked] : [...packs, marked];
}

/** Which are not. */
export function sayNotRetried(neverOn: readonly (abstract new (...args: never[]) => unknown)[]): string[] {
  return [
    'what no pack knows',
    'errors marked with `permanent`',
    ...neverOn.map(({ name }) => `${name || 'a class'} and its descendants`),
    'what a server says must not be repeated',
    'errors that a run inside this one has given up on',
    'work whose caller has left',
    'with `idempotent: false`: everything that may have been processed',
  ];
}

/** How a server that says when to come back is treated. */
export function sayHints(hintCapMs: number): string {
  if (hintCapMs === 0) return 'Hints of a server on when to come back are not followed.';
  return `A hint of a server (Retry-After and its kin) is a floor: chance adds up to half of it, and never takes away. One above ${sayMs(hintCapMs)} ends the work, and so does one that is longer than the patience left.`;
}
