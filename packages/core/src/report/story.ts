import { causesOf } from '../classify/causes-of.ts';
import { isObject } from '../classify/is-object.ts';
import type { OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import { HoldfastError } from './errors.ts';

/** One attempt in a story, which is the record of one piece of work. */
export interface StoryAttempt {
  /** Counted from 1. */
  readonly attempt: number;
  readonly target: string | undefined;
  /** Ms since the work began. */
  readonly endedAtMs: number;
  readonly class: OutcomeClass;
  /** True: the class is `fatal` only because no classifier knows the error. */
  readonly unknown?: boolean | undefined;
  /** The server's hint on when to try again, in ms from the end of the attempt. */
  readonly retryAfterMs?: number | undefined;
  /** The error, or the returned value that was classified as a failure. */
  readonly outcome: unknown;
  readonly verdict: Verdict;
}

/** The record of one piece of work: each failed attempt, and the decision after it. */
export interface Story {
  readonly policy: string | undefined;
  /** Attempts made, successes included. */
  readonly attempts: number;
  readonly tookMs: number;
  /** Why it ended without success; `undefined` when it succeeded. */
  readonly stop: StopReason | undefined;
  /**
   * The failed attempts; successes are not listed. If more than a hundred failed, only the first and the latest 99 are
   * kept.
   */
  readonly log: readonly StoryAttempt[];
  /** The story of a nested run, which this run's operation started and which gave up on the same error. */
  readonly inner: Story | undefined;
}

/** How a run that gave up has ended. It is stored with the error of the run. */
export interface RunEnding {
  readonly story: Story;
  /** The number that `nextSerial` returned when the run began. */
  readonly serial: number;
}

const endings = /* @__PURE__ */ new WeakMap<object, RunEnding>();
let lastSerial = 0;
/** The highest `serial` of the runs that gave up so far. */
let lastEnded = 0;

/**
 * Returns a number that grows with each run and attempt that begins. A run that begins inside an attempt has a higher
 * number than the attempt.
 */
export function nextSerial(): number {
  return ++lastSerial;
}

/** Stores how a run that gave up on `error` ended. It replaces an older ending of the same error. */
export function recordEnding(error: unknown, ending: RunEnding): void {
  lastEnded = Math.max(lastEnded, ending.serial);
  if (HoldfastError.is(error)) HoldfastError.setEnding(error, ending);
  else if (isObject(error)) endings.set(error, ending);
}

/** Returns the story of the latest run that threw this error. Primitive values have no story. */
export function storyOf(error: unknown): Story | undefined {
  return isObject(error) ? endingOf(error)?.story : undefined;
}

function endingOf(error: object): RunEnding | undefined {
  return HoldfastError.is(error) ? HoldfastError.endingOf(error) : endings.get(error);
}

/**
 * Returns the story of a run that began after the attempt with the number `since`, and gave up on `error` or on one of
 * its causes. Runs that share a promise fail with the same error although none is inside the other; `since` excludes
 * the runs that began earlier.
 */
export function endedInside(error: unknown, since: number): Story | undefined {
  if (lastEnded <= since) return undefined;
  for (const cause of causesOf(error)) {
    const ending = endingOf(cause);
    if (ending && ending.serial > since) return ending.story;
  }
  return undefined;
}
