import type { Judgement } from '../decide/outcome.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { ExpiredError, isExpired } from '../report/errors.ts';
import type { GuardedAttempt } from './attempt.ts';

/** A breaker's ticket lives a second longer than its attempt. */
const ticketGraceMs = 1000;
/** The lease of an attempt that has no limit in time. */
const unlimitedLeaseMs = 60_000;
/** However many attempts are left, each has at least a tenth of the patience. */
const sharesMax = 10;
/** And no less than this, or ever shorter ones would never reach the end of it. */
const shareMinMs = 1;

/**
 * Starts an attempt that has passed all guards but the last: half-open, a breaker admits only so many at once, whoever
 * passed its first look. Undefined: it refuses; a permit that was taken is still to be returned.
 */
export function startAttempt<F extends GuardedAttempt>(
  Kind: new (...args: ConstructorParameters<typeof GuardedAttempt>) => F,
  plan: Plan,
  target: Target,
  attempt: number,
  now: number,
  patienceEndsAt: number,
  /** This attempt is not result less time, where the limit is not said: twice what was too short for the one before. */
  leastMs = 0,
): F | undefined {
  const { attemptTimeoutMs } = plan;
  const leftMs = patienceEndsAt - now;
  const limitMs =
    attemptTimeoutMs > 0 ? attemptTimeoutMs : Math.max(leastMs, limitOf(plan, target, attempt, leftMs));
  const { breaker, autoTimeout } = target;
  // A limit that is not learnt yet may be extended to all the patience.
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

/** Among how many attempts the patience is shared, this one included. */
function sharesLeft(plan: Plan, attempt: number): number {
  return Math.min(sharesMax, Math.max(1, plan.attempts - attempt + 1));
}

/**
 * When an attempt whose time is up really ends. Cutting it short would only turn a late answer into a failure where
 * nothing could follow it, or where the limit itself seems too short: then it has all its patience.
 */
export function extendedEnd(guarded: GuardedAttempt, mayRetry: boolean): number {
  const { plan, attempt, startedAt, endsAt, patienceEndsAt } = guarded;
  const { autoTimeout } = guarded.targetState;
  if (plan.attemptTimeoutMs > 0 || !autoTimeout) return endsAt;
  if (!mayRetry || autoTimeout.isLifted) return patienceEndsAt;
  if (autoTimeout.isLearnt) return endsAt;
  // Longer answers may have come since the attempt was sent.
  return Math.max(
    endsAt,
    startedAt + autoTimeout.limitMs(patienceEndsAt - startedAt, sharesLeft(plan, attempt)),
  );
}

/** Of so many successes of a target, one is counted at its own time. */
const timedEvery = 8;

/**
 * Whether the end of an attempt that went well has to be timed: to look at the clock takes longer than anything else that a
 * success needs. Where nothing depends on how long attempts take, and none can be slow because it is given up before, only
 * the counts of a closed breaker are left, and in those a few successes may stand where the last one was counted that was timed.
 */
export function isEndTimed({ plan, targetState: target }: GuardedAttempt): boolean {
  const { breaker, bulkhead, latency, health, throttle } = target;
  if (latency || health || throttle || bulkhead?.queued) return true;
  if (breaker && (!breaker.isClosed || breaker.slowOverMs < (plan.attemptTimeoutMs || Infinity))) return true;
  target.untimed = (target.untimed + 1) % timedEvery;
  return target.untimed === 0;
}

/** Takes in what an attempt says of its target: `ok` and `fatal` are answers, `ignored` is nothing, the rest failures. */
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

/** The end of work whose first attempt went well, before there was need of a machine. */
export function settleSuccess(guarded: GuardedAttempt, judged: Judgement): void {
  const { plan, targetState, startedAt } = guarded;
  settleAttempt(guarded, isEndTimed(guarded) ? plan.clock.now() : startedAt, judged);
  plan.counters.succeeded++;
  targetState.budget?.success();
}

/**
 * The error of an attempt whose time is up: its own limit, or the end of all patience. Its cause is the last real error,
 * past any of ours: one on top of the other they would grow with the attempts.
 */
export function expiryOf(
  guarded: GuardedAttempt,
  now: number,
  startedAt: number,
  result: unknown,
): ExpiredError {
  const cause = isExpired(result) ? result.cause : result;
  return guarded.endsAt < guarded.patienceEndsAt
    ? new ExpiredError(
        'HOLDFAST_ATTEMPT_TIMEOUT',
        `attempt ${guarded.attempt}`,
        now - guarded.startedAt,
        cause,
      )
    : new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the work', now - startedAt, cause);
}
