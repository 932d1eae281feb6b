import type { OutcomeClass } from 'holdfast';

/** One attempt of a story that outlives the process: plain data, small. */
export interface AttemptRecord {
  /** Counted from 1. */
  readonly attempt: number;
  /** When it ended, epoch ms by the consumer's clock: for reading only. */
  readonly at: number;
  readonly tookMs: number;
  readonly class: OutcomeClass;
  readonly errorType: string;
  readonly errorMessage: string;
  readonly verdict: 'retry' | 'snooze' | 'park' | 'discard' | 'reroute';
  /** The class for which it was retried, or the stop reason. */
  readonly because: string;
  readonly delayMs?: number;
  /** The consumer's process. */
  readonly owner?: string;
}

/** Notes a story keeps: the first ones and the latest. */
export const storyMax = 20;

/** How many of the first attempts are kept for ever: they tell what went wrong at first. */
const beginningsKept = 5;

/** The story with one attempt more. A long one loses its middle; `attempt` shows the gap. */
export function continueStory(
  story: readonly AttemptRecord[],
  note: AttemptRecord,
): readonly AttemptRecord[] {
  if (story.length < storyMax) return [...story, note];
  return [...story.slice(0, beginningsKept), ...story.slice(beginningsKept - storyMax + 1), note];
}
