import { type Clock, sleep } from 'holdfast';
import type { CommittedOffset } from './consumer-group.ts';
import { answerOf } from './kafka-client.ts';
import type { PartitionWindow } from './partition-window.ts';

/**
 * If the server refuses a commit, for example during a rebalance, the commit is repeated for at most this
 * many ms.
 */
const patienceMs = 5000;
const pauseMs = 50;

/** Commits finished offsets. Calls of `flush` during a running commit share the next commit. */
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

  /** Resolves when a commit that started after this call has succeeded. */
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
