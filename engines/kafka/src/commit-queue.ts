import { type Clock, sleep } from 'holdfast';
import type { CommittedOffset } from './consumer-group.ts';
import { answerOf } from './kafka-client.ts';
import type { PartitionWindow } from './partition-window.ts';

/** So long a commit is repeated while the server answers that it cannot take it now, for example in a rebalance. */
const patienceMs = 5000;
const pauseMs = 50;

/** Commits what is done. While one commit is on its way, all others wait for the next one. */
export class CommitQueue {
  readonly #clock: Clock;
  readonly #commit: (offsets: readonly CommittedOffset[]) => Promise<boolean>;
  readonly #changed = new Set<PartitionWindow>();
  #last: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(clock: Clock, commit: (offsets: readonly CommittedOffset[]) => Promise<boolean>) {
    this.#clock = clock;
    this.#commit = commit;
  }

  changed(window: PartitionWindow): void {
    this.#changed.add(window);
  }

  /** Resolves after a commit that was begun after this call. */
  flush(): Promise<void> {
    this.#next ??= this.#last
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#write();
      });
    this.#last = this.#next;
    return this.#next;
  }

  async #write(): Promise<void> {
    const endsAt = this.#clock.now() + patienceMs;
    for (;;) {
      const windows = [...this.#changed].filter(({ isLost }) => !isLost);
      this.#changed.clear();
      if (windows.length === 0) return;
      try {
        await this.#commit(
          windows.map(({ topic, partition, progress }) => ({ topic, partition, ...progress })),
        );
        return;
      } catch (error) {
        for (const window of windows) this.#changed.add(window);
        if (answerOf(error) === undefined || this.#clock.now() >= endsAt) throw error;
        await sleep(this.#clock, pauseMs);
      }
    }
  }
}
