import { type Attempt, Flight } from './attempt.ts';
import { type Bulkhead, FULL, type Waiter } from './bulkhead.ts';
import { Alarm } from './clock.ts';
import type { Facts } from './decide.ts';
import { ExpiredError, refusedQuickly } from './errors.ts';
import type { Judgement, Outcome } from './outcome.ts';
import type { Priority } from './plan.ts';
import type { Target } from './target.ts';
import type { StopReason, Verdict } from './verdict.ts';
import { SEND, type Step, WAIT, Work } from './work.ts';

/** A breaker's ticket lives a second longer than its attempt, a permit half a minute: then its call is a zombie. */
const ticketGraceMs = 1000;
const permitGraceMs = 30_000;
/** The lease of an attempt that has no limit in time. */
const unlimitedLeaseMs = 60_000;

/** However many attempts are left, each has at least a tenth of the patience. */
const sharesMax = 10;

const ranks: Record<Priority, number> = { critical: 0, default: 1, sheddable: 2 };

/** Not admitted; `refused` says by whom. */
const REFUSED = -1;
type Admission = Step | typeof REFUSED;

/** Work whose attempts have guards around them, in one fixed order:
 * target → throttle, breaker refuses? → limiter → bulkhead → breaker admits → attempt timeout → the call.
 *
 * A refusal here is local: it never counts as a failure of the target, and only another target is tried instead.
 */
export class GuardedWork extends Work {
  /** Attempts in flight that the work waits for. */
  live = 0;
  /** When a second attempt may be started beside the first. */
  hedgeAt = Infinity;
  /** An admission that waits, for its time or in a queue. */
  paused: Pause | undefined = undefined;
  /** The interchangeable targets that had an attempt. */
  tried: Set<Target> | undefined = undefined;
  refused: { readonly target: Target; readonly because: StopReason } | undefined = undefined;

  override begin(now: number): Step {
    this.target = this.plan.targetOf?.(this.options, now);
    return super.begin(now);
  }

  override send(now: number): Step {
    const { plan } = this;
    this.backingOff = false;
    this.wakeAt = Infinity;
    if (!this.options?.targets || !plan.choose)
      return this.#orGiveUp(now, this.#admit(now, this.target as Target));
    const refused = new Set<Target>();
    for (;;) {
      const target = plan.choose(this, now, refused);
      if (!target) {
        this.refused ??= { target: this.target as Target, because: 'breaker_open' };
        return this.#orGiveUp(now, REFUSED);
      }
      const admission = this.#admit(now, target);
      if (admission !== REFUSED) return admission;
      refused.add(target);
    }
  }

  override alarm(now: number): Step {
    const { paused, plan } = this;
    if (this.backingOff) return this.send(now);
    if (paused) {
      this.paused = undefined;
      this.wakeAt = Infinity;
      return paused.resume(now);
    }
    if (now >= this.hedgeAt) {
      this.hedgeAt = Infinity;
      if (plan.hedge?.may(this, now) && this.send(now) === SEND) {
        plan.counters.hedges++;
        plan.reporter?.hedged(this, this.current as Flight, now);
        return SEND;
      }
    }
    let step: Step = WAIT;
    for (let flight = this.current as Flight | undefined; flight; flight = flight.rival) {
      if (flight.endsAt <= now) step = this.#expire(now, flight);
    }
    if (this.live > 0) this.wakeAt = this.#nextAlarm();
    return step;
  }

  override cancel(now: number, reason: unknown): Step {
    this.paused?.leave();
    this.paused = undefined;
    this.#abandonAll(now, reason);
    return super.cancel(now, reason);
  }

  override finish(now: number, attempt: Attempt, judged: Judgement): Step {
    if (this.live > 0) this.#abandonAll(now, 'another attempt was faster');
    this.target?.hedgeBudget?.success(now);
    return super.finish(now, attempt, judged);
  }

  /** `ok` and `fatal` are answers of the target, `transient` and `throttled` are failures, `ignored` is nothing. */
  override learn(now: number, attempt: Attempt, judged: Judgement): void {
    const flight = attempt as Flight;
    const { on: target, ticket } = flight;
    const { class: outcome } = judged;
    const tookMs = now - flight.startedAt;
    const answered = outcome === 'ok' || outcome === 'fatal';
    if (outcome === 'ignored') target.breaker?.cancel(now, ticket);
    else {
      target.breaker?.settle(now, ticket, !answered, tookMs);
      target.autoTimeout?.settle(now, tookMs, answered, flight.over);
      target.standing?.settle(now, tookMs, answered);
      if (answered) {
        target.latency?.record(now, tookMs);
        target.throttle?.accept(now);
      } else target.throttle?.reject(now);
    }
    this.#forget(flight);
    if (!flight.over) release(flight, now);
  }

  /** Time that ran out is a failure of the target that may well pass. */
  override judge(outcome: Outcome): Judgement {
    return !outcome.ok && outcome.error instanceof ExpiredError
      ? { class: 'transient' }
      : super.judge(outcome);
  }

  override isLate(now: number, attempt: Attempt): boolean {
    const flight = attempt as Flight;
    if (flight.over) release(flight, now);
    return flight.over;
  }

  override decide(now: number, judged: Judgement): Verdict {
    return this.live > 0 ? race : super.decide(now, judged);
  }

  override facts(now: number): Facts {
    const latency = this.target?.latency;
    return {
      ...super.facts(now),
      expectedAttemptMs: latency ? latency.quantile(0.5) : 0,
      admitsAt: this.#admitsAt(now),
    };
  }

  override refusal(): unknown {
    if (!this.refused || this.attempt > 0) return this.given;
    const { target, because } = this.refused;
    const afterMs =
      because === 'breaker_open' ? (target.breaker?.reopensAt(this.endedAt) ?? 0) - this.endedAt : undefined;
    return refusedQuickly(because, target.name, afterMs);
  }

  #admit(now: number, target: Target): Admission {
    const { plan } = this;
    if (target.throttle?.refuses(now, plan.random())) return this.#refuse(now, target, 'throttled');
    if (target.breaker?.refuses(now)) {
      const reopensAt = target.breaker.reopensAt(now);
      if (!plan.waitsForBreaker || reopensAt >= this.patienceEndsAt)
        return this.#refuse(now, target, 'breaker_open');
      return this.#pause(reopensAt, (later) => this.#admit(later, target));
    }
    if (target.limiter) {
      const waitMs = target.limiter.reserve(now, Math.min(plan.limiterWaitMs, this.patienceEndsAt - now));
      if (waitMs < 0) return this.#refuse(now, target, 'rate_limited');
      if (waitMs > 0) return this.#pause(now + waitMs, (later) => this.#enter(later, target));
    }
    return this.#enter(now, target);
  }

  #enter(now: number, target: Target): Admission {
    const { bulkhead } = target;
    if (!bulkhead || bulkhead.tryEnter()) return this.#dispatch(now, target);
    const queued = new Queued(this, target, bulkhead);
    if (bulkhead.enter(now, queued) === FULL) return this.#refuse(now, target, 'bulkhead_full');
    this.paused = queued;
    this.wakeAt = this.patienceEndsAt;
    return WAIT;
  }

  /** The last word is the breaker's: half-open it admits only so many at once, whoever passed its first look. */
  #dispatch(now: number, target: Target): Admission {
    const { plan, patienceEndsAt } = this;
    const limitMs = this.#attemptLimitMs(now, target);
    let ticket = -1;
    if (target.breaker) {
      ticket = target.breaker.admit(now, limitMs === Infinity ? unlimitedLeaseMs : limitMs + ticketGraceMs);
      if (ticket < 0) {
        target.bulkhead?.leave(now);
        return this.#refuse(now, target, 'breaker_open');
      }
    }
    const rival = this.current as Flight | undefined;
    const endsAt = Math.min(now + limitMs, patienceEndsAt);
    const permit = target.bulkhead !== undefined;
    plan.counters.attempts++;
    this.current = new Flight(
      plan,
      ++this.attempt,
      patienceEndsAt,
      target,
      now,
      endsAt,
      ticket,
      permit,
      rival,
    );
    target.inFlight++;
    if (this.options?.targets) {
      this.tried ??= new Set();
      this.tried.add(target);
    }
    this.live++;
    this.hedgeAt = plan.hedge && !rival ? plan.hedge.at(this, target, now) : Infinity;
    this.wakeAt = rival ? this.#nextAlarm() : Math.min(endsAt, this.hedgeAt);
    return SEND;
  }

  #attemptLimitMs(now: number, target: Target): number {
    const { attemptTimeoutMs, attempts } = this.plan;
    if (attemptTimeoutMs > 0) return attemptTimeoutMs;
    const leftMs = this.patienceEndsAt - now;
    const attemptsLeft = Math.min(sharesMax, Math.max(1, attempts - this.attempt));
    return target.autoTimeout ? target.autoTimeout.limitMs(leftMs, attemptsLeft) : leftMs / attemptsLeft;
  }

  #refuse(now: number, target: Target, because: StopReason): typeof REFUSED {
    this.refused = { target, because };
    this.plan.reporter?.refused(this, now, target.name, because);
    return REFUSED;
  }

  #orGiveUp(now: number, admission: Admission): Step {
    if (admission !== REFUSED) return admission;
    // While another attempt is in flight, the refused one is just not sent.
    return this.live > 0 ? WAIT : this.giveUp(now, this.refused!.because, this.given);
  }

  #pause(until: number, goOn: (now: number) => Admission): Step {
    this.paused = { resume: (now) => this.#orGiveUp(now, goOn(now)), leave() {} };
    this.wakeAt = until;
    return WAIT;
  }

  #nextAlarm(): number {
    let at = this.hedgeAt;
    for (let flight = this.current as Flight | undefined; flight; flight = flight.rival) {
      if (flight.endsAt < at) at = flight.endsAt;
    }
    return at;
  }

  /** The attempt's time is up. Its call may go on: the permit stays taken until it settles or the lease ends. */
  #expire(now: number, flight: Flight): Step {
    const tookMs = now - flight.startedAt;
    const error =
      flight.endsAt < this.patienceEndsAt
        ? new ExpiredError('HOLDFAST_ATTEMPT_TIMEOUT', `attempt ${flight.attempt}`, tookMs, this.given)
        : this.#patienceSpent(now);
    this.plan.counters.timeouts++;
    this.#abandon(now, flight, error);
    return this.settled(now, flight, { ok: false, error });
  }

  #patienceSpent(now: number): ExpiredError {
    return new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', now - this.startedAt, this.given);
  }

  #abandonAll(now: number, reason: unknown): void {
    for (let flight = this.current as Flight | undefined; flight; flight = flight.rival) {
      this.#forget(flight);
      flight.on.breaker?.cancel(now, flight.ticket);
      this.#abandon(now, flight, reason);
    }
  }

  /** Takes an attempt out of those that are in flight. */
  #forget(flight: Flight): void {
    this.live--;
    flight.on.inFlight--;
    if (this.current === flight) this.current = flight.rival;
    else if (this.current) (this.current as Flight).rival = flight.rival;
  }

  #abandon(now: number, flight: Flight, reason: unknown): void {
    flight.abandon(reason);
    if (flight.permit) this.plan.clock.set(new Lease(this, flight), now + permitGraceMs);
  }

  #admitsAt(now: number): number {
    const { plan, target } = this;
    if (this.options?.targets && plan.choose) return plan.choose(this, now, undefined) ? now : Infinity;
    const breaker = target?.breaker;
    if (!breaker?.refuses(now)) return now;
    return plan.waitsForBreaker ? breaker.reopensAt(now) : Infinity;
  }

  /** From the bulkhead's queue: its turn has come. */
  admitted(now: number, target: Target): void {
    this.#proceed(this.#orGiveUp(now, this.#dispatch(now, target)));
  }

  /** From the bulkhead's queue: someone more important has its place. */
  displaced(now: number, target: Target): void {
    this.#proceed(this.#orGiveUp(now, this.#refuse(now, target, 'bulkhead_full')));
  }

  /** From the bulkhead's queue: patience ended there. */
  expired(now: number): void {
    this.#proceed(this.spent(now));
  }

  /** Patience ended while nothing was in flight. */
  spent(now: number): Step {
    return this.giveUp(now, 'patience_too_short', this.attempt > 0 ? this.given : this.#patienceSpent(now));
  }

  #proceed(step: Step): void {
    this.paused = undefined;
    this.driver?.perform(step);
  }
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
  readonly work: GuardedWork;
  readonly target: Target;
  readonly bulkhead: Bulkhead;
  readonly priority: number;
  readonly expiresAt: number;
  waiting = false;
  ahead: Waiter | undefined = undefined;
  behind: Waiter | undefined = undefined;

  constructor(work: GuardedWork, target: Target, bulkhead: Bulkhead) {
    this.work = work;
    this.target = target;
    this.bulkhead = bulkhead;
    this.priority = ranks[work.options?.priority ?? 'default'];
    this.expiresAt = work.patienceEndsAt;
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

/** A call that nobody waits for keeps its permit for so long; if it has not settled then, it is counted as a zombie. */
class Lease extends Alarm {
  readonly work: GuardedWork;
  readonly flight: Flight;

  constructor(work: GuardedWork, flight: Flight) {
    super();
    this.work = work;
    this.flight = flight;
    flight.lease = this;
  }

  ring(now: number): void {
    const { flight, work } = this;
    flight.permit = false;
    work.plan.counters.zombies++;
    work.plan.reporter?.zombie(work, flight, now);
    flight.on.bulkhead?.forfeit(now);
  }
}

function release(flight: Flight, now: number): void {
  if (!flight.permit) return;
  flight.permit = false;
  if (flight.lease) flight.plan.clock.clear(flight.lease);
  flight.on.bulkhead?.leave(now);
}
