import type { OutcomeClass } from 'holdfast';

/** One attempt of an event's story, as it is stored: small, plain data. */
export interface AttemptRecord {
  /** Counted from 1. */
  readonly attempt: number;
  /** When it ended, epoch ms by the consumer's clock. Only for people to read. */
  readonly at: number;
  readonly tookMs: number;
  readonly class: OutcomeClass;
  readonly errorType: string;
  readonly errorMessage: string;
  readonly verdict: 'retry' | 'snooze' | 'park' | 'discard' | 'reroute';
  /** The error class that led to a retry, or the stop reason. */
  readonly because: string;
  readonly delayMs?: number;
  /** The consumer that made the attempt. */
  readonly owner?: string;
}

/** The most attempts that a story keeps: the first 5 and the latest 15. */
export const storyMax = 20;

/** How many of the first attempts are always kept: they show how it began. */
const beginningsKept = 5;

/** The story with one more attempt. A long story loses attempts in the middle; the numbers in `attempt` show the gap. */
export function continueStory(
  story: readonly AttemptRecord[],
  note: AttemptRecord,
): readonly AttemptRecord[] {
  if (story.length < storyMax) return [...story, note];
  return [...story.slice(0, beginningsKept), ...story.slice(beginningsKept - storyMax + 1), note];
}
