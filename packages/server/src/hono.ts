import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import type { Context, MiddlewareHandler } from 'hono';
import { carry, exchangeIn, type RequestBody, tooLarge } from './exchange.ts';
import { linesOf } from './node/node-exchange.ts';
import { isClosed, whenEnded } from './node/response-end.ts';
import { enterAll, inOrder, type Part } from './part.ts';
import { toResponse } from './response.ts';
import { WebExchange } from './web.ts';

export { contextOf } from './exchange.ts';

/** Middleware for Hono 4. On `@hono/node-server` it knows the socket: its address, and when it closes. */
export function guard(
  parts: readonly Part[],
  environment: { readonly clock?: Clock | undefined } = {},
): MiddlewareHandler {
  const ordered = inOrder(parts);
  refuseUnknown({ clock: true }, environment, 'guard.');
  const { clock = systemClock } = environment;
  return (context, next) => {
    const made = exchangeIn(context) as HonoExchange | undefined;
    const exchange = made ?? new HonoExchange(context, clock);
    const answer = enterAll(ordered, exchange);
    if (answer === undefined) return exchange.pass(next);
    if (!(answer instanceof Promise)) return exchange.settle(toResponse(answer));
    return answer.then((late) => {
      if (exchange.isAbandoned) return exchange.withoutHandler();
      return late ? exchange.settle(toResponse(late)) : exchange.pass(next);
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
    carry(context, this);
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
    // Not Hono's cache alone: what is given the raw request reads it there.
    if (raw.body !== null && body !== tooLarge) req.raw = new Request(raw, { body });
    return body;
  }

  /** To the next middleware, and back with its answer. */
  async pass(next: () => Promise<void>): Promise<Response | undefined> {
    const passed = this.isHeld ? this.#reviewed(next) : this.around(next);
    const mayExpire = this.patienceEndsAt < Infinity && !this.idempotent;
    const early = mayExpire ? await Promise.race([passed, this.insteadOfHandler]) : await passed;
    return early instanceof Response ? early : this.#passed();
  }

  async #reviewed(next: () => Promise<void>): Promise<void> {
    const context = this.#context;
    await this.around(next);
    const response = await this.review(context.res);
    if (response !== context.res) context.res = response;
  }

  async settle(response: Response): Promise<Response> {
    return this.finish(await this.review(response));
  }

  /** What Hono is told before it has a response is lost where a handler makes its own: so it is told now. */
  #passed(): undefined {
    const context = this.#context;
    const { res } = context;
    const finished = this.finish(res);
    if (finished !== res) context.res = finished;
  }

  /** The end is the socket's, where there is one. */
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
    else whenEnded(outgoing, (completed) => this.ended(completed));
  }
}

async function readAlready(body: unknown): Promise<RequestBody> {
  if (typeof body === 'string') return body;
  if (body instanceof Blob) return new Uint8Array(await body.arrayBuffer());
  if (body instanceof FormData) return readForm(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  return body instanceof Uint8Array ? body : JSON.stringify(body);
}

/** The same for the same fields and files, whatever boundary they were sent with. */
async function readForm(form: FormData): Promise<string> {
  const entries = [...form].map(async ([name, value]) => {
    if (typeof value === 'string') return [name, value];
    const bytes = new Uint8Array(await value.arrayBuffer());
    return [name, value.name, value.type, hash('sha256', bytes, 'base64url')];
  });
  return JSON.stringify(await Promise.all(entries));
}
