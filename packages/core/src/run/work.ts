import { messageOf, misjudged } from '../classify/classifier.ts';
import { decide, done, type History } from '../decide/decide.ts';
import type { Classifier, Judgement, Outcome, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { RetryBudget } from '../machines/budget.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { isExpired, show } from '../report/errors.ts';
import { endedInside, nextSerial, type Story, type StoryAttempt } from '../report/story.ts';
import { Attempt } from './attempt.ts';
import { callUser } from './call-user.ts';
import type { Guards } from './guards.ts';
import type { RunOptions } from './run-options.ts';
import { DONE, type Driver, SEND, STOP, type Step, WAIT } from './step.ts';

/**
 * One piece of work: an operation with all its attempts. It is a synchronous state machine that does not call
 * the operation itself. A driver asks it for the next step and performs that step.
 */
export class Work implements History {
  declare readonly plan: Plan;
  declare readonly options: RunOptions | undefined;
  declare readonly startedAt: number;
  /** The serial number of this run. Runs and attempts that begin later have higher numbers. */
  declare serial: number;
  declare readonly patienceEndsAt: number;
  declare attempt: number;
  declare previousDelayMs: number;
  declare retryVeto: StopReason | undefined;
  /** The guards that each attempt must pass (breaker, bulkhead, …). Undefined if the policy has none. */
  declare guards: Guards | undefined;
  /** The state of the run's target; undefined in a policy without guards (breaker, bulkhead, …). */
  declare target: Target | undefined;
  declare budget: RetryBudget | undefined;
  declare payment: Payment;
  /**
   * The latest attempt. In a policy with guards (breaker, bulkhead, …), it is undefined while no attempt is
   * in flight.
   */
  declare current: Attempt | undefined;
  /** When the driver (the code that performs the steps) must call `alarm`. Infinity: no alarm is needed. */
  declare wakeAt: number;
  /** True between the decision to retry and the next attempt. */
  declare backingOff: boolean;
  /** The value or the error of the latest attempt. At the end it is the result of the work. */
  declare result: unknown;
  /**
   * True: `result` is a returned value that was classified as a failure. It is returned to the caller, not
   * thrown.
   */
  declare resultIsValue: boolean;
  declare stop: StopReason | undefined;
  /** When the work ended, on the scale of `Clock.now`; −1 until then. */
  declare endedAt: number;
  declare log: StoryAttempt[];
  declare inner: Story | undefined;
  /** If a guard refused the last attempt: in how many ms it may admit one. */
  declare retryAfterMs: number | undefined;
  /**
   * The driver of this run. It performs the steps that are caused by the queue of the bulkhead (the limit of
   * calls in flight).
   */
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
    this.guards = undefined;
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
    this.retryAfterMs = undefined;
    this.driver = undefined;
  }

  get idempotent(): boolean {
    return this.options?.idempotent !== false;
  }

  /** Returns the first step. If the signal has already aborted, the work ends as cancelled. */
  begin(now: number, signal?: AbortSignal): Step {
    const { plan } = this;
    if (this.guards) this.target = plan.targetOf?.(this.options, now);
    plan.counters.operations++;
    if (!signal?.aborted) this.budget = plan.budgetOf?.(this, now);
    plan.reporter?.started(this, now);
    return signal?.aborted ? this.cancel(now, signal.reason) : this.send(now);
  }

  /** Starts the next attempt if the guards (breaker, bulkhead, …) admit it, and returns the next step. */
  send(now: number): Step {
    if (this.guards) return this.guards.send(now);
    this.backingOff = false;
    this.wakeAt = Infinity;
    this.plan.counters.attempts++;
    this.current = new Attempt(this.plan, ++this.attempt, this.patienceEndsAt);
    return SEND;
  }

  /**
   * Returns the next step. The driver (the code that performs the steps) calls it at `wakeAt`, or later if
   * the thread is busy.
   */
  alarm(now: number): Step {
    if (this.guards && (this.guards.paused || !this.backingOff)) return this.guards.alarm(now);
    if (this.plan.killSwitch.isOn) return this.giveUp(now, 'kill_switch', this.result);
    return now < this.patienceEndsAt ? this.send(now) : this.giveUp(now, 'patience_too_short', this.result);
  }

  /** Cancels the work: ends waits, and aborts the attempts in flight. */
  cancel(now: number, reason: unknown): Step {
    this.guards?.cancel(now, reason);
    this.resultIsValue = false;
    if (!this.backingOff) this.current?.abandon(now, reason);
    return this.giveUp(now, 'cancelled', reason);
  }

  succeeded(now: number, attempt: Attempt, value: unknown): Step {
    if (isJudged(this.plan, this.options, value)) {
      return this.settled(now, attempt, { ok: true, value });
    }
    this.result = value;
    this.guards?.learn(now, attempt, okay);
    return this.finish(now, attempt, okay);
  }

  settled(now: number, attempt: Attempt, outcome: Outcome, judged: Judgement = this.judge(outcome)): Step {
    // The classifier was called just before this line, and may have cancelled the run.
    if (this.stop) {
      this.isLate(now, attempt);
      return STOP;
    }
    const { plan } = this;
    const result = outcome.ok ? outcome.value : outcome.error;
    this.result = result;
    this.guards?.learn(now, attempt, judged);
    if (judged.class === 'ok') return this.finish(now, attempt, judged);

    if (this.payment !== NONE) this.budget?.retryFailed(now, this.payment === POSTPAID);
    this.payment = NONE;
    this.resultIsValue = outcome.ok;
    this.inner = endedInside(result, attempt.serial);
    // A run inside this attempt gave up, so the work was already retried there. A timed-out attempt is an
    // exception: its timeout aborted the inner run.
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
      note: judged.unreadableHint,
      outcome: result,
      verdict,
    };
    // An array of one entry is smaller: `push` to an empty array would reserve memory for seventeen entries.
    if (this.log === none) this.log = [told];
    else {
      // The number of attempts may be unlimited, so the log keeps only the first entry and the latest 99.
      if (this.log.length === logMax) this.log.splice(1, 1);
      this.log.push(told);
    }
    plan.reporter?.attempt(this, attempt, now, judged, verdict);
    // The user's backoff function or a listener may have cancelled the run.
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
    this.guards?.finish(now, attempt);
    // `guards.learn` may have changed the breaker, and a listener of that change may have cancelled this run.
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
      // A retry that is not sent costs nothing.
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
    const { stop, log, inner, retryAfterMs } = this;
    const tookMs = this.endedAt - this.startedAt;
    return { policy: this.plan.name, attempts: this.attempt, tookMs, stop, log, inner, retryAfterMs };
  }

  /**
   * Whether the run has given up this attempt, so that its result is not used. If so, the attempt's permit is
   * given back to the bulkhead (the limit of calls in flight).
   */
  isLate(now: number, attempt: Attempt): boolean {
    return this.guards ? this.guards.isLate(now, attempt) : this.endedAt >= 0;
  }

  /**
   * Returns the final result. If the run was refused before its first attempt, the result is the error of the
   * refusal.
   */
  refusal(): unknown {
    return this.guards ? this.guards.refusal() : this.result;
  }

  private judge(outcome: Outcome): Judgement {
    // This timeout error comes from Holdfast itself, not from the operation. Another attempt may succeed.
    if (this.guards && !outcome.ok && isExpired(outcome.error)) return { class: 'transient' };
    return judge(this.plan, this.options, outcome);
  }

  private decide(now: number, judged: Judgement, payment: Payment): Verdict {
    const { guards, budget, plan } = this;
    const hinted = guards ? guards.withHint(now, judged) : judged;
    if (!hinted) return race;
    return decide(plan, this, hinted, {
      now,
      roll: plan.random(),
      tokens: budget ? budget.tokens(now, payment === POSTPAID) : 1,
      expectedAttemptMs: guards ? guards.expectedAttemptMs() : 0,
      admitsAt: guards ? guards.admitsAt(now) : now,
    });
  }
}

/** Whether a returned value must be classified. All other values are successes. */
export function isJudged(plan: Plan, options: RunOptions | undefined, value: unknown): boolean {
  return options?.classify !== undefined || plan.judgesValues > (typeof value === 'object' ? 0 : 1);
}

/**
 * Classifies an outcome: first with the classifier in the options of the run, then with that of the policy.
 */
export function judge(plan: Plan, options: RunOptions | undefined, outcome: Outcome): Judgement {
  const { epochMs } = plan.clock;
  const answer = askCaller(options, outcome, epochMs) ?? plan.classify(outcome, epochMs);
  const judged = typeof answer === 'object' ? answer : { class: answer ?? (outcome.ok ? 'ok' : 'fatal') };
  // A thrown error is never `ok`. An answer that is not a class, such as a promise, means no retry.
  const isKnown = classes.includes(judged.class) && (outcome.ok || judged.class !== 'ok');
  return isKnown ? judged : misjudged(outcome, `returned ${show(answer)}`);
}

function askCaller(
  options: RunOptions | undefined,
  outcome: Outcome,
  epochMs: () => number,
): ReturnType<Classifier> {
  try {
    return options?.classify?.(outcome, epochMs);
  } catch (error) {
    return misjudged(outcome, `threw ${messageOf(error)}`);
  }
}

/**
 * Decides when a retry costs a token of the retry budget. After a sign of overload, it costs a token even if
 * it succeeds. But if the server said when to try again, a successful retry gets its token back.
 */
function paymentFor(judged: Judgement, result: unknown, hintCapMs: number): Payment {
  const isInvited = judged.retryAfterMs !== undefined && hintCapMs > 0;
  if (judged.class === 'throttled' || judged.overload) return isInvited ? REFUNDED : PREPAID;
  return isExpired(result) ? PREPAID_TIMEOUT : POSTPAID;
}

/** When the current retry costs a token of the retry budget. */
export type Payment =
  | typeof NONE
  | typeof PREPAID
  | typeof PREPAID_TIMEOUT
  | typeof REFUNDED
  | typeof POSTPAID;
/** No retry is in progress. */
const NONE = 0;
/** The retry costs a token, whether it succeeds or fails. */
const PREPAID = 1;
/** A retry after a timeout. It costs a token, which is refunded if the retry is answered quickly. */
export const PREPAID_TIMEOUT = 2;
/** The retry costs a token, which is refunded if the retry succeeds. */
export const REFUNDED = 3;
/** The retry costs a token only if it fails. */
const POSTPAID = 4;

const classes: readonly OutcomeClass[] = ['ok', 'transient', 'throttled', 'fatal', 'ignored'];

const logMax = 100;

const okay: Judgement = { class: 'ok' };
const none: StoryAttempt[] = [];
const race: Verdict = { kind: 'race' };
