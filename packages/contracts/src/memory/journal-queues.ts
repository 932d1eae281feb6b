import { gcraTake, gcraWait } from 'holdfast/machines';
import type { QueueRate } from '../journal.ts';
import type { AssemblyRow, JournalStorage } from './journal-storage.ts';

/**
 * Checks the limits of queues during one `claim`. Each assembly (work in several steps) that `tryTake`
 * accepts is counted as leased.
 */
export class QueueGate {
  readonly #storage: JournalStorage;
  readonly #now: number;
  readonly #leased = new Map<string, number>();

  constructor(storage: JournalStorage, now: number) {
    this.#storage = storage;
    this.#now = now;
    for (const row of storage.rows.values()) if (row.lease) this.#count(row);
  }

  /** Returns true if the queue limits allow to lease this assembly. If so, counts it as leased. */
  tryTake(row: AssemblyRow): boolean {
    const { queue, key } = row.start;
    const limits = queue === undefined ? undefined : this.#storage.queues.get(queue);
    if (queue === undefined || !limits) return true;
    const name = JSON.stringify([queue]);
    const byKey = JSON.stringify([queue, key]);
    if (this.#of(name) >= (limits.concurrency ?? Infinity)) return false;
    if (key !== undefined && this.#of(byKey) >= (limits.concurrencyByKey ?? Infinity)) return false;
    if (!row.isCharged) {
      const rates = [
        [name, limits.rate],
        [byKey, key === undefined ? undefined : limits.rateByKey],
      ] as const;
      if (rates.some(([of, rate]) => rate && this.#waitMs(of, rate) > 0)) return false;
      for (const [of, rate] of rates) if (rate) this.#charge(of, rate);
      row.isCharged = true;
    }
    this.#count(row);
    return true;
  }

  /**
   * Returns the ms until the rate limit of the queue allows this assembly. Infinity: the assembly waits until
   * another assembly ends its lease.
   */
  waitMs(row: AssemblyRow): number {
    const { queue, key } = row.start;
    const limits = this.#storage.queues.get(queue ?? '');
    if (!limits || row.isCharged) return Infinity;
    const byQueue = limits.rate ? this.#waitMs(JSON.stringify([queue]), limits.rate) : 0;
    const keyed = limits.rateByKey && key !== undefined;
    const byKey = keyed ? this.#waitMs(JSON.stringify([queue, key]), limits.rateByKey) : 0;
    return Math.max(byQueue, byKey) || Infinity;
  }

  #of(name: string): number {
    return this.#leased.get(name) ?? 0;
  }

  #count({ start: { queue, key } }: AssemblyRow): void {
    if (queue === undefined) return;
    for (const name of [JSON.stringify([queue]), JSON.stringify([queue, key])])
      this.#leased.set(name, this.#of(name) + 1);
  }

  #waitMs(of: string, rate: QueueRate): number {
    return gcraWait(asLimit(rate), this.#storage.tats.get(of) ?? 0, this.#now, 1);
  }

  #charge(of: string, rate: QueueRate): void {
    this.#storage.tats.set(of, gcraTake(asLimit(rate), this.#storage.tats.get(of) ?? 0, this.#now, 1));
  }
}

function asLimit({ count, perMs }: QueueRate): { ratePerMs: number; burst: number } {
  return { ratePerMs: count / perMs, burst: count };
}
