import { causesOf } from '../classify/causes-of.ts';
import { isObject } from '../classify/is-object.ts';
import type { OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import { HoldfastError } from './errors.ts';

/** One attempt of a story. */
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
   * The attempts that needed a decision; a first attempt that succeeds is not listed. Of more than a hundred, only the first
   * and the latest are kept.
   */
  readonly log: readonly StoryAttempt[];
  /** The story of the run inside this one that gave up on the same error. */
  readonly inner: Story | undefined;
}

/** What is stored with the error of a run that gave up. */
export interface RunEnding {
  readonly story: Story;
  /** From `nextSerial`, when the run began. */
  readonly serial: number;
}

const endings = /* @__PURE__ */ new WeakMap<object, RunEnding>();
let lastSerial = 0;
/** The highest serial of a run that gave up. */
let lastEnded = 0;

/** Numbers runs and attempts in the order in which they begin: a run inside an attempt has a higher number than the attempt. */
export function nextSerial(): number {
  return ++lastSerial;
}

/** Stores the ending of a run that gave up on `error`. It replaces an older ending of the same error. */
export function recordEnding(error: unknown, ending: RunEnding): void {
  lastEnded = Math.max(lastEnded, ending.serial);
  if (HoldfastError.is(error)) HoldfastError.setEnding(error, ending);
  else if (isObject(error)) endings.set(error, ending);
}

/**
 * The story of the latest run that threw this error. An error that other work throws again has the story of its latest
 * throw; primitives have none.
 */
export function storyOf(error: unknown): Story | undefined {
  return isObject(error) ? endingOf(error)?.story : undefined;
}

function endingOf(error: object): RunEnding | undefined {
  return HoldfastError.is(error) ? HoldfastError.endingOf(error) : endings.get(error);
}

/**
 * The story of a run that began after `since` and gave up on `error` or on one of its causes. Runs that share a promise fail
 * with the same error although none is inside the other: `since` excludes them.
 */
export function endedInside(error: unknown, since: number): Story | undefined {
  if (lastEnded <= since) return undefined;
  for (const cause of causesOf(error)) {
    const ending = endingOf(cause);
    if (ending && ending.serial > since) return ending.story;
  }
  return undefined;
}
