import type { Duplex } from 'node:stream';
import { Timer } from 'holdfast';
import type { AbortHandle, GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import type { Instance } from '../upstream/instance.ts';
import type { ProxiedRequest } from './proxied-request.ts';

type Controller = Dispatcher.DispatchController;
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ReceivedHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

const WAITING = 0;
/** The response is buffered. It is sent to the client only if there is no further attempt. */
const HELD = 1;
const PASSED = 2;
const DROPPED = 3;

/** With more buffered bytes than this, reading from the upstream is paused. */
const keptMax = 65_536;
/**
 * A dropped response is read to its end, so that its connection can be reused. Above these limits (bytes, ms)
 * it is aborted.
 */
const drainMax = 65_536;
const drainMs = 1000;

/** One attempt at one instance. It sends the response to the client, buffers it or drops it. */
export class UpstreamAttempt implements Dispatcher.DispatchHandler, AbortHandle {
  declare readonly attempt: GuardedAttempt;
  declare readonly instance: Instance;
  declare private readonly request: ProxiedRequest;
  declare controller: Controller | undefined;
  declare head: ReceivedHead | undefined;
  declare isInFlight: boolean;
  declare private state: 0 | 1 | 2 | 3;
  declare private kept: Buffer[] | undefined;
  declare private length: number;
  declare private hasEnded: boolean;
  declare private trailers: ResponseHeaders | undefined;
  declare private error: Error | undefined;
  declare private abortReason: unknown;
  declare private drainTimer: Timer | undefined;

  constructor(request: ProxiedRequest, attempt: GuardedAttempt, instance: Instance) {
    this.request = request;
    this.attempt = attempt;
    this.instance = instance;
    this.controller = undefined;
    this.head = undefined;
    this.isInFlight = true;
    this.state = WAITING;
    this.kept = undefined;
    this.length = 0;
    this.hasEnded = false;
    this.trailers = undefined;
    this.error = undefined;
    this.abortReason = undefined;
    this.drainTimer = undefined;
    attempt.abortThrough(this);
  }

  /** True: a part of the request may have been sent. */
  get hasStarted(): boolean {
    return this.controller !== undefined;
  }

  get isHeld(): boolean {
    return this.state === HELD;
  }

  /** `AbortHandle` requires a signal, but `abort` stops the attempt through undici. */
  get signal(): AbortSignal {
    return AbortSignal.abort(this.abortReason);
  }

  /** Called when the attempt has timed out, was cancelled, or lost against a hedged attempt. */
  abort(reason: unknown): void {
    if (this.state === PASSED || this.state === DROPPED) return;
    this.state = DROPPED;
    this.abortReason = reason;
    this.controller?.abort(asError(reason));
  }

  onRequestStart(controller: Controller): void {
    this.controller = controller;
    if (this.state === DROPPED) controller.abort(asError(this.abortReason));
  }

  onResponseStart(controller: Controller, status: number, headers: ResponseHeaders): void {
    if (this.state === DROPPED) return;
    const { request } = this;
    if (status < 200) {
      request.informed(status, headers);
      return;
    }
    if (request.tryAcceptFast(this, status)) {
      this.state = PASSED;
      request.writeHead(status, headers, controller);
      return;
    }
    const head = { status, headers };
    this.head = head;
    if (request.responded(this, head)) {
      this.state = PASSED;
      request.writeHead(status, headers, controller);
    } else if (this.state === WAITING) this.state = HELD;
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.state === PASSED) {
      this.request.writeBody(chunk, controller);
      return;
    }
    this.length += chunk.length;
    if (this.state === HELD) {
      if (this.kept) this.kept.push(chunk);
      else this.kept = [chunk];
      if (this.length > keptMax) controller.pause();
    } else if (this.length > drainMax) controller.abort(asError(this.abortReason));
  }

  onResponseEnd(_controller: Controller, trailers: ResponseHeaders): void {
    if (this.state === PASSED) this.request.endBody(trailers);
    else {
      this.hasEnded = true;
      this.trailers = trailers;
      this.drainTimer?.clear();
    }
  }

  onResponseError(_controller: Controller | undefined, error: Error): void {
    this.drainTimer?.clear();
    if (this.state === DROPPED && !this.isInFlight) return;
    if (this.state === HELD) this.error = error;
    else this.request.failed(this, error);
  }

  onRequestUpgrade(_controller: Controller, status: number, headers: ResponseHeaders, socket: Duplex): void {
    this.request.upgraded(this, status, headers, socket);
  }

  release(): void {
    const { request, controller } = this;
    const { status, headers } = this.head!;
    const isOpen = !this.hasEnded && !this.error;
    this.state = PASSED;
    request.writeHead(status, headers, controller!);
    for (const chunk of this.kept ?? []) request.writeBody(chunk, controller!);
    this.kept = undefined;
    if (this.error) request.failed(this, this.error);
    else if (this.hasEnded) request.endBody(this.trailers ?? {});
    else if (isOpen) controller!.resume();
  }

  /** If the rest of the response is short, it is read to keep the connection usable. */
  discard(): void {
    if (this.state === PASSED || this.state === DROPPED) return;
    this.state = DROPPED;
    this.kept = undefined;
    const { controller } = this;
    if (!this.head || this.hasEnded || this.error || !controller) return;
    if (this.length > drainMax) {
      controller.abort(asError(this.abortReason));
      return;
    }
    this.length = 0;
    this.drainTimer = new Timer(this.attempt.plan.clock, () => controller.abort(asError(this.abortReason)));
    this.drainTimer.setIn(drainMs);
    controller.resume();
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error
    ? reason
    : new Error(String(reason ?? 'the response is not wanted any more'));
}
