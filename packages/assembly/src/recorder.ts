import type { Journal, JournalEntry, RecordResult } from '@holdfast/contracts';
import { any, type Clock, definePolicy, type Policy, type Random, retry } from 'holdfast';
import { afterMicrotasks } from './after-microtasks.ts';

interface Job {
  readonly entry: JournalEntry;
  readonly resolve: (result: RecordResult) => void;
  readonly reject: (error: unknown) => void;
}

/** With two calls in flight, the store has work while the answer to the first is on its way. */
const inFlightMax = 2;
const batchMax = 1000;

const storePolicy = /* @__PURE__ */ definePolicy([retry, any]);

/**
 * Writes the progress of all assemblies in this process. Entries that arrive while two calls are in flight
 * are sent together in the next call.
 */
export class Recorder {
  readonly #journal: Journal;
  readonly #policy: Policy;
  #queue: Job[] = [];
  #inFlight = 0;
  #isScheduled = false;
  calls = 0;

  constructor(journal: Journal, environment: { clock: Clock; random: Random }, leaseMs: number) {
    this.#journal = journal;
    this.#policy = storePolicy(
      {
        attempts: 'unlimited',
        patience: leaseMs,
        retryOn: [(outcome) => (outcome.ok ? undefined : isRefused(outcome.error) ? 'fatal' : 'transient')],
        backoff: { base: '20ms', cap: '2s' },
      },
      environment,
    );
  }

  get isIdle(): boolean {
    return this.#queue.length === 0 && this.#inFlight === 0;
  }

  record(entry: JournalEntry): Promise<RecordResult> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ entry, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.length === 0 || this.#inFlight >= inFlightMax) return;
    this.#isScheduled = true;
    afterMicrotasks(() => {
      this.#isScheduled = false;
      void this.#send(this.#queue.splice(0, batchMax));
      this.#schedule();
    });
  }

  async #send(jobs: readonly Job[]): Promise<void> {
    this.#inFlight++;
    try {
      const results = await this.#write(jobs.map(({ entry }) => entry));
      jobs.forEach(({ resolve }, index) => {
        resolve(results[index]!);
      });
    } catch (error) {
      // If the store rejects one entry of a batch, write each entry alone, so that the others succeed.
      if (jobs.length > 1 && isRefused(error)) for (const job of jobs) await this.#send([job]);
      else for (const { reject } of jobs) reject(error);
    } finally {
      this.#inFlight--;
      this.#schedule();
    }
  }

  #write(entries: readonly JournalEntry[]): Promise<readonly RecordResult[]> {
    return this.#policy.run(() => {
      this.calls++;
      return this.#journal.record(entries);
    });
  }
}

/** True if the store rejects the entry itself, so that a retry cannot help. */
function isRefused(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return code === 'HOLDFAST_OPTIONS' || code === 'HOLDFAST_TOO_LARGE' || code === 'HOLDFAST_ENGINE_FULL';
}
