import type { Judgement } from '../decide/outcome.ts';
import type { Target } from '../machines/target.ts';
import type { Plan } from '../policy/plan.ts';
import { ExpiredError, isExpired } from '../report/errors.ts';
import type { GuardedAttempt } from './attempt.ts';

/** A breaker counts a probe as failed if it has no result this long after the attempt's time limit. */
const ticketGraceMs = 1000;
/** For an attempt without a time limit, the breaker waits this long for the result of a probe. */
const unlimitedLeaseMs = 60_000;
/** Patience (the time limit of the whole work) is divided among at most this many attempts. */
const sharesMax = 10;
/**
 * The shortest time limit of an attempt. Without it, attempts would get shorter and shorter, and patience would never
 * be used up.
 */
const shareMinMs = 1;

/**
 * Starts an attempt after all other guards have admitted it: only the breaker is asked here. Returns undefined when a
 * half-open breaker admits no more probes; then the caller must return the bulkhead's permit.
 */
export function startAttempt<F extends GuardedAttempt>(
  Kind: new (...args: ConstructorParameters<typeof GuardedAttempt>) => F,
  plan: Plan,
  target: Target,
  attempt: number,
  now: number,
  patienceEndsAt: number,
  /** The shortest limit while limits are learnt: twice the time that was too short for the attempt before. */
  leastMs = 0,
): F | undefined {
  const { attemptTimeoutMs } = plan;
  const leftMs = patienceEndsAt - now;
  const limitMs =
    attemptTimeoutMs > 0 ? attemptTimeoutMs : Math.max(leastMs, limitOf(plan, target, attempt, leftMs));
  const { breaker, autoTimeout } = target;
  // An attempt may outlast a limit that is not learnt yet, and use all the patience.
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

/** The number of attempts that share the remaining patience, including this one. */
function sharesLeft(plan: Plan, attempt: number): number {
  return Math.min(sharesMax, Math.max(1, plan.attempts - attempt + 1));
}

/**
 * Returns when an attempt that has reached its time limit must really end. It may use all its patience if no retry can
 * follow it, or if the limit seems too short: in both cases a timeout would only turn a late answer into a failure.
 */
export function extendedEnd(guarded: GuardedAttempt, mayRetry: boolean): number {
  const { plan, attempt, startedAt, endsAt, patienceEndsAt } = guarded;
  const { autoTimeout } = guarded.targetState;
  if (plan.attemptTimeoutMs > 0 || !autoTimeout) return endsAt;
  if (!mayRetry || autoTimeout.isLifted) return patienceEndsAt;
  if (autoTimeout.isLearnt) return endsAt;
  // The limit may have grown since the attempt was sent, because longer answers have arrived.
  return Math.max(
    endsAt,
    startedAt + autoTimeout.limitMs(patienceEndsAt - startedAt, sharesLeft(plan, attempt)),
  );
}

/** The clock is read at the end of one success in eight. The others use the start time of their attempt. */
const timedEvery = 8;

/**
 * Whether to read the clock at the end of a successful attempt. Reading the clock takes longer than all other
 * bookkeeping of a success. If nothing measures latency, only the counts of a closed breaker need the time, and a
 * slightly older time is good enough for them.
 */
export function isEndTimed({ plan, targetState: target }: GuardedAttempt): boolean {
  const { breaker, bulkhead, latency, health, throttle } = target;
  if (latency || health || throttle || bulkhead?.queued) return true;
  if (breaker && (!breaker.isClosed || breaker.slowOverMs < (plan.attemptTimeoutMs || Infinity))) return true;
  target.untimed = (target.untimed + 1) % timedEvery;
  return target.untimed === 0;
}

/**
 * Reports an outcome to the state of its target: `ok` and `fatal` are answers, `ignored` is not counted, others are
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

/** Records the success of a first attempt that ran without the state machine `Work`. */
export function settleSuccess(guarded: GuardedAttempt, judged: Judgement): void {
  const { plan, targetState, startedAt } = guarded;
  settleAttempt(guarded, isEndTimed(guarded) ? plan.clock.now() : startedAt, judged);
  plan.counters.succeeded++;
  targetState.budget?.success();
}

/**
 * Creates the error of an attempt that timed out, at its own limit or at the end of patience. Its cause is the last
 * error of the operation, never another timeout error: otherwise the chain of causes would grow with each attempt.
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
