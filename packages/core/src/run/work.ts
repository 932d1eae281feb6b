import { thrownBy } from '../classify/classifier.ts';
import { decide, done, type History } from '../decide/decide.ts';
import type { Classifier, Judgement, Outcome, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { RetryBudget } from '../machines/budget.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { isExpired } from '../report/errors.ts';
import { endedInside, nextSerial, type Story, type StoryAttempt } from '../report/story.ts';
import { Attempt } from './attempt.ts';
import { callUser } from './call-user.ts';
import type { Guards } from './guards.ts';
import type { RunOptions } from './run-options.ts';
import { DONE, type Driver, SEND, STOP, type Step, WAIT } from './step.ts';

/**
 * One piece of work on its way through a policy: a synchronous state machine that performs nothing itself. Its driver asks
 * for steps and performs them: with promises, with sockets or in the simulator.
 */
export class Work implements History {
  declare readonly plan: Plan;
  declare readonly options: RunOptions | undefined;
  declare readonly startedAt: number;
  /** Counts runs and attempts by when they began. */
  declare serial: number;
  declare readonly patienceEndsAt: number;
  declare attempt: number;
  declare previousDelayMs: number;
  /** The reason that forbids any retry, if there is one. */
  declare retryVeto: StopReason | undefined;
  /** What stands between the work and its target; absent where no part guards attempts. */
  declare guards: Guards | undefined;
  /** The target of the run, where there are guards. */
  declare target: Target | undefined;
  declare budget: RetryBudget | undefined;
  declare payment: Payment;
  /** The latest attempt. */
  declare current: Attempt | undefined;
  /** When to call `alarm`; Infinity: not at all. */
  declare wakeAt: number;
  /** True from a verdict to retry until the next attempt. */
  declare backingOff: boolean;
  /** What the latest attempt returned or threw; in the end, the result of the work. */
  declare result: unknown;
  /** `result` is a value that was judged a failure, such as a response: it is returned, not thrown. */
  declare resultIsValue: boolean;
  declare stop: StopReason | undefined;
  /** On the scale of the clock; −1 while the work goes on. */
  declare endedAt: number;
  declare log: StoryAttempt[];
  declare inner: Story | undefined;
  /** Performs the steps that come from the bulkhead's queue. */
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
    this.driver = undefined;
  }

  get idempotent(): boolean {
    return this.options?.idempotent !== false;
  }

  /** The first step. With a signal that has aborted already, it is the last. */
  begin(now: number, signal?: AbortSignal): Step {
    const { plan } = this;
    if (this.guards) this.target = plan.targetOf?.(this.options, now);
    plan.counters.operations++;
    if (!signal?.aborted) this.budget = plan.budgetOf?.(this, now);
    plan.reporter?.started(this, now);
    return signal?.aborted ? this.cancel(now, signal.reason) : this.send(now);
  }

  /** Sends the next attempt, if the guards admit it. */
  send(now: number): Step {
    if (this.guards) return this.guards.send(now);
    this.backingOff = false;
    this.wakeAt = Infinity;
    this.plan.counters.attempts++;
    this.current = new Attempt(this.plan, ++this.attempt, this.patienceEndsAt);
    return SEND;
  }

  /** The alarm that was set for `wakeAt` rang. On a busy thread it may ring late. */
  alarm(now: number): Step {
    if (this.guards && (this.guards.paused || !this.backingOff)) return this.guards.alarm(now);
    if (this.plan.killSwitch.isOn) return this.giveUp(now, 'kill_switch', this.result);
    return now < this.patienceEndsAt ? this.send(now) : this.giveUp(now, 'patience_too_short', this.result);
  }

  /** Cancels the work: attempts in flight are abandoned, and waits end. */
  cancel(now: number, reason: unknown): Step {
    this.guards?.cancel(now, reason);
    this.resultIsValue = false;
    if (!this.backingOff) this.current?.abandon(now, reason);
    return this.giveUp(now, 'cancelled', reason);
  }

  /** The step after an attempt returned a value. */
  succeeded(now: number, attempt: Attempt, value: unknown): Step {
    if (isJudged(this.plan, this.options, value)) {
      return this.settled(now, attempt, { ok: true, value });
    }
    this.result = value;
    this.guards?.learn(now, attempt, okay);
    return this.finish(now, attempt, okay);
  }

  /** The step after an attempt has ended. */
  settled(now: number, attempt: Attempt, outcome: Outcome, judged: Judgement = this.judge(outcome)): Step {
    // Classifiers, backoffs and listeners are user code, and may cancel the run.
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
    // If we timed the attempt out, a nested run failed because we aborted it: that is not its verdict.
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
    // Pushing to an empty array would reserve room for seventeen.
    if (this.log === none) this.log = [told];
    else {
      // Attempts may be unlimited, and the log keeps the first and the last 99 of them.
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
    this.guards?.finish(now, attempt);
    // `learn` may have fired a breaker listener that cancelled this run.
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

  /** Whether the work no longer waits for an attempt that ends now. What the attempt held is released then. */
  isLate(now: number, attempt: Attempt): boolean {
    return this.guards ? this.guards.isLate(now, attempt) : this.endedAt >= 0;
  }

  /** The final result: where the guards refused before anything was called, an error that says so. */
  refusal(): unknown {
    return this.guards ? this.guards.refusal() : this.result;
  }

  private judge(outcome: Outcome): Judgement {
    // A timeout of ours is a failure of the target that may well pass.
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

/** Whether a value is judged at all. Most are simply successes. */
export function isJudged(plan: Plan, options: RunOptions | undefined, value: unknown): boolean {
  return options?.classify !== undefined || plan.judgesValues > (typeof value === 'object' ? 0 : 1);
}

/** Judges an outcome: by the run's own classifier, then by the policy's. */
export function judge(plan: Plan, options: RunOptions | undefined, outcome: Outcome): Judgement {
  const { epochMs } = plan.clock;
  const answer = askCaller(options, outcome, epochMs) ?? plan.classify(outcome, epochMs);
  const judged = typeof answer === 'object' ? answer : { class: answer ?? (outcome.ok ? 'ok' : 'fatal') };
  // An error is never `ok`, and an answer that is no class, such as a promise, retries nothing.
  const isKnown = classes.includes(judged.class) && (outcome.ok || judged.class !== 'ok');
  return isKnown ? judged : { class: outcome.ok ? 'ok' : 'fatal' };
}

/** The judgement of the run's own classifier. If it throws, that is reported and ends the retries. */
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
/** There is no retry under way. */
const NONE = 0;
/** With a token, whether it succeeds or fails. */
const PREPAID = 1;
/** With a token that a quick answer gives back. */
export const PREPAID_TIMEOUT = 2;
/** With a token that success gives back. */
export const REFUNDED = 3;
/** With a token if it fails. */
const POSTPAID = 4;

const classes: readonly OutcomeClass[] = ['ok', 'transient', 'throttled', 'fatal', 'ignored'];

/** How many attempts a story keeps. */
const logMax = 100;

const okay: Judgement = { class: 'ok' };
const none: StoryAttempt[] = [];
const race: Verdict = { kind: 'race' };
