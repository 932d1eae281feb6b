import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, RegisterOptions } from 'fastify';
import { type Clock, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { exchangeIn, exchangeOf, makeExchange, type RequestBody, tooLarge } from './exchange.ts';
import { goThrough } from './go-through.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { inOrder, type Part, type Visit } from './part.ts';
import type { Answer, AnswerHeaders } from './response.ts';

export { contextOf } from './exchange.ts';

export interface FastifyGuardOptions {
  readonly parts: readonly Part[];
  /** When parts act that need no body: `preHandler` for those that must come after authentication. */
  readonly at?: 'onRequest' | 'preHandler' | undefined;
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof FastifyGuardOptions, true>> = { parts: true, at: true, clock: true };

/** A plugin for Fastify 5: the routes of the scope in which it is registered are behind the parts. */
export function guard(
  app: FastifyInstance,
  options: FastifyGuardOptions,
  done: (error?: Error) => void,
): void {
  try {
    addHooks(app, options);
  } catch (error) {
    // Thrown, it would be nobody's: Fastify hears of it this way only.
    done(error as Error);
    return;
  }
  done();
}

function addHooks(app: FastifyInstance, options: FastifyGuardOptions): void {
  // What Fastify reads itself comes along with ours.
  const { prefix, logLevel, logSerializers, ...ours } = options as FastifyGuardOptions & RegisterOptions;
  refuseUnknown(known, ours, 'guard.');
  const { at = 'onRequest', clock = systemClock } = options;
  const ordered = inOrder(options.parts);
  const early = ordered.filter(({ bodyMax }) => bodyMax === undefined);
  const late = ordered.filter(({ bodyMax }) => bodyMax !== undefined);
  const bodyMax = Math.max(0, ...late.map((part) => part.bodyMax!));
  const exchangeFor = (request: FastifyRequest, reply: FastifyReply) =>
    (exchangeIn(request) as FastifyExchange | undefined) ?? new FastifyExchange(request, reply, clock);
  if (!app.hasRequestDecorator(exchangeOf)) {
    app.decorateRequest(exchangeOf, null);
    app.decorateRequest(makeExchange, exchangeFor);
  }

  const enter = (parts: readonly Part[]) => {
    const whole = (request: FastifyRequest, reply: FastifyReply, next: Next) =>
      goThrough(parts, exchangeFor(request, reply), next, next as (error: unknown) => void);
    const passes = parts.length === 1 ? parts[0]!.passes : undefined;
    if (!passes) return whole;
    const visit = new FastifyVisit();
    return (request: FastifyRequest, reply: FastifyReply, next: Next) => {
      visit.request = request;
      if (!passes(visit)) return whole(request, reply, next);
      // From which a handler that asks for the context gets it.
      (request as Carrier)[exchangeOf] ??= reply;
      next();
    };
  };

  if (early.length > 0 && at === 'onRequest') app.addHook('onRequest', enter(early));
  if (late.length > 0) {
    app.addHook('preParsing', (request, reply, payload, next) => {
      exchangeFor(request, reply).tap(payload as Readable, bodyMax);
      next(null, payload);
    });
  }
  if (early.length > 0 && at === 'preHandler') app.addHook('preHandler', enter(early));
  if (late.length > 0) app.addHook('preHandler', enter(late));
  if (ordered.some(({ name }) => name === 'degrade' || name === 'idempotency')) {
    app.addHook('onSend', (request, _reply, payload, next) => {
      const exchange = exchangeIn(request) as FastifyExchange | null;
      if (exchange?.isHeld) exchange.show(payload, next);
      else next(null, payload);
    });
  }
}

// As `fastify-plugin` does: the hooks are for the scope that registers it, not for one of the plugin's own.
(guard as unknown as Record<symbol, unknown>)[Symbol.for('skip-override')] = true;
(guard as unknown as Record<symbol, unknown>)[Symbol.for('fastify.display-name')] = '@holdfast/server';

type Next = (error?: Error) => void;
type Carrier = FastifyRequest & { [exchangeOf]?: unknown };
type SendOn = (error: Error | null, payload?: unknown) => void;

/** One for all requests: each is looked at and left. */
class FastifyVisit implements Visit {
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
  declare private hear: ((chunk: Uint8Array | string) => void) | undefined;

  constructor(request: FastifyRequest, reply: FastifyReply, clock: Clock) {
    super(request.raw, reply.raw, clock, request);
    this.reply = reply;
    this.chunks = undefined;
    this.length = 0;
    this.payload = undefined;
    this.hear = undefined;
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

  /** Hears the body as it passes to the parser of the framework: nothing is read twice, and no more kept than is wanted. */
  tap(payload: Readable, bytesMax: number): void {
    const chunks: Uint8Array[] = [];
    this.chunks = chunks;
    this.payload = payload;
    this.hear = (chunk) => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      this.length += bytes.length;
      if (this.length <= bytesMax) chunks.push(bytes);
      else chunks.length = 0;
    };
    payload.on('data', this.hear);
    // The parser lets it flow when it listens as well.
    payload.pause();
  }

  override readBody(bytesMax: number): RequestBody | Promise<RequestBody> {
    const { payload, hear, request } = this;
    // No parser has touched it: the handler will, as those of uploads do, and it has to be looked at before.
    if (payload === request && hear && this.length === 0 && !request.readableEnded) {
      request.off('data', hear);
      return super.readBody(bytesMax);
    }
    if (this.length > bytesMax) return tooLarge;
    const chunks = this.chunks ?? [];
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, this.length);
  }

  override send({ status, headers, body }: Answer): void {
    const reply = this.reply.code(status).headers(headers as Record<string, string>);
    reply.send(body instanceof Uint8Array ? Buffer.from(body) : (body ?? undefined));
  }

  /** An answer is seen by a hook of the framework, a refusal as well; but not what a handler sends past the framework. */
  override prepare(): void {
    if (!this.isHeld) return;
    this.onEnd((_now, completed) => {
      if (!completed || !this.isHeld) return;
      const { statusCode: status } = this.response;
      this.reviewed({ status, headers: {}, body: undefined }).catch(() => {});
    });
  }

  override refuse(answer: Answer): void {
    this.send(answer);
  }

  show(payload: unknown, sendOn: SendOn): void {
    const reply = this.reply;
    this.reviewed({ ...headOf(payload, reply), body: bodyOf(payload) }).then((instead) => {
      if (!instead) return sendOn(null, payload);
      for (const name of ['content-length', 'content-type', 'content-encoding']) reply.removeHeader(name);
      reply.code(instead.status).headers(instead.headers as Record<string, string>);
      const { body } = instead;
      sendOn(null, body instanceof Uint8Array ? Buffer.from(body) : (body ?? ''));
    }, sendOn);
  }

  protected override answerInstead(answer: Answer): void {
    // `sent` says nothing of a stream that has begun.
    if (!this.reply.sent && !this.response.headersSent) this.send(answer);
  }
}

/** Where Fastify keeps the route of a request; found when the first one comes. */
let routeSymbol: symbol | undefined;

interface Routed {
  readonly [context: symbol]: { readonly config?: { readonly url?: string } } | undefined;
}

/** `routeOptions` makes an object of a dozen fields each time it is read, which would cost more than the whole limiter. */
function routeOf(request: FastifyRequest): string | undefined {
  routeSymbol ??= Object.getOwnPropertySymbols(request).find(
    ({ description }) => description === 'fastify.context',
  );
  const context = routeSymbol && (request as unknown as Routed)[routeSymbol];
  return context ? context.config?.url : request.routeOptions.url;
}

/** What a `Response` says of itself Fastify reads only after its hooks. */
function headOf(payload: unknown, reply: FastifyReply): { status: number; headers: AnswerHeaders } {
  const headers = reply.getHeaders() as AnswerHeaders;
  if (!(payload instanceof Response)) return { status: reply.statusCode, headers };
  return { status: payload.status, headers: { ...headers, ...Object.fromEntries(payload.headers) } };
}

function bodyOf(payload: unknown): string | Uint8Array | undefined {
  if (payload === undefined || payload === null) return '';
  return typeof payload === 'string' || payload instanceof Uint8Array ? payload : undefined;
}
