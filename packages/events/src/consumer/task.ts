import type { Delivery, ErrorNote, Headers } from '@holdfast/contracts';
import { Alarm, type AmbientContext, type Clock, ExpiredError } from 'holdfast';
import { decode, type PayloadFormat } from '../publish/payload-format.ts';
import type { Count } from './blame.ts';

/** What a handler gets. Nothing of it is made before it is read. */
export interface HandledEvent<T = unknown> {
  readonly id: string;
  readonly topic: string;
  readonly type: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly headers: Headers;
  /** Parsed, and checked where there is a schema. */
  readonly payload: T;
  readonly correlationId: string;
  /** The same in every attempt: what is done outside of the store is done under this key. */
  readonly idempotencyKey: string;
  /** Epoch ms by the store's clock. */
  readonly firstSeenAt: number;
  /** Counted from 1. */
  readonly attempt: number;
  /** `replay`: a person, a rule or a rebuild lets it happen again. */
  readonly mode: 'live' | 'retry' | 'replay';
  /** Ms the customer will still wait; Infinity without a limit. */
  readonly patienceLeft: number;
  /** When that ends, epoch ms by the consumer's clock; `undefined` without a limit. */
  readonly deadline: number | undefined;
  /** Aborts when the lease is lost, when patience or the attempt's time is over, and when the consumer waits no longer. */
  readonly signal: AbortSignal;
  /** All that the store knows of it. */
  readonly delivery: Delivery;
}

/** What the tasks of one consumer have in common. */
export interface TaskSettings {
  readonly clock: Clock;
  readonly format: PayloadFormat;
  /** Infinity: an attempt may take as long as it takes. */
  readonly attemptTimeoutMs: number;
}

/** The events of one lease: their leases end together, and one heartbeat renews them. */
export interface Batch {
  readonly tasks: readonly Task[];
  /** On the scale of `Clock.now`, by the most careful reckoning. */
  leaseEndsAt: number;
  /** Tasks that are not over. */
  open: number;
  /** Of all their payloads. */
  bytes: number;
}

export type Phase = typeof WAITING | typeof RUNNING | typeof SETTLING | typeof OVER;
export const WAITING = 0;
export const RUNNING = 1;
/** Its settlement is decided and on its way. */
export const SETTLING = 2;
/** Settled, or no longer ours to settle. */
export const OVER = 3;

/**
 * One event in hand: what its handler gets, the ambientContext of what that does, and the alarm that ends its time, all in
 * one object, because there may be a hundred thousand a second.
 */
export class Task<T = unknown> extends Alarm implements HandledEvent<T>, AmbientContext {
  declare readonly delivery: Delivery;
  declare readonly attempt: number;
  declare readonly idempotencyKey: string;
  /** On the scale of `Clock.now`. */
  declare readonly patienceEndsAt: number;
  declare readonly settings: TaskSettings;
  declare batch: Batch;
  /** The next event of the same key, which waits for this one. */
  declare next: Task<T> | undefined;
  declare phase: Phase;
  declare startedAt: number;
  /** The ledger says that it was done before. */
  declare isRepeated: boolean;
  /** What was counted of each dependency of its consumer when its handler began. */
  declare countsBefore: readonly Count[] | undefined;
  /** Why it is given back, if it has failed. */
  declare returnedFor: ErrorNote | undefined;
  /** Told what the store made of its settlement. */
  declare whenSettled: ((took: boolean) => void) | undefined;
  declare private read: boolean;
  declare private value: unknown;
  declare private controller: AbortController | undefined;
  declare private abortedFor: unknown;

  constructor(delivery: Delivery, settings: TaskSettings, batch: Batch, now: number) {
    super();
    this.delivery = delivery;
    this.attempt = delivery.attempt;
    this.idempotencyKey = delivery.idempotencyKey;
    this.patienceEndsAt = now + delivery.patienceLeftMs;
    this.settings = settings;
    this.batch = batch;
    this.next = undefined;
    this.phase = WAITING;
    this.startedAt = now;
    this.isRepeated = false;
    this.countsBefore = undefined;
    this.returnedFor = undefined;
    this.whenSettled = undefined;
    this.read = false;
    this.value = undefined;
    this.controller = undefined;
    this.abortedFor = undefined;
  }

  get id(): string {
    return this.delivery.id;
  }

  get topic(): string {
    return this.delivery.topic;
  }

  get type(): string | undefined {
    return this.delivery.type;
  }

  get key(): string | undefined {
    return this.delivery.key;
  }

  get tenant(): string | undefined {
    return this.delivery.tenant;
  }

  get headers(): Headers {
    return this.delivery.headers;
  }

  get correlationId(): string {
    return this.delivery.correlationId;
  }

  get firstSeenAt(): number {
    return this.delivery.firstSeenAt;
  }

  get mode(): 'live' | 'retry' | 'replay' {
    if (this.delivery.replay !== undefined) return 'replay';
    return this.attempt > 1 ? 'retry' : 'live';
  }

  get payload(): T {
    if (!this.read) this.payload = decode(this.settings.format, this.delivery.payload) as T;
    return this.value as T;
  }

  /** As the schema made it. */
  set payload(value: T) {
    this.value = value;
    this.read = true;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.settings.clock.now());
  }

  get deadline(): number | undefined {
    if (this.patienceEndsAt === Infinity) return undefined;
    const { clock } = this.settings;
    return clock.epochMs() + this.patienceEndsAt - clock.now();
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortedFor !== undefined) this.controller.abort(this.abortedFor);
    }
    return this.controller.signal;
  }

  get isRunning(): boolean {
    return this.phase === RUNNING;
  }

  begin(now: number): void {
    this.phase = RUNNING;
    this.startedAt = now;
    const { clock, attemptTimeoutMs } = this.settings;
    const endsAt = Math.min(this.patienceEndsAt, now + attemptTimeoutMs);
    if (endsAt < Infinity) clock.set(this, endsAt);
  }

  /** The handler is done with it, or it is taken from the handler. */
  end(phase: typeof SETTLING | typeof OVER): void {
    if (this.index >= 0) this.settings.clock.clear(this);
    this.phase = phase;
  }

  abort(reason: unknown): void {
    this.abortedFor ??= reason;
    this.controller?.abort(reason);
  }

  /** Its time is over; the handler is told, and what it then does is judged like anything else. */
  ring(now: number): void {
    const afterMs = Math.round(now - this.startedAt);
    this.abort(
      now >= this.patienceEndsAt
        ? new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', afterMs, undefined)
        : new ExpiredError('HOLDFAST_ATTEMPT_TIMEOUT', 'the attempt', afterMs, undefined),
    );
  }
}
