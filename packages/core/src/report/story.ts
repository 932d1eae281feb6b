import { causesOf } from '../classify/causes-of.ts';
import { isObject } from '../classify/is-object.ts';
import type { OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import { HoldfastError } from './errors.ts';

/** One attempt as its story tells it. */
export interface StoryAttempt {
  /** Counted from 1. */
  readonly attempt: number;
  readonly target: string | undefined;
  /** Ms since the work began. */
  readonly endedAtMs: number;
  readonly class: OutcomeClass;
  /** True where it is `fatal` only because no classifier knows the error. */
  readonly unknown?: boolean | undefined;
  /** The server's own word on when to come back, if it gave one: ms from then on. */
  readonly retryAfterMs?: number | undefined;
  /** What the attempt threw; for a value that was judged a failure, the value. */
  readonly outcome: unknown;
  readonly verdict: Verdict;
}

/** The record of one piece of work: each attempt that failed, and what was decided after it. */
export interface Story {
  readonly policy: string | undefined;
  /** Attempts made, successes included. */
  readonly attempts: number;
  readonly tookMs: number;
  /** Why it ended; `undefined` when it succeeded. */
  readonly stop: StopReason | undefined;
  /**
   * The attempts after which something had to be decided; a first try that succeeds leaves none. Of more than a hundred,
   * the first and the latest.
   */
  readonly log: readonly StoryAttempt[];
  /** The story of the run inside this one that gave up on the same error. */
  readonly inner: Story | undefined;
}

/** How a run that gave up is remembered with its error. */
export interface RunEnding {
  readonly story: Story;
  /** When the run began, among all runs and attempts. */
  readonly serial: number;
}

const endings = /* @__PURE__ */ new WeakMap<object, RunEnding>();
let moments = 0;
/** Of the youngest run that gave up. */
let youngest = 0;

/** Numbers runs and attempts by when they began: so an outer run tells one inside its attempt from one beside it. */
export function nextSerial(): number {
  return ++moments;
}

/** Notes that a run gave up on `error`; the newest story of an error object is the one that is kept. */
export function recordEnding(error: unknown, ending: RunEnding): void {
  youngest = Math.max(youngest, ending.serial);
  if (HoldfastError.is(error)) HoldfastError.setEnding(error, ending);
  else if (isObject(error)) endings.set(error, ending);
}

/**
 * The story of the latest run that threw this object. Best effort: an error that is thrown again by other
 * work has the story of its latest throw, and primitives have none.
 */
export function storyOf(error: unknown): Story | undefined {
  return isObject(error) ? endingOf(error)?.story : undefined;
}

function endingOf(error: object): RunEnding | undefined {
  return HoldfastError.is(error) ? HoldfastError.endingOf(error) : endings.get(error);
}

/**
 * The story of a run that began after `since` and gave up on `error` or on one of its causes. Runs that share a promise fail
 * with one error, and are not inside each other.
 */
export function endedInside(error: unknown, since: number): Story | undefined {
  if (youngest <= since) return undefined;
  for (const cause of causesOf(error)) {
    const ending = endingOf(cause);
    if (ending && ending.serial > since) return ending.story;
  }
  return undefined;
}
