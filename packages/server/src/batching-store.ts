import { Alarm, type Clock, later } from 'holdfast';

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
export class BatchingStore<Ask, Answer> {
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
  /** All who wait, oldest first: they all wait equally long, so that one alarm is enough. */
  readonly #patient: Waiting<Ask, Answer>[] = [];
  #patientFrom = 0;
  readonly #alarm: LineAlarm;
  /** Those of them that were not sent yet. */
  #unsent: Waiting<Ask, Answer>[] = [];
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
    this.#alarm = new LineAlarm((now) => this.#expire(now));
  }

  /** `undefined`: the store is away. */
  ask(ask: Ask): Promise<Answer | undefined> {
    const now = this.#clock.now();
    if (this.#isAway(now)) {
      this.missed++;
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => {
      const waiting: Waiting<Ask, Answer> = {
        ask,
        resolve,
        endsAt: now + this.#settings.timeoutMs,
        isOver: false,
      };
      if (this.#alarm.index < 0) this.#clock.set(this.#alarm, waiting.endsAt);
      this.#patient.push(waiting);
      if (this.#unsent.push(waiting) === 1) later(this.#flushAll);
    });
  }

  #isAway(now: number): boolean {
    if (now < this.#awayUntil) return true;
    if (this.#calls.size === 0) return false;
    const [oldest] = this.#calls;
    if (now - oldest!.since < this.#settings.timeoutMs) return false;
    if (now - oldest!.since < writtenOffMs) return true;
    // It may never end. One new call finds out, and until it does this goes on from here.
    this.#calls.delete(oldest!);
    return false;
  }

  /** Whatever is asked in one turn of the loop goes together: it costs one call, and what follows is done in one go, too. */
  readonly #flushAll = (): void => this.#flush(this.#clock.now());

  #flush(now: number): void {
    while (this.#unsent.length > 0 && this.#calls.size < this.#settings.callsMax) {
      const batch = this.#unsent.splice(0, this.#settings.batchMax);
      this.#call(batch, now);
    }
  }

  #call(batch: readonly Waiting<Ask, Answer>[], now: number): void {
    const call = { since: now };
    this.#calls.add(call);
    this.#send(batch.map(({ ask }) => ask)).then(
      (answers) => {
        this.#calls.delete(call);
        this.#awayUntil = -Infinity;
        for (let index = 0; index < batch.length; index++) {
          const waiting = batch[index]!;
          const answer = answers[index]!;
          if (waiting.isOver) this.#onLate(answer, waiting.ask);
          else this.#settle(waiting, answer);
        }
        if (this.#unsent.length > 0) this.#flush(this.#clock.now());
      },
      (error: unknown) => {
        this.#calls.delete(call);
        this.lastError = error;
        this.#awayUntil = this.#clock.now() + pauseMs;
        for (const waiting of [...batch, ...this.#unsent.splice(0)]) this.#giveUp(waiting);
      },
    );
  }

  #settle(waiting: Waiting<Ask, Answer>, answer: Answer | undefined): void {
    waiting.isOver = true;
    waiting.resolve(answer);
    this.#forgetSettled();
  }

  #giveUp(waiting: Waiting<Ask, Answer>): void {
    if (waiting.isOver) return;
    this.missed++;
    this.#settle(waiting, undefined);
  }

  /** Those at the head of the line that have their answer. */
  #forgetSettled(): void {
    const { length } = this.#patient;
    while (this.#patientFrom < length && this.#patient[this.#patientFrom]!.isOver) this.#patientFrom++;
    if (this.#patientFrom === length) {
      this.#patient.length = 0;
      this.#patientFrom = 0;
      this.#clock.clear(this.#alarm);
    } else if (this.#patientFrom >= this.#settings.batchMax) {
      this.#patient.splice(0, this.#patientFrom);
      this.#patientFrom = 0;
    }
  }

  #expire(now: number): void {
    for (let oldest = this.#patient[this.#patientFrom]; oldest; oldest = this.#patient[this.#patientFrom]) {
      if (oldest.endsAt > now) {
        this.#clock.set(this.#alarm, oldest.endsAt);
        break;
      }
      this.#giveUp(oldest);
    }
    this.#unsent = this.#unsent.filter(({ isOver }) => !isOver);
  }
}

interface Waiting<Ask, Answer> {
  readonly ask: Ask;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly endsAt: number;
  isOver: boolean;
}

class LineAlarm extends Alarm {
  readonly #ring: (now: number) => void;

  constructor(ring: (now: number) => void) {
    super();
    this.#ring = ring;
  }

  override ring(now: number): void {
    this.#ring(now);
  }
}
