import { finished } from 'node:stream';
import { type Context, type Duration, durationMs, OptionsError } from 'holdfast';
import { anything, type Field } from 'holdfast/fields';
import { type AbortListener, type Attempt, offAbort, onAbort } from 'holdfast/machines';
import './save-global-dispatcher.ts';
import { Agent, type Dispatcher, fetch as undiciFetch } from 'undici';
import { noteFailed } from './classify-response.ts';
import { hasPlainGlobalDispatcher } from './global-dispatcher.ts';
import type { Fetch, Sender } from './sender.ts';
import { signalSender } from './signal-sender.ts';
import { isUndici7Handler, overHttp1, wrapHandler } from './undici7-handler.ts';

export interface ConnectionOptions {
  /** The timeout for DNS, TCP and TLS together. Default: `3s`. */
  readonly connectTimeout?: Duration | undefined;
  /** The longest time between two chunks of a response body. Default: `60s`. */
  readonly idleTimeout?: Duration | undefined;
  /** A dispatcher of undici, for example for a proxy. It uses its own timeouts. Default: a new `Agent`. */
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

/**
 * Creates the sender of attempts. The connection options work only with the `fetch` of Node and of undici.
 */
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
    // Each attempt has its own timeout, so undici needs no timeout for headers.
    headersTimeout: 0,
  };
  const agent = dispatcher ?? new Agent(settings);
  // Read the global `fetch` at each call, because a test may replace it.
  const send: Fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  const isGlobal = given !== (undiciFetch as unknown);
  const bySignal = signalSender(send);

  return {
    send(input, init, context, caller, holdfastHeader, isFresh, arrived) {
      if (isGlobal && !dispatcher && !hasPlainGlobalDispatcher())
        return bySignal.send(input, init, context, caller, holdfastHeader, isFresh, arrived);
      const fresh = isFresh && !dispatcher ? new Agent(settings) : undefined;
      const attemptDispatcher = new AttemptDispatcher(fresh ?? agent, context, holdfastHeader);
      const sent = { ...init, dispatcher: attemptDispatcher } as RequestInit;
      const isForeignContext = !isOurs(context);
      const followed = caller || isForeignContext ? new FollowingController() : undefined;
      if (followed) sent.signal = followed.signal;
      if (isForeignContext) followed?.follow(context.signal, caller);
      const over = () => {
        followed?.unfollow();
        // `close` waits until the body of the response has been read.
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
          noteFailed(error, attemptDispatcher.hasStarted, attemptDispatcher.wasRedirected);
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
 * The undici dispatcher of one attempt. It can abort the request directly, which costs less than an
 * AbortSignal for each attempt.
 */
class AttemptDispatcher {
  declare readonly agent: Dispatcher;
  declare readonly holdfastHeader: string | undefined;
  declare origin: string | URL | undefined;
  /** The handler of the request in flight. A redirect sends a new request and replaces the handler. */
  declare handler: AbortableHandler | undefined;
  declare wasRedirected: boolean;
  declare reason: Error | undefined;

  constructor(agent: Dispatcher, context: Context, holdfastHeader: string | undefined) {
    this.agent = agent;
    this.holdfastHeader = holdfastHeader;
    this.origin = undefined;
    this.handler = undefined;
    this.wasRedirected = false;
    this.reason = undefined;
    if (isOurs(context)) context.abortThrough(this);
  }

  get hasStarted(): boolean {
    return this.wasRedirected || (this.handler !== undefined && this.handler.abort !== null);
  }

  /** Called when the attempt has timed out, was cancelled, or lost against a parallel attempt (a hedge). */
  abort(reason: unknown): void {
    this.reason ??= reason instanceof Error ? reason : new Error(String(reason));
    const { handler } = this;
    if (!handler) return;
    if (handler.abort) handler.abort(this.reason);
    else handler.onRequestStart = (controller) => controller.abort(this.reason as Error);
  }

  /** Only the interface `AbortHandle` needs this getter; `fetch` does not read it. */
  get signal(): AbortSignal {
    const made = new AbortController();
    if (this.reason) made.abort(this.reason);
    return made.signal;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    // Add the `Holdfast` header here, because this is ten times cheaper than through `fetch`. After a
    // redirect to another origin, the header is not sent.
    this.origin ??= options.origin;
    if (this.holdfastHeader !== undefined && options.origin === this.origin)
      (options.headers as Record<string, string>).holdfast = this.holdfastHeader;
    this.wasRedirected = this.handler !== undefined;
    const abortable = isAbortable(handler) ? handler : new WatchedHandler(wrapHandler(handler));
    this.handler = abortable;
    if (this.reason) this.abort(this.reason);
    return this.agent.dispatch(isUndici7Handler(handler) ? overHttp1(options) : options, abortable);
  }
}

/**
 * `fetch` gets the signal of this controller instead of the caller's signal. In Node 24, `fetch` removes its
 * listener late. If many calls shared one signal of the caller, that signal would collect many listeners.
 */
class FollowingController extends AbortController implements AbortListener {
  #signals: readonly AbortSignal[] = [];

  follow(...signals: readonly (AbortSignal | undefined)[]): void {
    this.#signals = signals.filter((each) => each !== undefined);
    for (const each of this.#signals) {
      if (each.aborted) this.aborted(each.reason);
      else onAbort(each, this);
    }
  }

  unfollow(): void {
    for (const each of this.#signals) offAbort(each, this);
  }

  /**
   * Makes the signal abort when `caller` aborts. This ends when the body has been read, was cancelled or has
   * failed.
   */
  followUntilRead(caller: AbortSignal, { body }: Response): void {
    if (!body) return;
    this.follow(caller);
    finished(body as never, () => this.unfollow());
  }

  aborted(reason: unknown): void {
    this.abort(reason);
  }
}

/** A handler that can abort its request; `abort` is null until the request has started. */
interface AbortableHandler extends Dispatcher.DispatchHandler {
  abort: ((reason: Error) => void) | null;
}

/**
 * Returns true if the handler can abort its request itself. Other handlers need a wrapper, and a wrapper
 * slows down each chunk.
 */
function isAbortable(handler: Dispatcher.DispatchHandler): handler is AbortableHandler {
  return (
    typeof handler.onRequestStart === 'function' && (handler as Partial<AbortableHandler>).abort === null
  );
}

/**
 * Returns true if the context is an `Attempt` of the package `holdfast`. Such an attempt calls `abort`
 * directly, without an AbortController.
 */
function isOurs(context: Context): context is Context & Pick<Attempt, 'abortThrough'> {
  return 'abortThrough' in context;
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

class WatchedHandler implements AbortableHandler {
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
