import type { OutcomeClass } from 'holdfast';

/** One failed attempt to handle an event. The list of these records is called the story of the event. */
export interface AttemptRecord {
  /** The number of the attempt, counted from 1. */
  readonly attempt: number;
  /** When the attempt ended, epoch ms by the consumer's clock. It is only shown to people. */
  readonly at: number;
  readonly tookMs: number;
  readonly class: OutcomeClass;
  readonly errorType: string;
  readonly errorMessage: string;
  readonly verdict: 'retry' | 'snooze' | 'park' | 'discard' | 'reroute';
  /** For a retry: the class of the error. Otherwise: the reason why there is no further retry. */
  readonly because: string;
  readonly delayMs?: number;
  /** The consumer that made the attempt. */
  readonly owner?: string;
}

/** A story has at most 20 records: the first 5 attempts and the latest 15. */
export const storyMax = 20;

const beginningsKept = 5;

/** Returns the story with one more record. A full story drops its sixth record: the first 5 records always stay. */
export function continueStory(
  story: readonly AttemptRecord[],
  note: AttemptRecord,
): readonly AttemptRecord[] {
  if (story.length < storyMax) return [...story, note];
  return [...story.slice(0, beginningsKept), ...story.slice(beginningsKept - storyMax + 1), note];
}
