export { type Peers, peers } from './address.ts';
export { type Answer, type AnswerHeaders, type HandlerAnswer, toResponse } from './answer.ts';
export { type BulkheadOptions, type BulkheadPart, bulkhead } from './bulkhead.ts';
export { type DeadlineOptions, deadline } from './deadline.ts';
export { type DegradeOptions, type DegradePart, degrade } from './degrade.ts';
export {
  type AnswerHolder,
  ClientGoneError,
  contextOf,
  type EndListener,
  type Exchange,
  type RequestBody,
  type RequestContext,
} from './exchange.ts';
export {
  type GracefulShutdown,
  type GracefulShutdownOptions,
  gracefulShutdown,
} from './graceful-shutdown.ts';
export { type HardenOptions, harden, hardenedServer } from './hardened.ts';
export type { HeaderNames } from './header-names.ts';
export {
  type Dependency,
  type DependencyHealth,
  type HealthOptions,
  type HealthPart,
  type HealthStatus,
  health,
} from './health.ts';
export {
  type IdempotencyCounts,
  type IdempotencyOptions,
  type IdempotencyPart,
  idempotency,
} from './idempotency.ts';
export { type IdempotentRequest, LeaseLostError } from './idempotent-request.ts';
export type { Part, PartName, Visit } from './part.ts';
export type { Readings } from './pressure.ts';
export { type ProblemName, problem, retryAfter } from './problem.ts';
export {
  type RateEnvironment,
  type RateLimitCounts,
  type RateLimitOptions,
  type RateLimitPart,
  rateLimit,
} from './rate-limit.ts';
export type { Sealing } from './sealing.ts';
export { type ShedEnvironment, type ShedOptions, type ShedPart, shed } from './shed.ts';
export { guardWeb, type WebHandler, type WebSurroundings } from './web.ts';
