import { type AmbientContext, ambientContext, type Clock, later, type Priority, withAmbient } from 'holdfast';
import type { HeaderSource } from 'holdfast/wire';
import type { HeaderNames } from './header-names.ts';
import type { IdempotentRequest } from './idempotency/held-key.ts';
import type { HandlerResponse, PlainResponse } from './response.ts';

/** What a handler can read about its request. */
export interface RequestContext<Tx = unknown> {
  /** Aborts when the client has disconnected, or when the time that it is willing to wait is over. */
  readonly signal: AbortSignal;
  /** How long the client will still wait, in ms; Infinity without a deadline. */
  readonly patienceLeft: number;
  /** Which attempt of the caller this is, from 1; `undefined` if the request does not say. */
  readonly attempt: number | undefined;
  /** Whether the caller retries this request itself. If so, calls that the handler makes should not be retried. */
  readonly ownedUpstream: boolean;
  readonly priority: Priority;
  /** Set if the request has an Idempotency-Key that `idempotency()` has locked for it. */
  readonly idempotent: IdempotentRequest<Tx> | undefined;
}

/**
 * Called when an exchange ends. `completed` is true if the whole response was sent, and false if the client
 * disconnected first.
 */
export type EndListener = (now: number, completed: boolean) => void;

/** Sees the handler's response before it is sent, and may return another response to send instead. */
export type ResponseReviewer = (
  response: HandlerResponse,
) => PlainResponse | undefined | Promise<PlainResponse | undefined>;

/** Returned by `readBody` if the body is longer than the given limit. */
export const tooLarge: unique symbol = Symbol('too large');

export type RequestBody = string | Uint8Array | typeof tooLarge;

/**
 * One request and its response, independent of the server framework. Parts such as `rateLimit()` make all decisions and
 * see only this class; the adapter of a framework implements it and decides nothing.
 */
export abstract class Exchange implements RequestContext, AmbientContext {
  declare readonly clock: Clock;
  /**
   * The request object of the framework, for functions of the user: an IncomingMessage, a FastifyRequest, a Hono
   * context.
   */
  abstract readonly native: unknown;
  abstract readonly method: string;
  /** Path and query, as the client sent them. */
  abstract readonly url: string;
  /** The host name that the client has asked for; empty if the request has none. */
  abstract readonly host: string;
  /** The template of the route, such as `/users/:id`; undefined if the framework does not know it yet. */
  abstract readonly route: string | undefined;
  /** The remote address of the socket; empty if it is unknown. */
  abstract readonly peer: string;
  abstract readonly headers: HeaderSource;
  /** The status of the response, once it is known. */
  abstract readonly status: number;
  /** Whether the whole response has been handed to the server. It may not be sent yet. */
  abstract readonly isAnswered: boolean;
  /**
   * Whether the client has closed its connection, reset its HTTP/2 stream or aborted its request, as far as the server
   * knows.
   */
  protected abstract readonly isDisconnected: boolean;

  declare patienceEndsAt: number;
  declare attempt: number | undefined;
  declare ownedUpstream: boolean;
  declare priority: Priority;
  declare idempotent: IdempotentRequest | undefined;
  /** Outgoing calls of the handler derive their own idempotency keys from this key. */
  declare idempotencyKey: string | undefined;
  /**
   * Whether the handler runs with this exchange as its ambient context (in AsyncLocalStorage). If so, its outgoing
   * calls inherit deadline, signal, priority and idempotency key.
   */
  declare isAmbient: boolean;
  /**
   * Whether the response has been sent or the client has disconnected. It is updated only if there is an end listener.
   */
  declare isOver: boolean;

  declare private controller: AbortController | undefined;
  declare private abortReason: unknown;
  /** The time at which the parts (such as `rateLimit()`) were entered; below 0 until the clock is read. */
  declare private now: number;
  /** The first end listener. Most exchanges have at most two listeners, so the first one needs no list. */
  declare private endListener: EndListener | undefined;
  declare private moreEndListeners: EndListener[] | undefined;
  declare private reviewers: Reviewer[] | undefined;
  declare private isReviewed: boolean;

  /**
   * Fields are declared and set in the constructor, here and in subclasses, because initializers of class fields take
   * twice the time.
   */
  constructor(clock: Clock) {
    this.clock = clock;
    this.patienceEndsAt = Infinity;
    this.attempt = undefined;
    this.ownedUpstream = false;
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

  /** All values of a header that was sent several times, not joined. */
  abstract headerLines(name: string): readonly string[];
  abstract setHeader(name: string, value: string): void;
  /** Reads the whole body; gives `tooLarge` if it is longer than `bytesMax`. The handler can still read the body. */
  abstract readBody(bytesMax: number): RequestBody | Promise<RequestBody>;
  /** Sends this response instead of the handler's. What the handler sends later is discarded. */
  protected abstract answerInstead(response: PlainResponse): void;
  /** Starts to watch for the end of the exchange. Called when the first end listener is added. */
  protected abstract watchEnd(): void;

  /**
   * Returns false if the request certainly has none of these headers. It may return true without looking, because
   * parsing the headers can be expensive.
   */
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

  /** The signal is made when it is first read, because most handlers never read it. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortReason !== undefined) this.controller.abort(this.abortReason);
      else this.onEnd(() => {});
    }
    return this.controller.signal;
  }

  /** Whether the response has a status that an overloaded server sends. */
  get wasOverloaded(): boolean {
    const { status } = this;
    return status === 503 || status === 504 || status === 429;
  }

  /**
   * Returns the time at which the parts were entered. Parts that use the same clock as the exchange share one reading
   * of that clock.
   */
  nowOf(clock: Clock): number {
    if (clock !== this.clock) return clock.now();
    if (this.now < 0) this.now = clock.now();
    return this.now;
  }

  /**
   * Forgets the time that `nowOf` has read. Called before the first part is entered, and again after a part has waited.
   */
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
   * Whether the handler should not be started, because the client has disconnected or a response was sent. It is always
   * false if the request has locked an idempotency key, because the outcome of the key must be recorded.
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

  /**
   * Adds a function that sees the response before it is sent. It sees the body only if the body has at most `bodyMax`
   * bytes. The function that was added last is called first.
   */
  addReviewer(bodyMax: number, review: ResponseReviewer): void {
    if (this.reviewers) this.reviewers.push({ review, bodyMax });
    else this.reviewers = [{ review, bodyMax }];
  }

  get hasReviewers(): boolean {
    return this.reviewers !== undefined;
  }

  /** The largest `bodyMax` of all reviewers. */
  get reviewedBodyMax(): number {
    return Math.max(0, ...(this.reviewers ?? []).map(({ bodyMax }) => bodyMax));
  }

  /**
   * Calls all reviewers once. Resolves with the response to send instead of the given one; `undefined` if there is
   * none.
   */
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

  /** Calls `next` with this exchange as its ambient context (in AsyncLocalStorage), if a part has set `isAmbient`. */
  runInContext<T>(next: () => T): T {
    if (!this.isAmbient) return next();
    const outer = ambientContext();
    if (outer === this) return next();
    if (!outer) return withAmbient(this, next);
    const { patienceEndsAt, signal, ownedUpstream, attempt, priority, idempotencyKey } = this;
    return withAmbient({ patienceEndsAt, signal, ownedUpstream, attempt, priority, idempotencyKey }, next);
  }

  /**
   * Ends the request because the client will not wait longer. Normally it sends `response`, which reviewers may
   * replace, and aborts the signal after that, so that what the handler sends because of the abort comes too late. If
   * the request has locked an idempotency key, it only aborts the signal, because the handler's response has to be
   * recorded.
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

/** The property of a framework's request under which its exchange is stored. */
export const exchangeKey: unique symbol = Symbol('holdfast.exchange');

/**
 * The property of a framework's request with a function that makes the exchange later. It is for requests that passed
 * all parts without an Exchange object, which is cheaper.
 */
export const exchangeFactory: unique symbol = Symbol('holdfast.exchangeFactory');

interface Carrier {
  [exchangeKey]?: Exchange | null;
  readonly [exchangeFactory]?: (request: object) => Exchange | undefined;
  /** The request of the server, in frameworks that wrap it. */
  readonly raw?: Carrier;
}

export function attachExchange(carrier: object, exchange: Exchange): void {
  (carrier as Carrier)[exchangeKey] = exchange;
}

export function attachedExchange(carrier: object): Exchange | undefined {
  return (carrier as Carrier)[exchangeKey] ?? undefined;
}

/**
 * Returns what the parts know about a request. `request` is the request of node:http, Express or Fastify, or the
 * context of Hono. Returns `undefined` if no `guard` runs before the handler. `Tx` is the type of the ledger's
 * transactions, for example `DatabaseSync` for SQLite.
 */
export function contextOf<Tx = unknown>(request: object): RequestContext<Tx> | undefined;
export function contextOf(request: object): RequestContext | undefined {
  const { raw, [exchangeFactory]: make } = request as Carrier;
  return attachedExchange(request) ?? make?.(request) ?? (raw && attachedExchange(raw));
}

/** The abort reason of a request whose client has disconnected. */
export class ClientGoneError extends Error {
  readonly code = 'HOLDFAST_CLIENT_GONE';

  constructor() {
    super('The client has gone.');
  }

  override get name(): string {
    return this.code;
  }
}
