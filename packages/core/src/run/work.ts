import { thrownBy } from '../classify/classifier.ts';
import { decide, done, type Facts, type History } from '../decide/decide.ts';
import type { Classifier, Judgement, Outcome, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { RetryBudget } from '../machines/budget.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { isExpired } from '../report/errors.ts';
import { endedInside, nextSerial, type Story, type StoryAttempt } from '../report/story.ts';
import { Attempt } from './attempt.ts';
import { callUser } from './call-user.ts';
import type { RunOptions } from './run-options.ts';
import { DONE, type Driver, SEND, STOP, type Step, WAIT } from './step.ts';

/**
 * One piece of work on its way through a policy: a synchronous state machine that performs nothing itself.
 * The async shell drives it with promises, the simulator with events; both get the same steps.
 */
export class Work implements History {
  declare readonly plan: Plan;
  declare readonly options: RunOptions | undefined;
  declare readonly startedAt: number;
  /** When it began, among all runs and attempts. */
  declare serial: number;
  declare readonly patienceEndsAt: number;
  declare attempt: number;
  declare previousDelayMs: number;
  /** What forbids any repetition, if something does. */
  declare retryVeto: StopReason | undefined;
  /** Whose state the run belongs to, where guards stand around its attempts. */
  declare target: Target | undefined;
  declare budget: RetryBudget | undefined;
  declare payment: Payment;
  /** The latest attempt. */
  declare current: Attempt | undefined;
  /** When to call `alarm`; Infinity: not at all. */
  declare wakeAt: number;
  /** True from a verdict to retry until the next attempt. */
  declare backingOff: boolean;
  /** What the latest attempt gave; in the end, what the work gives. */
  declare result: unknown;
  /** `result` is a value that was judged a failure, such as a response: it is returned, not thrown. */
  declare resultIsValue: boolean;
  declare stop: StopReason | undefined;
  /** On the scale of the clock; −1 while it goes on. */
  declare endedAt: number;
  declare log: StoryAttempt[];
  declare inner: Story | undefined;
  /** Who performs the steps that come from a queue. */
  declare driver: Driver | undefined;

  constructor(plan: Plan, options: RunOptions | undefined, now: number, patienceEndsAt: number) {
    this.plan = plan;
    this.options = options;
    this.startedAt = now;
    this.serial = nextSerial();
    this.patienceEndsAt = patienceEndsAt;
    this.attempt = 0;
    this.previousDelayMs = 0;
    this.retryVeto = undefined;
    this.target = undefined;
    this.budget = undefined;
    this.payment = NONE;
    this.current = undefined;
    this.wakeAt = Infinity;
    this.backingOff = false;
    this.result = undefined;
    this.resultIsValue = false;
    this.stop = undefined;
    this.endedAt = -1;
    this.log = none;
    this.inner = undefined;
    this.driver = undefined;
  }

  get idempotent(): boolean {
    return this.options?.idempotent !== false;
  }

  /** The first step; of a caller who has left already, the last. */
  begin(now: number, signal?: AbortSignal): Step {
    const { plan } = this;
    plan.counters.operations++;
    if (!signal?.aborted) this.budget = plan.budgetOf?.(this, now);
    plan.reporter?.started(this, now);
    return signal?.aborted ? this.cancel(now, signal.reason) : this.send(now);
  }

  /** The next attempt, past whatever stands before it. */
  send(_now: number): Step {
    this.backingOff = false;
    this.wakeAt = Infinity;
    this.plan.counters.attempts++;
    this.current = new Attempt(this.plan, ++this.attempt, this.patienceEndsAt);
    return SEND;
  }

  /** The alarm set for `wakeAt` rang. A busy thread may have been late to notice. */
  alarm(now: number): Step {
    if (this.plan.killSwitch.isOn) return this.giveUp(now, 'kill_switch', this.result);
    return now < this.patienceEndsAt ? this.send(now) : this.giveUp(now, 'patience_too_short', this.result);
  }

  /** The caller has left: whatever is in guarded or waiting is result up. */
  cancel(now: number, reason: unknown): Step {
    this.resultIsValue = false;
    if (!this.backingOff) this.current?.abandon(now, reason);
    return this.giveUp(now, 'cancelled', reason);
  }

  /** An attempt gave a value; what to do next. */
  succeeded(now: number, attempt: Attempt, value: unknown): Step {
    if (isJudged(this.plan, this.options, value)) {
      return this.settled(now, attempt, { ok: true, value });
    }
    this.result = value;
    this.learn(now, attempt, okay);
    return this.finish(now, attempt, okay);
  }

  /** An attempt is over; what to do next. */
  settled(now: number, attempt: Attempt, outcome: Outcome, judged: Judgement = this.judge(outcome)): Step {
    // The caller may leave in whatever is asked here: in a classifier, a backoff, a listener.
    if (this.stop) {
      this.isLate(now, attempt);
      return STOP;
    }
    const { plan } = this;
    const result = outcome.ok ? outcome.value : outcome.error;
    this.result = result;
    this.learn(now, attempt, judged);
    if (judged.class === 'ok') return this.finish(now, attempt, judged);

    if (this.payment !== NONE) this.budget?.retryFailed(now, this.payment === POSTPAID);
    this.payment = NONE;
    this.resultIsValue = outcome.ok;
    this.inner = endedInside(result, attempt.serial);
    // Of one that was over by our own limit, a run inside has not result up: it was told to leave.
    if (this.inner && !attempt.abandoned) this.retryVeto ??= 'not_owner';
    if (plan.killSwitch.isOn) this.retryVeto ??= 'kill_switch';
    const asked = this.options?.retryVeto;
    if (asked) this.retryVeto ??= callUser(asked, 'not_replayable');
    const payment = paymentFor(judged, result, plan.hintCapMs);
    const verdict = this.decide(now, judged, payment);
    const told: StoryAttempt = {
      attempt: attempt.attempt,
      target: attempt.target,
      endedAtMs: now - this.startedAt,
      class: judged.class,
      unknown: judged.unknown,
      retryAfterMs: judged.retryAfterMs,
      outcome: result,
      verdict,
    };
    // An empty array that is pushed to makes room for seventeen.
    if (this.log === none) this.log = [told];
    else {
      // How it began and how it goes now: attempts may be unlimited, what is kept of them is not.
      if (this.log.length === logMax) this.log.splice(1, 1);
      this.log.push(told);
    }
    plan.reporter?.attempt(this, attempt, now, judged, verdict);
    if (this.stop) return STOP;
    if (verdict.kind === 'give_up') return this.giveUp(now, verdict.because, result);
    if (verdict.kind !== 'retry') return WAIT;
    this.payment = payment;
    this.budget?.startRetry(now, payment === POSTPAID);
    this.previousDelayMs = verdict.delayMs;
    this.backingOff = true;
    if (verdict.delayMs === 0) return this.send(now);
    this.wakeAt = verdict.at;
    return WAIT;
  }

  finish(now: number, attempt: Attempt, judged: Judgement): Step {
    // Of what the attempt says of its target, somebody may have heard who made the caller leave.
    if (this.stop) return STOP;
    const { counters, reporter } = this.plan;
    this.endedAt = now;
    if (this.attempt > 1) counters.succeededAfterRetry++;
    else counters.succeeded++;
    const { payment } = this;
    if (payment === NONE) this.budget?.success();
    else this.budget?.retrySucceeded(now, payment === POSTPAID, payment === REFUNDED);
    reporter?.attempt(this, attempt, now, judged, done);
    reporter?.ended(this, now);
    return DONE;
  }

  giveUp(now: number, stop: StopReason, result: unknown): Step {
    const { counters, reporter } = this.plan;
    this.stop = stop;
    this.result = result;
    this.endedAt = now;
    if (this.payment !== NONE) {
      const isPostpaid = this.payment === POSTPAID;
      this.payment = NONE;
      // A retry that is not sent is not paid for.
      if (this.backingOff) this.budget?.retryDropped(isPostpaid);
      else this.budget?.retryFailed(now, isPostpaid);
    }
    if (this.attempt > 1) counters.failedAfterRetry++;
    else counters.failed++;
    counters.stops[stop] = (counters.stops[stop] ?? 0) + 1;
    reporter?.ended(this, now);
    return STOP;
  }

  get story(): Story {
    const { stop, log, inner } = this;
    const tookMs = this.endedAt - this.startedAt;
    return { policy: this.plan.name, attempts: this.attempt, tookMs, stop, log, inner };
  }

  judge(outcome: Outcome): Judgement {
    return judge(this.plan, this.options, outcome);
  }

  decide(now: number, judged: Judgement, payment: Payment): Verdict {
    return decide(this.plan, this, judged, this.facts(now, payment));
  }

  facts(now: number, payment: Payment): Facts {
    const tokens = this.budget ? this.budget.tokens(now, payment === POSTPAID) : 1;
    return { now, roll: this.plan.random(), tokens, expectedAttemptMs: 0, admitsAt: now };
  }

  /** What an outcome says of the target. */
  learn(_now: number, _attempt: Attempt, _judged: Judgement): void {}

  /** Whether the work had stopped waiting for a call that settles now: then what it held goes back, and no more. */
  isLate(_now: number, _attempt: Attempt): boolean {
    return this.endedAt >= 0;
  }

  /** The error of work that was refused before anything was called. */
  refusal(): unknown {
    return this.result;
  }
}

/** Whether a value has to be judged at all: most are simply good. */
export function isJudged(plan: Plan, options: RunOptions | undefined, value: unknown): boolean {
  return options?.classify !== undefined || plan.judgesValues > (typeof value === 'object' ? 0 : 1);
}

/** What the classifiers say of an outcome: the run's own, then the policy's. */
export function judge(plan: Plan, options: RunOptions | undefined, outcome: Outcome): Judgement {
  const { epochMs } = plan.clock;
  const answer = askCaller(options, outcome, epochMs) ?? plan.classify(outcome, epochMs);
  const judged = typeof answer === 'object' ? answer : { class: answer ?? (outcome.ok ? 'ok' : 'fatal') };
  // Whatever is said of it, an error is no result; and what is no class, such as a promise of one, repeats nothing.
  const isKnown = classes.includes(judged.class) && (outcome.ok || judged.class !== 'ok');
  return isKnown ? judged : { class: outcome.ok ? 'ok' : 'fatal' };
}

/** What the run's own classifier says. One that throws is told of, and ends the retries, as the policy's do. */
function askCaller(
  options: RunOptions | undefined,
  outcome: Outcome,
  epochMs: () => number,
): ReturnType<Classifier> {
  try {
    return options?.classify?.(outcome, epochMs);
  } catch (error) {
    return thrownBy(outcome, error);
  }
}

/**
 * After a sign of overload a retry is paid for at once, and its success says little about the next one. A server that
 * names the time at which to come back has room then: a retry that waited for it and succeeds gets its token back.
 */
function paymentFor(judged: Judgement, result: unknown, hintCapMs: number): Payment {
  const isInvited = judged.retryAfterMs !== undefined && hintCapMs > 0;
  if (judged.class === 'throttled' || judged.overload) return isInvited ? REFUNDED : PREPAID;
  return isExpired(result) ? PREPAID_TIMEOUT : POSTPAID;
}

/** How the retry that is under way is paid for. */
export type Payment =
  | typeof NONE
  | typeof PREPAID
  | typeof PREPAID_TIMEOUT
  | typeof REFUNDED
  | typeof POSTPAID;
/** There is none. */
const NONE = 0;
/** With a token, whatever comes of it. */
const PREPAID = 1;
/** With a token, which a quick answer gives back. */
export const PREPAID_TIMEOUT = 2;
/** With a token that is result back. */
export const REFUNDED = 3;
/** With a token if it fails. */
const POSTPAID = 4;

const classes: readonly OutcomeClass[] = ['ok', 'transient', 'throttled', 'fatal', 'ignored'];

/** More attempts than this are not kept in a story. */
const logMax = 100;

const okay: Judgement = { class: 'ok' };
const none: StoryAttempt[] = [];
