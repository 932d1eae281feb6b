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
  knownMs,
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

/**
 * If the work's time limit left an attempt fewer ms than this, a timeout of the attempt says nothing about
 * the target.
 */
const fairMs = 50;

/** An answer is quick if it takes at most this multiple of the median duration. */
const quickFactor = 2;

/** A run that waits for a half-open breaker checks it again after once to twice this many ms, at random. */
const lookMs = 50;

/** A guard (throttle, breaker, …) did not admit the attempt. `Guards.refused` says why. */
const REFUSED = -1;
type Admission = Step | typeof REFUSED;

/**
 * The guards that each attempt must pass, in this order: choice of the target, throttle, breaker, rate
 * limiter, bulkhead, breaker again, attempt timeout.
 *
 * A refusal by a guard does not count as a failure of the target. If the run has several targets, another
 * target is tried.
 */
export class Guards {
  declare readonly work: Work;
  /**
   * If a hedge (a second attempt) was sent: the older of the two attempts in flight. `work.current` is the
   * newer one.
   */
  declare hedgeTwin: GuardedAttempt | undefined;
  /** When to send a hedge (a second attempt while the first is in flight). Infinity: no hedge is sent. */
  declare hedgeAt: number;
  /** A server asked to wait until this time, so no attempt is sent before it. */
  declare hintedUntil: number;
  /**
   * Set while an attempt waits: for a breaker, for the rate limiter, or in the queue of the bulkhead (the
   * limit of calls in flight).
   */
  declare paused: Pause | undefined;
  /** If the run has several targets: those that attempts were already sent to. */
  declare tried: Set<Target> | undefined;
  declare refused: Refusal | undefined;
  /** The minimum time limit of the next attempt in ms, because the previous limit was too short. */
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
          // Listeners were notified of the hedge, and may have cancelled the run.
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

  /** Takes over an attempt that `runFast` has started without the state machine. */
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
    // `endedAt` is set first, because the abort below may call a listener that aborts the run. An abort after
    // the end is ignored.
    this.work.endedAt = now;
    if (this.work.current) this.abandonAll(now, 'another attempt was faster');
    this.work.target?.hedgeBudget?.success();
    if (this.work.payment === PREPAID_TIMEOUT && isQuick(attempt as GuardedAttempt, now))
      this.work.payment = REFUNDED;
  }

  learn(now: number, attempt: Attempt, judged: Judgement): void {
    const guarded = attempt as GuardedAttempt;
    this.forget(guarded);
    // If the work's time limit ended an attempt after less than 50 ms, that is not a failure of the target.
    const isFair = !guarded.abandoned || !isPatience(this.work.result) || now - guarded.startedAt >= fairMs;
    const at = judged.class !== 'ok' || isEndTimed(guarded) ? now : guarded.startedAt;
    settleAttempt(guarded, at, isFair ? judged : { class: 'ignored' });
  }

  isLate(now: number, attempt: Attempt): boolean {
    const guarded = attempt as GuardedAttempt;
    if (guarded.abandoned) guarded.release(now);
    return guarded.abandoned;
  }

  /**
   * Returns `judged` with the longest wait that a server has asked for. Returns undefined while another
   * attempt is in flight.
   */
  withHint(now: number, judged: Judgement): Judgement | undefined {
    const retryAfterMs = asDelayMs(judged.retryAfterMs ?? 0);
    // If two attempts are in flight, a wait that a server asks for in one of them applies to both.
    this.hintedUntil = Math.max(this.hintedUntil, now + retryAfterMs);
    if (this.work.current) return undefined;
    const hintMs = this.hintedUntil - now;
    return hintMs > retryAfterMs ? { ...judged, retryAfterMs: hintMs } : judged;
  }

  expectedAttemptMs(): number {
    return this.work.target?.latency?.quantile(0.5) ?? 0;
  }

  /** Returns when the next attempt would be admitted. Infinity: the run ends instead of waiting. */
  admitsAt(now: number): number {
    const { plan, target } = this.work;
    if (this.isOneOfMany) return plan.choose!(this.work, now, undefined) ? now : Infinity;
    const breaker = target?.breaker;
    if (!breaker?.refuses(now)) return now;
    return plan.waitsForBreaker ? this.looksAgainAt(now, breaker) : Infinity;
  }

  refusal(): unknown {
    const { refused, work } = this;
    if (!refused || refused.because !== work.stop || work.attempt > 0) return work.result;
    // `refused` is cleared, because the error must be created only once.
    this.refused = undefined;
    return refusedQuickly(refused.because, refused.target.name, work.retryAfterMs);
  }

  private get isOneOfMany(): boolean {
    return !!(this.work.options?.targets && this.work.plan.choose);
  }

  private admit(now: number, target: Target): Admission {
    const { plan, patienceEndsAt } = this.work;
    // A hedge (a second attempt while the first is in flight) is sent immediately or not at all.
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

  /**
   * When there are too many targets, several names share the overflow target. This method gives the attempt
   * the name that the run asked for.
   */
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

  /** Refuses the attempt, because the breakers of all targets of the run are open. */
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

  /** Returns the next step. If a target refused the attempt, the other targets of the run are tried first. */
  private orElsewhere(now: number, first: Admission): Step {
    let admission = first;
    let refused: Set<Target> | undefined;
    while (admission === REFUSED) {
      // Listeners were notified of the refusal, and may have cancelled the run.
      if (this.work.stop) return STOP;
      refused ??= new Set();
      refused.add(this.refused!.target);
      const target = this.isOneOfMany && this.work.plan.choose!(this.work, now, refused);
      // No other target is left. If the refused attempt was a hedge (a second attempt), the run waits for the
      // first one. Otherwise the run ends.
      if (!target) {
        const { work } = this;
        if (work.current) return WAIT;
        work.retryAfterMs = knownMs(this.refused!.admitsAt - now);
        return work.giveUp(now, this.refused!.because, work.result);
      }
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

  /** Whether an attempt must end now. If it may run longer, its time limit is extended. */
  private isTimeUp(now: number, guarded: GuardedAttempt): boolean {
    if (guarded.endsAt > now) return false;
    if (now < this.work.patienceEndsAt) guarded.at = extendedEnd(guarded, this.mayRetry(now, guarded));
    return guarded.endsAt <= now;
  }

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

  /**
   * Ends an attempt at its time limit. The operation may still run, and keeps its bulkhead permit for up to
   * 30 s.
   */
  private expire(now: number, guarded: GuardedAttempt): Step {
    const error = expiryOf(guarded, this.work.startedAt, this.work.result);
    this.work.plan.counters.timeouts++;
    const isUnlearnt = guarded.targetState.autoTimeout?.isLearnt === false;
    this.attemptMinMs = isUnlearnt ? 2 * (now - guarded.startedAt) : 0;
    guarded.abandon(now, error);
    // The abort may have called a listener that cancelled the run.
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

  private forget(guarded: GuardedAttempt): void {
    if (this.work.current === guarded) this.work.current = this.hedgeTwin;
    this.hedgeTwin = undefined;
  }

  /**
   * Returns when to check the breaker again. A half-open breaker is checked after 50 to 100 ms, because its
   * probes may end at any time.
   */
  private looksAgainAt(now: number, breaker: Breaker): number {
    const at = breaker.reopensAt(now);
    const isProbing = this.work.plan.waitsForBreaker && breaker.state(now) === 'half-open';
    return isProbing ? Math.min(at, now + lookMs * (1 + this.work.plan.random())) : at;
  }

  /** Called when this run leaves the queue of the bulkhead with a permit. */
  admitted(now: number, target: Target): void {
    this.paused = undefined;
    this.work.driver?.perform(this.orElsewhere(now, this.dispatch(now, target)));
  }

  /** Called when another run with a higher priority takes this run's place in the queue of the bulkhead. */
  displaced(now: number, target: Target): void {
    this.paused = undefined;
    this.work.driver?.perform(this.orElsewhere(now, this.refuse(now, target, 'bulkhead_full')));
  }

  /** Called when the time limit of the run ends while it waits in the queue of the bulkhead. */
  expired(now: number): void {
    this.paused = undefined;
    this.work.driver?.perform(this.spent(now));
  }

  /** Ends the run, because its time limit has passed while no attempt was in flight. */
  spent(now: number): Step {
    const limitMs = this.work.patienceEndsAt - this.work.startedAt;
    const spent = new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', limitMs, undefined);
    return this.work.giveUp(now, 'patience_too_short', this.work.attempt > 0 ? this.work.result : spent);
  }
}

interface Refusal {
  readonly target: Target;
  readonly because: RefusalReason;
  /**
   * When the guard that refused, such as the breaker, expects to admit calls again; Infinity if that is
   * unknown.
   */
  readonly admitsAt: number;
}

/**
 * Whether the retry after a timeout was answered quickly. If so, a lost message probably caused the timeout,
 * not an overloaded target.
 */
function isQuick({ targetState, startedAt }: GuardedAttempt, now: number): boolean {
  return now - startedAt <= quickFactor * (targetState.latency?.quantile(0.5) ?? 0);
}

function isPatience(result: unknown): boolean {
  return isExpired(result) && result.code === 'HOLDFAST_PATIENCE_SPENT';
}

interface Pause {
  /** Called at `wakeAt`: continues with the attempt, and returns the next step. */
  resume(now: number): Step;
  /** Called when the run ends during the wait: stops waiting. */
  leave(): void;
}

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
