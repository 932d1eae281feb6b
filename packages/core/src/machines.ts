/**
 * The state machines of policies, for code that uses them directly. They set no timers and read no clock: the
 * caller passes the current time as `now`.
 */

export { type BackoffSettings, backoff, type Delay } from './decide/backoff.ts';
export { AdaptiveLimit, type AdaptiveLimitSettings } from './machines/adaptive-limit.ts';
export { AutoTimeout } from './machines/auto-timeout.ts';
export { Breaker, type BreakerSettings, type BreakerSnapshot } from './machines/breaker.ts';
export { type BudgetSettings, type BudgetSnapshot, RetryBudget } from './machines/budget.ts';
export { ADMITTED, Bulkhead, type BulkheadSettings, FULL, QUEUED, type Waiter } from './machines/bulkhead.ts';
export { type Candidate, Choice, type ChoiceSettings, TargetHealth } from './machines/choice.ts';
export { Codel, type CodelSettings } from './machines/codel.ts';
export { Gcra, gcraTake, gcraWait } from './machines/gcra.ts';
export { Latency } from './machines/latency.ts';
export { Target } from './machines/target.ts';
export { OVERFLOW, Targets, type TargetsSettings } from './machines/targets.ts';
export { Throttle, type ThrottleSettings } from './machines/throttle.ts';
export type { Plan } from './policy/plan.ts';
export { recordEnding } from './report/story.ts';
export { type AbortHandle, Attempt, GuardedAttempt } from './run/attempt.ts';
export { schedule, stepAfter, stepAt } from './run/driver.ts';
export { machineFor, startPlainAttempt } from './run/fast-path.ts';
export { isEndTimed, settleAttempt, settleSuccess, startAttempt } from './run/guarded-attempt.ts';
export { Guards } from './run/guards.ts';
export { DONE, type Driver, SEND, STOP, type Step, WAIT } from './run/step.ts';
export { Work } from './run/work.ts';
export { type AbortListener, offAbort, onAbort } from './time/abort-listeners.ts';
