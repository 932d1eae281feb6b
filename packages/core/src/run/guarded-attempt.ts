import type { Judgement } from '../decide/outcome.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { ExpiredError, isExpired } from '../report/errors.ts';
import type { GuardedAttempt } from './attempt.ts';

/** A probe (the breaker's trial call) without a result counts as failed this many ms after its time limit. */
const ticketGraceMs = 1000;
/**
 * If a probe (the breaker's trial call) has no time limit, it counts as failed after this many ms without a
 * result.
 */
const unlimitedLeaseMs = 60_000;
const sharesMax = 10;
/**
 * The shortest time limit of an attempt, in ms. Without a minimum, equal shares of the remaining time would
 * become ever shorter, and the time would never be used up.
 */
const shareMinMs = 1;

/**
 * Starts an attempt that all guards except the breaker have admitted (rate limiter, bulkhead, …). Returns
 * undefined if the breaker does not admit the attempt. In this case the caller must give the bulkhead permit
 * back.
 */
export function startAttempt<F extends GuardedAttempt>(
  Kind: new (...args: ConstructorParameters<typeof GuardedAttempt>) => F,
  plan: Plan,
  target: Target,
  attempt: number,
  now: number,
  patienceEndsAt: number,
  /**
   * The minimum time limit while limits are being learnt: twice the time after which the previous attempt
   * timed out.
   */
  leastMs = 0,
): F | undefined {
  const { attemptTimeoutMs } = plan;
  const leftMs = patienceEndsAt - now;
  const limitMs =
    attemptTimeoutMs > 0 ? attemptTimeoutMs : Math.max(leastMs, limitOf(plan, target, attempt, leftMs));
  const { breaker, autoTimeout } = target;
  // While the limit is not learnt, the attempt may be extended up to the time limit of the work. So the
  // breaker must wait that long for the result.
  const leaseMs = autoTimeout?.isLearnt === false ? leftMs : limitMs;
  const ticket = breaker
    ? breaker.admit(now, leaseMs < Infinity ? leaseMs + ticketGraceMs : unlimitedLeaseMs)
    : 0;
  if (ticket < 0) return undefined;
  plan.counters.attempts++;
  target.inFlight++;
  return new Kind(
    plan,
    attempt,
    patienceEndsAt,
    target,
    now,
    Math.min(now + limitMs, patienceEndsAt),
    ticket,
  );
}

function limitOf(plan: Plan, target: Target, attempt: number, leftMs: number): number {
  const shares = sharesLeft(plan, attempt);
  return Math.max(
    shareMinMs,
    target.autoTimeout ? target.autoTimeout.limitMs(leftMs, shares) : leftMs / shares,
  );
}

function sharesLeft(plan: Plan, attempt: number): number {
  return Math.min(sharesMax, Math.max(1, plan.attempts - attempt + 1));
}

/**
 * Called when an attempt reaches its time limit. Returns when the attempt must really end: later if no retry
 * can follow, or if the limit seems too short.
 */
export function extendedEnd(guarded: GuardedAttempt, mayRetry: boolean): number {
  const { plan, attempt, startedAt, endsAt, patienceEndsAt } = guarded;
  const { autoTimeout } = guarded.targetState;
  if (plan.attemptTimeoutMs > 0 || !autoTimeout) return endsAt;
  if (!mayRetry || autoTimeout.isLifted) return patienceEndsAt;
  if (autoTimeout.isLearnt) return endsAt;
  // Slow answers of other attempts may have raised the limit since this attempt was sent.
  return Math.max(
    endsAt,
    startedAt + autoTimeout.limitMs(patienceEndsAt - startedAt, sharesLeft(plan, attempt)),
  );
}

/**
 * The clock is read at the end of one success in eight. The other successes are recorded with their start
 * time.
 */
const timedEvery = 8;

/**
 * Whether to read the clock at the end of a successful attempt. Reading is expensive, so it is skipped for
 * most attempts if nothing measures their duration.
 */
export function isEndTimed({ plan, targetState: target }: GuardedAttempt): boolean {
  const { breaker, bulkhead, latency, health, throttle } = target;
  if (latency || health || throttle || bulkhead?.queued) return true;
  if (breaker && (!breaker.isClosed || breaker.slowOverMs < (plan.attemptTimeoutMs || Infinity))) return true;
  target.untimed = (target.untimed + 1) % timedEvery;
  return target.untimed === 0;
}

/**
 * Records the outcome of an attempt in the state of its target (breaker, latency, …). The classes `ok` and
 * `fatal` are answers, `ignored` is not counted, and the others are failures.
 */
export function settleAttempt(guarded: GuardedAttempt, now: number, judged: Judgement): void {
  const { targetState: target, ticket } = guarded;
  const { breaker, autoTimeout, health, latency, throttle } = target;
  const { class: outcome } = judged;
  const tookMs = now - guarded.startedAt;
  const answered = outcome === 'ok' || outcome === 'fatal';
  target.inFlight--;
  if (outcome === 'ignored') breaker?.cancel(now, ticket);
  else {
    breaker?.settle(now, ticket, !answered, tookMs, outcome === 'throttled');
    if (autoTimeout) {
      const shareMs =
        (guarded.patienceEndsAt - guarded.startedAt) / sharesLeft(guarded.plan, guarded.attempt);
      autoTimeout.settle(tookMs, answered, guarded.abandoned, shareMs);
    }
    health?.settle(now, tookMs, answered);
    if (answered) latency?.record(now, tookMs);
    if (throttle) throttle[answered ? 'accept' : 'reject'](now);
  }
  if (!guarded.abandoned) guarded.release(now);
}

/** Records the success of a first attempt that was made without the state machine `Work`. */
export function settleSuccess(guarded: GuardedAttempt, judged: Judgement): void {
  const { plan, targetState, startedAt } = guarded;
  settleAttempt(guarded, isEndTimed(guarded) ? plan.clock.now() : startedAt, judged);
  plan.counters.succeeded++;
  targetState.budget?.success();
}

/**
 * Creates the error of an attempt that timed out. Its cause is the last error of the operation. The cause is
 * never another timeout error, because then the chain of causes would grow with each attempt.
 */
export function expiryOf(guarded: GuardedAttempt, startedAt: number, result: unknown): ExpiredError {
  const cause = isExpired(result) ? result.cause : result;
  return guarded.endsAt < guarded.patienceEndsAt
    ? new ExpiredError(
        'HOLDFAST_ATTEMPT_TIMEOUT',
        `attempt ${guarded.attempt}`,
        guarded.endsAt - guarded.startedAt,
        cause,
      )
    : new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', guarded.patienceEndsAt - startedAt, cause);
}
