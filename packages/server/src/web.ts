import { type Clock, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { Exchange, type RequestBody, type RequestContext, tooLarge } from './exchange.ts';
import { enterAll, inOrder, type Part } from './part.ts';
import { clientGone } from './refusals.ts';
import { type Answer, toResponse } from './response.ts';

/** What only the server knows about a request. */
export interface WebSurroundings {
  /** The address at the other end of the socket. */
  readonly peer?: string | undefined;
  /** The template of the route. */
  readonly route?: string | undefined;
  /** What functions of the user's get; the request itself unless given. */
  readonly native?: unknown;
}

/** `request` has a body that can be read, also where a part has read it before. */
export type WebHandler<Tx = unknown> = (
  request: Request,
  context: RequestContext<Tx>,
) => Response | Promise<Response>;

/** A handler behind parts: `(request, ambientContext?) → response`, for any server that speaks `fetch`. */
export function guardWeb<Tx = unknown>(
  parts: readonly Part[],
  handler: WebHandler<Tx>,
  environment: { readonly clock?: Clock | undefined } = {},
): (request: Request, ambientContext?: WebSurroundings) => Promise<Response> {
  const ordered = inOrder(parts);
  refuseUnknown({ clock: true }, environment, 'guardWeb.');
  const { clock = systemClock } = environment;
  return (request, ambientContext = {}) => {
    const exchange = new WebExchange(request, ambientContext, clock);
    return serveWeb(ordered, exchange, () =>
      handler(exchange.request, exchange as RequestContext as RequestContext<Tx>),
    );
  };
}

/** Goes through the parts, then to `next`, and lets those who asked see what it answers. */
async function serveWeb(
  ordered: readonly Part[],
  exchange: WebExchange,
  next: () => Response | Promise<Response>,
): Promise<Response> {
  const entered = enterAll(ordered, exchange);
  const refusal = entered instanceof Promise ? await entered : entered;
  if (entered instanceof Promise && exchange.isAbandoned) return exchange.withoutHandler();
  if (refusal) return exchange.finish(await exchange.review(toResponse(refusal)));
  const handled = exchange.handled(next);
  return exchange.idempotent ? handled : Promise.race([handled, exchange.insteadOfHandler]);
}

/** An exchange of `Request` and `Response`. */
export class WebExchange extends Exchange {
  request: Request;
  readonly native: unknown;
  readonly peer: string;
  readonly route: string | undefined;
  status = 0;
  /** Settles when the exchange is answered without the handler. */
  readonly insteadOfHandler: Promise<Response>;
  #answerInstead!: (response: Response) => void;
  #added: [name: string, value: string][] | undefined;
  #url: string | undefined;

  constructor(request: Request, { peer = '', route, native = request }: WebSurroundings, clock: Clock) {
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
    // Lines of one name have been joined. A key has no comma, so two of them are seen all the same.
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

  /** Runs the handler, and shows its answer to those who asked. */
  async handled(next: () => Response | Promise<Response>): Promise<Response> {
    let response: Response;
    try {
      response = await this.around(async () => next());
    } catch (error) {
      // Whoever calls us makes an answer of it. Those who asked see what it will be.
      await this.reviewed({ status: 500, headers: {}, body: '' });
      this.finish(new Response(null, { status: 500 }));
      throw error;
    }
    return this.finish(await this.review(response));
  }

  async review(response: Response): Promise<Response> {
    if (!this.isHeld) return response;
    const { status } = response;
    const headers = Object.fromEntries(response.headers);
    const captured = capture(response, this.heldBodyMax).catch(async (error) => {
      // The handler was done, and nobody can have what it said.
      await this.reviewed({ status, headers, body: undefined });
      throw error;
    });
    const { body, rest } = await captured;
    const instead = await this.reviewed({ status, headers, body });
    return instead ? toResponse(instead) : rest;
  }

  /** Adds what the parts said. What of a body is still to be streamed is not waited for. */
  finish(response: Response): Response {
    const finished = this.#added ? withHeaders(response, this.#added) : response;
    this.status = response.status;
    this.#added = undefined;
    this.finished();
    return finished;
  }

  /** Of an abandoned exchange: what was answered when its patience was spent. A client that has disconnected gets nothing. */
  withoutHandler(): Response | Promise<Response> {
    if (this.isAnswered) return this.insteadOfHandler;
    this.ended(false);
    return toResponse(clientGone);
  }

  protected finished(): void {
    this.ended(true);
  }

  protected answerInstead(answer: Answer): void {
    this.#answerInstead(this.finish(toResponse(answer)));
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
    // A redirect, or a response that was fetched, cannot be changed.
    const copy = new Response(response.body, response);
    for (const [name, value] of added) copy.headers.set(name, value);
    return copy;
  }
}

/** The body, if it is no longer than that and no stream of events, and a response that still has all of it. */
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
