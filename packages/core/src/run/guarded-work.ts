import { asDelayMs } from '../decide/backoff.ts';
import type { Facts } from '../decide/decide.ts';
import type { Judgement, Outcome } from '../decide/outcome.ts';
import type { Verdict } from '../decide/verdict.ts';
import type { Breaker } from '../machines/breaker.ts';
import type { RetryBudget } from '../machines/budget.ts';
import { type Bulkhead, FULL, type Waiter } from '../machines/bulkhead.ts';
import type { Target } from '../machines/target.ts';
import { OVERFLOW } from '../machines/targets.ts';
import type { Plan } from '../policy/plan.ts';
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
import type { RunOptions } from './run-options.ts';
import { priorityRank } from './run-options.ts';
import { SEND, STOP, type Step, WAIT } from './step.ts';
import { type Payment, PREPAID_TIMEOUT, REFUNDED, Work } from './work.ts';

/** An attempt that patience left less for says nothing of its target. */
const fairMs = 50;

/** A quick answer takes at most this multiple of the median. */
const quickFactor = 2;

/** How soon at least, and by chance up to twice that, work that waits for a breaker looks how its probes are doing. */
const lookMs = 50;

/** Not admitted; `refused` says by whom. */
const REFUSED = -1;
type Admission = Step | typeof REFUSED;

/**
 * Work whose attempts have guards around them, in one fixed order:
 * target → throttle, breaker refuses? → limiter → bulkhead → breaker admits → attempt timeout → the call.
 *
 * A refusal here is local: it never counts as a failure of the target, and only another target is tried instead.
 */
export class GuardedWork extends Work {
  /** The older of two attempts that are raced; `current` is the newer. */
  declare hedgeTwin: GuardedAttempt | undefined;
  /** When a second attempt may be started beside the first. */
  declare hedgeAt: number;
  /** No attempt before this: a server said so. */
  declare hintedUntil: number;
  /** An admission that waits, for its time or in a queue. */
  declare paused: Pause | undefined;
  /** The interchangeable targets that had an attempt. */
  declare tried: Set<Target> | undefined;
  declare refused: Refusal | undefined;
  /** The next attempt has at least this long: twice an unlearnt limit that was too short for the one before. */
  declare attemptMinMs: number;

  constructor(plan: Plan, options: RunOptions | undefined, now: number, patienceEndsAt: number) {
    super(plan, options, now, patienceEndsAt);
    this.hedgeTwin = undefined;
    this.hedgeAt = Infinity;
    this.hintedUntil = -Infinity;
    this.paused = undefined;
    this.tried = undefined;
    this.refused = undefined;
    this.attemptMinMs = 0;
  }

  override begin(now: number, signal?: AbortSignal): Step {
    this.target = this.plan.targetOf?.(this.options, now);
    return super.begin(now, signal);
  }

  override send(now: number): Step {
    this.wakeAt = Infinity;
    const target = this.isOneOfMany ? this.plan.choose!(this, now, undefined) : (this.target as Target);
    return this.orElsewhere(now, target ? this.admit(now, target) : this.refuseAll(now));
  }

  override alarm(now: number): Step {
    const { paused, plan } = this;
    if (paused) {
      this.paused = undefined;
      this.wakeAt = Infinity;
      return paused.resume(now);
    }
    if (this.backingOff) return super.alarm(now);
    const { hedgeTwin } = this;
    const current = this.current as GuardedAttempt | undefined;
    if (now >= this.hedgeAt) {
      this.hedgeAt = Infinity;
      if (now < current!.endsAt && plan.hedge!.may(this, now)) {
        if (this.send(now) === SEND) {
          const guarded = this.current as GuardedAttempt;
          plan.counters.hedges++;
          plan.reporter?.hedged(this, guarded, now);
          // Who hears of it may make the caller leave: then it is not sent.
          return this.isLate(now, guarded) ? STOP : SEND;
        }
        plan.hedge!.refund(this);
      }
    }
    let step: Step = WAIT;
    if (hedgeTwin && this.isTimeUp(now, hedgeTwin)) step = this.expire(now, hedgeTwin);
    if (current && this.isTimeUp(now, current)) step = this.expire(now, current);
    if (step === WAIT && this.current) this.wakeAt = this.nextAlarm();
    return step;
  }

  /** Takes over an attempt that began without this machine. */
  adopt(guarded: GuardedAttempt, budget: RetryBudget | undefined): void {
    this.attempt = guarded.attempt;
    this.serial = guarded.serial;
    this.target = guarded.targetState;
    this.budget = budget;
    this.current = guarded;
    this.wakeAt = guarded.endsAt;
  }

  override cancel(now: number, reason: unknown): Step {
    this.paused?.leave();
    this.paused = undefined;
    this.abandonAll(now, reason);
    return super.cancel(now, reason);
  }

  override finish(now: number, attempt: Attempt, judged: Judgement): Step {
    // Who leaves because the slower one is aborted is too late.
    this.endedAt = now;
    if (this.current) this.abandonAll(now, 'another attempt was faster');
    this.target?.hedgeBudget?.success();
    if (this.payment === PREPAID_TIMEOUT && isQuick(attempt as GuardedAttempt, now)) this.payment = REFUNDED;
    return super.finish(now, attempt, judged);
  }

  override learn(now: number, attempt: Attempt, judged: Judgement): void {
    const guarded = attempt as GuardedAttempt;
    this.forget(guarded);
    // Whoever comes with no patience must not close the door on the others.
    const isFair = !guarded.abandoned || !isPatience(this.result) || now - guarded.startedAt >= fairMs;
    const at = judged.class !== 'ok' || isEndTimed(guarded) ? now : guarded.startedAt;
    settleAttempt(guarded, at, isFair ? judged : { class: 'ignored' });
  }

  /** Time that ran out is a failure of the target that may well pass. */
  override judge(outcome: Outcome): Judgement {
    return !outcome.ok && isExpired(outcome.error) ? { class: 'transient' } : super.judge(outcome);
  }

  override isLate(now: number, attempt: Attempt): boolean {
    const guarded = attempt as GuardedAttempt;
    if (guarded.abandoned) guarded.release(now);
    return guarded.abandoned;
  }

  override decide(now: number, judged: Judgement, payment: Payment): Verdict {
    const retryAfterMs = asDelayMs(judged.retryAfterMs ?? 0);
    // What a hedgeTwin was told holds for this one as well.
    this.hintedUntil = Math.max(this.hintedUntil, now + retryAfterMs);
    const hintMs = this.hintedUntil - now;
    if (this.current) return race;
    const hinted = hintMs > retryAfterMs ? { ...judged, retryAfterMs: hintMs } : judged;
    return super.decide(now, hinted, payment);
  }

  override facts(now: number, payment: Payment): Facts {
    const latency = this.target?.latency;
    return {
      ...super.facts(now, payment),
      expectedAttemptMs: latency ? latency.quantile(0.5) : 0,
      admitsAt: this.admitsAt(now),
    };
  }

  override refusal(): unknown {
    const { refused } = this;
    if (!refused || refused.because !== this.stop || this.attempt > 0) return this.result;
    // Made once, however often the ending is looked at.
    this.refused = undefined;
    const afterMs = refused.admitsAt - this.endedAt;
    return refusedQuickly(refused.because, refused.target.name, afterMs < Infinity ? afterMs : undefined);
  }

  private get isOneOfMany(): boolean {
    return !!(this.options?.targets && this.plan.choose);
  }

  private admit(now: number, target: Target): Admission {
    const { plan, patienceEndsAt } = this;
    // A hedge that would have to wait is of no use: it is sent at once or not at all.
    const mayWait = !this.current;
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
    if (this.current) return this.refuse(now, target, 'bulkhead_full');
    const queued = new Queued(this, target, bulkhead);
    if (bulkhead.enter(now, queued) === FULL) return this.refuse(now, target, 'bulkhead_full');
    this.paused = queued;
    this.wakeAt = this.patienceEndsAt;
    return WAIT;
  }

  private dispatch(now: number, target: Target): Admission {
    const { plan, current } = this;
    const hasTime = now < this.patienceEndsAt;
    const guarded =
      hasTime &&
      startAttempt(
        GuardedAttempt,
        plan,
        target,
        this.attempt + 1,
        now,
        this.patienceEndsAt,
        this.attemptMinMs,
      );
    if (!guarded) {
      target.bulkhead?.leave(now);
      return hasTime
        ? this.refuse(now, target, 'breaker_open', target.breaker!.reopensAt(now))
        : this.spent(now);
    }
    this.backingOff = false;
    this.attempt++;
    this.hedgeTwin = current as GuardedAttempt | undefined;
    this.current = guarded;
    if (this.options?.targets) {
      this.tried ??= new Set();
      this.tried.add(target);
    }
    if (target.name === OVERFLOW) this.rename(guarded, now);
    this.hedgeAt = plan.hedge && !current ? plan.hedge.at(this, target, now) : Infinity;
    this.wakeAt = this.nextAlarm();
    return SEND;
  }

  /** Strangers share a target, but an attempt is for the one that was asked for. */
  private rename(guarded: GuardedAttempt, now: number): void {
    const { plan, options } = this;
    const strangers = options?.targets?.filter(
      (name) => plan.targets!.get(name, now) === guarded.targetState,
    );
    const value = options?.target ?? strangers?.[Math.floor(plan.random() * strangers.length)];
    Object.defineProperty(guarded, 'target', { value });
  }

  private refuse(now: number, target: Target, because: RefusalReason, admitsAt = Infinity): typeof REFUSED {
    this.refused = { target, because, admitsAt };
    this.plan.reporter?.refused(this, now, target.name, because);
    return REFUSED;
  }

  /** Every one of the interchangeable targets has an open breaker. */
  private refuseAll(now: number): Admission {
    const { options, plan, target } = this;
    const targets = options!.targets!;
    if (!targets.length)
      return this.giveUp(now, 'not_retryable', new OptionsError('targets', targets, 'at least one target'));
    const admitsAt = targets.map((name) => plan.targets!.get(name, now).breaker?.reopensAt(now) ?? now);
    return this.refuse(now, target as Target, 'breaker_open', Math.min(...admitsAt));
  }

  /** What comes of an admission, or, where it was refused and there are other targets, of one at those. */
  private orElsewhere(now: number, first: Admission): Step {
    let admission = first;
    let refused: Set<Target> | undefined;
    while (admission === REFUSED) {
      // Who hears of a refusal may make the caller leave.
      if (this.stop) return STOP;
      refused ??= new Set();
      refused.add(this.refused!.target);
      const target = this.isOneOfMany && this.plan.choose!(this, now, refused);
      // While another attempt is in guarded, the refused one is just not sent.
      if (!target) return this.current ? WAIT : this.giveUp(now, this.refused!.because, this.result);
      admission = this.admit(now, target);
    }
    return admission;
  }

  private pause(until: number, goOn: (now: number) => Admission): Step {
    this.paused = { resume: (now) => this.orElsewhere(now, goOn(now)), leave() {} };
    this.wakeAt = until;
    return WAIT;
  }

  private nextAlarm(): number {
    const current = this.current as GuardedAttempt | undefined;
    return Math.min(this.hedgeAt, current?.endsAt ?? Infinity, this.hedgeTwin?.endsAt ?? Infinity);
  }

  /** Whether to give an attempt up now. Where it may go on for longer, its end is moved. */
  private isTimeUp(now: number, guarded: GuardedAttempt): boolean {
    if (guarded.endsAt > now) return false;
    if (now < this.patienceEndsAt) guarded.at = extendedEnd(guarded, this.mayRetry(now, guarded));
    return guarded.endsAt <= now;
  }

  /** Whether a retry may follow an attempt that is result up now. */
  private mayRetry(now: number, guarded: GuardedAttempt): boolean {
    const { plan, options, budget } = this;
    if (!this.idempotent || this.retryVeto || plan.killSwitch.isOn || this.attempt >= plan.attempts)
      return false;
    if (options?.retryVeto && callUser(options.retryVeto, 'not_replayable')) return false;
    return !budget || guarded.targetState.autoTimeout?.isLearnt === true || !budget.isScarce(now);
  }

  /** The attempt's time is up. Its call may go on: the permit stays taken until it settles or the lease ends. */
  private expire(now: number, guarded: GuardedAttempt): Step {
    const error = expiryOf(guarded, now, this.startedAt, this.result);
    this.plan.counters.timeouts++;
    const isUnlearnt = guarded.targetState.autoTimeout?.isLearnt === false;
    this.attemptMinMs = isUnlearnt ? 2 * (now - guarded.startedAt) : 0;
    guarded.abandon(now, error);
    // Whoever hears its signal may make the caller leave; the call goes on, and with it the permit.
    if (this.stop) return STOP;
    return this.settled(now, guarded, { ok: false, error });
  }

  private abandonAll(now: number, reason: unknown): void {
    while (this.current) {
      const guarded = this.current as GuardedAttempt;
      this.forget(guarded);
      guarded.targetState.inFlight--;
      guarded.targetState.breaker?.cancel(now, guarded.ticket);
      guarded.abandon(now, reason);
    }
  }

  /** Takes an attempt out of those that the work waits for. */
  private forget(guarded: GuardedAttempt): void {
    if (this.current === guarded) this.current = this.hedgeTwin;
    this.hedgeTwin = undefined;
  }

  private admitsAt(now: number): number {
    const { plan, target } = this;
    if (this.isOneOfMany) return plan.choose!(this, now, undefined) ? now : Infinity;
    const breaker = target?.breaker;
    if (!breaker?.refuses(now)) return now;
    return plan.waitsForBreaker ? this.looksAgainAt(now, breaker) : Infinity;
  }

  /** When to look again at a breaker that refuses. While it probes, that is soon: the probes may settle at any moment. */
  private looksAgainAt(now: number, breaker: Breaker): number {
    const at = breaker.reopensAt(now);
    const isProbing = this.plan.waitsForBreaker && breaker.state(now) === 'half-open';
    return isProbing ? Math.min(at, now + lookMs * (1 + this.plan.random())) : at;
  }

  /** From the bulkhead's queue: its turn has come. */
  admitted(now: number, target: Target): void {
    this.paused = undefined;
    this.driver?.perform(this.orElsewhere(now, this.dispatch(now, target)));
  }

  /** From the bulkhead's queue: someone more important has its place. */
  displaced(now: number, target: Target): void {
    this.paused = undefined;
    this.driver?.perform(this.orElsewhere(now, this.refuse(now, target, 'bulkhead_full')));
  }

  /** From the bulkhead's queue: patience ended there. */
  expired(now: number): void {
    this.paused = undefined;
    this.driver?.perform(this.spent(now));
  }

  /** Patience ended while nothing was in guarded. */
  spent(now: number): Step {
    const tookMs = now - this.startedAt;
    const spent = new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', tookMs, undefined);
    return this.giveUp(now, 'patience_too_short', this.attempt > 0 ? this.result : spent);
  }
}

interface Refusal {
  readonly target: Target;
  readonly because: RefusalReason;
  /** When it may be different, as it looked then; Infinity while unknown. */
  readonly admitsAt: number;
}

/** A quick answer after a timeout: a message was lost, and the target does not have too much to do. */
function isQuick({ targetState, startedAt }: GuardedAttempt, now: number): boolean {
  return now - startedAt <= quickFactor * (targetState.latency?.quantile(0.5) ?? 0);
}

function isPatience(result: unknown): boolean {
  return isExpired(result) && result.code === 'HOLDFAST_PATIENCE_SPENT';
}

const race: Verdict = { kind: 'race' };

/** An admission that waits, for time to pass or in a queue. */
interface Pause {
  /** Goes on when the alarm rings. */
  resume(now: number): Step;
  /** The work ends before that. */
  leave(): void;
}

/** Work in a bulkhead's queue. */
class Queued implements Waiter, Pause {
  declare readonly work: GuardedWork;
  declare readonly target: Target;
  declare readonly bulkhead: Bulkhead;
  declare readonly priority: number;
  declare readonly expiresAt: number;
  declare waiting: boolean;
  declare ahead: Waiter | undefined;
  declare behind: Waiter | undefined;

  constructor(work: GuardedWork, target: Target, bulkhead: Bulkhead) {
    this.work = work;
    this.target = target;
    this.bulkhead = bulkhead;
    this.priority = priorityRank[work.options?.priority ?? 'default'];
    this.expiresAt = work.patienceEndsAt;
    this.waiting = false;
    this.ahead = undefined;
    this.behind = undefined;
  }

  admitted(now: number): void {
    this.work.admitted(now, this.target);
  }

  displaced(now: number): void {
    this.work.displaced(now, this.target);
  }

  expired(now: number): void {
    this.work.expired(now);
  }

  resume(now: number): Step {
    this.leave();
    return this.work.spent(now);
  }

  leave(): void {
    this.bulkhead.abandon(this);
  }
}
