import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from 'holdfast';
import { readTable } from 'holdfast/fields';
import type { Context, MiddlewareHandler } from 'hono';
import { attachExchange, attachedExchange, type RequestBody, tooLarge } from './exchange.ts';
import { linesOf } from './node/node-exchange.ts';
import { isClosed, onResponseEnd } from './node/response-end.ts';
import { clockField } from './option-fields.ts';
import { enterAll, orderParts, type Part } from './part.ts';
import type { PartEnvironment } from './part-environment.ts';
import { toResponse } from './response.ts';
import { WebExchange } from './web.ts';

export { contextOf } from './exchange.ts';

/**
 * Creates middleware for Hono 4. It knows the client's address and notices disconnects only with
 * `@hono/node-server`.
 */
export function guard(parts: readonly Part[], environment: PartEnvironment = {}): MiddlewareHandler {
  const ordered = orderParts(parts);
  const { clock = systemClock } = readTable({ clock: clockField }, environment, 'guard.');
  return (context, next) => {
    const made = attachedExchange(context) as HonoExchange | undefined;
    const exchange = made ?? new HonoExchange(context, clock);
    const entered = enterAll(ordered, exchange);
    if (entered === undefined) return exchange.callNext(next);
    if (!(entered instanceof Promise)) return exchange.refuse(toResponse(entered));
    return entered.then((response) => {
      if (exchange.isAbandoned) return exchange.withoutHandler();
      return response ? exchange.refuse(toResponse(response)) : exchange.callNext(next);
    });
  };
}

interface NodeBindings {
  readonly incoming?: IncomingMessage;
  readonly outgoing?: ServerResponse;
}

class HonoExchange extends WebExchange {
  readonly #context: Context;

  constructor(context: Context, clock: Clock) {
    const { incoming } = (context.env ?? {}) as NodeBindings;
    super(context.req.raw, { peer: incoming?.socket.remoteAddress ?? '', native: context }, clock);
    this.#context = context;
    attachExchange(context, this);
  }

  override get method(): string {
    return this.#context.req.method;
  }

  override header(name: string): string | undefined {
    return this.#context.req.header(name);
  }

  override headerLines(name: string): readonly string[] {
    const { incoming } = (this.#context.env ?? {}) as NodeBindings;
    return incoming ? linesOf(incoming, name) : super.headerLines(name);
  }

  override async readBody(bytesMax: number): Promise<RequestBody> {
    const { req } = this.#context;
    const [cached] = Object.values(req.bodyCache);
    if (cached !== undefined) return readAlready(await cached);
    const { raw } = req;
    const body = await this.readUpTo(bytesMax);
    // Other code may read the body from the raw request. So the raw request is replaced by a copy with an
    // unread body.
    if (raw.body !== null && body !== tooLarge) req.raw = new Request(raw, { body });
    return body;
  }

  /** Calls the next middleware. Resolves with a response only if the deadline passed first. */
  async callNext(next: () => Promise<void>): Promise<Response | undefined> {
    const called = this.hasReviewers ? this.#callReviewed(next) : this.runInContext(next);
    const mayExpire = this.patienceEndsAt < Infinity && !this.idempotent;
    const early = mayExpire ? await Promise.race([called, this.insteadOfHandler]) : await called;
    return early instanceof Response ? early : this.#finishNext();
  }

  async #callReviewed(next: () => Promise<void>): Promise<void> {
    const context = this.#context;
    await this.runInContext(next);
    const response = await this.review(context.res);
    if (response !== context.res) context.res = response;
  }

  async refuse(response: Response): Promise<Response> {
    return this.finish(await this.review(response));
  }

  /**
   * Adds the headers that the parts have set, after the handler has run. Hono loses headers that were set
   * earlier if the handler returns its own `Response`.
   */
  #finishNext(): undefined {
    const context = this.#context;
    const { res } = context;
    const finished = this.finish(res);
    if (finished !== res) context.res = finished;
  }

  /** With `@hono/node-server`, the exchange ends only when the socket has sent the response. */
  protected override finished(): void {
    if (!this.#outgoing) super.finished();
  }

  get #outgoing(): ServerResponse | undefined {
    return ((this.#context.env ?? {}) as NodeBindings).outgoing;
  }

  protected override get isDisconnected(): boolean {
    const outgoing = this.#outgoing;
    return outgoing ? isClosed(outgoing) : super.isDisconnected;
  }

  protected override watchEnd(): void {
    const outgoing = this.#outgoing;
    if (!outgoing) super.watchEnd();
    else onResponseEnd(outgoing, (completed) => this.ended(completed));
  }
}

async function readAlready(body: unknown): Promise<RequestBody> {
  if (typeof body === 'string') return body;
  if (body instanceof Blob) return new Uint8Array(await body.arrayBuffer());
  if (body instanceof FormData) return readForm(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  return body instanceof Uint8Array ? body : JSON.stringify(body);
}

/**
 * Returns the fields and files of a form as one text. The raw body of the same form differs in each request,
 * because its multipart boundary is random.
 */
async function readForm(form: FormData): Promise<string> {
  const entries = [...form].map(async ([name, value]) => {
    if (typeof value === 'string') return [name, value];
    const bytes = new Uint8Array(await value.arrayBuffer());
    return [name, value.name, value.type, hash('sha256', bytes, 'base64url')];
  });
  return JSON.stringify(await Promise.all(entries));
}
