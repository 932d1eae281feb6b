import { HoldfastError } from './errors.ts';
import type { OutcomeClass } from './outcome.ts';
import type { StopReason, Verdict } from './verdict.ts';

/** One attempt as its story tells it. */
export interface StoryAttempt {
  /** Counted from 1. */
  readonly attempt: number;
  readonly target: string | undefined;
  /** Ms since the work began. */
  readonly endedAtMs: number;
  readonly class: OutcomeClass;
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
  /** Counts every give-up in this process, so that an outer run can tell its own attempt's from an older one. */
  readonly order: number;
}

const endings = /* @__PURE__ */ new WeakMap<object, RunEnding>();
let order = 0;

/** How many runs have given up so far. */
export function endingsSoFar(): number {
  return order;
}

/** Notes that a run gave up on `error`; the newest story of an error object is the one that is kept. */
export function recordEnding(error: unknown, story: Story): void {
  const ending = { story, order: ++order };
  if (error instanceof HoldfastError) HoldfastError.setEnding(error, ending);
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
  return error instanceof HoldfastError ? HoldfastError.endingOf(error) : endings.get(error);
}

/** The story of a run that gave up on `error`, or on one of its causes, after `since`. */
export function endedInside(error: unknown, since: number): Story | undefined {
  if (order === since) return undefined;
  let cause = error;
  for (let depth = 0; depth < 8 && isObject(cause); depth++) {
    const ending = endingOf(cause);
    if (ending && ending.order > since) return ending.story;
    cause = (cause as { cause?: unknown }).cause;
  }
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
