/**
 * The machines that policies are made of, for those who drive them themselves: the simulator, the HTTP client, servers. Each is
 * synchronous, sets no timer and reads no clock: `now` is always given.
 */
export { AdaptiveLimit, type AdaptiveLimitSettings } from './adaptive-limit.ts';
export { Attempt, Flight } from './attempt.ts';
export { AutoTimeout } from './auto-timeout.ts';
export { type BackoffSettings, backoff, type Delay } from './backoff.ts';
export { Breaker, type BreakerSettings, type BreakerSnapshot } from './breaker.ts';
export { type BudgetSettings, type BudgetSnapshot, RetryBudget } from './budget.ts';
export { ADMITTED, Bulkhead, type BulkheadSettings, FULL, QUEUED, type Waiter } from './bulkhead.ts';
export { type Candidate, Choice, type ChoiceSettings, Standing } from './choice.ts';
export { Codel, type CodelSettings } from './codel.ts';
export { landAtOnce, launch } from './flight-deck.ts';
export { Gcra, gcraTake, gcraWait } from './gcra.ts';
export { GuardedWork } from './guarded-work.ts';
export { Latency } from './latency.ts';
export type { Plan } from './plan.ts';
export { recordEnding } from './story.ts';
export { Target } from './target.ts';
export { OVERFLOW, Targets, type TargetsSettings } from './targets.ts';
export { Throttle, type ThrottleSettings } from './throttle.ts';
export { beginPlainly, DONE, type Driver, SEND, STOP, type Step, takeOver, WAIT, Work } from './work.ts';
