import { causesOf } from '../classify/causes-of.ts';
import { isObject } from '../classify/is-object.ts';
import type { OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import { HoldfastError } from './errors.ts';

/** One attempt in a story (the record of a run). */
export interface StoryAttempt {
  /** Counted from 1. */
  readonly attempt: number;
  readonly target: string | undefined;
  /** When the attempt ended, in ms since the run began. */
  readonly endedAtMs: number;
  readonly class: OutcomeClass;
  /** True: the class is `fatal` only because no classifier knows the error. */
  readonly unknown?: boolean | undefined;
  /** In how many ms the server asked to be called again, counted from the end of the attempt. */
  readonly retryAfterMs?: number | undefined;
  /**
   * A problem after the attempt: a header of the server that could not be parsed, what a classifier threw or
   * returned instead of a class, or what `onWait` threw.
   */
  readonly note?: string | undefined;
  /** The error, or the returned value that was classified as a failure. */
  readonly outcome: unknown;
  readonly verdict: Verdict;
}

/** The record of a run: each failed attempt, and the decision that followed it. */
export interface Story {
  readonly policy: string | undefined;
  /** The number of attempts, including the successful one. */
  readonly attempts: number;
  readonly tookMs: number;
  /** Why the run ended without success. Undefined for a success. */
  readonly stop: StopReason | undefined;
  /** The failed attempts. At most 100 are kept: the first one and the latest 99. */
  readonly log: readonly StoryAttempt[];
  /** The story (the record) of another run inside the operation, if that run gave up on the same error. */
  readonly inner: Story | undefined;
  /**
   * If a part of the policy, such as the breaker, refused the last attempt: in how many whole ms a call may be
   * admitted, if that is known.
   */
  readonly retryAfterMs?: number | undefined;
}

/** Describes the end of a run that gave up. It is stored with the error that the run threw. */
export interface RunEnding {
  readonly story: Story;
  /** The serial number of the run: `nextSerial` returned it when the run began. */
  readonly serial: number;
}

const endings = /* @__PURE__ */ new WeakMap<object, RunEnding>();
let lastSerial = 0;
let lastEnded = 0;

/**
 * Returns the serial number of a run or attempt that begins. Each number is higher than the one before. So a
 * run inside an attempt has a higher number than the attempt.
 */
export function nextSerial(): number {
  return ++lastSerial;
}

/**
 * Stores the ending of a run that gave up with `error`. If an earlier run gave up with the same error, its
 * ending is replaced.
 */
export function recordEnding(error: unknown, ending: RunEnding): void {
  lastEnded = Math.max(lastEnded, ending.serial);
  if (HoldfastError.is(error)) HoldfastError.setEnding(error, ending);
  else if (isObject(error)) endings.set(error, ending);
}

/**
 * Returns the story (the record) of the latest run that failed with `result`. `result` is the error that the
 * run threw, or the failed value that it returned, such as a response 503. Undefined for every other value.
 */
export function storyOf(result: unknown): Story | undefined {
  return isObject(result) ? endingOf(result)?.story : undefined;
}

function endingOf(error: object): RunEnding | undefined {
  return HoldfastError.is(error) ? HoldfastError.endingOf(error) : endings.get(error);
}

/**
 * Returns the story (the record) of a run inside an attempt, if that run gave up on `error` or on one of its
 * causes. `since` is the serial number of the attempt. Runs that began earlier are ignored.
 */
export function endedInside(error: unknown, since: number): Story | undefined {
  if (lastEnded <= since) return undefined;
  for (const cause of causesOf(error)) {
    const ending = endingOf(cause);
    if (ending && ending.serial > since) return ending.story;
  }
  return undefined;
}
