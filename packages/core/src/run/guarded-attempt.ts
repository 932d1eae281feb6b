import type { Judgement } from '../decide/outcome.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { ExpiredError, isExpired } from '../report/errors.ts';
import type { GuardedAttempt } from './attempt.ts';

/** A probe without a result is given up as failed this long after the time limit of the attempt. */
const ticketGraceMs = 1000;
/** Without a time limit, a probe without a result is given up as failed after this time. */
const unlimitedLeaseMs = 60_000;
const sharesMax = 10;
/**
 * The shortest time limit of an attempt. Without a minimum, attempts would get ever shorter and never use up the time.
 */
const shareMinMs = 1;

/**
 * Starts an attempt that all guards but the breaker have admitted. Returns undefined if the breaker admits no more
 * probes. Then the caller must return the permit to the bulkhead.
 */
export function startAttempt<F extends GuardedAttempt>(
  Kind: new (...args: ConstructorParameters<typeof GuardedAttempt>) => F,
  plan: Plan,
  target: Target,
  attempt: number,
  now: number,
  patienceEndsAt: number,
  /** The minimum limit while limits are being learnt: twice the limit that was too short for the previous attempt. */
  leastMs = 0,
): F | undefined {
  const { attemptTimeoutMs } = plan;
  const leftMs = patienceEndsAt - now;
  const limitMs =
    attemptTimeoutMs > 0 ? attemptTimeoutMs : Math.max(leastMs, limitOf(plan, target, attempt, leftMs));
  const { breaker, autoTimeout } = target;
  // A limit that is not learnt yet may be extended, up to the time limit of the work.
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
 * Returns when an attempt at its time limit must really end. If no retry can follow or the limit seems too short, the
 * attempt may go on.
 */
export function extendedEnd(guarded: GuardedAttempt, mayRetry: boolean): number {
  const { plan, attempt, startedAt, endsAt, patienceEndsAt } = guarded;
  const { autoTimeout } = guarded.targetState;
  if (plan.attemptTimeoutMs > 0 || !autoTimeout) return endsAt;
  if (!mayRetry || autoTimeout.isLifted) return patienceEndsAt;
  if (autoTimeout.isLearnt) return endsAt;
  // Longer answers may have raised the limit since the attempt was sent.
  return Math.max(
    endsAt,
    startedAt + autoTimeout.limitMs(patienceEndsAt - startedAt, sharesLeft(plan, attempt)),
  );
}

/** The clock is read at the end of one success in eight. Other successes use their start time. */
const timedEvery = 8;

/**
 * Whether to read the clock at the end of a successful attempt, which is expensive. If nothing measures latency, a
 * slightly older time is good enough.
 */
export function isEndTimed({ plan, targetState: target }: GuardedAttempt): boolean {
  const { breaker, bulkhead, latency, health, throttle } = target;
  if (latency || health || throttle || bulkhead?.queued) return true;
  if (breaker && (!breaker.isClosed || breaker.slowOverMs < (plan.attemptTimeoutMs || Infinity))) return true;
  target.untimed = (target.untimed + 1) % timedEvery;
  return target.untimed === 0;
}

/**
 * Reports an outcome to the state of its target. `ok` and `fatal` are answers, `ignored` is not counted, the others are
 * failures.
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

/** Records a first attempt that succeeded without the state machine `Work`. */
export function settleSuccess(guarded: GuardedAttempt, judged: Judgement): void {
  const { plan, targetState, startedAt } = guarded;
  settleAttempt(guarded, isEndTimed(guarded) ? plan.clock.now() : startedAt, judged);
  plan.counters.succeeded++;
  targetState.budget?.success();
}

/**
 * Creates the error of an attempt that timed out. Its cause is the operation's last error, never another timeout error,
 * so that the chain of causes does not grow.
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
