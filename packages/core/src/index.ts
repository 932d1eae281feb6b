export { any } from './classify/any.ts';
export { aws } from './classify/aws.ts';
export { causesOf, type UnknownObject } from './classify/causes-of.ts';
export type { RetryOn } from './classify/classifier.ts';
export { grpc } from './classify/grpc.ts';
export { http } from './classify/http.ts';
export { kafka } from './classify/kafka.ts';
export { type Marked, markOf, permanent, retryAfter, transient } from './classify/marks.ts';
export { network } from './classify/network.ts';
export { sql } from './classify/sql.ts';
export { decide, type Facts, type History, type Rules } from './decide/decide.ts';
export type { Classifier, Judgement, Outcome, OutcomeClass, Pack } from './decide/outcome.ts';
export { type Hint, readHint } from './decide/retry-after.ts';
export { type StopReason, stopReasons, type Verdict } from './decide/verdict.ts';
export type { BreakerCause, BreakerState } from './machines/breaker.ts';
export { breaker } from './parts/breaker.ts';
export { budget } from './parts/budget.ts';
export { bulkhead } from './parts/bulkhead.ts';
export { cache } from './parts/cache.ts';
export { choice } from './parts/choice.ts';
export { type FailedWork, type Fallback, fallback } from './parts/fallback.ts';
export { hedge } from './parts/hedge.ts';
export { limiter } from './parts/limiter.ts';
export { mode } from './parts/mode.ts';
export { type CustomBackoff, retry } from './parts/retry.ts';
export { throttle } from './parts/throttle.ts';
export { timeout } from './parts/timeout.ts';
export { policy } from './policy/all-parts.ts';
export type { Counters } from './policy/counters.ts';
export { type Duration, durationMs } from './policy/duration.ts';
export { fnv1a } from './policy/fnv1a.ts';
export { definePart, type Part, type SpecOfParts } from './policy/part.ts';
export type { Plan } from './policy/plan.ts';
export { definePolicy, type Environment, type Policy } from './policy/policy.ts';
export type {
  BackoffSpec,
  BreakerFields,
  BreakerSlowSpec,
  BreakerSpec,
  BreakerWindowSpec,
  BudgetFields,
  BudgetSpec,
  BulkheadFields,
  BulkheadSpec,
  CacheFields,
  CacheSpec,
  ChoiceFields,
  ChoiceSpec,
  ErrorClass,
  FallbackFields,
  FallbackSpec,
  HedgeFields,
  HedgeSpec,
  JitterSpec,
  LimiterFields,
  LimiterSpec,
  ModeFields,
  ModeSpec,
  NameFields,
  PackName,
  PolicySpec,
  RespectServerSpec,
  RetryFields,
  ThrottleFields,
  ThrottleSpec,
  TimeoutFields,
} from './policy/policy-spec.ts';
export {
  breakerOf,
  breakersOf,
  forceBreaker,
  type PolicyState,
  policies,
  policyOf,
  registry,
  type TargetState,
} from './policy/registry.ts';
export {
  ExpiredError,
  HoldfastError,
  OptionsError,
  type RefusalReason,
  RefusedError,
  traceRefusals,
} from './report/errors.ts';
export { type Around, type Listener, type Notice, notices, type Sent, subscribe } from './report/notices.ts';
export { type Story, type StoryAttempt, storyOf } from './report/story.ts';
export {
  type AmbientContext,
  ambientContext,
  isRetriedElsewhere,
  withAmbient,
  withoutAmbient,
} from './run/ambient-context.ts';
export type { Ending, Failure, Success } from './run/promise-driver.ts';
export type { Context, Operation, Priority, RunOptions, Wait } from './run/run-options.ts';
export { priorityRank } from './run/run-options.ts';
export { Alarm, type Clock, type Random } from './time/clock.ts';
export { later, systemClock, systemRandom } from './time/system-clock.ts';
export { sleep, Timer } from './time/timer.ts';
