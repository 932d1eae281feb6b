export { addressKey, type Peers, peers } from './address.ts';
export {
  ClientGoneError,
  contextOf,
  type EndListener,
  type Exchange,
  type RequestBody,
  type RequestContext,
  type ResponseReviewer,
} from './exchange.ts';
export type { HeaderNames } from './header-names.ts';
export {
  type GracefulShutdown,
  type GracefulShutdownEnvironment,
  type GracefulShutdownOptions,
  gracefulShutdown,
  type ShutdownApp,
  type ShutdownServer,
} from './health/graceful-shutdown.ts';
export {
  type Dependency,
  type DependencyHealth,
  type HealthOptions,
  type HealthPart,
  type HealthStatus,
  health,
} from './health/health.ts';
export { type IdempotentRequest, LeaseLostError } from './idempotency/held-key.ts';
export {
  type IdempotencyCounts,
  type IdempotencyOptions,
  type IdempotencyPart,
  idempotency,
} from './idempotency/idempotency.ts';
export type { RecordEncryption } from './idempotency/record-encryption.ts';
export { type HardenOptions, harden, hardenedServer } from './node/harden.ts';
export { type BulkheadOptions, type BulkheadPart, bulkhead } from './overload/bulkhead.ts';
export {
  type DeadlineCounts,
  type DeadlineOptions,
  type DeadlinePart,
  deadline,
} from './overload/deadline.ts';
export { type DegradeOptions, type DegradePart, degrade } from './overload/degrade.ts';
export type { Readings } from './overload/pressure.ts';
export { type ShedEnvironment, type ShedOptions, type ShedPart, shed } from './overload/shed.ts';
export { type PackagingOptions, packaging } from './packaging.ts';
export type { FastPathRequest, Part, PartName } from './part.ts';
export type { PartEnvironment } from './part-environment.ts';
export { type ProblemName, problem, retryAfterHeader } from './problem.ts';
export {
  type LeaseSpec,
  type LimitSpec,
  type RateEnvironment,
  type RateLimitCounts,
  type RateLimitOptions,
  type RateLimitPart,
  rateLimit,
} from './rate-limit/rate-limit.ts';
export { type HandlerResponse, type PlainResponse, type ResponseHeaders, toResponse } from './response.ts';
export { guardWeb, type WebHandler, type WebRequestInfo } from './web.ts';
