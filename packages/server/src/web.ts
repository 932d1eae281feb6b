import { type Clock, systemClock } from 'holdfast';
import { readTable } from 'holdfast/fields';
import { Exchange, type RequestBody, type RequestContext, tooLarge } from './exchange.ts';
import { clockField } from './option-fields.ts';
import { assertHandler, enterAll, orderParts, type Part } from './part.ts';
import type { PartEnvironment } from './part-environment.ts';
import { clientClosedRequest } from './problem.ts';
import { type PlainResponse, toResponse } from './response.ts';

/** What the server knows about a request beyond its `Request` object. */
export interface WebRequestInfo {
  /** The remote address of the socket. */
  readonly peer?: string | undefined;
  /** The template of the route, such as `/users/:id`. */
  readonly route?: string | undefined;
  /**
   * The value of `exchange.native`, for functions in the options of the parts. By default, it is the request.
   */
  readonly native?: unknown;
}

/** A handler of a request. It can read the body of `request`, even after a part has read it. */
export type WebHandler<Tx = unknown> = (
  request: Request,
  context: RequestContext<Tx>,
) => Response | Promise<Response>;

/**
 * Creates a handler that runs the parts (checks such as `rateLimit()`) first, and then `handler`. It works
 * with any server that uses `Request` and `Response`.
 */
export function guardWeb<Tx = unknown>(
  parts: readonly Part[],
  handler: WebHandler<Tx>,
  environment: PartEnvironment = {},
): (request: Request, info?: WebRequestInfo) => Promise<Response> {
  const ordered = orderParts(parts);
  assertHandler(handler, 'guardWeb.handler');
  const { clock = systemClock } = readTable({ clock: clockField }, environment, 'guardWeb.');
  return (request, info = {}) => {
    const exchange = new WebExchange(request, info, clock);
    return serveWeb(ordered, exchange, () =>
      handler(exchange.request, exchange as RequestContext as RequestContext<Tx>),
    );
  };
}

async function serveWeb(
  ordered: readonly Part[],
  exchange: WebExchange,
  next: () => Response | Promise<Response>,
): Promise<Response> {
  const entered = enterAll(ordered, exchange);
  const refusal = entered instanceof Promise ? await entered : entered;
  if (entered instanceof Promise && exchange.isAbandoned) return exchange.withoutHandler();
  if (refusal) return exchange.finish(await exchange.review(toResponse(refusal)));
  const handled = exchange.callHandler(next);
  return exchange.idempotent ? handled : Promise.race([handled, exchange.insteadOfHandler]);
}

export class WebExchange extends Exchange {
  request: Request;
  readonly native: unknown;
  readonly peer: string;
  readonly route: string | undefined;
  status = 0;
  /** Resolves with the response that is sent if the deadline passes before the handler responds. */
  readonly insteadOfHandler: Promise<Response>;
  #answerInstead!: (response: Response) => void;
  #added: [name: string, value: string][] | undefined;
  #url: string | undefined;

  constructor(request: Request, { peer = '', route, native = request }: WebRequestInfo, clock: Clock) {
    super(clock);
    this.request = request;
    this.native = native;
    this.peer = peer;
    this.route = route;
    this.insteadOfHandler = new Promise((resolve) => {
      this.#answerInstead = resolve;
    });
  }

  get method(): string {
    return this.request.method;
  }

  get url(): string {
    if (this.#url === undefined) {
      const { pathname, search } = new URL(this.request.url);
      this.#url = pathname + search;
    }
    return this.#url;
  }

  get host(): string {
    return new URL(this.request.url).host;
  }

  get headers(): Headers {
    return this.request.headers;
  }

  get isAnswered(): boolean {
    return this.status !== 0;
  }

  protected get isDisconnected(): boolean {
    return this.request.signal.aborted;
  }

  headerLines(name: string): readonly string[] {
    // `Headers` joins several lines with a comma. Two idempotency keys are still detected, because a key
    // contains no comma.
    const value = this.request.headers.get(name);
    return value === null ? [] : [value];
  }

  setHeader(name: string, value: string): void {
    this.#added ??= [];
    this.#added.push([name, value]);
  }

  async readBody(bytesMax: number): Promise<RequestBody> {
    const { request } = this;
    const body = await this.readUpTo(bytesMax);
    if (request.body !== null && body !== tooLarge) this.request = new Request(request, { body });
    return body;
  }

  protected async readUpTo(bytesMax: number): Promise<Uint8Array<ArrayBuffer> | typeof tooLarge> {
    const { body } = this.request;
    if (body === null) return new Uint8Array();
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > bytesMax) return tooLarge;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, length);
  }

  async callHandler(next: () => Response | Promise<Response>): Promise<Response> {
    let response: Response;
    try {
      response = await this.runInContext(async () => next());
    } catch (error) {
      // The server responds to an error with a 500, so the reviewers get a 500, too.
      await this.callReviewers({ status: 500, headers: {}, body: '' });
      this.finish(new Response(null, { status: 500 }));
      throw error;
    }
    return this.finish(await this.review(response));
  }

  async review(response: Response): Promise<Response> {
    if (!this.hasReviewers) return response;
    const { status } = response;
    const headers = Object.fromEntries(response.headers);
    const captured = capture(response, this.reviewedBodyMax).catch(async (error) => {
      // The body cannot be read, so the reviewers are called without it.
      await this.callReviewers({ status, headers, body: undefined });
      throw error;
    });
    const { body, rest } = await captured;
    const instead = await this.callReviewers({ status, headers, body });
    return instead ? toResponse(instead) : rest;
  }

  /** Adds the headers that the parts have set, and ends the exchange. A streamed body may not be sent yet. */
  finish(response: Response): Response {
    const finished = this.#added ? withHeaders(response, this.#added) : response;
    this.status = response.status;
    this.#added = undefined;
    this.finished();
    return finished;
  }

  /**
   * Returns the response if the handler is not started. If the deadline has passed, this is the response that
   * was sent at the deadline.
   */
  withoutHandler(): Response | Promise<Response> {
    if (this.isAnswered) return this.insteadOfHandler;
    this.ended(false);
    return toResponse(clientClosedRequest);
  }

  protected finished(): void {
    this.ended(true);
  }

  protected answerInstead(response: PlainResponse): void {
    this.#answerInstead(this.finish(toResponse(response)));
  }

  protected watchEnd(): void {
    const { signal } = this.request;
    if (signal.aborted) queueMicrotask(() => this.ended(false));
    else signal.addEventListener('abort', () => this.ended(false), { once: true });
  }
}

function withHeaders(response: Response, added: readonly [name: string, value: string][]): Response {
  try {
    for (const [name, value] of added) response.headers.set(name, value);
    return response;
  } catch {
    // The headers of `Response.redirect` or `fetch` are immutable, so the response is copied.
    const copy = new Response(response.body, response);
    for (const [name, value] of added) copy.headers.set(name, value);
    return copy;
  }
}

/**
 * Reads the body of a response. `body` is `undefined` for a stream of events or a long body; `rest` still has
 * all of it.
 */
async function capture(
  response: Response,
  bytesMax: number,
): Promise<{ body: Uint8Array | undefined; rest: Response }> {
  const { body } = response;
  if (body === null) return { body: new Uint8Array(), rest: response };
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    return { body: undefined, rest: response };
  }
  const chunks: Uint8Array[] = [];
  const reader = body.getReader();
  for (let length = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) {
      const bytes = Buffer.concat(chunks, length);
      return { body: bytes, rest: new Response(bytes, response) };
    }
    chunks.push(value);
    length += value.length;
    if (length > bytesMax)
      return { body: undefined, rest: new Response(followedBy(chunks, reader), response) };
  }
}

function followedBy(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const read = chunks.length > 0 ? { done: false, value: chunks.shift() } : await reader.read();
      if (read.done) controller.close();
      else controller.enqueue(read.value!);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
