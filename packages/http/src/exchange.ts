import {
  Alarm,
  type Classifier,
  type Outcome,
  type Plan,
  type RunOptions,
  type Story,
  type Surroundings,
  type Wait,
} from 'holdfast';
import {
  DONE,
  type Driver,
  type Flight,
  recordEnding,
  SEND,
  STOP,
  type Step,
  WAIT,
  type Work,
} from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import { type Announcement, announce, announcementOf } from './announcement.ts';
import { isReplayable } from './body.ts';
import { originOf, type Runner } from './fetch.ts';
import type { KeyMaker } from './idempotency-key.ts';
import { type Answer, noteUnsent } from './judgement.ts';
import { headerIn, type OutgoingHeaders, withHeaders } from './outgoing-headers.ts';
import { isRepeatable } from './repeatable.ts';
import { Sending } from './sending.ts';

/** What all exchanges of one interceptor share. */
export interface ExchangeSettings {
  readonly policy: Runner;
  readonly makeKey: KeyMaker | undefined;
  readonly mayAnnounce: (origin: string) => boolean;
  /** Without a key, and with one. */
  readonly judges: readonly [(plan: Plan) => Classifier, (plan: Plan) => Classifier];
  readonly onWait: ((wait: Wait) => void) | undefined;
}

/**
 * One request and its attempts. It performs the steps of the policy's machine, as the shell does with promises, and is the
 * one controller that the caller sees, whichever attempt is in flight.
 */
export class Exchange extends Alarm implements Driver, Dispatcher.DispatchController {
  readonly handler: Dispatcher.DispatchHandler;
  readonly #dispatch: Dispatcher.Dispatch;
  readonly #request: Dispatcher.DispatchOptions;
  readonly #work: Work;
  readonly #announcement: Announcement | undefined;
  readonly #key: string | undefined;
  readonly #leaveWith: AbortSignal | undefined;
  /** The latest attempt, and the one that it races. */
  #latest: Sending | undefined = undefined;
  #rival: Sending | undefined = undefined;
  /** The attempt whose response the caller has. */
  #committed: Sending | undefined = undefined;
  #hasStarted = false;
  #isListening = false;
  #isOver = false;
  #reason: Error | null = null;
  /** How a caller that pauses before anything has come is remembered. */
  #isPaused = false;

  constructor(
    { policy: { plan }, makeKey, mayAnnounce, judges, onWait }: ExchangeSettings,
    dispatch: Dispatcher.Dispatch,
    request: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    around: Surroundings | undefined,
  ) {
    super();
    this.#dispatch = dispatch;
    this.#request = request;
    this.handler = handler;
    const { method, body } = request;
    const headers = request.headers as OutgoingHeaders;
    const origin = originNameOf(request.origin);
    const given = headerIn(headers, 'idempotency-key');
    const safe = isRepeatable(method);
    this.#key =
      given === undefined && !safe
        ? makeKey?.({ method, url: `${origin}${request.path}` }, around, plan.random)
        : undefined;
    const keyed = (given ?? this.#key) !== undefined;
    const replayable = typeof body === 'function' || isReplayable(body);
    const options: RunOptions = {
      target: origin,
      idempotent: safe || keyed,
      barred: replayable ? undefined : () => 'not_replayable',
      classify: judges[keyed ? 1 : 0](plan),
      priority: around?.priority,
      onWait,
    };
    this.#announcement =
      mayAnnounce(origin) && headerIn(headers, 'holdfast') === undefined
        ? announcementOf(plan, (safe || keyed) && replayable, around, undefined)
        : undefined;
    const now = plan.clock.now();
    this.#work = plan.work(options, now, Math.min(now + plan.patienceMs, around?.patienceEndsAt ?? Infinity));
    this.#work.driver = this;
    if (around?.ownedUpstream) this.#work.barred = 'not_owner';
    this.#leaveWith = around?.signal;
  }

  begin(): void {
    const signal = this.#leaveWith;
    if (signal?.aborted) this.abort(signal.reason);
    else {
      signal?.addEventListener('abort', this);
      this.perform(this.#work.begin(this.#work.startedAt));
    }
  }

  perform(step: Step): void {
    const work = this.#work;
    const { clock } = work.plan;
    if (step === SEND) this.#send(work.current as Flight);
    // Whatever was sent may have failed at once, or the caller may have left meanwhile.
    if (this.#isOver || step === DONE) return;
    if (step === STOP) {
      this.#end();
      return;
    }
    if (work.wakeAt < Infinity) clock.set(this, work.wakeAt);
    if (work.backingOff || !work.current) this.#listen();
  }

  ring(now: number): void {
    const step = this.#work.alarm(now);
    this.#sweep();
    this.perform(step);
  }

  /** The customer of the surrounding work, or the caller while nothing is in flight, has left. */
  handleEvent({ target }: { target: unknown }): void {
    this.abort((target as AbortSignal).reason);
  }

  /** An attempt has a connection: the caller hears of the first. */
  started(context: unknown): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.handler.onRequestStart?.(this, context);
  }

  /** The head of a response has come. True: it is the caller's now. */
  answered(sending: Sending, answer: Answer): boolean {
    const step = this.#settled(sending, { ok: true, value: answer });
    if (step === undefined) return false;
    if (step === DONE || (step === STOP && this.#work.given === answer)) {
      this.#commit(sending);
      return true;
    }
    this.perform(this.#told(step));
    return false;
  }

  failed(sending: Sending, error: Error): void {
    if (sending === this.#committed) {
      this.#broken(error);
      return;
    }
    if (!sending.hasStarted) noteUnsent(error);
    const step = this.#settled(sending, { ok: false, error });
    if (step !== undefined) this.perform(this.#told(step));
  }

  abort(reason: Error): void {
    if (this.#reason) return;
    this.#reason = reason ?? new DOMException('The request was aborted.', 'AbortError');
    this.#committed?.controller?.abort(this.#reason);
    if (this.#isOver) return;
    const work = this.#work;
    const step = work.cancel(work.plan.clock.now(), this.#reason);
    this.#sweep();
    this.perform(step);
  }

  pause(): void {
    this.#isPaused = true;
    this.#committed?.controller?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#committed?.controller?.resume();
  }

  get paused(): boolean {
    return this.#committed?.controller?.paused ?? this.#isPaused;
  }

  get aborted(): boolean {
    return this.#reason !== null;
  }

  get reason(): Error | null {
    return this.#reason;
  }

  get rawHeaders() {
    return this.#committed?.controller?.rawHeaders ?? null;
  }

  get rawTrailers() {
    return this.#committed?.controller?.rawTrailers ?? null;
  }

  #send(flight: Flight): void {
    const before = this.#latest;
    const sending = new Sending(this, flight);
    // What was held for the case that nothing follows is not needed any more.
    if (before) this.#discardSettled();
    if (this.#isListening) this.#unlisten();
    this.#rival = before;
    this.#latest = sending;
    try {
      this.#dispatch(this.#outgoing(flight), sending);
    } catch (error) {
      sending.onResponseError(undefined, error as Error);
    }
  }

  #outgoing({ attempt, patienceEndsAt, startedAt }: Flight): Dispatcher.DispatchOptions {
    const request = this.#request;
    const key = this.#key;
    const announcement = this.#announcement;
    const isMade = typeof request.body === 'function';
    if (key === undefined && !announcement && !isMade) return request;
    const more: Record<string, string> = {};
    if (key !== undefined) more['idempotency-key'] = key;
    if (announcement) more.holdfast = announce(announcement, attempt, patienceEndsAt - startedAt);
    const outgoing = { ...request, headers: withHeaders(request.headers as OutgoingHeaders, more) };
    if (isMade) outgoing.body = (request.body as unknown as () => typeof request.body)() ?? null;
    return outgoing as Dispatcher.DispatchOptions;
  }

  /** What the machine says to an outcome; undefined when it is late. */
  #settled(sending: Sending, outcome: Outcome): Step | undefined {
    const work = this.#work;
    const { clock } = work.plan;
    const now = clock.now();
    sending.isInFlight = false;
    if (work.isLate(now, sending.flight)) return undefined;
    clock.clear(this);
    const step = outcome.ok
      ? work.succeeded(now, sending.flight, outcome.value)
      : work.settled(now, sending.flight, outcome);
    this.#sweep();
    return step;
  }

  /** Tells the caller of a wait. If that throws, it is as if the caller had left. */
  #told(step: Step): Step {
    const { options, backingOff, attempt, previousDelayMs, patienceEndsAt, plan, log } = this.#work;
    if (step !== WAIT || !backingOff || !options?.onWait) return step;
    const now = plan.clock.now();
    try {
      options.onWait({
        attempt,
        delayMs: previousDelayMs,
        because: log.at(-1)!.class,
        patienceLeft: patienceEndsAt - now,
      });
      return this.#work.stop ? STOP : WAIT;
    } catch (error) {
      return this.#work.cancel(now, error);
    }
  }

  /** Ends what is in flight although nobody waits for it any more. */
  #sweep(): void {
    if (this.#latest?.flight.over) this.#latest.leave();
    if (this.#rival?.flight.over) this.#rival.leave();
  }

  #commit(sending: Sending): void {
    const work = this.#work;
    this.#finish();
    this.#committed = sending;
    if (this.#rival) this.#discardSettled();
    if (this.#isPaused) sending.controller?.pause();
    if (work.stop) recordEnding(work.given, work.story);
  }

  /** The work is over, and nothing that the caller has not seen will come. */
  #end(): void {
    const work = this.#work;
    this.#finish();
    const last = this.#latest;
    if (work.isValue && last?.isHeld && last.answer === work.given) {
      this.#committed = last;
      recordEnding(work.given, work.story);
      last.release();
      return;
    }
    this.#discardSettled();
    work.given = work.refusal();
    recordEnding(work.given, work.story);
    this.handler.onResponseError?.(this, work.given as Error);
  }

  #finish(): void {
    this.#isOver = true;
    this.#work.plan.clock.clear(this);
    if (this.#isListening) this.#unlisten();
    this.#leaveWith?.removeEventListener('abort', this);
  }

  /** The body of a response that the caller has begun to read broke off: it cannot be taken back. */
  #broken(error: Error): void {
    const { plan, startedAt, story } = this.#work;
    if (!this.#reason) {
      const { stops } = plan.counters;
      stops.committed = (stops.committed ?? 0) + 1;
      const told: Story = { ...story, tookMs: plan.clock.now() - startedAt, stop: 'committed' };
      recordEnding(error, told);
    }
    this.handler.onResponseError?.(this, error);
  }

  /** Responses that are held and will not be the caller's. */
  #discardSettled(): void {
    for (const sending of [this.#latest, this.#rival]) {
      if (sending && sending !== this.#committed && !sending.isInFlight) sending.discard();
    }
  }

  /** While nothing is in flight undici does not look at the caller's signal. */
  #listen(): void {
    const { signal } = this.#request as { signal?: AbortSignal };
    if (typeof signal?.addEventListener !== 'function') return;
    this.#isListening = true;
    if (signal.aborted) this.abort(signal.reason);
    else signal.addEventListener('abort', this);
  }

  #unlisten(): void {
    this.#isListening = false;
    const { signal } = this.#request as { signal?: AbortSignal };
    signal?.removeEventListener('abort', this);
  }
}

function originNameOf(origin: string | URL | undefined): string {
  if (typeof origin === 'string') return originOf(origin) ?? origin;
  return origin?.origin ?? '';
}
