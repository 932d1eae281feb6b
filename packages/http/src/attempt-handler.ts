import { Alarm } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import type { Answer } from './classify-response.ts';
import type { Exchange } from './exchange.ts';
import { ReadAhead, readAheadMax, readOverMax, readOverMs } from './read-ahead.ts';

type Handler = Required<Dispatcher.DispatchHandler>;
type Headers = Parameters<Handler['onResponseStart']>[2];

/** The response is awaited. */
const WAITING = 0;
/** It has come and is held back, because it may be what the caller gets in the end. */
const HELD = 1;
/** It is the caller's. */
const PASSED = 2;
/** It is nobody's: what comes is thrown away. */
const DROPPED = 3;

/** One attempt of an exchange, as undici sees it. */
export class Sending implements Dispatcher.DispatchHandler {
  declare readonly flight: GuardedAttempt;
  declare private readonly exchange: Exchange;
  declare controller: Dispatcher.DispatchController | undefined;
  /** Where redirects have led from so far, if an interceptor below follows them; it grows meanwhile. */
  declare private history: readonly unknown[] | undefined;
  declare answer: Answer | undefined;
  declare isInFlight: boolean;
  declare private state: 0 | 1 | 2 | 3;
  declare private message: string | undefined;
  /** Of a response that is held or thrown away. */
  declare private ahead: ReadAhead | undefined;
  declare private kept: Buffer[] | undefined;
  declare private trailers: Headers | undefined;
  declare private error: Error | undefined;
  /** Ends what is read over when that takes too long. */
  declare private limit: Limit | undefined;

  constructor(exchange: Exchange, flight: GuardedAttempt) {
    this.exchange = exchange;
    this.flight = flight;
    this.controller = undefined;
    this.history = undefined;
    this.answer = undefined;
    this.isInFlight = true;
    this.state = WAITING;
    this.message = undefined;
    this.ahead = undefined;
    this.kept = undefined;
    this.trailers = undefined;
    this.error = undefined;
    this.limit = undefined;
  }

  get hasStarted(): boolean {
    return this.controller !== undefined;
  }

  /** A redirect has led on from where it was sent to. */
  get hasMoved(): boolean {
    return this.history !== undefined && this.history.length > 0;
  }

  get isHeld(): boolean {
    return this.state === HELD;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    if (this.state === DROPPED) {
      controller.abort(this.leaving());
      return;
    }
    this.controller = controller;
    this.history = (context as { history?: readonly unknown[] } | null | undefined)?.history;
    this.exchange.started(context);
  }

  onResponseStarted(): void {
    if (this.state === WAITING) this.exchange.handler.onResponseStarted?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers,
    message?: string,
  ): void {
    if (this.state === DROPPED) return;
    if (status < 200) {
      this.exchange.handler.onResponseStart?.(controller, status, headers, message);
      return;
    }
    if (
      this.exchange.accepted(this, status) ||
      this.exchange.answered(this, this.heard(status, headers, message))
    ) {
      this.state = PASSED;
      this.exchange.handler.onResponseStart?.(controller, status, headers, message);
    } else if (this.state === WAITING) {
      this.state = HELD;
      if (bytesSaid(headers) > readAheadMax) controller.pause();
    }
  }

  private heard(status: number, headers: Headers, message: string | undefined): Answer {
    this.message = message;
    const answer = { status, headers, redirected: this.hasMoved };
    this.answer = answer;
    return answer;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.state === PASSED) {
      this.exchange.handler.onResponseData?.(controller, chunk);
      return;
    }
    this.ahead ??= new ReadAhead();
    this.ahead.add(chunk.byteLength);
    if (this.state === HELD) {
      this.kept ??= [];
      this.kept.push(chunk);
      if (!this.ahead.mayGoOn) controller.pause();
    } else if (!this.ahead.mayGoOn) controller.abort(this.leaving());
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Headers): void {
    if (this.state === PASSED) {
      this.exchange.delivered();
      this.exchange.handler.onResponseEnd?.(controller, trailers);
    } else {
      this.trailers = trailers ?? {};
      this.unlimit();
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.unlimit();
    if (this.state === HELD) this.error = error;
    else if (this.state !== DROPPED || this.isInFlight) this.exchange.failed(this, error);
  }

  onRequestUpgrade(...args: Parameters<Handler['onRequestUpgrade']>): void {
    this.exchange.handler.onRequestUpgrade?.(...args);
  }

  onBodySent(chunk: Buffer): void {
    this.exchange.handler.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.exchange.handler.onRequestSent?.();
  }

  /** Nothing follows: what was held is the caller's. */
  release(): void {
    const { status, headers } = this.answer as Answer & { headers: Headers };
    const { handler } = this.exchange;
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
      // What a handler throws ends its request. In undici's callbacks undici sees to that; here nobody else would.
      if (isOpen) controller.abort(error as Error);
      else this.error ??= error as Error;
    }
    if (this.error) this.exchange.failed(this, this.error);
  }

  /** Something else is the caller's: of a short response the rest is read over, so that the connection can be used again. */
  discard(): void {
    if (this.state === PASSED || this.state === DROPPED) return;
    this.state = DROPPED;
    this.kept = undefined;
    this.ahead ??= new ReadAhead();
    this.ahead.release();
    if (!this.answer || this.trailers || this.error) return;
    const { headers } = this.answer as Answer & { headers: Headers };
    if (bytesSaid(headers) > readOverMax || !this.ahead.mayGoOn) this.controller?.abort(this.leaving());
    else {
      const { clock } = this.exchange.plan;
      this.limit = new Limit(() => this.controller?.abort(this.leaving()));
      clock.set(this.limit, clock.now() + readOverMs);
      this.controller?.resume();
    }
  }

  private unlimit(): void {
    if (this.limit) this.exchange.plan.clock.clear(this.limit);
  }

  /** Its time is up, or another was faster. */
  leave(): void {
    if (!this.isInFlight || this.state === DROPPED) return;
    this.state = DROPPED;
    this.controller?.abort(this.leaving());
  }

  private leaving(): Error {
    const reason: unknown = this.flight.controller?.signal.reason;
    return reason instanceof Error
      ? reason
      : new Error(String(reason ?? 'the response is not wanted any more'));
  }
}

class Limit extends Alarm {
  readonly ring: () => void;

  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

function bytesSaid(headers: Headers): number {
  return Number(headers['content-length']);
}
