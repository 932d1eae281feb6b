import { type AmbientContext, ambientContext, type Clock, later, type Priority, withAmbient } from 'holdfast';
import type { HeaderSource } from 'holdfast/wire';
import type { HeaderNames } from './header-names.ts';
import type { IdempotentRequest } from './idempotency/held-key.ts';
import type { HandlerResponse, PlainResponse } from './response.ts';

/** What a handler can read about its request. */
export interface RequestContext<Tx = unknown> {
  /** Aborts when the client disconnects or when the deadline of the request passes. */
  readonly signal: AbortSignal;
  /** The time until the deadline of the request, in ms; Infinity without a deadline. */
  readonly patienceLeft: number;
  /** The number of the client's attempt, from 1. `undefined`: the request does not contain it. */
  readonly attempt: number | undefined;
  /** True: the client retries this request itself, so the handler should not retry its own calls. */
  readonly ownedUpstream: boolean;
  readonly priority: Priority;
  /** Set if the request has an Idempotency-Key and `idempotency()` has locked that key for this request. */
  readonly idempotent: IdempotentRequest<Tx> | undefined;
}

/** Called when the whole response is sent (`completed` is true), or when the client has disconnected. */
export type EndListener = (now: number, completed: boolean) => void;

/**
 * Called with the handler's response before it is sent. If the function returns a response, that response is
 * sent instead.
 */
export type ResponseReviewer = (
  response: HandlerResponse,
) => PlainResponse | undefined | Promise<PlainResponse | undefined>;

export const tooLarge: unique symbol = Symbol('too large');

/** The body of a request, or the symbol `tooLarge` if the body is longer than the limit. */
export type RequestBody = string | Uint8Array | typeof tooLarge;

/** One request and its response, independent of the server framework. */
export abstract class Exchange implements RequestContext, AmbientContext {
  declare readonly clock: Clock;
  /** The request object of the framework: an `IncomingMessage`, a `FastifyRequest` or a Hono context. */
  abstract readonly native: unknown;
  abstract readonly method: string;
  abstract readonly url: string;
  /** The host name in the request; empty if the request has none. */
  abstract readonly host: string;
  /**
   * The template of the route, such as `/users/:id`. `undefined`: the framework does not know the route yet.
   */
  abstract readonly route: string | undefined;
  /** The remote address of the socket; empty if it is unknown. */
  abstract readonly peer: string;
  abstract readonly headers: HeaderSource;
  abstract readonly status: number;
  /** True: the handler has given its whole response to the server. Some bytes may not be sent yet. */
  abstract readonly isAnswered: boolean;
  protected abstract readonly isDisconnected: boolean;

  declare patienceEndsAt: number;
  declare attempt: number | undefined;
  declare ownedUpstream: boolean;
  /**
   * True: this service only forwards requests, so its outgoing calls make one attempt. `packaging()` sets it.
   */
  declare packaging: boolean;
  declare priority: Priority;
  declare idempotent: IdempotentRequest | undefined;
  /** The idempotency key of this request. Outgoing calls of the handler derive their keys from it. */
  declare idempotencyKey: string | undefined;
  /**
   * True: the handler runs with this exchange in AsyncLocalStorage. Its outgoing calls inherit the deadline
   * and the signal.
   */
  declare isAmbient: boolean;
  /**
   * True: the response was sent or the client has disconnected. It is updated only if there is an end
   * listener.
   */
  declare isOver: boolean;

  declare private controller: AbortController | undefined;
  declare private abortReason: unknown;
  /**
   * The time at which the checks of this request began. A value below 0 means that the clock was not read
   * yet.
   */
  declare private now: number;
  /** The first end listener. Most requests have only one, so they need no array. */
  declare private endListener: EndListener | undefined;
  declare private moreEndListeners: EndListener[] | undefined;
  declare private reviewers: Reviewer[] | undefined;
  declare private isReviewed: boolean;

  /** All fields are set here, because class field initializers take twice as long. */
  constructor(clock: Clock) {
    this.clock = clock;
    this.patienceEndsAt = Infinity;
    this.attempt = undefined;
    this.ownedUpstream = false;
    this.packaging = false;
    this.priority = 'default';
    this.idempotent = undefined;
    this.idempotencyKey = undefined;
    this.isAmbient = false;
    this.isOver = false;
    this.controller = undefined;
    this.abortReason = undefined;
    this.now = -1;
    this.endListener = undefined;
    this.moreEndListeners = undefined;
    this.reviewers = undefined;
    this.isReviewed = false;
  }

  /** Returns the values of a header, one for each line that the client sent. */
  abstract headerLines(name: string): readonly string[];
  abstract setHeader(name: string, value: string): void;
  /**
   * Reads the whole body of the request, or returns `tooLarge`. The handler can still read the body
   * afterwards.
   */
  abstract readBody(bytesMax: number): RequestBody | Promise<RequestBody>;
  /** Sends this response. Everything that the handler sends later is discarded. */
  protected abstract answerInstead(response: PlainResponse): void;
  protected abstract watchEnd(): void;

  /** Returns false only if the request has none of these headers. A subclass may always return true. */
  mayHaveHeader(_names: HeaderNames): boolean {
    return true;
  }

  header(name: string): string | undefined {
    const { headers } = this;
    const value =
      typeof headers.get === 'function' ? headers.get(name) : (headers as Record<string, string>)[name];
    return value ?? undefined;
  }

  get path(): string {
    const { url } = this;
    const query = url.indexOf('?');
    return query < 0 ? url : url.slice(0, query);
  }

  /** The signal is created at its first read, because most handlers never read it. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortReason !== undefined) this.controller.abort(this.abortReason);
      else this.onEnd(() => {});
    }
    return this.controller.signal;
  }

  get wasOverloaded(): boolean {
    const { status } = this;
    return status === 503 || status === 504 || status === 429;
  }

  /**
   * Returns the time at which the checks of this request began. All parts (such as `rateLimit()`) share one
   * read of the clock.
   */
  nowOf(clock: Clock): number {
    if (clock !== this.clock) return clock.now();
    if (this.now < 0) this.now = clock.now();
    return this.now;
  }

  /** Makes the next call of `nowOf` read the clock again. */
  beginPass(): void {
    this.now = -1;
  }

  get patienceLeft(): number {
    return Math.max(0, this.patienceEndsAt - this.clock.now());
  }

  abort(reason: unknown): void {
    if (this.abortReason !== undefined) return;
    this.abortReason = reason;
    this.controller?.abort(reason);
  }

  /**
   * True: the client has disconnected or has got a response, so the handler should not start. With a locked
   * idempotency key, this is always false: the outcome must be recorded.
   */
  get isAbandoned(): boolean {
    return !this.idempotent && (this.isOver || this.isDisconnected);
  }

  onEnd(listener: EndListener): void {
    if (this.isOver) {
      listener(this.clock.now(), false);
      return;
    }
    if (!this.endListener) {
      this.endListener = listener;
      this.watchEnd();
    } else if (this.moreEndListeners) this.moreEndListeners.push(listener);
    else this.moreEndListeners = [listener];
  }

  /** Adds a function that sees the response before it is sent. The last added function is called first. */
  addReviewer(bodyMax: number, review: ResponseReviewer): void {
    if (this.reviewers) this.reviewers.push({ review, bodyMax });
    else this.reviewers = [{ review, bodyMax }];
  }

  get hasReviewers(): boolean {
    return this.reviewers !== undefined;
  }

  get reviewedBodyMax(): number {
    return Math.max(0, ...(this.reviewers ?? []).map(({ bodyMax }) => bodyMax));
  }

  /** Calls all reviewers once. Resolves with the response to send instead, or with `undefined`. */
  async callReviewers(response: HandlerResponse): Promise<PlainResponse | undefined> {
    const reviewers = this.reviewers ?? [];
    this.reviewers = undefined;
    this.isReviewed = true;
    if (reviewers.length === 1) return callReviewer(reviewers[0]!, response);
    let instead: PlainResponse | undefined;
    for (const each of reviewers.toReversed()) {
      const current = instead ? { ...instead, body: instead.body ?? '' } : response;
      instead = (await callReviewer(each, current)) ?? instead;
    }
    return instead;
  }

  runInContext<T>(next: () => T): T {
    if (!this.isAmbient) return next();
    const outer = ambientContext();
    if (outer === this) return next();
    if (!outer) return withAmbient(this, next);
    const { patienceEndsAt, signal, ownedUpstream, packaging, attempt, priority, idempotencyKey } = this;
    return withAmbient(
      { patienceEndsAt, signal, ownedUpstream, packaging, attempt, priority, idempotencyKey },
      next,
    );
  }

  /**
   * Sends `response` at the deadline and aborts the signal. With a locked idempotency key it only aborts,
   * because the handler's response must be recorded.
   */
  expire(response: PlainResponse, reason: unknown): void {
    if (this.isOver || this.isReviewed || this.idempotent) this.abort(reason);
    else this.#answerExpired(response).then(() => later(() => this.abort(reason)));
  }

  async #answerExpired(response: PlainResponse): Promise<void> {
    const shown = { ...response, body: response.body ?? '' };
    const instead = this.hasReviewers ? await this.callReviewers(shown).catch(() => undefined) : undefined;
    this.answerInstead(instead ?? response);
  }

  protected ended(completed: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    const now = this.clock.now();
    this.endListener?.(now, completed);
    if (this.moreEndListeners) for (const listener of this.moreEndListeners) listener(now, completed);
    if (!completed) this.abort(new ClientGoneError());
  }
}

interface Reviewer {
  readonly review: ResponseReviewer;
  readonly bodyMax: number;
}

function callReviewer(
  { review, bodyMax }: Reviewer,
  response: HandlerResponse,
): ReturnType<ResponseReviewer> {
  const tooLong = response.body !== undefined && response.body.length > bodyMax;
  return review(tooLong ? { ...response, body: undefined } : response);
}

export const exchangeKey: unique symbol = Symbol('holdfast.exchange');

/**
 * The property of a request that holds a function. The function creates the `Exchange` of the request when it
 * is first needed.
 */
export const exchangeFactory: unique symbol = Symbol('holdfast.exchangeFactory');

interface Carrier {
  [exchangeKey]?: Exchange | null;
  readonly [exchangeFactory]?: (request: object) => Exchange | undefined;
  readonly raw?: Carrier;
}

export function attachExchange(carrier: object, exchange: Exchange): void {
  (carrier as Carrier)[exchangeKey] = exchange;
}

export function attachedExchange(carrier: object): Exchange | undefined {
  return (carrier as Carrier)[exchangeKey] ?? undefined;
}

/**
 * Returns what `guard` knows about a request, or `undefined` without a `guard`. Pass the request of
 * node:http, Express or Fastify, or the context of Hono.
 */
export function contextOf<Tx = unknown>(request: object): RequestContext<Tx> | undefined;
export function contextOf(request: object): RequestContext | undefined {
  const { raw, [exchangeFactory]: make } = request as Carrier;
  return attachedExchange(request) ?? make?.(request) ?? (raw && attachedExchange(raw));
}

/** The abort reason of a request's `signal` when the client has disconnected. */
export class ClientGoneError extends Error {
  readonly code = 'HOLDFAST_CLIENT_GONE';

  constructor() {
    super('The client has gone.');
  }

  override get name(): string {
    return this.code;
  }
}
