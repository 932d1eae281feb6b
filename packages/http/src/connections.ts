import { finished } from 'node:stream';
import { type Context, type Duration, durationMs, OptionsError } from 'holdfast';
import { anything, type Field } from 'holdfast/fields';
import type { Attempt } from 'holdfast/machines';
import './save-global-dispatcher.ts';
import { Agent, type Dispatcher, fetch as undiciFetch } from 'undici';
import { type AbortFollower, follow, unfollow } from './abort-listeners.ts';
import { noteFailed } from './classify-response.ts';
import type { Fetch, Sender } from './fetch.ts';
import { hasPlainGlobalDispatcher } from './global-dispatcher.ts';
import { signalSender } from './signal-sender.ts';
import { isOlder, overHttp1, wrapHandler } from './undici7-handler.ts';

export interface ConnectionOptions {
  /** For DNS, TCP and TLS together; 3 s unless said. */
  readonly connectTimeout?: Duration | undefined;
  /** Between two chunks of a response's body; 60 s unless said. */
  readonly idleTimeout?: Duration | undefined;
  /** undici's, for proxies and certificates: then both timeouts are its business. */
  readonly dispatcher?: Dispatcher | undefined;
}

export const connectionFields = {
  connectTimeout: anything<Duration>(),
  idleTimeout: anything<Duration>(),
  dispatcher: {
    kind: 'a dispatcher of undici',
    read: (value: unknown) =>
      typeof (value as Partial<Dispatcher>)?.dispatch === 'function' ? (value as Dispatcher) : undefined,
  } satisfies Field<Dispatcher, Dispatcher>,
};

/** What sends over connections that we can watch: the global `fetch` of Node, or undici's. Others bring their own connections. */
export function senderOf(given: Fetch | undefined, options: ConnectionOptions): Sender {
  const isForeign = given !== undefined && given !== (undiciFetch as unknown) && given !== globalThis.fetch;
  const { dispatcher } = options;
  for (const name of ['connectTimeout', 'idleTimeout'] as const) {
    if (options[name] === undefined || !(isForeign || dispatcher)) continue;
    throw new OptionsError(
      name,
      options[name],
      'no fetch and no dispatcher of your own beside it: they have their own',
    );
  }
  if (isForeign && !dispatcher) return signalSender(given);

  const settings: Agent.Options = {
    connect: { timeout: durationMs(options.connectTimeout ?? '3s', 'connectTimeout') },
    bodyTimeout: durationMs(options.idleTimeout ?? '60s', 'idleTimeout'),
    // Attempts have a limit of their own.
    headersTimeout: 0,
  };
  const agent = dispatcher ?? new Agent(settings);
  // Looked up when it is called, so that a test can put another in its place.
  const send: Fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  const isGlobal = given !== (undiciFetch as unknown);
  const bySignal = signalSender(send);

  return {
    send(input, init, context, caller, said, isFresh, arrived) {
      if (isGlobal && !dispatcher && !hasPlainGlobalDispatcher())
        return bySignal.send(input, init, context, caller, said, isFresh, arrived);
      const fresh = isFresh && !dispatcher ? new Agent(settings) : undefined;
      const line = new Line(fresh ?? agent, context, said);
      const sent = { ...init, dispatcher: line } as RequestInit;
      const isForeignContext = !isOurs(context);
      const followed = caller || isForeignContext ? new FollowingController() : undefined;
      if (followed) sent.signal = followed.signal;
      if (isForeignContext) followed?.follow(context.signal, caller);
      const over = () => {
        followed?.unfollow();
        // What is still on it then, such as the body of the response, comes to its end.
        if (fresh) void fresh.close();
      };
      return send(input, sent).then(
        (response) => {
          over();
          if (caller) followed?.followUntilRead(caller, response);
          return arrived(response);
        },
        (error: unknown) => {
          over();
          noteFailed(error, line.started, line.hasMoved);
          throw error;
        },
      );
    },
    close: async () => {
      if (!dispatcher) await agent.close();
    },
  };
}

/**
 * The dispatcher of one attempt. It ends what the attempt has in flight when its time is up, and knows whether a byte of it
 * was sent. It costs less than a signal that `fetch` has to follow.
 */
class Line {
  declare readonly agent: Dispatcher;
  /** What the `Holdfast` header says. */
  declare readonly said: string | undefined;
  declare origin: string | URL | undefined;
  /** The handler of the request in flight: the first, or the one that a redirect led to. */
  declare handler: Watched | undefined;
  declare hasMoved: boolean;
  declare reason: Error | undefined;

  constructor(agent: Dispatcher, context: Context, said: string | undefined) {
    this.agent = agent;
    this.said = said;
    this.origin = undefined;
    this.handler = undefined;
    this.hasMoved = false;
    this.reason = undefined;
    if (isOurs(context)) context.abortThrough(this);
  }

  /** Whether a byte may have been sent. */
  get started(): boolean {
    return this.hasMoved || (this.handler !== undefined && this.handler.abort !== null);
  }

  /** The attempt is over. */
  abort(reason: unknown): void {
    this.reason ??= reason instanceof Error ? reason : new Error(String(reason));
    const { handler } = this;
    if (!handler) return;
    if (handler.abort) handler.abort(this.reason);
    else handler.onRequestStart = (controller) => controller.abort(this.reason as Error);
  }

  /** As a controller has one; nobody asks for it here. */
  get signal(): AbortSignal {
    const made = new AbortController();
    if (this.reason) made.abort(this.reason);
    return made.signal;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    // Here they are plain, and this request's own: through `fetch` a header costs ten times as much.
    // Where a redirect leads to another origin, that is not told.
    this.origin ??= options.origin;
    if (this.said !== undefined && options.origin === this.origin)
      (options.headers as Record<string, string>).holdfast = this.said;
    this.hasMoved = this.handler !== undefined;
    const watched = isWatched(handler) ? handler : new WatchedHandler(wrapHandler(handler));
    this.handler = watched;
    if (this.reason) this.abort(this.reason);
    return this.agent.dispatch(isOlder(handler) ? overHttp1(options) : options, watched);
  }
}

/**
 * The signal that `fetch` gets instead of the caller's: Node 24 leaves a listener for each `fetch` on the signal it gets, until
 * garbage is collected. Until the head of a response, core ends an attempt of its own through its `Line`, so the caller's
 * signal is followed from there on.
 */
class FollowingController extends AbortController implements AbortFollower {
  #signals: readonly AbortSignal[] = [];

  follow(...signals: readonly (AbortSignal | undefined)[]): void {
    this.#signals = signals.filter((each) => each !== undefined);
    for (const each of this.#signals) follow(each, this);
  }

  unfollow(): void {
    for (const each of this.#signals) unfollow(each, this);
  }

  /** Until the body has been read to its end, was cancelled, or broke off. */
  followUntilRead(caller: AbortSignal, { body }: Response): void {
    if (!body) return;
    this.follow(caller);
    finished(body as never, () => this.unfollow());
  }

  signalAborted(reason: unknown): void {
    this.abort(reason);
  }
}

/** A handler that shows how to end what it has begun; null until it has. */
interface Watched extends Dispatcher.DispatchHandler {
  abort: ((reason: Error) => void) | null;
}

/** That of `fetch` does, and is this request's own. A handler around it would be called for each chunk and add nothing. */
function isWatched(handler: Dispatcher.DispatchHandler): handler is Watched {
  return typeof handler.onRequestStart === 'function' && (handler as Partial<Watched>).abort === null;
}

/** An attempt of core's can abort its call through the connection instead of an AbortController. */
function isOurs(context: Context): context is Context & Pick<Attempt, 'abortThrough'> {
  return 'abortThrough' in context;
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

class WatchedHandler implements Watched {
  declare readonly handler: Dispatcher.DispatchHandler;
  declare abort: ((reason: Error) => void) | null;

  constructor(handler: Dispatcher.DispatchHandler) {
    this.handler = handler;
    this.abort = null;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.abort = (reason) => controller.abort(reason);
    this.handler.onRequestStart?.(controller, context);
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>): void {
    this.handler.onRequestUpgrade?.(...args);
  }

  onResponseStarted(): void {
    this.handler.onResponseStarted?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers,
    message?: string,
  ): void {
    this.handler.onResponseStart?.(controller, status, headers, message);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.handler.onResponseData?.(controller, chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Headers): void {
    this.handler.onResponseEnd?.(controller, trailers);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.handler.onResponseError?.(controller, error);
  }

  onBodySent(chunk: Buffer): void {
    this.handler.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.handler.onRequestSent?.();
  }
}
