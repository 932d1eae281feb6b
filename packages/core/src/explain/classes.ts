import { packsOf, type RetryOn } from '../classify/classifier.ts';
import type { Plan } from '../policy/plan.ts';
import { formatMs } from './format-duration.ts';

const packSentences: Readonly<Record<string, string>> = {
  network: 'connections that were refused, reset, lost or timed out, and names that were not found',
  http: 'statuses 408, 425, 429 and 5xx, but not 501 and 505 to 519',
  sql: 'lost connections, deadlocks, serialization failures, locks and lack of room in a database',
  grpc: 'DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED and UNAVAILABLE',
  aws: 'what AWS calls throttled or transient, and statuses 429, 500, 502, 503 and 504',
  kafka: 'what Kafka or its client calls retriable',
  any: 'every error that no other pack knows',
};

export function sayRetried(
  plan: Plan,
  settings: { retryOn?: readonly RetryOn[]; retryOnly?: readonly RetryOn[] },
  isGuarded: boolean,
): string[] {
  const packs = packsOf(settings, plan.packs).map(({ pack: name }) => {
    if (name === '') return 'failures that a function of your own classifies';
    const sentence = packSentences[name];
    return sentence ? `${name}: ${sentence}` : `${name}: a pack of your own`;
  });
  const marked = 'errors marked with `transient` or `retryAfter`';
  return isGuarded ? [...packs, 'attempts that took too long', marked] : [...packs, marked];
}

export function sayNotRetried(neverOn: readonly (abstract new (...args: never[]) => unknown)[]): string[] {
  return [
    'errors that no pack knows',
    'errors marked with `permanent`',
    ...neverOn.map(({ name }) => `${name || 'a class'} and its descendants`),
    'requests that the server forbids to repeat',
    'errors that a run inside this one has given up on',
    'work that was cancelled',
    'with `idempotent: false`: attempts that may have been processed',
  ];
}

export function sayHints(hintCapMs: number): string {
  if (hintCapMs === 0) return 'Hints of a server on when to try again are not followed.';
  return `A hint of a server (Retry-After and similar headers) is a minimum: jitter adds up to as much again, at most 60 s and half of the patience that is left. A hint above ${formatMs(hintCapMs)} ends the work, and so does one that is longer than the patience left.`;
}
