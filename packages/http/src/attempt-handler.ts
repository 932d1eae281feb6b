import { Timer } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import type { ResponseHead } from './classify-response.ts';
import type { InterceptedRequest } from './intercepted-request.ts';
import { drainMax, drainMs, ReadAhead, readAheadMax } from './read-ahead.ts';

type Handler = Required<Dispatcher.DispatchHandler>;
type Headers = Parameters<Handler['onResponseStart']>[2];

const WAITING = 0;
/**
 * The response has arrived but is not passed to the caller yet. The caller gets it only if no further attempt
 * is sent.
 */
const HELD = 1;
const PASSED = 2;
const DROPPED = 3;

/**
 * Receives undici's callbacks for one attempt. It passes the response to the caller, holds it back until the
 * retry decision, or discards it.
 */
export class AttemptHandler implements Dispatcher.DispatchHandler {
  declare readonly attempt: GuardedAttempt;
  declare private readonly request: InterceptedRequest;
  declare controller: Dispatcher.DispatchController | undefined;
  /** The URLs of the followed redirects. undici's redirect interceptor appends to this list. */
  declare private history: readonly unknown[] | undefined;
  declare head: ResponseHead | undefined;
  declare isInFlight: boolean;
  declare private state: 0 | 1 | 2 | 3;
  declare private message: string | undefined;
  declare private ahead: ReadAhead | undefined;
  declare private kept: Buffer[] | undefined;
  declare private trailers: Headers | undefined;
  declare private error: Error | undefined;
  /** Aborts a discarded response if it takes too long to read the rest of it. */
  declare private drainTimer: Timer | undefined;

  constructor(request: InterceptedRequest, attempt: GuardedAttempt) {
    this.request = request;
    this.attempt = attempt;
    this.controller = undefined;
    this.history = undefined;
    this.head = undefined;
    this.isInFlight = true;
    this.state = WAITING;
    this.message = undefined;
    this.ahead = undefined;
    this.kept = undefined;
    this.trailers = undefined;
    this.error = undefined;
    this.drainTimer = undefined;
  }

  get hasStarted(): boolean {
    return this.controller !== undefined;
  }

  get wasRedirected(): boolean {
    return this.history !== undefined && this.history.length > 0;
  }

  get isHeld(): boolean {
    return this.state === HELD;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    if (this.state === DROPPED) {
      controller.abort(this.abortReason());
      return;
    }
    this.controller = controller;
    this.history = (context as { history?: readonly unknown[] } | null | undefined)?.history;
    this.request.started(context);
  }

  onResponseStarted(): void {
    if (this.state === WAITING) this.request.handler.onResponseStarted?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers,
    message?: string,
  ): void {
    if (this.state === DROPPED) return;
    if (status < 200) {
      this.request.handler.onResponseStart?.(controller, status, headers, message);
      return;
    }
    if (
      this.request.tryAcceptFast(this, status) ||
      this.request.responded(this, this.noteHead(status, headers, message))
    ) {
      this.state = PASSED;
      this.request.handler.onResponseStart?.(controller, status, headers, message);
    } else if (this.state === WAITING) {
      this.state = HELD;
      if (contentLength(headers) > readAheadMax) controller.pause();
    }
  }

  private noteHead(status: number, headers: Headers, message: string | undefined): ResponseHead {
    this.message = message;
    const head = { status, headers, redirected: this.wasRedirected };
    this.head = head;
    return head;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.state === PASSED) {
      this.request.handler.onResponseData?.(controller, chunk);
      return;
    }
    this.ahead ??= new ReadAhead();
    this.ahead.add(chunk.byteLength);
    if (this.state === HELD) {
      this.kept ??= [];
      this.kept.push(chunk);
      if (!this.ahead.mayContinue) controller.pause();
    } else if (!this.ahead.mayContinue) controller.abort(this.abortReason());
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Headers): void {
    if (this.state === PASSED) {
      this.request.bodyEnded();
      this.request.handler.onResponseEnd?.(controller, trailers);
    } else {
      this.trailers = trailers ?? {};
      this.drainTimer?.clear();
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.drainTimer?.clear();
    if (this.state === HELD) this.error = error;
    else if (this.state !== DROPPED || this.isInFlight) this.request.failed(this, error);
  }

  onRequestUpgrade(...args: Parameters<Handler['onRequestUpgrade']>): void {
    this.request.handler.onRequestUpgrade?.(...args);
  }

  onBodySent(chunk: Buffer): void {
    this.request.handler.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.request.handler.onRequestSent?.();
  }

  /** Passes the response that was held back to the caller. Called when no further attempt will be sent. */
  release(): void {
    const { status, headers } = this.head as ResponseHead & { headers: Headers };
    const { handler } = this.request;
    const controller = this.controller as Dispatcher.DispatchController;
    const isOpen = !this.error && !this.trailers;
    this.state = PASSED;
    this.ahead?.release();
    try {
      handler.onResponseStart?.(controller, status, headers, this.message);
      for (const chunk of this.kept ?? []) handler.onResponseData?.(controller, chunk);
      if (isOpen) controller.resume();
      else if (!this.error) this.onResponseEnd(controller, this.trailers as Headers);
    } catch (error) {
      // If a handler throws inside of an undici callback, undici aborts the request. This code does not run
      // inside of a callback, so it must abort the request itself.
      if (isOpen) controller.abort(error as Error);
      else this.error ??= error as Error;
    }
    if (this.error) this.request.failed(this, this.error);
  }

  /**
   * Discards the response. A short response is read to its end, so that its connection can be reused; a longer one is
   * aborted.
   */
  discard(): void {
    if (this.state === PASSED || this.state === DROPPED) return;
    this.state = DROPPED;
    this.kept = undefined;
    this.ahead ??= new ReadAhead();
    this.ahead.release();
    if (!this.head || this.trailers || this.error) return;
    const { headers } = this.head as ResponseHead & { headers: Headers };
    if (contentLength(headers) > drainMax || !this.ahead.mayContinue)
      this.controller?.abort(this.abortReason());
    else {
      this.drainTimer = new Timer(this.request.plan.clock, () => this.controller?.abort(this.abortReason()));
      this.drainTimer.setIn(drainMs);
      this.controller?.resume();
    }
  }

  /** Aborts the attempt after a timeout, or because a parallel attempt (a hedge) was faster. */
  abort(): void {
    if (!this.isInFlight || this.state === DROPPED) return;
    this.state = DROPPED;
    this.controller?.abort(this.abortReason());
  }

  private abortReason(): Error {
    const reason: unknown = this.attempt.controller?.signal.reason;
    return reason instanceof Error
      ? reason
      : new Error(String(reason ?? 'the response is not wanted any more'));
  }
}

function contentLength(headers: Headers): number {
  return Number(headers['content-length']);
}
