import type { Delivery, ErrorNote, Headers } from '@holdfast/contracts';
import { Alarm, type AmbientContext, type Clock, ExpiredError } from 'holdfast';
import { decode, type PayloadFormat } from '../publish/payload-format.ts';
import type { Count } from './blame.ts';
import type { HandlerResult } from './handler-result.ts';

// biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing gives a promise of void
type Returned<Tx> = HandlerResult<Tx> | undefined | void;

/**
 * A function that handles one event. It may return a `HandlerResult` or nothing. If it throws, the class of the error
 * decides whether the event is retried.
 */
export type Handler<T = unknown, Tx = unknown> = (
  event: HandledEvent<T>,
) => Returned<Tx> | PromiseLike<Returned<Tx>>;

/** The event that a handler gets. `payload` and `signal` are created when they are first read. */
export interface HandledEvent<T = unknown> {
  readonly id: string;
  readonly topic: string;
  readonly type: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly headers: Headers;
  /** The parsed payload, validated if there is a schema. */
  readonly payload: T;
  readonly correlationId: string;
  /** The key is the same in every attempt. Use it as the idempotency key when you call other systems. */
  readonly idempotencyKey: string;
  /** When the event was first published, epoch ms by the store's clock. */
  readonly firstSeenAt: number;
  /** The number of this attempt, counted from 1. */
  readonly attempt: number;
  /** `replay`: the event is handled again because of an operator, a triage rule or a rebuild. */
  readonly mode: 'live' | 'retry' | 'replay';
  /** How many ms the customer still waits for the result; Infinity if there is no limit. */
  readonly patienceLeft: number;
  /** When `patienceLeft` ends, epoch ms by the consumer's clock; `undefined` if there is no limit. */
  readonly deadline: number | undefined;
  /**
   * Aborts when the lease is lost, when the customer's patience or `attemptTimeout` is over, or when the grace time of
   * `stop` is over.
   */
  readonly signal: AbortSignal;
  /** Everything that the store knows about the event. */
  readonly delivery: Delivery;
}

export interface TaskSettings {
  readonly clock: Clock;
  readonly format: PayloadFormat;
  /** Infinity: attempts have no timeout. */
  readonly attemptTimeoutMs: number;
}

/** The events of one lease call. Their leases end at the same time, and are extended together. */
export interface Batch {
  readonly tasks: readonly Task[];
  /**
   * The earliest time at which the leases can end, by `Clock.now`. It is computed from the time at which the lease was
   * requested.
   */
  leaseEndsAt: number;
  /** The number of tasks whose phase is not `OVER`. */
  open: number;
  /** The payload bytes of all tasks together. */
  bytes: number;
}

export type Phase = typeof WAITING | typeof RUNNING | typeof SETTLING | typeof OVER;
export const WAITING = 0;
export const RUNNING = 1;
/** The settlement of the event is decided, but the store has not answered yet. */
export const SETTLING = 2;
/** The event is settled, or its lease is lost. */
export const OVER = 3;

/**
 * One leased event. The same object is also the ambient context of the calls that the handler makes, and the timer of
 * the attempt timeout. This saves allocations, because a process may handle a hundred thousand events per second.
 */
export class Task<T = unknown> extends Alarm implements HandledEvent<T>, AmbientContext {
  declare readonly delivery: Delivery;
  declare readonly attempt: number;
  declare readonly idempotencyKey: string;
  /** When the customer's patience ends, by `Clock.now`. */
  declare readonly patienceEndsAt: number;
  declare readonly settings: TaskSettings;
  declare batch: Batch;
  /** The next event of the same key, which waits for this event. */
  declare next: Task<T> | undefined;
  declare phase: Phase;
  declare startedAt: number;
  /** True: the ledger has marked the event as handled, so the handler must not be called again. */
  declare isRepeated: boolean;
  /** The counted calls of each dependency before the handler was called. */
  declare countsBefore: readonly Count[] | undefined;
  /** The error of the handler, if the event goes back to the store because a dependency is down. */
  declare returnedFor: ErrorNote | undefined;
  /** Called when the store has answered the settlement. */
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

  /** Replaces the payload by the value that the schema returned. */
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

  /** Stops the timeout and sets the phase. Call it when the handler has finished, or when the lease is lost. */
  end(phase: typeof SETTLING | typeof OVER): void {
    if (this.index >= 0) this.settings.clock.clear(this);
    this.phase = phase;
  }

  abort(reason: unknown): void {
    this.abortedFor ??= reason;
    this.controller?.abort(reason);
  }

  /**
   * The clock calls it when the timeout is over. It aborts the signal; whatever the handler then returns or throws is
   * used as usual.
   */
  ring(now: number): void {
    const afterMs = Math.round(now - this.startedAt);
    this.abort(
      now >= this.patienceEndsAt
        ? new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', afterMs, undefined)
        : new ExpiredError('HOLDFAST_ATTEMPT_TIMEOUT', 'the attempt', afterMs, undefined),
    );
  }
}
