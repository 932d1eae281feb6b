export type { Address } from './address.ts';
export type { Chaos, ChaosCounts, ChaosOptions } from './chaos.ts';
export { type ChaosControl, type ChaosControlOptions, chaosControl } from './control.ts';
export type {
  DelaySpec,
  DuplicateFaultSpec,
  ErrorFaultSpec,
  ExponentialDelaySpec,
  FaultSpec,
  FlapSpec,
  HangFaultSpec,
  LatencyFaultSpec,
  LognormalDelaySpec,
  MatchSpec,
  ParetoDelaySpec,
  RefuseFaultSpec,
  ReorderFaultSpec,
  ResetFaultSpec,
  SlowFaultSpec,
  StatusFaultSpec,
  TruncateFaultSpec,
  UniformDelaySpec,
} from './fault-spec.ts';
export { type ChaosFetch, type ChaosFetchOptions, chaosFetch } from './fetch.ts';
export { type ChaosHandler, type ChaosHandlerOptions, chaosHandler } from './handler.ts';
export { type ChaosProxy, type ChaosProxyOptions, type ChaosProxyState, chaosProxy } from './proxy.ts';
export {
  type ChaosPlan,
  type ChaosSpec,
  type FaultKind,
  type FaultSettings,
  type Place,
  readChaos,
} from './spec.ts';
export { type Fault, type Subject, strike } from './strike.ts';
