export type {
  Arrival,
  Carrier,
  CarrierCounts,
  Intake,
  IntakeListener,
  Message,
  QueueName,
} from './carrier.ts';
export {
  type CarrierBroker,
  type CarrierOptions,
  carrierBroker,
  carrierDefaults,
} from './carrier-broker.ts';
export { type CarrierEngine, carrierEngine } from './carrier-engine.ts';
export { carrierFeatures } from './features.ts';
