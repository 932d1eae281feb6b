import { Alarm, type Clock } from 'holdfast';
import { ADMITTED, Bulkhead, type BulkheadSettings, Codel, FULL, type Waiter } from 'holdfast/machines';
import type { Exchange } from '../exchange.ts';

const priorities = { critical: 0, default: 1, sheddable: 2 } as const;

export interface GateSettings extends BulkheadSettings {
  readonly queueTimeoutMs: number;
}

/** A wait that is fine, and for how long a longer one is taken for a burst: what Facebook found to work everywhere. */
const codelSettings = { targetMs: 5, intervalMs: 100 };

/**
 * Permits with a bounded queue for requests. While the queue stands, the newest goes first and who has waited long is
 * refused: those would be answered too late to matter. Who has left, or whose patience is over, is gone from it at
 * once. The critical are never refused for having waited.
 */
export class AdmissionQueue {
  readonly bulkhead: Bulkhead;
  /** Refused because the queue was full, or after having waited. */
  dropped = 0;
  readonly #clock: Clock;
  readonly #codel = new Codel(codelSettings);
  readonly #queueTimeoutMs: number;

  constructor(settings: GateSettings, clock: Clock) {
    this.bulkhead = new Bulkhead(settings);
    this.#queueTimeoutMs = settings.queueTimeoutMs;
    this.#clock = clock;
  }

  /** Without waiting. */
  tryEnter(exchange: Exchange, now: number): boolean {
    this.#codel.observe(now, this.#longestWaitMs(now));
    return this.bulkhead.tryEnter(priorities[exchange.priority]);
  }

  /** In its turn. False: refused. */
  enter(exchange: Exchange, now: number): true | false | Promise<boolean> {
    const priority = priorities[exchange.priority];
    const expiresAt = Math.min(now + this.#queueTimeoutMs, exchange.patienceEndsAt);
    this.#relax(now);
    let admit!: (admitted: boolean) => void;
    const admission = new Promise<boolean>((resolve) => {
      admit = resolve;
    });
    const waiting = new WaitingRequest(priority, now, expiresAt, admit);
    const answer = this.bulkhead.enter(now, waiting);
    if (answer === ADMITTED) return true;
    if (answer === FULL) {
      this.dropped++;
      return false;
    }
    waiting.alarmed = () => this.#refuse(waiting);
    this.#clock.set(waiting, expiresAt);
    exchange.onEnd(() => {
      if (this.bulkhead.abandon(waiting)) waiting.admit(false);
    });
    return admission.then((admitted) => {
      this.#clock.clear(waiting);
      if (!admitted) this.dropped++;
      return admitted;
    });
  }

  leave(now: number): void {
    if (this.bulkhead.queued > 0) this.#relax(now);
    this.bulkhead.leave(now);
  }

  resize(now: number, settings: BulkheadSettings): void {
    this.bulkhead.resize(now, settings);
  }

  /** Sees how the queue stands, and refuses who has waited too long for one that does. */
  #relax(now: number): void {
    this.#codel.observe(now, this.#longestWaitMs(now));
    this.bulkhead.newestFirst = this.#codel.overloaded;
    if (!this.#codel.overloaded) return;
    for (const priority of [1, 2]) {
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
    for (const priority of [0, 1, 2]) {
      const oldest = this.bulkhead.oldest(priority) as WaitingRequest | undefined;
      if (oldest && oldest.since < since) since = oldest.since;
    }
    return now - since;
  }

  #refuse(waiting: WaitingRequest): void {
    if (this.bulkhead.abandon(waiting)) waiting.admit(false);
  }
}

/** A request in the queue, and its own alarm. */
class WaitingRequest extends Alarm implements Waiter {
  readonly priority: number;
  readonly since: number;
  readonly expiresAt: number;
  readonly admit: (admitted: boolean) => void;
  ahead: Waiter | undefined = undefined;
  behind: Waiter | undefined = undefined;
  alarmed: () => void = () => {};

  constructor(priority: number, since: number, expiresAt: number, admit: (admitted: boolean) => void) {
    super();
    this.priority = priority;
    this.since = since;
    this.expiresAt = expiresAt;
    this.admit = admit;
  }

  override ring(): void {
    this.alarmed();
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
