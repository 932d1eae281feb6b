import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { noteFailed, requestTraits, responseClassifier } from '@holdfast/http/rules';
import { ClientGoneError, contextOf, type Exchange, type PlainResponse } from '@holdfast/server';
import {
  Alarm,
  type Judgement,
  type Outcome,
  type Plan,
  RefusedError,
  type RunOptions,
  type StopReason,
} from 'holdfast';
import {
  DONE,
  type Driver,
  GuardedAttempt,
  isEndTimed,
  SEND,
  STOP,
  type Step,
  schedule,
  settleAttempt,
  startAttempt,
  stepAfter,
  stepAt,
  type Target,
  type Work,
} from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import type { Route } from '../route/route.ts';
import type { AttemptPolicy } from '../upstream/attempt-policy.ts';
import { ClientResponse } from './client-response.ts';
import { refusal, refusalFor } from './refusals.ts';
import { readBody, StreamedBody } from './request-body.ts';
import type { RequestHead } from './request-head.ts';
import { setCloseListener } from './response-close.ts';
import type { Tunnel } from './tunnel.ts';
import { type ReceivedHead, type ResponseHeaders, UpstreamAttempt } from './upstream-attempt.ts';

export interface RequestRecorder {
  readonly isDraining: boolean;
  readonly serverTiming: boolean;
  /** A request body up to this size in bytes is kept in memory for a retry. */
  readonly keptBodyMax: number;
  readonly bodyTimeoutMs: number;
  ended(request: ProxiedRequest): void;
}

const ok: Judgement = { class: 'ok' };
const classifiers = [responseClassifier({}, false), responseClassifier({}, true)] as const;
const gone = new ClientGoneError();

/**
 * One request of a client, with all its attempts. The state machine `Work` decides about retries; it is
 * created only when it is needed.
 */
export class ProxiedRequest extends Alarm implements Driver {
  declare readonly route: Route;
  declare readonly head: RequestHead;
  declare readonly startedAt: number;
  declare private readonly recorder: RequestRecorder;
  declare private readonly policy: AttemptPolicy;
  declare private readonly plan: Plan;
  declare private readonly client: ClientResponse;
  /** True: the response is stored under an idempotency key, so the request continues after a disconnect. */
  declare private readonly isRecorded: boolean;
  declare private readonly tunnel: Tunnel | undefined;
  declare private body: Buffer | StreamedBody | null;
  declare private hash: number;
  declare private patienceEndsAt: number;
  declare private headers: string[] | undefined;
  /** The state machine. Most requests succeed at the first attempt and need none. */
  declare machine: Work | undefined;
  declare private first: GuardedAttempt | undefined;
  declare latest: UpstreamAttempt | undefined;
  declare private hedgeTwin: UpstreamAttempt | undefined;
  /** The attempt whose response is sent to the client. Once it is set, there is no retry. */
  declare private committed: UpstreamAttempt | undefined;
  declare private isOver: boolean;
  declare status: number;
  /** When the headers of the upstream's response arrived, for the `Server-Timing` header. */
  declare respondedAt: number;
  declare wasAborted: boolean;
  declare private hasAnswer: boolean;
  /** True: the client has disconnected, but the request continues because of `isRecorded`. */
  declare private isDetached: boolean;
  declare fallback: 'route' | undefined;
  declare error: unknown;

  constructor(
    route: Route,
    head: RequestHead,
    response: ServerResponse,
    recorder: RequestRecorder,
    tunnel: Tunnel | undefined,
  ) {
    super();
    this.route = route;
    this.head = head;
    this.recorder = recorder;
    this.policy = route.policy;
    this.plan = route.policy.plan;
    const exchange = route.isGuarded ? (contextOf(head.request) as Exchange | undefined) : undefined;
    this.isRecorded = exchange?.idempotent !== undefined;
    this.client = new ClientResponse(
      response,
      head.request.httpVersionMajor === 2,
      exchange?.hasReviewers ?? false,
      this.isRecorded,
    );
    this.tunnel = tunnel;
    this.startedAt = this.plan.clock.now();
    this.body = null;
    this.hash = 0;
    this.patienceEndsAt = 0;
    this.headers = undefined;
    this.machine = undefined;
    this.first = undefined;
    this.latest = undefined;
    this.hedgeTwin = undefined;
    this.committed = undefined;
    this.isOver = false;
    this.status = 0;
    this.respondedAt = 0;
    this.wasAborted = false;
    this.hasAnswer = false;
    this.isDetached = false;
    this.fallback = undefined;
    this.error = undefined;
    setCloseListener(response, this);
  }

  get request(): IncomingMessage {
    return this.head.request;
  }

  get bytes(): number {
    return this.tunnel?.bytes ?? this.client.bytes;
  }

  /**
   * The status that the client received. It can differ from the status of the upstream: for example,
   * `degrade` replaces a failed response by an earlier good one.
   */
  get shownStatus(): number {
    const { response } = this.client;
    return response.headersSent && !this.tunnel?.isConnected ? response.statusCode : this.status;
  }

  get attempts(): number {
    return this.machine?.attempt ?? (this.first ? 1 : 0);
  }

  begin(): void {
    const { head, route, plan } = this;
    const now = this.startedAt;
    this.patienceEndsAt = now + Math.min(plan.patienceMs, head.patienceMs);
    if (head.patienceMs <= 0) {
      this.answer(refusal('patience-spent'));
      return;
    }
    if (route.isHashed) this.hash = route.hashOf(head);
    if (!head.hasBody) this.start();
    else {
      if (head.expectsContinue) (this.client.response as { writeContinue(): void }).writeContinue();
      // Node's own timeout for the request body works only for HTTP/1.1.
      if (head.request.httpVersionMajor === 2) plan.clock.set(this, now + this.recorder.bodyTimeoutMs);
      readBody(head.request, head.contentLength, this.recorder.keptBodyMax, route.config.bodyBytesMax, this);
    }
  }

  /** Starts as the fallback of another route, which has already read the body. */
  beginWith(body: Buffer | null): void {
    this.patienceEndsAt = this.startedAt + Math.min(this.plan.patienceMs, this.head.patienceMs);
    this.body = body;
    if (this.route.isHashed) this.hash = this.route.hashOf(this.head);
    this.start();
  }

  bodyKept(body: Buffer): void {
    this.body = body;
    if (!this.isOver) this.start();
  }

  bodyStreams(body: StreamedBody): void {
    this.body = body;
    if (!this.isOver) this.start();
  }

  bodyTooLong(): void {
    if (this.isOver && this.client.hasBegun) {
      this.client.breakOff();
      return;
    }
    this.cancelWork(new Error('the body is longer than the route takes'));
    this.answer(refusal('content-too-large', { connection: 'close' }));
  }

  bodyBroken(): void {
    this.abandon();
  }

  private start(): void {
    this.plan.clock.clear(this);
    if (this.policy.balancer.size === 0) this.refuseDrained();
    else if (this.head.ownedUpstream || !this.startFast()) this.perform(this.work.begin(this.work.startedAt));
  }

  /**
   * Starts the first attempt without the state machine. False: that is not possible, for example because a
   * breaker is open.
   */
  private startFast(): boolean {
    const { plan, policy } = this;
    if (plan.needsMachine || !plan.fastPath || plan.reporter?.isHeard()) return false;
    const now = plan.clock.now();
    const target = policy.balancer.choose(now, this.hash, undefined, undefined);
    if (!target || now >= this.patienceEndsAt) return false;
    const { breaker, bulkhead } = target as Target;
    if ((breaker && !breaker.isClosed) || (bulkhead && !bulkhead.tryEnter())) return false;
    plan.counters.operations++;
    policy.pool.budget?.firstTry(now);
    const attempt = startAttempt(GuardedAttempt, plan, target as Target, 1, now, this.patienceEndsAt)!;
    this.first = attempt;
    this.send(attempt);
    if (!this.isOver && !this.machine && attempt.endsAt < Infinity) plan.clock.set(this, attempt.endsAt);
    return true;
  }

  private get work(): Work {
    this.machine ??= this.makeWork();
    return this.machine;
  }

  private makeWork(): Work {
    const { plan, policy, first, head } = this;
    const { isKeyed, isIdempotent } = requestTraits(head.method, null, head.idempotencyKey);
    const options: RunOptions & { readonly hash: number } = {
      targets: policy.targets,
      idempotent: isIdempotent && !this.tunnel,
      retryVeto: () => this.retryVeto(),
      classify: classifiers[isKeyed ? 1 : 0](plan),
      priority: head.priority ?? this.route.config.priority,
      hash: this.hash,
    };
    const work = plan.work(options, this.startedAt, this.patienceEndsAt);
    if (first) {
      work.guards!.adopt(first, policy.pool.budget);
      work.target = policy.pool;
      work.guards!.tried = new Set([first.targetState]);
    }
    // The caller retries this request itself. If the gateway retried too, the numbers of attempts would
    // multiply.
    if (head.ownedUpstream && isIdempotent) work.retryVeto = 'not_owner';
    work.driver = this;
    return work;
  }

  /**
   * Returns the reason if a retry is impossible. A streamed body is not kept in memory, so it can be sent
   * only once.
   */
  private retryVeto(): StopReason | undefined {
    return this.body instanceof StreamedBody && this.body.hasStarted ? 'not_replayable' : undefined;
  }

  perform(step: Step): void {
    if (step === SEND) this.send(this.work.current as GuardedAttempt);
    if (this.isOver || step === DONE) return;
    if (step === STOP) this.stop();
    else schedule(this.work, this);
  }

  ring(now: number): void {
    if (!this.first && !this.machine) {
      this.answer(refusal('request-timeout'));
      return;
    }
    this.perform(stepAt(this.work, now));
  }

  private send(attempt: GuardedAttempt): void {
    const instance = this.policy.instanceOf(attempt.targetState);
    const before = this.latest;
    if (!instance) {
      // A reload has removed the instance after it was chosen.
      this.failedBeforeSending(attempt, new Error('the instance was removed'));
      return;
    }
    const handler = new UpstreamAttempt(this, attempt, instance);
    if (before) this.discardSettled();
    this.hedgeTwin = before;
    this.latest = handler;
    const { head, body, plan, tunnel } = this;
    const options: Dispatcher.DispatchOptions = {
      path: this.route.pathOf(head),
      method: head.method as Dispatcher.HttpMethod,
      headers: this.headersFor(attempt),
      body: body instanceof StreamedBody ? body.stream() : body,
    };
    if (instance.servername !== undefined)
      (options as { servername?: string }).servername = instance.servername;
    if (tunnel) options.upgrade = 'websocket';
    const { idleTimeoutMs, isOwn } = this.route.config.attempts;
    if (isOwn) options.bodyTimeout = idleTimeoutMs < Infinity ? idleTimeoutMs : 0;
    try {
      if (plan.reporter?.isHeard())
        plan.reporter.enter(this.work, attempt, () => instance.pool.dispatch(options, handler));
      else instance.pool.dispatch(options, handler);
    } catch (error) {
      handler.onResponseError(undefined, error as Error);
    }
  }

  private failedBeforeSending(attempt: GuardedAttempt, error: Error): void {
    noteFailed(error, false, false);
    const step = stepAfter(this.work, this, attempt, { ok: false, error });
    if (step !== undefined) this.perform(step);
  }

  private headersFor(attempt: GuardedAttempt): string[] {
    const { route, head, headers: before } = this;
    const announced = route.announcement(head, attempt);
    if (!before) {
      this.headers = route.requestHeaders(head, this.body instanceof StreamedBody);
      if (announced !== undefined) this.headers.push('holdfast', announced);
      return this.headers;
    }
    if (announced === undefined) return before;
    // The previous attempt may still wait for a connection, and send its list of headers later. So change a
    // copy.
    const headers = before.slice();
    headers[headers.length - 1] = announced;
    return headers;
  }

  /** Accepts the first response without the state machine. False: `Work` must classify the response. */
  tryAcceptFast(handler: UpstreamAttempt, status: number): boolean {
    const { plan, first } = this;
    if (!first || this.machine || status >= 400 || plan.judgesValues >= 2) return false;
    handler.isInFlight = false;
    this.respondedAt = isEndTimed(first) || this.recorder.serverTiming ? plan.clock.now() : first.startedAt;
    settleAttempt(first, this.respondedAt, ok);
    plan.counters.succeeded++;
    this.policy.pool.budget?.success();
    this.commit(handler);
    return true;
  }

  /** Returns whether this response is sent to the client. */
  responded(handler: UpstreamAttempt, head: ReceivedHead): boolean {
    const step = this.settled(handler, { ok: true, value: head });
    if (step === undefined) return false;
    if (step === DONE || (step === STOP && this.work.result === head)) {
      if (head.status >= 500 && this.tryOtherRoute()) return false;
      this.respondedAt = this.plan.clock.now();
      this.commit(handler);
      return true;
    }
    this.perform(step);
    return false;
  }

  failed(handler: UpstreamAttempt, error: Error): void {
    if (handler === this.committed) {
      this.error ??= error;
      // Node refuses to write invalid headers. If no header was sent yet, the client can still get a 502.
      if (this.client.hasBegun) this.client.breakOff();
      else this.answer(refusal('bad-gateway'));
      this.answered();
      return;
    }
    noteFailed(error, handler.hasStarted, false);
    const step = this.settled(handler, { ok: false, error });
    if (step !== undefined) this.perform(step);
  }

  /** Called when the upstream has accepted the WebSocket. */
  upgraded(handler: UpstreamAttempt, status: number, headers: ResponseHeaders, socket: Duplex): void {
    if (!this.tryAcceptFast(handler, 200)) {
      const step = this.settled(handler, { ok: true, value: { status: 200, headers: {} } });
      if (step !== DONE) {
        socket.destroy();
        if (step !== undefined) this.perform(step);
        return;
      }
      this.commit(handler);
    }
    this.status = status;
    this.tunnel!.connect(socket, headers, this.route.ownHeaders(this, this.recorder));
  }

  informed(status: number, headers: ResponseHeaders): void {
    const { response } = this.client;
    if (status === 103 && headers.link !== undefined && !response.headersSent && !this.tunnel)
      (response as { writeEarlyHints(hints: object): void }).writeEarlyHints({ link: headers.link });
  }

  writeHead(status: number, headers: ResponseHeaders, _controller: Dispatcher.DispatchController): void {
    const { head, route, client } = this;
    this.status = status;
    if (client.isGone) return;
    client.writeHead(
      status,
      headers,
      route.ownHeaders(this, this.recorder),
      route.config.responseHeaders,
      head.method === 'HEAD',
    );
  }

  writeBody(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    this.client.write(chunk, controller);
  }

  endBody(trailers: ResponseHeaders): void {
    this.client.end(trailers);
    this.answered();
  }

  /** Called once, when the whole response is sent or the client has disconnected. */
  closed(): void {
    const { writableEnded, writableFinished } = this.client.response;
    // After the client has reset an HTTP/2 stream, `writableFinished` is true, too. So `writableEnded` must
    // also be true.
    const isComplete = this.tunnel?.isConnected || (writableEnded && writableFinished);
    if (!isComplete) {
      this.wasAborted = true;
      if (!this.isRecorded) this.abandon();
      else if (!this.hasAnswer) {
        this.isDetached = true;
        return;
      }
    }
    this.recorder.ended(this);
  }

  private answered(): void {
    this.hasAnswer = true;
    if (!this.isDetached) return;
    this.isDetached = false;
    this.recorder.ended(this);
  }

  private abandon(): void {
    this.committed?.controller?.abort(gone);
    this.cancelWork(gone);
  }

  private cancelWork(reason: Error): void {
    if (this.isOver) return;
    this.error ??= reason;
    if (this.first || this.machine) {
      const { work } = this;
      work.cancel(this.plan.clock.now(), reason);
    }
    this.finish();
    this.discardSettled();
  }

  private settled(handler: UpstreamAttempt, outcome: Outcome): Step | undefined {
    handler.isInFlight = false;
    return stepAfter(this.work, this, handler.attempt, outcome);
  }

  private commit(handler: UpstreamAttempt): void {
    this.finish();
    this.committed = handler;
    if (this.hedgeTwin) this.discardSettled();
  }

  /**
   * Called when there is no further attempt. The fallback route gets the request; without one, the client
   * gets the last response or an error.
   */
  private stop(): void {
    const { work, latest } = this;
    this.finish();
    if (this.tryOtherRoute()) return;
    if (work.resultIsValue && latest?.isHeld && latest.head === work.result) {
      this.committed = latest;
      this.respondedAt = this.plan.clock.now();
      latest.release();
      return;
    }
    this.discardSettled();
    const error = work.refusal();
    this.error = error;
    const wasSent = this.latest?.hasStarted ?? false;
    this.answer(refusalFor(error, wasSent, this.plan.random));
  }

  /** An operator drains all instances of the upstream, so there is none to ask. */
  private refuseDrained(): void {
    if (this.tryOtherRoute()) return;
    this.answer(refusalFor(new RefusedError('breaker_open'), false, this.plan.random));
  }

  /** Sends the request to the fallback route. False: there is none, or the request cannot be sent again. */
  private tryOtherRoute(): boolean {
    const other = this.route.fallbackRoute;
    if (!other || this.tunnel || this.body instanceof StreamedBody || this.client.hasBegun || this.wasAborted)
      return false;
    this.finish();
    this.discardSettled();
    this.fallback = 'route';
    this.recorder.ended(this);
    other.counts.inFlight++;
    const { response } = this.client;
    new ProxiedRequest(other, this.head, response, this.recorder, undefined).beginWith(this.body);
    return true;
  }

  private answer(response: PlainResponse): void {
    this.finish();
    this.status = response.status;
    this.client.send(response, this.route.ownHeaders(this, this.recorder));
    this.answered();
  }

  private finish(): void {
    this.isOver = true;
    this.plan.clock.clear(this);
  }

  private discardSettled(): void {
    const { latest, hedgeTwin, committed } = this;
    if (latest && latest !== committed && !latest.isInFlight) latest.discard();
    if (hedgeTwin && hedgeTwin !== committed && !hedgeTwin.isInFlight) hedgeTwin.discard();
  }
}
