import {
  Alarm,
  type AmbientContext,
  type Classifier,
  isRetriedElsewhere,
  type Judgement,
  type Outcome,
  type Plan,
  type RunOptions,
  type Story,
  type Wait,
} from 'holdfast';
import {
  type AbortListener,
  DONE,
  type Driver,
  GuardedAttempt,
  offAbort,
  onAbort,
  recordEnding,
  SEND,
  STOP,
  type Step,
  schedule,
  settleSuccess,
  startAttempt,
  stepAfter,
  stepAt,
  type Work,
} from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import { AttemptHandler } from './attempt-handler.ts';
import { noteFailed, type ResponseHead } from './classify-response.ts';
import type { Runner } from './fetch.ts';
import type { HoldfastHeader } from './holdfast-header.ts';
import { isRepeatable, type KeyMaker } from './idempotency-key.ts';
import { attemptRequest, callerKeyOf, headerFor, originNameOf, traitsOf } from './outgoing-request.ts';

export interface InterceptorSettings {
  readonly policy: Runner;
  readonly makeKey: KeyMaker | undefined;
  /** Returns true if a request to `origin` gets the `Holdfast` header. */
  readonly announces: (origin: string, ambient: AmbientContext | undefined) => boolean;
  /** True: the options have no rule about responses. In this case, a status below 400 is always a success. */
  readonly trustsStatus: boolean;
  /** The first classifier is for requests without an Idempotency-Key, the second for requests with one. */
  readonly classifiers: readonly [(plan: Plan) => Classifier, (plan: Plan) => Classifier];
  readonly onWait: ((wait: Wait) => void) | undefined;
}

/**
 * One request and all its attempts. The policy's state machine (`Work`) runs inside undici's callbacks, without
 * promises.
 */
export class InterceptedRequest extends Alarm implements Driver, Dispatcher.DispatchController {
  declare readonly handler: Dispatcher.DispatchHandler;
  declare private readonly dispatch: Dispatcher.Dispatch;
  declare private readonly request: Dispatcher.DispatchOptions;
  declare private readonly settings: InterceptorSettings;
  declare readonly plan: Plan;
  declare private readonly ambient: AmbientContext | undefined;
  declare private readonly origin: string;
  /**
   * The state machine of the policy, which decides about retries. It is created only when it is needed,
   * because most requests succeed without it.
   */
  declare private machine: Work | undefined;
  declare private first: GuardedAttempt | undefined;
  declare private header: HoldfastHeader | undefined;
  declare private key: string | undefined;
  declare private latest: AttemptHandler | undefined;
  /**
   * The attempt before `latest`. If `latest` is a hedge (a second attempt in parallel), both are in flight.
   */
  declare private hedgeTwin: AttemptHandler | undefined;
  /** The attempt whose response the caller gets. Once it is set, there is no retry. */
  declare private committed: AttemptHandler | undefined;
  declare private hasStarted: boolean;
  declare private abortListener: AbortListener | undefined;
  declare private isListening: boolean;
  declare private isOver: boolean;
  declare private cancelReason: Error | null;
  declare private isPaused: boolean;

  constructor(
    settings: InterceptorSettings,
    dispatch: Dispatcher.Dispatch,
    request: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    ambient: AmbientContext | undefined,
  ) {
    super();
    this.settings = settings;
    this.plan = settings.policy.plan;
    this.dispatch = dispatch;
    this.request = request;
    this.handler = handler;
    this.ambient = ambient;
    this.origin = originNameOf(request.origin);
    this.key = undefined;
    this.header = undefined;
    this.machine = undefined;
    this.first = undefined;
    this.latest = undefined;
    this.hedgeTwin = undefined;
    this.committed = undefined;
    this.hasStarted = false;
    this.abortListener = undefined;
    this.isListening = false;
    this.isOver = false;
    this.cancelReason = null;
    this.isPaused = false;
  }

  begin(): void {
    const { ambient, plan, request, settings, origin } = this;
    const { makeKey, announces } = settings;
    const { method, path } = request;
    if (makeKey && !isRepeatable(method) && callerKeyOf(request) === undefined) {
      this.key = makeKey({ method, url: `${origin}${path}` }, ambient, plan.random);
    }
    if (announces(origin, ambient)) this.header = headerFor(request, plan, this.key, ambient);
    if (!ambient && this.beginFast()) return;
    const signal = ambient?.signal;
    if (signal?.aborted) this.cancel(signal.reason);
    else {
      if (signal) onAbort(signal, this.listener);
      this.perform(this.work.begin(this.work.startedAt));
    }
  }

  /**
   * Starts the first attempt without the policy's state machine, because this is faster. Returns false if the
   * state machine is needed, for example because the circuit breaker is open.
   */
  private beginFast(): boolean {
    const { plan } = this;
    const target = plan.fastPath && plan.targetOf?.({ target: this.origin }, 0);
    if (!target || plan.reporter?.isHeard()) return false;
    const { breaker, bulkhead, budget } = target;
    if ((breaker && !breaker.isClosed) || (bulkhead && !bulkhead.tryEnter())) return false;
    const now = plan.clock.now();
    plan.counters.operations++;
    budget?.firstTry(now);
    const attempt = startAttempt(
      GuardedAttempt,
      plan,
      target,
      1,
      now,
      now + plan.patienceMs,
    ) as GuardedAttempt;
    this.first = attempt;
    this.send(attempt);
    if (!this.isOver && !this.machine && attempt.endsAt < Infinity) plan.clock.set(this, attempt.endsAt);
    return true;
  }

  private get listener(): AbortListener {
    this.abortListener ??= { aborted: (reason) => this.cancel(reason as Error) };
    return this.abortListener;
  }

  private get work(): Work {
    this.machine ??= this.makeWork();
    return this.machine;
  }

  private makeWork(): Work {
    const { plan, ambient, first, request, settings } = this;
    const { isKeyed, isIdempotent, isReplayable } = traitsOf(request, this.key);
    const options: RunOptions = {
      target: this.origin,
      idempotent: isIdempotent,
      retryVeto: isReplayable ? undefined : () => 'not_replayable',
      classify: settings.classifiers[isKeyed ? 1 : 0](plan),
      priority: ambient?.priority,
      onWait: settings.onWait,
    };
    const now = first ? first.startedAt : plan.clock.now();
    const patienceEndsAt = Math.min(now + plan.patienceMs, ambient?.patienceEndsAt ?? Infinity);
    const work = plan.work(options, now, patienceEndsAt);
    if (first) work.guards!.adopt(first, first.targetState.budget);
    if (isRetriedElsewhere(ambient)) work.retryVeto = 'not_owner';
    work.driver = this;
    return work;
  }

  perform(step: Step): void {
    const work = this.work;
    if (step === SEND) this.send(work.current as GuardedAttempt);
    // `send` may have ended the request already: the attempt failed synchronously, or the caller cancelled it.
    if (this.isOver || step === DONE) return;
    if (step === STOP) {
      this.end();
      return;
    }
    schedule(work, this);
    if (work.backingOff || !work.current) this.listen();
  }

  ring(now: number): void {
    const step = stepAt(this.work, now);
    this.abortAbandoned();
    this.perform(step);
  }

  /**
   * Called when undici starts to send an attempt. The caller's handler is notified only of the first attempt.
   */
  started(context: unknown): void {
    if (this.hasStarted) return;
    this.hasStarted = true;
    this.handler.onRequestStart?.(this, context);
  }

  /**
   * If the first attempt has succeeded, accepts its response without the state machine. Returns false if the
   * state machine must decide.
   */
  tryAcceptFast(attemptHandler: AttemptHandler, status: number): boolean {
    const { plan, first } = this;
    if (!first || this.machine || status >= 400 || plan.judgesValues >= 2 || !this.settings.trustsStatus)
      return false;
    attemptHandler.isInFlight = false;
    settleSuccess(first, ok);
    this.commit(attemptHandler);
    return true;
  }

  /**
   * Called when the status and headers of a response have arrived. Returns true if the caller gets this
   * response.
   */
  responded(attemptHandler: AttemptHandler, head: ResponseHead): boolean {
    const step = this.settled(attemptHandler, { ok: true, value: head });
    if (step === undefined) return false;
    if (step === DONE || (step === STOP && this.work.result === head)) {
      this.commit(attemptHandler);
      return true;
    }
    this.perform(step);
    return false;
  }

  failed(attemptHandler: AttemptHandler, error: Error): void {
    if (attemptHandler === this.committed) {
      this.bodyFailed(error);
      return;
    }
    noteFailed(error, attemptHandler.hasStarted, attemptHandler.wasRedirected);
    const step = this.settled(attemptHandler, { ok: false, error });
    if (step !== undefined) this.perform(step);
  }

  abort(reason: Error): void {
    this.cancel(reason);
  }

  /**
   * Cancels the request. Internal code calls this method and not `abort`, because other interceptors replace
   * `abort`.
   */
  private cancel(reason: Error): void {
    if (this.cancelReason) return;
    this.cancelReason = reason ?? new DOMException('The request was aborted.', 'AbortError');
    this.committed?.controller?.abort(this.cancelReason);
    if (this.isOver) return;
    const work = this.work;
    const step = work.cancel(work.plan.clock.now(), this.cancelReason);
    this.abortAbandoned();
    this.perform(step);
  }

  pause(): void {
    this.isPaused = true;
    this.committed?.controller?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.committed?.controller?.resume();
  }

  get paused(): boolean {
    return this.committed?.controller?.paused ?? this.isPaused;
  }

  get aborted(): boolean {
    return this.cancelReason !== null;
  }

  get reason(): Error | null {
    return this.cancelReason;
  }

  get rawHeaders() {
    return this.committed?.controller?.rawHeaders ?? null;
  }

  get rawTrailers() {
    return this.committed?.controller?.rawTrailers ?? null;
  }

  private send(attempt: GuardedAttempt): void {
    const before = this.latest;
    const attemptHandler = new AttemptHandler(this, attempt);
    // A new attempt is sent, so a response that was held back is not needed any more.
    if (before) this.discardSettled();
    if (this.isListening) this.unlisten();
    this.hedgeTwin = before;
    this.latest = attemptHandler;
    const { reporter } = this.plan;
    try {
      const request = attemptRequest(this.request, this.key, this.header, attempt);
      if (reporter?.isHeard())
        reporter.enter(this.work, attempt, () => this.dispatch(request, attemptHandler));
      else this.dispatch(request, attemptHandler);
    } catch (error) {
      attemptHandler.onResponseError(undefined, error as Error);
    }
  }

  /**
   * Returns the step after an attempt has ended; undefined if the state machine does not wait for this
   * attempt.
   */
  private settled(attemptHandler: AttemptHandler, outcome: Outcome): Step | undefined {
    attemptHandler.isInFlight = false;
    const step = stepAfter(this.work, this, attemptHandler.attempt, outcome);
    this.abortAbandoned();
    return step;
  }

  private abortAbandoned(): void {
    if (this.latest?.attempt.abandoned) this.latest.abort();
    if (this.hedgeTwin?.attempt.abandoned) this.hedgeTwin.abort();
  }

  private commit(attemptHandler: AttemptHandler): void {
    const { machine } = this;
    this.finish();
    this.committed = attemptHandler;
    if (this.hedgeTwin) this.discardSettled();
    if (this.isPaused) attemptHandler.controller?.pause();
    if (machine?.stop) recordEnding(machine.result, { story: machine.story, serial: machine.serial });
  }

  /**
   * Passes the response that was held back, or an error, to the caller. Called when no further attempt will
   * be sent.
   */
  private end(): void {
    const work = this.work;
    this.finish();
    const last = this.latest;
    if (work.resultIsValue && last?.isHeld && last.head === work.result) {
      this.committed = last;
      recordEnding(work.result, { story: work.story, serial: work.serial });
      last.release();
      return;
    }
    this.bodyEnded();
    this.discardSettled();
    work.result = work.refusal();
    recordEnding(work.result, { story: work.story, serial: work.serial });
    this.handler.onResponseError?.(this, work.result as Error);
  }

  private finish(): void {
    this.isOver = true;
    this.plan.clock.clear(this);
    if (this.isListening) this.unlisten();
  }

  /**
   * Called when the caller has received the whole response or an error. Stops listening to the signal of the
   * handled event or request.
   */
  bodyEnded(): void {
    const signal = this.ambient?.signal;
    if (signal && this.abortListener) offAbort(signal, this.abortListener);
  }

  /**
   * Called when the body fails after the caller has received status and headers. At this point, a retry is
   * impossible.
   */
  private bodyFailed(error: Error): void {
    this.bodyEnded();
    const { plan, startedAt, story, serial } = this.work;
    if (!this.cancelReason) {
      const { stops } = plan.counters;
      stops.committed = (stops.committed ?? 0) + 1;
      const ended: Story = { ...story, tookMs: plan.clock.now() - startedAt, stop: 'committed' };
      recordEnding(error, { story: ended, serial });
    }
    this.handler.onResponseError?.(this, error);
  }

  private discardSettled(): void {
    for (const attemptHandler of [this.latest, this.hedgeTwin]) {
      if (attemptHandler && attemptHandler !== this.committed && !attemptHandler.isInFlight)
        attemptHandler.discard();
    }
  }

  /**
   * Listens to the caller's signal while no attempt is in flight. During an attempt, undici listens to that
   * signal.
   */
  private listen(): void {
    const { signal } = this.request as { signal?: AbortSignal };
    if (typeof signal?.addEventListener !== 'function') return;
    this.isListening = true;
    if (signal.aborted) this.cancel(signal.reason);
    else onAbort(signal, this.listener);
  }

  private unlisten(): void {
    this.isListening = false;
    const { signal } = this.request as { signal?: AbortSignal };
    if (signal) offAbort(signal, this.listener);
  }
}

const ok: Judgement = { class: 'ok' };
