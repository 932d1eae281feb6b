import type { Delivery, ErrorNote, Headers } from '@holdfast/contracts';
import { Alarm, type AmbientContext, type Clock, ExpiredError } from 'holdfast';
import { decode, type PayloadFormat } from '../publish/payload-format.ts';
import type { Count } from './blame.ts';
import type { HandlerResult } from './handler-result.ts';

// biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing gives a promise of void
type Returned<Tx> = HandlerResult<Tx> | undefined | void;

/** Handles one event. What it throws is classified; what it returns is a `HandlerResult` or nothing. */
export type Handler<T = unknown, Tx = unknown> = (
  event: HandledEvent<T>,
) => Returned<Tx> | PromiseLike<Returned<Tx>>;

/** What a handler gets. Payload and signal are created when they are first read. */
export interface HandledEvent<T = unknown> {
  readonly id: string;
  readonly topic: string;
  readonly type: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly headers: Headers;
  /** Parsed, and validated if there is a schema. */
  readonly payload: T;
  readonly correlationId: string;
  /** The same in every attempt. Use it as the idempotency key of effects outside of the store. */
  readonly idempotencyKey: string;
  /** Epoch ms by the store's clock. */
  readonly firstSeenAt: number;
  /** Counted from 1. */
  readonly attempt: number;
  /** `replay`: an operator, a triage rule or a rebuild has the event handled again. */
  readonly mode: 'live' | 'retry' | 'replay';
  /** How many ms the customer will still wait; Infinity without a limit. */
  readonly patienceLeft: number;
  /** When `patienceLeft` ends, epoch ms by the consumer's clock; `undefined` without a limit. */
  readonly deadline: number | undefined;
  /** Aborts when the lease is lost, when patience or `attemptTimeout` is over, and when the grace time of `stop` is over. */
  readonly signal: AbortSignal;
  /** All that the store knows of the event. */
  readonly delivery: Delivery;
}

/** What all tasks of one consumer share. */
export interface TaskSettings {
  readonly clock: Clock;
  readonly format: PayloadFormat;
  /** Infinity: attempts have no timeout. */
  readonly attemptTimeoutMs: number;
}

/** The events of one lease: their leases end together, and one heartbeat renews them. */
export interface Batch {
  readonly tasks: readonly Task[];
  /** On the scale of `Clock.now`, counted from when the lease was requested: the earliest time at which it can end. */
  leaseEndsAt: number;
  /** Tasks that are not `OVER`. */
  open: number;
  /** Payload bytes of all tasks together. */
  bytes: number;
}

export type Phase = typeof WAITING | typeof RUNNING | typeof SETTLING | typeof OVER;
export const WAITING = 0;
export const RUNNING = 1;
/** Its settlement is decided, and not yet answered by the store. */
export const SETTLING = 2;
/** It is settled, or its lease is lost. */
export const OVER = 3;

/**
 * One leased event: what its handler gets, the ambient context of the handler's calls, and the alarm for its timeout. All in
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
  /** The ledger has a mark of it: the event was handled before. */
  declare isRepeated: boolean;
  /** The counts of each dependency when the handler was called. */
  declare countsBefore: readonly Count[] | undefined;
  /** The error of a failed probe that is returned. */
  declare returnedFor: ErrorNote | undefined;
  /** Called when the store has answered for the settlement. */
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

  /** Sets the value that the schema returned. */
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

  /** The handler has finished, or the task was revoked. */
  end(phase: typeof SETTLING | typeof OVER): void {
    if (this.index >= 0) this.settings.clock.clear(this);
    this.phase = phase;
  }

  abort(reason: unknown): void {
    this.abortedFor ??= reason;
    this.controller?.abort(reason);
  }

  /** The timeout: aborts the signal. Whatever the handler then returns or throws is judged as usual. */
  ring(now: number): void {
    const afterMs = Math.round(now - this.startedAt);
    this.abort(
      now >= this.patienceEndsAt
        ? new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', afterMs, undefined)
        : new ExpiredError('HOLDFAST_ATTEMPT_TIMEOUT', 'the attempt', afterMs, undefined),
    );
  }
}
