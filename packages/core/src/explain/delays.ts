import { decide } from '../decide/decide.ts';
import type { OutcomeClass } from '../decide/outcome.ts';
import type { Plan } from '../policy/plan.ts';

/**
 * The shortest, typical and longest wait after one attempt. They differ only in the random number that the
 * backoff gets.
 */
export interface Delays {
  readonly leastMs: number;
  readonly typicalMs: number;
  readonly mostMs: number;
}

/** The waits after one failed attempt, in ms. */
export interface DelayRow extends Delays {
  /** The attempt that has just failed, counted from 1. */
  readonly afterAttempt: number;
  /** The waits if that attempt failed because the target throttled it (asked for fewer calls). */
  readonly throttled: Delays;
}

export const LEAST = 0;
export const TYPICAL = 0.5;
/** The largest random number. It is just below 1, because random numbers are always less than 1. */
export const MOST = 1 - Number.EPSILON;

const rowsMax = 10;

/** Returns the waits of a policy after each attempt except the last, at most ten rows. */
export function delayTable(plan: Plan): DelayRow[] {
  const throttled = delaysOf(plan, 'throttled');
  return delaysOf(plan, 'transient').map((delays, index) => ({
    afterAttempt: index + 1,
    ...delays,
    throttled: throttled[index] as Delays,
  }));
}

/**
 * Returns the first `rows` waits of a policy, computed as if every random number were `roll`. A wait of
 * Infinity means that the work ends instead of waiting.
 */
export function waitsOf(plan: Plan, roll: number, rows: number, after: OutcomeClass = 'transient'): number[] {
  const waits: number[] = [];
  for (let attempt = 1; attempt < plan.attempts && waits.length < rows; attempt++) {
    const history = {
      attempt,
      previousDelayMs: waits.at(-1) ?? 0,
      patienceEndsAt: Infinity,
      idempotent: true,
      retryVeto: undefined,
    };
    const facts = { now: 0, roll, tokens: 1, expectedAttemptMs: 0, admitsAt: 0 };
    const verdict = decide(plan, history, { class: after }, facts);
    waits.push(verdict.kind === 'retry' ? verdict.delayMs : Infinity);
  }
  return waits;
}

function delaysOf(plan: Plan, after: OutcomeClass): Delays[] {
  const [least, typical, most] = [LEAST, TYPICAL, MOST].map((roll) =>
    waitsOf(plan, roll, rowsMax, after).map((ms) => Math.round(ms * 1000) / 1000),
  ) as [number[], number[], number[]];
  return most.map((mostMs, index) => ({
    leastMs: least[index] as number,
    typicalMs: typical[index] as number,
    mostMs,
  }));
}
