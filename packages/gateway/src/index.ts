export type { AccessRecord } from './admin/access-record.ts';
export type { ReloadResult } from './admin/admin-server.ts';
export { openApi } from './admin/openapi.ts';
export type { RequestStory } from './admin/stories.ts';
export type {
  InstanceState,
  ProtectionState,
  RouteState,
  UpstreamState,
  WorkerState,
} from './admin/worker-state.ts';
export {
  type EnvoyConfiguration,
  type EnvoyOptions,
  envoyConfiguration,
} from './envoy/envoy-configuration.ts';
export type { EnvoyPlace } from './envoy/envoy-data-plane.ts';
export {
  type EnvoyLoss,
  envoyFeatures,
  envoyLosses,
  type Feature,
  type FeatureName,
  type Features,
  nodeFeatures,
} from './envoy/envoy-features.ts';
export { writeEnvoyFiles } from './envoy/envoy-files.ts';
export { explainGateway, type GatewayExplanation, type RouteExplanation } from './explain/explain-gateway.ts';
export { type GatewayFinding, lintGateway } from './explain/lint-gateway.ts';
export type { Caller, Size } from './file/field-kinds.ts';
export type {
  AdminConfig,
  AttemptsConfig,
  BareDuration,
  BulkheadConfig,
  CircuitBreakerConfig,
  FallbackConfig,
  GatewayConfig,
  HeaderChanges,
  HealthCheckConfig,
  IdempotencyConfig,
  InstanceConfig,
  ListenConfig,
  LoadBalancingConfig,
  MatchConfig,
  OutlierEjectionConfig,
  Protections,
  RateLimitingConfig,
  RouteConfig,
  SheddingConfig,
  StoresConfig,
  UpstreamConfig,
  UpstreamTlsConfig,
} from './file/gateway-config.ts';
export type { GatewayFile, RouteSpec, ServiceSpec, UpstreamSpec } from './file/gateway-file.ts';
export { gatewaySchema } from './file/gateway-schema.ts';
export { type ParseOptions, parseGateway, type ReadOptions, readGatewayFile } from './file/read-gateway.ts';
export { type Gateway, type GatewayOptions, type LostWorker, startGateway } from './workers/start-gateway.ts';
