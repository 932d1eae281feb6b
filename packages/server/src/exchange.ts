import { type AmbientContext, ambientContext, type Clock, later, type Priority, withAmbient } from 'holdfast';
import type { HeaderSource } from 'holdfast/wire';
import type { HeaderNames } from './header-names.ts';
import type { IdempotentRequest } from './idempotency/held-key.ts';
import type { HandlerResponse, PlainResponse } from './response.ts';

/** What a handler can read about its request. */
export interface RequestContext<Tx = unknown> {
  /** Aborts when the client has disconnected, or its patience is over. */
  readonly signal: AbortSignal;
  /** In ms; Infinity where there is no deadline. */
  readonly patienceLeft: number;
  /** The number of the caller's attempt; `undefined` where the request does not say. */
  readonly attempt: number | undefined;
  /** True: the caller retries this request itself, so calls made for it should not be retried. */
  readonly ownedUpstream: boolean;
  readonly priority: Priority;
  /** Set where `idempotency()` holds a key for this request. */
  readonly idempotent: IdempotentRequest<Tx> | undefined;
}

/** `completed`: the whole response was sent; otherwise the client disconnected before. */
export type EndListener = (now: number, completed: boolean) => void;

/** May give another response instead of the handler's. Nothing is sent before it has decided. */
export type ResponseReviewer = (
  response: HandlerResponse,
) => PlainResponse | undefined | Promise<PlainResponse | undefined>;

/** Stands for a body that is longer than the limit given to `readBody`. */
export const tooLarge: unique symbol = Symbol('too large');

export type RequestBody = string | Uint8Array | typeof tooLarge;

/**
 * One request and its response, as the parts see them, for any server. A part never sees an object of a framework, and
 * an adapter never decides anything.
 */
export abstract class Exchange implements RequestContext, AmbientContext {
  declare readonly clock: Clock;
  /** The framework's request, for the user's functions: an IncomingMessage, a FastifyRequest, a Hono context. */
  abstract readonly native: unknown;
  abstract readonly method: string;
  /** Path and query, as they were sent. */
  abstract readonly url: string;
  /** The server's name in the request; empty where the request has none. */
  abstract readonly host: string;
  /** The template of the route; undefined where the framework does not know it yet. */
  abstract readonly route: string | undefined;
  /** The remote address of the socket; empty where it is unknown. */
  abstract readonly peer: string;
  abstract readonly headers: HeaderSource;
  /** The status of the response, once it is known. */
  abstract readonly status: number;
  /** The whole response has been given to the server. */
  abstract readonly isAnswered: boolean;
  /** The client has closed its connection, reset its stream or aborted its request, as far as the server knows. */
  protected abstract readonly isDisconnected: boolean;

  declare patienceEndsAt: number;
  declare attempt: number | undefined;
  declare ownedUpstream: boolean;
  declare priority: Priority;
  declare idempotent: IdempotentRequest | undefined;
  /** Calls made for this request derive their keys from this one. */
  declare idempotencyKey: string | undefined;
  /** Whether the handler runs inside this ambient context: its calls then inherit patience, signal, ownership and key. */
  declare isAmbient: boolean;
  /** The response has been sent, or the client has disconnected. It is set only while there is an end listener. */
  declare isOver: boolean;

  declare private controller: AbortController | undefined;
  declare private abortReason: unknown;
  /** The time of this pass through the parts; below 0 until it is read. */
  declare private now: number;
  /** Most exchanges have no end listener, or one or two: the first needs no list. */
  declare private endListener: EndListener | undefined;
  declare private moreEndListeners: EndListener[] | undefined;
  declare private reviewers: Reviewer[] | undefined;
  /** The reviewers were called, or are being called. */
  declare private isReviewed: boolean;

  /** Here and in the subclasses, fields are declared and set in the constructor: class fields take twice the time. */
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

  /** All lines of one header, not joined. */
  abstract headerLines(name: string): readonly string[];
  abstract setHeader(name: string, value: string): void;
  /** The whole body, or `tooLarge`. The handler can still read it. */
  abstract readBody(bytesMax: number): RequestBody | Promise<RequestBody>;
  /** Responds before the handler has: the handler's own response is then discarded. */
  protected abstract answerInstead(response: PlainResponse): void;
  /** Called when the first end listener is added. */
  protected abstract watchEnd(): void;

  /** False: the request has none of these headers. True: it has one, or finding out would mean parsing all headers. */
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

  /** Made when it is first read: most handlers never read it. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortReason !== undefined) this.controller.abort(this.abortReason);
      else this.onEnd(() => {});
    }
    return this.controller.signal;
  }

  /** The status is one that an overloaded server sends. */
  get wasOverloaded(): boolean {
    const { status } = this;
    return status === 503 || status === 504 || status === 429;
  }

  /** The time of this pass through the parts: the clock of the exchange is read once for all parts. */
  nowOf(clock: Clock): number {
    if (clock !== this.clock) return clock.now();
    if (this.now < 0) this.now = clock.now();
    return this.now;
  }

  /** Called when a pass through the parts begins, or continues after a part has waited. */
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
   * The client has disconnected, or the response was sent: no handler is to be started. Without an end listener it checks
   * the connection. It is false where a key is held, because the key needs an outcome.
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

  /** Lets `review` see the response before it is sent, with at most `bodyMax` bytes of its body. The last added is called first. */
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

  /** Calls all reviewers, once; gives the response to send instead, if there is one. */
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

  /** Calls `next` inside the ambient context of this request, where a part has asked for that. */
  runInContext<T>(next: () => T): T {
    if (!this.isAmbient) return next();
    const outer = ambientContext();
    if (outer === this) return next();
    if (!outer) return withAmbient(this, next);
    const { patienceEndsAt, signal, ownedUpstream, attempt, priority, idempotencyKey } = this;
    return withAmbient({ patienceEndsAt, signal, ownedUpstream, attempt, priority, idempotencyKey }, next);
  }

  /**
   * The client's patience is over. Where a key is held, only the signal aborts: the handler's response has to be recorded.
   * Otherwise `response` is reviewed and sent, and the signal aborts after that, so that what the handler sends because of the
   * abort comes too late.
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

/** The property of a request that holds its exchange. */
export const exchangeKey: unique symbol = Symbol('holdfast.exchange');

/** The property of a request that makes an exchange for a request that took the fast path. */
export const exchangeFactory: unique symbol = Symbol('holdfast.exchangeFactory');

interface Carrier {
  [exchangeKey]?: Exchange | null;
  readonly [exchangeFactory]?: (request: object) => Exchange | undefined;
  /** Set by frameworks that wrap the request of the server. */
  readonly raw?: Carrier;
}

export function attachExchange(carrier: object, exchange: Exchange): void {
  (carrier as Carrier)[exchangeKey] = exchange;
}

export function attachedExchange(carrier: object): Exchange | undefined {
  return (carrier as Carrier)[exchangeKey] ?? undefined;
}

/**
 * What the parts know about a request: of node:http, of Express, of Fastify, or the context of Hono. `undefined` where no
 * guard stands before the handler. `Tx` is the type of the ledger's transactions: `DatabaseSync` for SQLite.
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
