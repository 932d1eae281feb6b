import { type AmbientContext, ambientContext, type Clock, later, type Priority, withAmbient } from 'holdfast';
import type { HeaderSource } from 'holdfast/wire';
import type { HeaderNames } from './header-names.ts';
import type { IdempotentRequest } from './idempotency/held-key.ts';
import type { Answer, HandlerAnswer } from './response.ts';

/** What handlers can ask about the request that they serve. */
export interface RequestContext<Tx = unknown> {
  /** Aborts when the client has gone, or its patience is over. */
  readonly signal: AbortSignal;
  /** In ms; Infinity where nobody said. */
  readonly patienceLeft: number;
  /** Which attempt of the caller this is; `undefined` where it does not say. */
  readonly attempt: number | undefined;
  /** True: the caller repeats this request by itself, so calls made for it should be made once. */
  readonly ownedUpstream: boolean;
  readonly priority: Priority;
  /** There where `idempotency()` holds a key for this request. */
  readonly idempotent: IdempotentRequest<Tx> | undefined;
}

/** `completed`: the whole answer was sent; otherwise the client left before. */
export type EndListener = (now: number, completed: boolean) => void;

/** May give another answer instead of the handler's. Nothing has been sent yet, nor will be before it is done. */
export type AnswerHolder = (answer: HandlerAnswer) => Answer | undefined | Promise<Answer | undefined>;

/** Said of a body that is longer than was asked for. */
export const tooLarge: unique symbol = Symbol('too large');

export type RequestBody = string | Uint8Array | typeof tooLarge;

/**
 * One request with its answer, as the parts see it, whatever server it came in by. A part never meets a framework's
 * objects, and an adapter never decides anything.
 */
export abstract class Exchange implements RequestContext, AmbientContext {
  declare readonly clock: Clock;
  /** The framework's request, for functions of the user's: an IncomingMessage, a FastifyRequest, a Hono context. */
  abstract readonly native: unknown;
  abstract readonly method: string;
  /** As it was sent, with the query. */
  abstract readonly url: string;
  /** What the client calls the server; empty where it does not say. */
  abstract readonly host: string;
  /** The template of the route, where the framework knows it by now. */
  abstract readonly route: string | undefined;
  /** The address at the other end of the socket; empty where it is not known. */
  abstract readonly peer: string;
  abstract readonly headers: HeaderSource;
  /** Of the answer, once it is known. */
  abstract readonly status: number;
  /** The whole of the answer has been given to the server. */
  abstract readonly isAnswered: boolean;
  /** The client has closed its connection, reset its stream or aborted its request, as far as the server knows. */
  protected abstract readonly isDisconnected: boolean;

  declare patienceEndsAt: number;
  declare attempt: number | undefined;
  declare ownedUpstream: boolean;
  declare priority: Priority;
  declare idempotent: IdempotentRequest | undefined;
  /** What is done for it derives its own keys from this. */
  declare idempotencyKey: string | undefined;
  /** Handlers run inside it: what they call inherits patience, signal, ownership and key. */
  declare isAmbient: boolean;
  /** The answer has been sent, or the client has disconnected. It is set only while there is an end listener. */
  declare isOver: boolean;

  declare private controller: AbortController | undefined;
  declare private abortReason: unknown;
  /** Of this pass through the parts; below 0 while nobody has asked. */
  declare private now: number;
  /** Mostly there are none, or one or two. */
  declare private endListener: EndListener | undefined;
  declare private moreEndListeners: EndListener[] | undefined;
  declare private holders: Held[] | undefined;
  /** They have seen an answer, or are about to. */
  declare private isShown: boolean;

  /** Here and in what extends it, fields are declared and set in the constructor: defined, they would take twice the time. */
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
    this.holders = undefined;
    this.isShown = false;
  }

  /** All lines of one header, as they came. */
  abstract headerLines(name: string): readonly string[];
  abstract setHeader(name: string, value: string): void;
  /** The whole body, at most so many bytes of it. Handlers can read it as if nobody had. */
  abstract readBody(bytesMax: number): RequestBody | Promise<RequestBody>;
  /** Answers although the handler has not: whatever it answers later goes nowhere. */
  protected abstract answerInstead(answer: Answer): void;
  /** Is told when the first listener is there. */
  protected abstract watchEnd(): void;

  /** False: none of them is there. True where that cannot be told without reading all headers. */
  mayHave(_names: HeaderNames): boolean {
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

  /** Made when it is first read: most handlers never do. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortReason !== undefined) this.controller.abort(this.abortReason);
      else this.onEnd(() => {});
    }
    return this.controller.signal;
  }

  /** It ended as requests to something overloaded do. */
  get wasOverloaded(): boolean {
    const { status } = this;
    return status === 503 || status === 504 || status === 429;
  }

  /** The time of one pass through the parts, read once for all that go by the same clock. */
  nowBy(clock: Clock): number {
    if (clock !== this.clock) return clock.now();
    if (this.now < 0) this.now = clock.now();
    return this.now;
  }

  /** A pass begins, or goes on after a wait. */
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
   * Nobody waits for an answer, so no handler is to be started. True also where there is no end listener: it looks at the
   * connection. Where a key is held it is false, because the key needs an outcome.
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

  /** Lets `holder` see the answer before it is sent. The last to ask is the first to see it. */
  holdAnswer(bodyMax: number, holder: AnswerHolder): void {
    if (this.holders) this.holders.push({ holder, bodyMax });
    else this.holders = [{ holder, bodyMax }];
  }

  get isHeld(): boolean {
    return this.holders !== undefined;
  }

  /** How much of an answer's body somebody wants to see. */
  get heldBodyMax(): number {
    return Math.max(0, ...(this.holders ?? []).map(({ bodyMax }) => bodyMax));
  }

  /** Shows an answer to all who asked, once; gives what is to be sent instead, if anything. */
  async reviewed(answer: HandlerAnswer): Promise<Answer | undefined> {
    const holders = this.holders ?? [];
    this.holders = undefined;
    this.isShown = true;
    if (holders.length === 1) return show(holders[0]!, answer);
    let instead: Answer | undefined;
    for (const each of holders.toReversed()) {
      const current = instead ? { ...instead, body: instead.body ?? '' } : answer;
      instead = (await show(each, current)) ?? instead;
    }
    return instead;
  }

  /** Calls `next` inside of what this request gives on. */
  around<T>(next: () => T): T {
    if (!this.isAmbient) return next();
    const outer = ambientContext();
    if (outer === this) return next();
    if (!outer) return withAmbient(this, next);
    const { patienceEndsAt, signal, ownedUpstream, attempt, priority, idempotencyKey } = this;
    return withAmbient({ patienceEndsAt, signal, ownedUpstream, attempt, priority, idempotencyKey }, next);
  }

  /**
   * The client's patience is over. Where a key is held the handler's answer is left to come, so that it can be recorded;
   * elsewhere those who wait to see an answer see this one. What a handler says because it was aborted comes after it.
   */
  expire(answer: Answer, reason: unknown): void {
    if (this.isOver || this.isShown || this.idempotent) this.abort(reason);
    else this.#answerLate(answer).then(() => later(() => this.abort(reason)));
  }

  async #answerLate(answer: Answer): Promise<void> {
    const shown = { ...answer, body: answer.body ?? '' };
    const instead = this.isHeld ? await this.reviewed(shown).catch(() => undefined) : undefined;
    this.answerInstead(instead ?? answer);
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

interface Held {
  readonly holder: AnswerHolder;
  readonly bodyMax: number;
}

function show({ holder, bodyMax }: Held, answer: HandlerAnswer): ReturnType<AnswerHolder> {
  const tooLong = answer.body !== undefined && answer.body.length > bodyMax;
  return holder(tooLong ? { ...answer, body: undefined } : answer);
}

/** Under which a request carries its exchange. */
export const exchangeOf: unique symbol = Symbol('holdfast');

/** Of frameworks whose requests may pass without an exchange: makes it of what the request carries instead. */
export const makeExchange: unique symbol = Symbol('holdfast.make');

interface Carrier {
  [exchangeOf]?: unknown;
  readonly [makeExchange]?: (request: object, carried: unknown) => Exchange;
  /** Of frameworks that wrap the request. */
  readonly raw?: Carrier;
}

/** Lets whoever has `carrier` find the exchange. */
export function carry(carrier: object, exchange: Exchange): void {
  (carrier as Carrier)[exchangeOf] = exchange;
}

export function exchangeIn(carrier: object): Exchange | undefined {
  const carried = (carrier as Carrier)[exchangeOf];
  return carried instanceof Exchange ? carried : undefined;
}

/**
 * What the parts know about a request: of node:http, of Express, of Fastify, or the context of Hono. `undefined` where it
 * is behind none. `Tx` is the type of the ledger's transactions: `DatabaseSync` for SQLite.
 */
export function contextOf<Tx = unknown>(request: object): RequestContext<Tx> | undefined;
export function contextOf(request: object): RequestContext | undefined {
  const { raw, [exchangeOf]: carried, [makeExchange]: make } = request as Carrier;
  if (carried instanceof Exchange) return carried;
  if (carried && make) return make(request, carried);
  return raw && exchangeIn(raw);
}

/** Why the signal of a request aborted: nobody waits for the answer any more. */
export class ClientGoneError extends Error {
  readonly code = 'HOLDFAST_CLIENT_GONE';

  constructor() {
    super('The client has gone.');
  }

  override get name(): string {
    return this.code;
  }
}
