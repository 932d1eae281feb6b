import { asDelayMs } from '../decide/backoff.ts';
import type { Judgement } from '../decide/outcome.ts';
import type { Breaker } from '../machines/breaker.ts';
import type { RetryBudget } from '../machines/budget.ts';
import { type Bulkhead, FULL, type Waiter } from '../machines/bulkhead.ts';
import type { Target } from '../machines/target.ts';
import { OVERFLOW } from '../machines/targets.ts';
import {
  ExpiredError,
  isExpired,
  OptionsError,
  type RefusalReason,
  refusedQuickly,
} from '../report/errors.ts';
import { type Attempt, GuardedAttempt } from './attempt.ts';
import { callUser } from './call-user.ts';
import { expiryOf, extendedEnd, isEndTimed, settleAttempt, startAttempt } from './guarded-attempt.ts';
import { priorityRank } from './run-options.ts';
import { SEND, STOP, type Step, WAIT } from './step.ts';
import { PREPAID_TIMEOUT, REFUNDED, type Work } from './work.ts';

/** A timeout of an attempt that had less patience than this says nothing about its target. */
const fairMs = 50;

/** A quick answer takes at most this multiple of the median. */
const quickFactor = 2;

/** How soon at least, and by chance up to twice that, work asks again that waits for a half-open breaker. */
const lookMs = 50;

/** Not admitted; `Guards.refused` says why. */
const REFUSED = -1;
type Admission = Step | typeof REFUSED;

/**
 * What stands between a piece of work and its target, in one fixed order:
 * target → throttle → breaker refuses? → limiter → bulkhead → breaker admits → attempt timeout → the call.
 *
 * A refusal of a guard is local: it never counts as a failure of the target, and only another target is tried instead.
 */
export class Guards {
  declare readonly work: Work;
  /** The older of two hedged attempts; `work.current` is the newer. */
  declare hedgeTwin: GuardedAttempt | undefined;
  /** When a hedge may be started; Infinity: never. */
  declare hedgeAt: number;
  /** The latest time that a server's hint named: no attempt before it. */
  declare hintedUntil: number;
  /** An attempt that waits for a breaker, a rate limiter or in the bulkhead's queue. */
  declare paused: Pause | undefined;
  /** Of several targets, those that had an attempt. */
  declare tried: Set<Target> | undefined;
  declare refused: Refusal | undefined;
  /** The next attempt has at least this long: twice an unlearnt limit that was too short for the one before. */
  declare attemptMinMs: number;

  constructor(work: Work) {
    this.work = work;
    this.hedgeTwin = undefined;
    this.hedgeAt = Infinity;
    this.hintedUntil = -Infinity;
    this.paused = undefined;
    this.tried = undefined;
    this.refused = undefined;
    this.attemptMinMs = 0;
  }

  send(now: number): Step {
    this.work.wakeAt = Infinity;
    const target = this.isOneOfMany
      ? this.work.plan.choose!(this.work, now, undefined)
      : (this.work.target as Target);
    return this.orElsewhere(now, target ? this.admit(now, target) : this.refuseAll(now));
  }

  alarm(now: number): Step {
    const { paused } = this;
    const { plan } = this.work;
    if (paused) {
      this.paused = undefined;
      this.work.wakeAt = Infinity;
      return paused.resume(now);
    }
    const { hedgeTwin } = this;
    const current = this.work.current as GuardedAttempt | undefined;
    if (now >= this.hedgeAt) {
      this.hedgeAt = Infinity;
      if (now < current!.endsAt && plan.hedge!.may(this.work, now)) {
        if (this.send(now) === SEND) {
          const guarded = this.work.current as GuardedAttempt;
          plan.counters.hedges++;
          plan.reporter?.hedged(this.work, guarded, now);
          // A listener of the notice may have cancelled the run.
          return this.isLate(now, guarded) ? STOP : SEND;
        }
        plan.hedge!.refund(this.work);
      }
    }
    let step: Step = WAIT;
    if (hedgeTwin && this.isTimeUp(now, hedgeTwin)) step = this.expire(now, hedgeTwin);
    if (current && this.isTimeUp(now, current)) step = this.expire(now, current);
    if (step === WAIT && this.work.current) this.work.wakeAt = this.nextAlarm();
    return step;
  }

  /** Takes over an attempt that the fast path started. */
  adopt(guarded: GuardedAttempt, budget: RetryBudget | undefined): void {
    this.work.attempt = guarded.attempt;
    this.work.serial = guarded.serial;
    this.work.target = guarded.targetState;
    this.work.budget = budget;
    this.work.current = guarded;
    this.work.wakeAt = guarded.endsAt;
  }

  cancel(now: number, reason: unknown): void {
    this.paused?.leave();
    this.paused = undefined;
    this.abandonAll(now, reason);
  }

  finish(now: number, attempt: Attempt): void {
    // Aborting the slower attempt may cancel the run, which has ended by then.
    this.work.endedAt = now;
    if (this.work.current) this.abandonAll(now, 'another attempt was faster');
    this.work.target?.hedgeBudget?.success();
    if (this.work.payment === PREPAID_TIMEOUT && isQuick(attempt as GuardedAttempt, now))
      this.work.payment = REFUNDED;
  }

  learn(now: number, attempt: Attempt, judged: Judgement): void {
    const guarded = attempt as GuardedAttempt;
    this.forget(guarded);
    // A timeout of an attempt that had under 50 ms of patience is not the target's failure.
    const isFair = !guarded.abandoned || !isPatience(this.work.result) || now - guarded.startedAt >= fairMs;
    const at = judged.class !== 'ok' || isEndTimed(guarded) ? now : guarded.startedAt;
    settleAttempt(guarded, at, isFair ? judged : { class: 'ignored' });
  }

  isLate(now: number, attempt: Attempt): boolean {
    const guarded = attempt as GuardedAttempt;
    if (guarded.abandoned) guarded.release(now);
    return guarded.abandoned;
  }

  /** `judged` with the longest hint that a server gave to this work. Undefined: a hedge twin is still in flight. */
  withHint(now: number, judged: Judgement): Judgement | undefined {
    const retryAfterMs = asDelayMs(judged.retryAfterMs ?? 0);
    // A hint to one of two hedged attempts holds for both.
    this.hintedUntil = Math.max(this.hintedUntil, now + retryAfterMs);
    if (this.work.current) return undefined;
    const hintMs = this.hintedUntil - now;
    return hintMs > retryAfterMs ? { ...judged, retryAfterMs: hintMs } : judged;
  }

  expectedAttemptMs(): number {
    return this.work.target?.latency?.quantile(0.5) ?? 0;
  }

  /** When the next attempt would be admitted; Infinity: do not wait for it. */
  admitsAt(now: number): number {
    const { plan, target } = this.work;
    if (this.isOneOfMany) return plan.choose!(this.work, now, undefined) ? now : Infinity;
    const breaker = target?.breaker;
    if (!breaker?.refuses(now)) return now;
    return plan.waitsForBreaker ? this.looksAgainAt(now, breaker) : Infinity;
  }

  refusal(): unknown {
    const { refused } = this;
    if (!refused || refused.because !== this.work.stop || this.work.attempt > 0) return this.work.result;
    // The error is made once, however often the ending is read.
    this.refused = undefined;
    const afterMs = refused.admitsAt - this.work.endedAt;
    return refusedQuickly(refused.because, refused.target.name, afterMs < Infinity ? afterMs : undefined);
  }

  private get isOneOfMany(): boolean {
    return !!(this.work.options?.targets && this.work.plan.choose);
  }

  private admit(now: number, target: Target): Admission {
    const { plan, patienceEndsAt } = this.work;
    // A hedge is sent at once or not at all.
    const mayWait = !this.work.current;
    if (target.throttle?.refuses(now, plan.random())) return this.refuse(now, target, 'throttled');
    if (target.breaker?.refuses(now)) {
      target.breaker.turnAway();
      const reopensAt = this.looksAgainAt(now, target.breaker);
      if (!plan.waitsForBreaker || !mayWait || reopensAt >= patienceEndsAt)
        return this.refuse(now, target, 'breaker_open', reopensAt);
      return this.pause(reopensAt, (later) => this.admit(later, target));
    }
    if (target.limiter) {
      const waitMaxMs = mayWait ? Math.min(plan.limiterWaitMs, patienceEndsAt - now) : 0;
      const waitMs = target.limiter.reserve(now, waitMaxMs);
      if (waitMs < 0) return this.refuse(now, target, 'rate_limited', now + target.limiter.peek(now));
      if (waitMs > 0) return this.pause(now + waitMs, (later) => this.enter(later, target));
    }
    return this.enter(now, target);
  }

  private enter(now: number, target: Target): Admission {
    const { bulkhead } = target;
    if (!bulkhead || bulkhead.tryEnter()) return this.dispatch(now, target);
    if (this.work.current) return this.refuse(now, target, 'bulkhead_full');
    const queued = new Queued(this, target, bulkhead);
    if (bulkhead.enter(now, queued) === FULL) return this.refuse(now, target, 'bulkhead_full');
    this.paused = queued;
    this.work.wakeAt = this.work.patienceEndsAt;
    return WAIT;
  }

  private dispatch(now: number, target: Target): Admission {
    const { plan, current } = this.work;
    const hasTime = now < this.work.patienceEndsAt;
    const guarded =
      hasTime &&
      startAttempt(
        GuardedAttempt,
        plan,
        target,
        this.work.attempt + 1,
        now,
        this.work.patienceEndsAt,
        this.attemptMinMs,
      );
    if (!guarded) {
      target.bulkhead?.leave(now);
      return hasTime
        ? this.refuse(now, target, 'breaker_open', target.breaker!.reopensAt(now))
        : this.spent(now);
    }
    this.work.backingOff = false;
    this.work.attempt++;
    this.hedgeTwin = current as GuardedAttempt | undefined;
    this.work.current = guarded;
    if (this.work.options?.targets) {
      this.tried ??= new Set();
      this.tried.add(target);
    }
    if (target.name === OVERFLOW) this.rename(guarded, now);
    this.hedgeAt = plan.hedge && !current ? plan.hedge.at(this.work, target, now) : Infinity;
    this.work.wakeAt = this.nextAlarm();
    return SEND;
  }

  /** The overflow target stands for several names: the attempt gets the one that the run asked for. */
  private rename(guarded: GuardedAttempt, now: number): void {
    const { plan, options } = this.work;
    const strangers = options?.targets?.filter(
      (name) => plan.targets!.get(name, now) === guarded.targetState,
    );
    const value = options?.target ?? strangers?.[Math.floor(plan.random() * strangers.length)];
    Object.defineProperty(guarded, 'target', { value });
  }

  private refuse(now: number, target: Target, because: RefusalReason, admitsAt = Infinity): typeof REFUSED {
    this.refused = { target, because, admitsAt };
    this.work.plan.reporter?.refused(this.work, now, target.name, because);
    return REFUSED;
  }

  /** All targets of the run have an open breaker. */
  private refuseAll(now: number): Admission {
    const { options, plan, target } = this.work;
    const targets = options!.targets!;
    if (!targets.length)
      return this.work.giveUp(
        now,
        'not_retryable',
        new OptionsError('targets', targets, 'at least one target'),
      );
    const admitsAt = targets.map((name) => plan.targets!.get(name, now).breaker?.reopensAt(now) ?? now);
    return this.refuse(now, target as Target, 'breaker_open', Math.min(...admitsAt));
  }

  /** The step of an admission. A refused one is tried at the other targets of the run, if it has several. */
  private orElsewhere(now: number, first: Admission): Step {
    let admission = first;
    let refused: Set<Target> | undefined;
    while (admission === REFUSED) {
      // A listener of the refusal may have cancelled the run.
      if (this.work.stop) return STOP;
      refused ??= new Set();
      refused.add(this.refused!.target);
      const target = this.isOneOfMany && this.work.plan.choose!(this.work, now, refused);
      // While the hedge twin is in flight, a refused hedge is simply not sent.
      if (!target)
        return this.work.current ? WAIT : this.work.giveUp(now, this.refused!.because, this.work.result);
      admission = this.admit(now, target);
    }
    return admission;
  }

  private pause(until: number, goOn: (now: number) => Admission): Step {
    this.paused = { resume: (now) => this.orElsewhere(now, goOn(now)), leave() {} };
    this.work.wakeAt = until;
    return WAIT;
  }

  private nextAlarm(): number {
    const current = this.work.current as GuardedAttempt | undefined;
    return Math.min(this.hedgeAt, current?.endsAt ?? Infinity, this.hedgeTwin?.endsAt ?? Infinity);
  }

  /** Whether an attempt times out now. Where it may go on for longer, its end is moved. */
  private isTimeUp(now: number, guarded: GuardedAttempt): boolean {
    if (guarded.endsAt > now) return false;
    if (now < this.work.patienceEndsAt) guarded.at = extendedEnd(guarded, this.mayRetry(now, guarded));
    return guarded.endsAt <= now;
  }

  /** Whether a retry may follow an attempt that times out now. */
  private mayRetry(now: number, guarded: GuardedAttempt): boolean {
    const { plan, options, budget } = this.work;
    if (
      !this.work.idempotent ||
      this.work.retryVeto ||
      plan.killSwitch.isOn ||
      this.work.attempt >= plan.attempts
    )
      return false;
    if (options?.retryVeto && callUser(options.retryVeto, 'not_replayable')) return false;
    return !budget || guarded.targetState.autoTimeout?.isLearnt === true || !budget.isScarce(now);
  }

  /** Times an attempt out. Its call may go on, and holds the permit until it ends or its lease does. */
  private expire(now: number, guarded: GuardedAttempt): Step {
    const error = expiryOf(guarded, now, this.work.startedAt, this.work.result);
    this.work.plan.counters.timeouts++;
    const isUnlearnt = guarded.targetState.autoTimeout?.isLearnt === false;
    this.attemptMinMs = isUnlearnt ? 2 * (now - guarded.startedAt) : 0;
    guarded.abandon(now, error);
    // A listener of the attempt's signal may have cancelled the run.
    if (this.work.stop) return STOP;
    return this.work.settled(now, guarded, { ok: false, error });
  }

  private abandonAll(now: number, reason: unknown): void {
    while (this.work.current) {
      const guarded = this.work.current as GuardedAttempt;
      this.forget(guarded);
      guarded.targetState.inFlight--;
      guarded.targetState.breaker?.cancel(now, guarded.ticket);
      guarded.abandon(now, reason);
    }
  }

  /** The work does not wait for this attempt any more. */
  private forget(guarded: GuardedAttempt): void {
    if (this.work.current === guarded) this.work.current = this.hedgeTwin;
    this.hedgeTwin = undefined;
  }

  /** When to ask a breaker again that refuses: while it is half-open, in 50 to 100 ms, because its probes may end at any moment. */
  private looksAgainAt(now: number, breaker: Breaker): number {
    const at = breaker.reopensAt(now);
    const isProbing = this.work.plan.waitsForBreaker && breaker.state(now) === 'half-open';
    return isProbing ? Math.min(at, now + lookMs * (1 + this.work.plan.random())) : at;
  }

  /** The bulkhead's queue gives the work a permit. */
  admitted(now: number, target: Target): void {
    this.paused = undefined;
    this.work.driver?.perform(this.orElsewhere(now, this.dispatch(now, target)));
  }

  /** Work of a higher priority takes the place in the bulkhead's queue. */
  displaced(now: number, target: Target): void {
    this.paused = undefined;
    this.work.driver?.perform(this.orElsewhere(now, this.refuse(now, target, 'bulkhead_full')));
  }

  /** Patience ended in the bulkhead's queue. */
  expired(now: number): void {
    this.paused = undefined;
    this.work.driver?.perform(this.spent(now));
  }

  /** Patience ended while nothing was in flight. */
  spent(now: number): Step {
    const tookMs = now - this.work.startedAt;
    const spent = new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', tookMs, undefined);
    return this.work.giveUp(now, 'patience_too_short', this.work.attempt > 0 ? this.work.result : spent);
  }
}

interface Refusal {
  readonly target: Target;
  readonly because: RefusalReason;
  /** When the guard expects to admit again; Infinity while unknown. */
  readonly admitsAt: number;
}

/** Whether an answer after a timeout was quick: then a message was lost, and the target is not overloaded. */
function isQuick({ targetState, startedAt }: GuardedAttempt, now: number): boolean {
  return now - startedAt <= quickFactor * (targetState.latency?.quantile(0.5) ?? 0);
}

function isPatience(result: unknown): boolean {
  return isExpired(result) && result.code === 'HOLDFAST_PATIENCE_SPENT';
}

/** An attempt that waits before it is sent. */
interface Pause {
  /** Goes on when the alarm of the work rings. */
  resume(now: number): Step;
  /** The work ended meanwhile. */
  leave(): void;
}

/** Work in a bulkhead's queue. */
class Queued implements Waiter, Pause {
  declare readonly guards: Guards;
  declare readonly target: Target;
  declare readonly bulkhead: Bulkhead;
  declare readonly priority: number;
  declare readonly expiresAt: number;
  declare waiting: boolean;
  declare ahead: Waiter | undefined;
  declare behind: Waiter | undefined;

  constructor(guards: Guards, target: Target, bulkhead: Bulkhead) {
    this.guards = guards;
    this.target = target;
    this.bulkhead = bulkhead;
    this.priority = priorityRank[guards.work.options?.priority ?? 'default'];
    this.expiresAt = guards.work.patienceEndsAt;
    this.waiting = false;
    this.ahead = undefined;
    this.behind = undefined;
  }

  admitted(now: number): void {
    this.guards.admitted(now, this.target);
  }

  displaced(now: number): void {
    this.guards.displaced(now, this.target);
  }

  expired(now: number): void {
    this.guards.expired(now);
  }

  resume(now: number): Step {
    this.leave();
    return this.guards.spent(now);
  }

  leave(): void {
    this.bulkhead.abandon(this);
  }
}
