import { type Clock, priorityRank, Timer } from 'holdfast';
import { ADMITTED, Bulkhead, type BulkheadSettings, Codel, FULL, type Waiter } from 'holdfast/machines';
import type { Exchange } from '../exchange.ts';

export interface AdmissionQueueSettings extends BulkheadSettings {
  readonly queueTimeoutMs: number;
}

/**
 * The queue is overloaded if its longest wait stays above `targetMs` for `intervalMs` (the CoDel algorithm).
 */
const codelSettings = { targetMs: 5, intervalMs: 100 };

const allRanks = Object.values(priorityRank);
const droppableRanks = [priorityRank.default, priorityRank.sheddable];

/**
 * Limits the requests in flight, with a bounded queue. Under overload, the newest request is admitted first,
 * and the oldest are refused.
 */
export class AdmissionQueue {
  readonly bulkhead: Bulkhead;
  dropped = 0;
  readonly #clock: Clock;
  readonly #codel = new Codel(codelSettings);
  readonly #queueTimeoutMs: number;

  constructor(settings: AdmissionQueueSettings, clock: Clock) {
    this.bulkhead = new Bulkhead(settings);
    this.#queueTimeoutMs = settings.queueTimeoutMs;
    this.#clock = clock;
  }

  /** Admits the request if it need not wait. It never queues a request. */
  tryEnter(exchange: Exchange, now: number): boolean {
    this.#codel.observe(now, this.#longestWaitMs(now));
    return this.bulkhead.tryEnter(priorityRank[exchange.priority]);
  }

  enter(exchange: Exchange, now: number): true | false | Promise<boolean> {
    const priority = priorityRank[exchange.priority];
    const expiresAt = Math.min(now + this.#queueTimeoutMs, exchange.patienceEndsAt);
    this.#shedStandingQueue(now);
    let admit!: (admitted: boolean) => void;
    const admission = new Promise<boolean>((resolve) => {
      admit = resolve;
    });
    const waiting = new WaitingRequest(priority, now, expiresAt, admit);
    const entered = this.bulkhead.enter(now, waiting);
    if (entered === ADMITTED) return true;
    if (entered === FULL) {
      this.dropped++;
      return false;
    }
    const timer = new Timer(this.#clock, () => this.#refuse(waiting));
    timer.setAt(expiresAt);
    exchange.onEnd(() => {
      if (this.bulkhead.abandon(waiting)) waiting.admit(false);
    });
    return admission.then((admitted) => {
      timer.clear();
      if (!admitted) this.dropped++;
      return admitted;
    });
  }

  leave(now: number): void {
    if (this.bulkhead.queued > 0) this.#shedStandingQueue(now);
    this.bulkhead.leave(now);
  }

  resize(now: number, settings: BulkheadSettings): void {
    this.bulkhead.resize(now, settings);
  }

  #shedStandingQueue(now: number): void {
    this.#codel.observe(now, this.#longestWaitMs(now));
    this.bulkhead.newestFirst = this.#codel.overloaded;
    if (!this.#codel.overloaded) return;
    for (const priority of droppableRanks) {
      let oldest = this.bulkhead.oldest(priority) as WaitingRequest | undefined;
      while (oldest && this.#codel.drops(now - oldest.since)) {
        this.#refuse(oldest);
        oldest = this.bulkhead.oldest(priority) as WaitingRequest | undefined;
      }
    }
  }

  #longestWaitMs(now: number): number {
    if (this.bulkhead.queued === 0) return 0;
    let since = now;
    for (const priority of allRanks) {
      const oldest = this.bulkhead.oldest(priority) as WaitingRequest | undefined;
      if (oldest && oldest.since < since) since = oldest.since;
    }
    return now - since;
  }

  #refuse(waiting: WaitingRequest): void {
    if (this.bulkhead.abandon(waiting)) waiting.admit(false);
  }
}

class WaitingRequest implements Waiter {
  readonly priority: number;
  readonly since: number;
  readonly expiresAt: number;
  readonly admit: (admitted: boolean) => void;
  ahead: Waiter | undefined = undefined;
  behind: Waiter | undefined = undefined;

  constructor(priority: number, since: number, expiresAt: number, admit: (admitted: boolean) => void) {
    this.priority = priority;
    this.since = since;
    this.expiresAt = expiresAt;
    this.admit = admit;
  }

  admitted(): void {
    this.admit(true);
  }

  expired(): void {
    this.admit(false);
  }

  displaced(): void {
    this.admit(false);
  }
}
