import type { OutcomeClass } from 'holdfast';

/**
 * One failed attempt to handle an event, as engines store it. The list of these records is called the story of the
 * event.
 */
export interface AttemptRecord {
  /** The number of the attempt, counted from 1. */
  readonly attempt: number;
  /** When the attempt ended, epoch ms by the consumer's clock. Only for people to read. */
  readonly at: number;
  readonly tookMs: number;
  readonly class: OutcomeClass;
  readonly errorType: string;
  readonly errorMessage: string;
  readonly verdict: 'retry' | 'snooze' | 'park' | 'discard' | 'reroute';
  /** The error class because of which the event is retried, or the reason why it is not retried any more. */
  readonly because: string;
  readonly delayMs?: number;
  /** The consumer that made the attempt. */
  readonly owner?: string;
}

/** The most records that a story has: the records of the first 5 attempts and of the latest 15. */
export const storyMax = 20;

/** The records of the first 5 attempts are always kept, because they show how the problem began. */
const beginningsKept = 5;

/**
 * Returns the story with one more record. If the story is full, the oldest record after the first 5 is removed; the
 * numbers in `attempt` show the gap.
 */
export function continueStory(
  story: readonly AttemptRecord[],
  note: AttemptRecord,
): readonly AttemptRecord[] {
  if (story.length < storyMax) return [...story, note];
  return [...story.slice(0, beginningsKept), ...story.slice(beginningsKept - storyMax + 1), note];
}
