import type { Judgement } from '../decide/outcome.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { ExpiredError, isExpired } from '../report/errors.ts';
import type { GuardedAttempt } from './attempt.ts';

/** The lease of a breaker's ticket ends one second after the attempt's time limit. */
const ticketGraceMs = 1000;
/** The lease of an attempt without a time limit. */
const unlimitedLeaseMs = 60_000;
/** Patience is shared among at most ten attempts, however many are left. */
const sharesMax = 10;
/** The shortest share: ever shorter ones would never reach the end of patience. */
const shareMinMs = 1;

/**
 * Starts an attempt that has passed all guards but the last: the breaker gives it a ticket. Undefined: a half-open breaker
 * has no probe left, and the caller returns the permit of the bulkhead.
 */
export function startAttempt<F extends GuardedAttempt>(
  Kind: new (...args: ConstructorParameters<typeof GuardedAttempt>) => F,
  plan: Plan,
  target: Target,
  attempt: number,
  now: number,
  patienceEndsAt: number,
  /** With a learning limit, the attempt has at least this long: twice what was too short for the one before. */
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

/** The clock is read for one success in eight; the others reuse that timestamp. */
const timedEvery = 8;

/**
 * Whether to read the clock at the end of a successful attempt, which takes longer than everything else that a success needs.
 * Where nothing depends on latency, and attempts time out before they are slow, only the counts of a closed breaker need a
 * time, and one that is eight successes old will do.
 */
export function isEndTimed({ plan, targetState: target }: GuardedAttempt): boolean {
  const { breaker, bulkhead, latency, health, throttle } = target;
  if (latency || health || throttle || bulkhead?.queued) return true;
  if (breaker && (!breaker.isClosed || breaker.slowOverMs < (plan.attemptTimeoutMs || Infinity))) return true;
  target.untimed = (target.untimed + 1) % timedEvery;
  return target.untimed === 0;
}

/** Counts an outcome for its target: `ok` and `fatal` are answers, `ignored` is not counted, the rest are failures. */
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

/** Ends work on the fast path, whose first attempt succeeded. */
export function settleSuccess(guarded: GuardedAttempt, judged: Judgement): void {
  const { plan, targetState, startedAt } = guarded;
  settleAttempt(guarded, isEndTimed(guarded) ? plan.clock.now() : startedAt, judged);
  plan.counters.succeeded++;
  targetState.budget?.success();
}

/**
 * The error of an attempt that times out: at its own limit, or at the end of patience. Its cause is the last error of the
 * operation, never another timeout of ours: a chain of them would grow with the attempts.
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
