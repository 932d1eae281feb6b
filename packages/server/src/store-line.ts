import { Alarm, type Clock } from 'holdfast';

export interface StoreLineSettings {
  /** Nobody waits longer for the store. */
  readonly timeoutMs: number;
  /** Calls to the store at once; what comes meanwhile goes together with the next. */
  readonly callsMax: number;
  readonly batchMax: number;
}

export const defaultLine: Omit<StoreLineSettings, 'timeoutMs'> = { callsMax: 4, batchMax: 256 };

/** How long a store that refused is left alone. */
const pauseMs = 100;

/** A call that was not answered for so long is not waited for before the next is made. */
const writtenOffMs = 1000;

/**
 * The way to a store that may hang, be killed and come back. What is asked while calls are under way is sent together with
 * the next one, so a busy server makes few of them; an ask that was given up is not sent at all. Nobody waits longer
 * than the timeout; and while a call is overdue, or just after one was refused, nobody waits at all: the store is taken
 * to be away until that call ends, or a new one is answered.
 */
export class StoreLine<Ask, Answer> {
  /** Asks that the store did not answer in time. */
  missed = 0;
  /** What it refused with last. */
  lastError: unknown = undefined;

  readonly #send: (asks: readonly Ask[]) => Promise<readonly Answer[]>;
  readonly #settings: StoreLineSettings;
  readonly #clock: Clock;
  readonly #onLate: (answer: Answer, ask: Ask) => void;
  /** When the calls under way were made. */
  readonly #calls: Set<{ readonly since: number }> = new Set();
  #waiting: Waiting<Ask, Answer>[] = [];
  #awayUntil = -Infinity;

  /** `onLate` hears the answers that nobody waits for any more. */
  constructor(
    send: (asks: readonly Ask[]) => Promise<readonly Answer[]>,
    settings: StoreLineSettings,
    clock: Clock,
    onLate: (answer: Answer, ask: Ask) => void = () => {},
  ) {
    this.#send = send;
    this.#settings = settings;
    this.#clock = clock;
    this.#onLate = onLate;
  }

  /** `undefined`: the store is away. */
  ask(ask: Ask): Promise<Answer | undefined> {
    const now = this.#clock.now();
    if (this.#isAway(now)) {
      this.missed++;
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => {
      const waiting = new Waiting(ask, resolve, this);
      this.#clock.set(waiting, now + this.#settings.timeoutMs);
      this.#waiting.push(waiting);
      this.#flush(now);
    });
  }

  #isAway(now: number): boolean {
    if (now < this.#awayUntil) return true;
    const [oldest] = this.#calls;
    if (!oldest || now - oldest.since < this.#settings.timeoutMs) return false;
    if (now - oldest.since < writtenOffMs) return true;
    // It may never end. One new call finds out, and until it does this goes on from here.
    this.#calls.delete(oldest);
    return false;
  }

  #flush(now: number): void {
    while (this.#waiting.length > 0 && this.#calls.size < this.#settings.callsMax) {
      const batch = this.#waiting.splice(0, this.#settings.batchMax).filter(({ isOver }) => !isOver);
      if (batch.length > 0) this.#call(batch, now);
    }
  }

  #call(batch: readonly Waiting<Ask, Answer>[], now: number): void {
    const call = { since: now };
    this.#calls.add(call);
    this.#send(batch.map(({ ask }) => ask)).then(
      (answers) => {
        this.#calls.delete(call);
        this.#awayUntil = -Infinity;
        for (const [index, waiting] of batch.entries()) {
          const answer = answers[index]!;
          if (waiting.isOver) this.#onLate(answer, waiting.ask);
          else this.#settle(waiting, answer);
        }
        this.#flush(this.#clock.now());
      },
      (error: unknown) => {
        this.#calls.delete(call);
        this.lastError = error;
        const refusedAt = this.#clock.now();
        this.#awayUntil = refusedAt + pauseMs;
        for (const waiting of [...batch, ...this.#waiting.splice(0)]) this.#giveUp(waiting);
      },
    );
  }

  #settle(waiting: Waiting<Ask, Answer>, answer: Answer | undefined): void {
    waiting.isOver = true;
    this.#clock.clear(waiting);
    waiting.resolve(answer);
  }

  #giveUp(waiting: Waiting<Ask, Answer>): void {
    if (waiting.isOver) return;
    this.missed++;
    this.#settle(waiting, undefined);
  }

  /** Of the waiting one whose time is over. */
  expired(waiting: Waiting<Ask, Answer>): void {
    this.#giveUp(waiting);
    const place = this.#waiting.indexOf(waiting);
    if (place >= 0) this.#waiting.splice(place, 1);
  }
}

class Waiting<Ask, Answer> extends Alarm {
  readonly ask: Ask;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly #line: StoreLine<Ask, Answer>;
  isOver = false;

  constructor(ask: Ask, resolve: (answer: Answer | undefined) => void, line: StoreLine<Ask, Answer>) {
    super();
    this.ask = ask;
    this.resolve = resolve;
    this.#line = line;
  }

  override ring(): void {
    this.#line.expired(this);
  }
}
