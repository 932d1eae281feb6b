export type { BackoffSettings, Delay } from './backoff.ts';
export {
  Breaker,
  type BreakerCause,
  type BreakerSettings,
  type BreakerSnapshot,
  type BreakerState,
} from './breaker.ts';
export { type BudgetSettings, type BudgetSnapshot, RetryBudget } from './budget.ts';
export { ADMITTED, Bulkhead, type BulkheadSettings, FULL, QUEUED, type Waiter } from './bulkhead.ts';
export { any } from './classify/any.ts';
export { aws } from './classify/aws.ts';
export type { RetryOn } from './classify/classifier.ts';
export { grpc } from './classify/grpc.ts';
export { http } from './classify/http.ts';
export { kafka } from './classify/kafka.ts';
export { type Marked, markOf, permanent, retryAfter, transient } from './classify/marks.ts';
export { network } from './classify/network.ts';
export { sql } from './classify/sql.ts';
export { Alarm, type Clock, type Random } from './clock.ts';
export type { Counters } from './counters.ts';
export { decide, type Facts, type History, type Rules } from './decide.ts';
export { type Duration, durationMs } from './duration.ts';
export { ExpiredError, HoldfastError, OptionsError, RefusedError } from './errors.ts';
export { Gcra, gcraTake, gcraWait } from './gcra.ts';
export { readHint } from './hints.ts';
export { type Listener, type Notice, notices, subscribe } from './notices.ts';
export type { Classifier, Judgement, Outcome, OutcomeClass, Pack } from './outcome.ts';
export { definePart, type Part, type SpecOfParts } from './part.ts';
export { breaker } from './parts/breaker.ts';
export { budget } from './parts/budget.ts';
export { bulkhead } from './parts/bulkhead.ts';
export { cache } from './parts/cache.ts';
export { choice } from './parts/choice.ts';
export { type Fallback, fallback } from './parts/fallback.ts';
export { hedge } from './parts/hedge.ts';
export { limiter } from './parts/limiter.ts';
export { mode } from './parts/mode.ts';
export { type CustomBackoff, retry } from './parts/retry.ts';
export { throttle } from './parts/throttle.ts';
export { timeout } from './parts/timeout.ts';
export type { Context, Operation, Plan, Priority, RunOptions, Wait } from './plan.ts';
export { definePolicy, type Environment, type Policy } from './policy.ts';
export { breakerOf, type PolicyState, policies, registry, type TargetState } from './registry.ts';
export type { Ending, Failure, Success } from './shell.ts';
export { type Story, type StoryAttempt, storyOf } from './story.ts';
export { detached, type Surroundings, surroundedBy, surroundings } from './surroundings.ts';
export { systemClock, systemRandom } from './system-clock.ts';
export { Throttle } from './throttle.ts';
export { type StopReason, stopReasons, type Verdict } from './verdict.ts';
export { type PolicySpec, policy } from './whole-policy.ts';
