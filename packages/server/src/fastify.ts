import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, RegisterOptions } from 'fastify';
import { type Clock, OptionsError, systemClock } from 'holdfast';
import { anything, readTable, word } from 'holdfast/fields';
import { attachedExchange, exchangeFactory, exchangeKey, type RequestBody, tooLarge } from './exchange.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { clockField } from './option-fields.ts';
import { type FastPathRequest, orderParts, type Part, runParts } from './part.ts';
import type { PlainResponse, ResponseHeaders } from './response.ts';

export { contextOf } from './exchange.ts';

/** The options of the Fastify plugin. `parts` is required. */
export interface FastifyGuardOptions {
  /** The parts (checks such as `rateLimit()`) that run before the handlers. Required. */
  readonly parts: readonly Part[];
  /**
   * The hook in which the parts run. Use `preHandler` for parts that need the result of authentication.
   * Default: `onRequest`.
   */
  readonly at?: 'onRequest' | 'preHandler' | undefined;
  /** The clock for deadlines and delays. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const fields = {
  parts: anything<readonly Part[]>(),
  at: word('onRequest', 'onRequest', 'preHandler'),
  clock: clockField,
};

/** A plugin for Fastify 5. The parts (checks such as `rateLimit()`) run before all routes of its scope. */
export function guard(
  app: FastifyInstance,
  options: FastifyGuardOptions,
  done: (error?: Error) => void,
): void {
  // The user has called `guard` with a list of parts, as in Express. In Fastify, `app.register` calls
  // `guard`.
  if (typeof done !== 'function')
    throw new OptionsError('guard', 'guard([…])', 'app.register(guard, { parts: […] })');
  try {
    addHooks(app, options);
  } catch (error) {
    // Fastify does not catch errors that a plugin with a `done` callback throws. So the error is passed to
    // `done`.
    done(error as Error);
    return;
  }
  done();
}

function addHooks(app: FastifyInstance, options: FastifyGuardOptions): void {
  const { prefix, logLevel, logSerializers, ...ours } = options as FastifyGuardOptions & RegisterOptions;
  const { at, clock = systemClock } = readTable(fields, ours, 'guard.');
  const ordered = orderParts(options.parts);
  const early = ordered.filter(({ bodyMax }) => bodyMax === undefined);
  const late = ordered.filter(({ bodyMax }) => bodyMax !== undefined);
  const bodyMax = Math.max(0, ...late.map((part) => part.bodyMax!));
  const exchangeFor = (request: FastifyRequest, reply: FastifyReply) =>
    (attachedExchange(request) as FastifyExchange | undefined) ?? new FastifyExchange(request, reply, clock);
  if (!app.hasRequestDecorator(exchangeKey)) {
    app.decorateRequest(exchangeKey, null);
    app.decorateRequest(fastPathReply, null);
    app.decorateRequest(exchangeFactory, (request: Carrier) => {
      const { [fastPathReply]: reply } = request;
      return reply ? exchangeFor(request, reply) : undefined;
    });
  }

  const enter = (parts: readonly Part[]) => {
    const run = (request: FastifyRequest, reply: FastifyReply, next: Next) =>
      runParts(parts, exchangeFor(request, reply), next, next as (error: unknown) => void);
    const tryFastPath = parts.length === 1 ? parts[0]!.tryFastPath : undefined;
    if (!tryFastPath) return run;
    const view = new FastifyRequestView();
    return (request: FastifyRequest, reply: FastifyReply, next: Next) => {
      view.request = request;
      if (!tryFastPath(view)) return run(request, reply, next);
      (request as Carrier)[fastPathReply] = reply;
      next();
    };
  };

  if (early.length > 0 && at === 'onRequest') app.addHook('onRequest', enter(early));
  if (late.length > 0) {
    app.addHook('preParsing', (request, reply, payload, next) => {
      exchangeFor(request, reply).recordBody(payload as Readable, bodyMax);
      next(null, payload);
    });
  }
  if (early.length > 0 && at === 'preHandler') app.addHook('preHandler', enter(early));
  if (late.length > 0) app.addHook('preHandler', enter(late));
  if (ordered.some(({ name }) => name === 'degrade' || name === 'idempotency')) {
    app.addHook('onSend', (request, _reply, payload, next) => {
      const exchange = attachedExchange(request) as FastifyExchange | null;
      if (exchange?.hasReviewers) exchange.reviewPayload(payload, next);
      else next(null, payload);
    });
  }
}

// Without this symbol, Fastify would apply the hooks only to routes inside of the plugin.
(guard as unknown as Record<symbol, unknown>)[Symbol.for('skip-override')] = true;
(guard as unknown as Record<symbol, unknown>)[Symbol.for('fastify.display-name')] = '@holdfast/server';

const fastPathReply: unique symbol = Symbol('holdfast.fastPathReply');

type Carrier = FastifyRequest & { [fastPathReply]?: FastifyReply | null };
type Next = (error?: Error) => void;
type Send = (error: Error | null, payload?: unknown) => void;

/** One object serves all requests, which saves an allocation per request. */
class FastifyRequestView implements FastPathRequest {
  declare request: FastifyRequest;

  get peer(): string {
    return this.request.raw.socket.remoteAddress ?? '';
  }

  get route(): string | undefined {
    return routeOf(this.request);
  }
}

class FastifyExchange extends NodeExchange {
  declare private readonly reply: FastifyReply;
  declare private chunks: Uint8Array[] | undefined;
  declare private length: number;
  declare private payload: Readable | undefined;
  declare private recordChunk: ((chunk: Uint8Array | string) => void) | undefined;

  constructor(request: FastifyRequest, reply: FastifyReply, clock: Clock) {
    super(request.raw, reply.raw, clock, request);
    this.reply = reply;
    this.chunks = undefined;
    this.length = 0;
    this.payload = undefined;
    this.recordChunk = undefined;
  }

  override get route(): string | undefined {
    return routeOf(this.native as FastifyRequest);
  }

  override get status(): number {
    return this.reply.statusCode;
  }

  override setHeader(name: string, value: string): void {
    this.reply.header(name, value);
  }

  /** Copies the body while the parser of Fastify reads it, so that the body is not read twice. */
  recordBody(payload: Readable, bytesMax: number): void {
    const chunks: Uint8Array[] = [];
    this.chunks = chunks;
    this.payload = payload;
    this.recordChunk = (chunk) => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      this.length += bytes.length;
      if (this.length <= bytesMax) chunks.push(bytes);
      else chunks.length = 0;
    };
    payload.on('data', this.recordChunk);
    // The `data` listener has started the stream. Pause the stream until the parser of Fastify listens, too.
    payload.pause();
  }

  override readBody(bytesMax: number): RequestBody | Promise<RequestBody> {
    const { payload, recordChunk, request } = this;
    // If Fastify has no parser for this content type, the handler itself reads the stream. In this case,
    // buffer the body first.
    if (payload === request && recordChunk && this.length === 0 && !request.readableEnded) {
      request.off('data', recordChunk);
      return super.readBody(bytesMax);
    }
    if (this.length > bytesMax) return tooLarge;
    const chunks = this.chunks ?? [];
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, this.length);
  }

  override send({ status, headers, body }: PlainResponse): void {
    const reply = this.reply.code(status).headers(headers as Record<string, string>);
    reply.send(body instanceof Uint8Array ? Buffer.from(body) : (body ?? undefined));
  }

  /**
   * The `onSend` hook does not see what a handler writes to Node's raw response. In this case, the reviewers
   * are called at the end of the response.
   */
  override prepare(): void {
    if (!this.hasReviewers) return;
    this.onEnd((_now, completed) => {
      if (!completed || !this.hasReviewers) return;
      const { statusCode: status } = this.response;
      this.callReviewers({ status, headers: {}, body: undefined }).catch(() => {});
    });
  }

  override refuse(response: PlainResponse): void {
    this.send(response);
  }

  reviewPayload(payload: unknown, send: Send): void {
    const reply = this.reply;
    this.callReviewers({ ...headOf(payload, reply), body: bodyOf(payload) }).then((instead) => {
      if (!instead) return send(null, payload);
      for (const name of ['content-length', 'content-type', 'content-encoding']) reply.removeHeader(name);
      reply.code(instead.status).headers(instead.headers as Record<string, string>);
      const { body } = instead;
      send(null, body instanceof Uint8Array ? Buffer.from(body) : (body ?? ''));
    }, send);
  }

  protected override answerInstead(response: PlainResponse): void {
    // While a stream is being sent, `reply.sent` is still false. So `headersSent` is checked, too.
    if (!this.reply.sent && !this.response.headersSent) this.send(response);
  }
}

let routeSymbol: symbol | undefined;

interface Routed {
  readonly [context: symbol]: { readonly config?: { readonly url?: string } } | undefined;
}

/**
 * Reads the route through an internal symbol. Fastify's `routeOptions` is slow, because it creates a new
 * object at each read.
 */
function routeOf(request: FastifyRequest): string | undefined {
  routeSymbol ??= Object.getOwnPropertySymbols(request).find(
    ({ description }) => description === 'fastify.context',
  );
  const context = routeSymbol && (request as unknown as Routed)[routeSymbol];
  return context ? context.config?.url : request.routeOptions.url;
}

/**
 * Returns the status and the headers of a response. Fastify reads those of a returned `Response` object only
 * after its hooks, so this function reads them.
 */
function headOf(payload: unknown, reply: FastifyReply): { status: number; headers: ResponseHeaders } {
  const headers = reply.getHeaders() as ResponseHeaders;
  if (!(payload instanceof Response)) return { status: reply.statusCode, headers };
  return { status: payload.status, headers: { ...headers, ...Object.fromEntries(payload.headers) } };
}

function bodyOf(payload: unknown): string | Uint8Array | undefined {
  if (payload === undefined || payload === null) return '';
  return typeof payload === 'string' || payload instanceof Uint8Array ? payload : undefined;
}
