import type { Delivery, ErrorNote, Headers } from '@holdfast/contracts';
import { Alarm, type AmbientContext, type Clock, ExpiredError } from 'holdfast';
import { decode, type PayloadFormat } from '../publish/payload-format.ts';
import type { Count } from './blame.ts';
import type { HandlerResult } from './handler-result.ts';

// biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing gives a promise of void
type Returned<Tx> = HandlerResult<Tx> | undefined | void;

/** Handles one event. If it throws, the class of the error decides whether the event is retried or parked. */
export type Handler<T = unknown, Tx = unknown> = (
  event: HandledEvent<T>,
) => Returned<Tx> | PromiseLike<Returned<Tx>>;

/** The event that a handler gets. `payload` and `signal` are created when the handler first reads them. */
export interface HandledEvent<T = unknown> {
  readonly id: string;
  readonly topic: string;
  readonly type: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly headers: Headers;
  /** The parsed payload. If the consumer has a schema, it is the output of the schema. */
  readonly payload: T;
  readonly correlationId: string;
  /**
   * This key is the same in every attempt. Send it to other systems as the idempotency key, so that a retry
   * has no second effect.
   */
  readonly idempotencyKey: string;
  /** When the event was first published, epoch ms by the store's clock. */
  readonly firstSeenAt: number;
  /** The number of this attempt, counted from 1. */
  readonly attempt: number;
  /**
   * `live`: the first attempt. `retry`: a later attempt. `replay`: the event is handled again because of an
   * operator, a rule or a rebuild.
   */
  readonly mode: 'live' | 'retry' | 'replay';
  /**
   * How many ms are left of the patience (the time after which the result is no longer useful). Infinity: no
   * limit.
   */
  readonly patienceLeft: number;
  /** When the result is no longer useful, epoch ms; `undefined`: no limit. */
  readonly deadline: number | undefined;
  /**
   * Aborts when the lease is lost, when the patience or `attemptTimeout` is over, or when the consumer stops.
   */
  readonly signal: AbortSignal;
  readonly delivery: Delivery;
}

export interface TaskSettings {
  readonly clock: Clock;
  readonly format: PayloadFormat;
  readonly attemptTimeoutMs: number;
}

/** The events of one lease call. Their leases are extended together. */
export interface Batch {
  readonly tasks: readonly Task[];
  /**
   * The leases are valid at least until this time, on the scale of `Clock.now`. Their duration counts from
   * the time when the lease request was sent.
   */
  leaseEndsAt: number;
  open: number;
  bytes: number;
}

export type Phase = typeof WAITING | typeof RUNNING | typeof SETTLING | typeof OVER;
export const WAITING = 0;
export const RUNNING = 1;
/** The handler has finished, but the store has not confirmed the result yet. */
export const SETTLING = 2;
/** The event is settled, or its lease is lost. */
export const OVER = 3;

/**
 * One leased event. To save allocations, the same object is also the ambient context of the handler, and the
 * timer of its time limit.
 */
export class Task<T = unknown> extends Alarm implements HandledEvent<T>, AmbientContext {
  declare readonly delivery: Delivery;
  declare readonly attempt: number;
  declare readonly idempotencyKey: string;
  /** When the patience is over (the result is no longer useful), on the scale of `Clock.now`. */
  declare readonly patienceEndsAt: number;
  declare readonly settings: TaskSettings;
  declare batch: Batch;
  /** The next event of the same key. It was leased together with this event, and is handled after it. */
  declare next: Task<T> | undefined;
  declare phase: Phase;
  declare startedAt: number;
  /**
   * True: the ledger says that this handler has already handled the event, so the handler must not be called
   * again.
   */
  declare isRepeated: boolean;
  /**
   * The call counters of each dependency, read before the handler was called. `blame.ts` compares them after
   * a failure.
   */
  declare countsBefore: readonly Count[] | undefined;
  /**
   * The error of the handler, if the event goes back to the store because a dependency is down. Otherwise
   * `undefined`.
   */
  declare returnedFor: ErrorNote | undefined;
  /** Called when the store has answered the settlement of this event. `took`: the store has applied it. */
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

  /** Sets the payload to the output of the schema, which may transform it. */
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

  /** Stops the timer of the time limit and sets the phase. */
  end(phase: typeof SETTLING | typeof OVER): void {
    if (this.index >= 0) this.settings.clock.clear(this);
    this.phase = phase;
  }

  abort(reason: unknown): void {
    this.abortedFor ??= reason;
    this.controller?.abort(reason);
  }

  /**
   * Called by the clock when the time limit is over. It aborts the signal. The handler may still return a
   * result.
   */
  ring(now: number): void {
    const { startedAt, patienceEndsAt } = this;
    this.abort(
      now >= patienceEndsAt
        ? new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', patienceEndsAt - startedAt, undefined)
        : new ExpiredError('HOLDFAST_ATTEMPT_TIMEOUT', 'the attempt', this.at - startedAt, undefined),
    );
  }
}
