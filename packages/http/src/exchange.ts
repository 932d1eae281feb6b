import {
  Alarm,
  type AmbientContext,
  type Classifier,
  type Judgement,
  type Outcome,
  type Plan,
  type RunOptions,
  type Story,
  type Wait,
} from 'holdfast';
import {
  DONE,
  type Driver,
  GuardedAttempt,
  type GuardedWork,
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
import { type AbortFollower, follow, unfollow } from './abort-listeners.ts';
import { Sending } from './attempt-handler.ts';
import { type Answer, noteFailed } from './classify-response.ts';
import type { Runner } from './fetch.ts';
import type { HoldfastHeader } from './holdfast-header.ts';
import type { KeyMaker } from './idempotency-key.ts';
import { announcedOf, canSendAgain, givenKeyOf, originNameOf, outgoing } from './outgoing-request.ts';
import { isRepeatable } from './repeatable.ts';

/** What all exchanges of one interceptor share. */
export interface ExchangeSettings {
  readonly policy: Runner;
  readonly makeKey: KeyMaker | undefined;
  readonly announces: (origin: string, around: AmbientContext | undefined) => boolean;
  /** A status below 400 is good whatever the headers say: nobody has to be asked. */
  readonly trustsStatus: boolean;
  /** Without a key, and with one. */
  readonly judges: readonly [(plan: Plan) => Classifier, (plan: Plan) => Classifier];
  readonly onWait: ((wait: Wait) => void) | undefined;
}

/**
 * One request and its attempts. It performs the steps of the policy's machine, as the shell does with promises, and is the
 * one controller that the caller sees, whichever attempt is in flight.
 */
export class Exchange extends Alarm implements Driver, AbortFollower, Dispatcher.DispatchController {
  declare readonly handler: Dispatcher.DispatchHandler;
  declare private readonly dispatch: Dispatcher.Dispatch;
  declare private readonly request: Dispatcher.DispatchOptions;
  declare private readonly settings: ExchangeSettings;
  declare readonly plan: Plan;
  declare private readonly around: AmbientContext | undefined;
  declare private readonly origin: string;
  /** The machine, once there is need of it: a first attempt that succeeds does without. */
  declare private made: Work | undefined;
  /** The attempt that was begun without it. */
  declare private first: GuardedAttempt | undefined;
  declare private announcement: HoldfastHeader | undefined;
  declare private key: string | undefined;
  /** The latest attempt, and the one before it, which it may race. */
  declare private latest: Sending | undefined;
  declare private hedgeTwin: Sending | undefined;
  /** The attempt whose response the caller has. */
  declare private committed: Sending | undefined;
  declare private hasStarted: boolean;
  declare private isListening: boolean;
  declare private isOver: boolean;
  declare private leftBecause: Error | null;
  /** How a caller that pauses before anything has come is remembered. */
  declare private isPaused: boolean;

  constructor(
    settings: ExchangeSettings,
    dispatch: Dispatcher.Dispatch,
    request: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    around: AmbientContext | undefined,
  ) {
    super();
    this.settings = settings;
    this.plan = settings.policy.plan;
    this.dispatch = dispatch;
    this.request = request;
    this.handler = handler;
    this.around = around;
    this.origin = originNameOf(request.origin);
    this.key = undefined;
    this.announcement = undefined;
    this.made = undefined;
    this.first = undefined;
    this.latest = undefined;
    this.hedgeTwin = undefined;
    this.committed = undefined;
    this.hasStarted = false;
    this.isListening = false;
    this.isOver = false;
    this.leftBecause = null;
    this.isPaused = false;
  }

  begin(): void {
    const { around, plan, request, settings, origin } = this;
    const { makeKey, announces } = settings;
    const { method, path } = request;
    if (makeKey && !isRepeatable(method) && givenKeyOf(request) === undefined) {
      this.key = makeKey({ method, url: `${origin}${path}` }, around, plan.random);
    }
    if (announces(origin, around)) this.announcement = announcedOf(request, plan, this.key, around);
    if (!around && this.beginFast()) return;
    const signal = around?.signal;
    if (signal?.aborted) this.leave(signal.reason);
    else {
      if (signal) follow(signal, this);
      this.perform(this.work.begin(this.work.startedAt));
    }
  }

  /** The short way, when every guard is open: as the shell does it, with the machine built only when something fails. */
  private beginFast(): boolean {
    const { plan } = this;
    const target = plan.fastPath && plan.targetOf?.({ target: this.origin }, 0);
    if (!target || plan.reporter?.isHeard()) return false;
    const { breaker, bulkhead, budget } = target;
    if ((breaker && !breaker.isClosed) || (bulkhead && !bulkhead.tryEnter())) return false;
    const now = plan.clock.now();
    plan.counters.operations++;
    budget?.firstTry(now);
    const flight = startAttempt(
      GuardedAttempt,
      plan,
      target,
      1,
      now,
      now + plan.patienceMs,
    ) as GuardedAttempt;
    this.first = flight;
    this.send(flight);
    if (!this.isOver && !this.made && flight.endsAt < Infinity) plan.clock.set(this, flight.endsAt);
    return true;
  }

  private get work(): Work {
    this.made ??= this.takeOver();
    return this.made;
  }

  private takeOver(): Work {
    const { plan, around, first, request, settings } = this;
    const keyed = Boolean(givenKeyOf(request) ?? this.key);
    const options: RunOptions = {
      target: this.origin,
      idempotent: isRepeatable(request.method) || keyed,
      retryVeto: canSendAgain(request) ? undefined : () => 'not_replayable',
      classify: settings.judges[keyed ? 1 : 0](plan),
      priority: around?.priority,
      onWait: settings.onWait,
    };
    const now = first ? first.startedAt : plan.clock.now();
    const patienceEndsAt = Math.min(now + plan.patienceMs, around?.patienceEndsAt ?? Infinity);
    const work = plan.work(options, now, patienceEndsAt);
    if (first) (work as GuardedWork).adopt(first, first.targetState.budget);
    if (around?.ownedUpstream) work.retryVeto = 'not_owner';
    work.driver = this;
    return work;
  }

  perform(step: Step): void {
    const work = this.work;
    if (step === SEND) this.send(work.current as GuardedAttempt);
    // Whatever was sent may have failed at once, or the caller may have left meanwhile.
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
    this.sweep();
    this.perform(step);
  }

  /** The customer of the surrounding work, or the caller while nothing is in flight, has left. */
  signalAborted(reason: unknown): void {
    this.leave(reason as Error);
  }

  /** An attempt has a connection: the caller hears of the first. */
  started(context: unknown): void {
    if (this.hasStarted) return;
    this.hasStarted = true;
    this.handler.onRequestStart?.(this, context);
  }

  /** The short way to its end: a good response to the first attempt. True: it is the caller's now. */
  accepted(sending: Sending, status: number): boolean {
    const { plan, first } = this;
    if (!first || this.made || status >= 400 || plan.judgesValues >= 2 || !this.settings.trustsStatus)
      return false;
    sending.isInFlight = false;
    settleSuccess(first, okay);
    this.commit(sending);
    return true;
  }

  /** The head of a response has come. True: it is the caller's now. */
  answered(sending: Sending, answer: Answer): boolean {
    const step = this.settled(sending, { ok: true, value: answer });
    if (step === undefined) return false;
    if (step === DONE || (step === STOP && this.work.result === answer)) {
      this.commit(sending);
      return true;
    }
    this.perform(step);
    return false;
  }

  failed(sending: Sending, error: Error): void {
    if (sending === this.committed) {
      this.broken(error);
      return;
    }
    noteFailed(error, sending.hasStarted, sending.hasMoved);
    const step = this.settled(sending, { ok: false, error });
    if (step !== undefined) this.perform(step);
  }

  abort(reason: Error): void {
    this.leave(reason);
  }

  /** Apart from `abort`, because interceptors put one of their own in its place. */
  private leave(reason: Error): void {
    if (this.leftBecause) return;
    this.leftBecause = reason ?? new DOMException('The request was aborted.', 'AbortError');
    this.committed?.controller?.abort(this.leftBecause);
    if (this.isOver) return;
    const work = this.work;
    const step = work.cancel(work.plan.clock.now(), this.leftBecause);
    this.sweep();
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
    return this.leftBecause !== null;
  }

  get reason(): Error | null {
    return this.leftBecause;
  }

  get rawHeaders() {
    return this.committed?.controller?.rawHeaders ?? null;
  }

  get rawTrailers() {
    return this.committed?.controller?.rawTrailers ?? null;
  }

  private send(flight: GuardedAttempt): void {
    const before = this.latest;
    const sending = new Sending(this, flight);
    // What was held for the case that nothing follows is not needed any more.
    if (before) this.discardSettled();
    if (this.isListening) this.unlisten();
    this.hedgeTwin = before;
    this.latest = sending;
    const { reporter } = this.plan;
    try {
      const request = outgoing(this.request, this.key, this.announcement, flight);
      if (reporter?.isHeard()) reporter.enter(this.work, flight, () => this.dispatch(request, sending));
      else this.dispatch(request, sending);
    } catch (error) {
      sending.onResponseError(undefined, error as Error);
    }
  }

  /** The step after an attempt; undefined when the work no longer waits for it. */
  private settled(sending: Sending, outcome: Outcome): Step | undefined {
    sending.isInFlight = false;
    const step = stepAfter(this.work, this, sending.flight, outcome);
    this.sweep();
    return step;
  }

  /** Ends what is in flight although nobody waits for it any more. */
  private sweep(): void {
    if (this.latest?.flight.abandoned) this.latest.leave();
    if (this.hedgeTwin?.flight.abandoned) this.hedgeTwin.leave();
  }

  private commit(sending: Sending): void {
    const { made } = this;
    this.finish();
    this.committed = sending;
    if (this.hedgeTwin) this.discardSettled();
    if (this.isPaused) sending.controller?.pause();
    if (made?.stop) recordEnding(made.result, { story: made.story, serial: made.serial });
  }

  /** The work is over, and nothing that the caller has not seen will come. */
  private end(): void {
    const work = this.work;
    this.finish();
    const last = this.latest;
    if (work.resultIsValue && last?.isHeld && last.answer === work.result) {
      this.committed = last;
      recordEnding(work.result, { story: work.story, serial: work.serial });
      last.release();
      return;
    }
    this.delivered();
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

  /** Nothing more will come: of what surrounds it, too, nothing can end it any more. */
  delivered(): void {
    const signal = this.around?.signal;
    if (signal) unfollow(signal, this);
  }

  /** The body of a response that the caller has begun to read broke off: it cannot be taken back. */
  private broken(error: Error): void {
    this.delivered();
    const { plan, startedAt, story, serial } = this.work;
    if (!this.leftBecause) {
      const { stops } = plan.counters;
      stops.committed = (stops.committed ?? 0) + 1;
      const told: Story = { ...story, tookMs: plan.clock.now() - startedAt, stop: 'committed' };
      recordEnding(error, { story: told, serial });
    }
    this.handler.onResponseError?.(this, error);
  }

  /** Responses that are held and will not be the caller's. */
  private discardSettled(): void {
    for (const sending of [this.latest, this.hedgeTwin]) {
      if (sending && sending !== this.committed && !sending.isInFlight) sending.discard();
    }
  }

  /** While nothing is in flight undici does not look at the caller's signal. */
  private listen(): void {
    const { signal } = this.request as { signal?: AbortSignal };
    if (typeof signal?.addEventListener !== 'function') return;
    this.isListening = true;
    follow(signal, this);
  }

  private unlisten(): void {
    this.isListening = false;
    const { signal } = this.request as { signal?: AbortSignal };
    if (signal) unfollow(signal, this);
  }
}

const okay: Judgement = { class: 'ok' };
