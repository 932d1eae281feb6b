import { type TopicCounts, waitingStates } from '@holdfast/contracts';
import type { Clock } from 'holdfast';

/** If counting took more ms than this, the result is used again for some time. */
const slowMs = 50;
/** A slow result is used again for this many times the duration of the count. */
const usedFor = 20;
/** Topics with fewer events are always counted again: if that is slow, the machine is busy. */
const eventsMin = 10_000;

/** Remembers the counts of large topics, so that they are not counted too often. */
export class RecentCounts {
  readonly #clock: Clock;
  readonly #recent = new Map<string, { readonly counts: TopicCounts; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async of(topic: string, count: () => Promise<TopicCounts>): Promise<TopicCounts> {
    const started = this.#clock.now();
    const recent = this.#recent.get(topic);
    if (recent && started < recent.until) return recent.counts;
    const counts = await count();
    const tookMs = this.#clock.now() - started;
    const events = waitingStates.reduce((sum, state) => sum + counts[state], 0);
    if (tookMs > slowMs && events >= eventsMin)
      this.#recent.set(topic, { counts, until: started + tookMs * (1 + usedFor) });
    else this.#recent.delete(topic);
    return counts;
  }
}
