export { type ConsumerLike, eventMetrics, observeConsumers, together } from './consumers.ts';
export { errorType } from './error-type.ts';
export { type Logger, type LogOptions, logRetries, type RetryLine } from './log-retries.ts';
export { type Label, type Labels, type Metric, metrics } from './metrics.ts';
export {
  type MetricsHandler,
  metricsHandler,
  type NodeRequest,
  type NodeResponse,
} from './metrics-handler.ts';
export { type Family, type Observation, type ObserveOptions, observe, type Sample } from './observe.ts';
export { contentTypes, type ExpositionFormat, type PrometheusOptions, prometheus } from './prometheus.ts';
export type { Policies } from './selection.ts';
export {
  observeServer,
  type ServerObservationOptions,
  type ServerPartLike,
  serverMetrics,
} from './server-parts.ts';
