export { permanent, transient } from 'holdfast';
export { type Consumer, type ConsumerState, consumer } from './consumer/consumer.ts';
export type { ConsumerOptions } from './consumer/consumer-options.ts';
export type { ConsumerPolicySpec } from './consumer/consumer-policy.ts';
export { consumers } from './consumer/consumer-registry.ts';
export { type DrainOptions, drainOnSignals, type Stoppable } from './consumer/drain-on-signals.ts';
export {
  ConflictError,
  ConsumerStoppedError,
  CrashedError,
  LeaseLostError,
  PoisonError,
  RebuildError,
} from './consumer/event-errors.ts';
export {
  type ConsumerStatus,
  type EventListener,
  type EventNotice,
  subscribeEvents,
} from './consumer/event-notices.ts';
export { ExclusiveRun } from './consumer/exclusive-run.ts';
export {
  type Commit,
  commit,
  discard,
  done,
  type HandlerResult,
  park,
  reroute,
  retry,
  snooze,
} from './consumer/handler-result.ts';
export { stopAdvice } from './consumer/stop-advice.ts';
export type { HandledEvent, Handler } from './consumer/task.ts';
export type { PauseState } from './consumer/topic-control-state.ts';
export { controlEffect } from './fleet/control-effect.ts';
export { type FleetControl, type FleetState, fleetState } from './fleet/fleet-state.ts';
export { type FleetMember, type FleetOptions, joinFleet } from './fleet/join-fleet.ts';
export {
  type FleetFigures,
  type FleetNeeds,
  type FleetNote,
  type Need,
  type NeedSubject,
  needsOf,
} from './fleet/needs.ts';
export {
  consumersOf,
  isMaintained,
  policiesOf,
  processName,
  type Reported,
} from './fleet/reported-states.ts';
export { spanText } from './fleet/span-text.ts';
export type { DraftOptions, EventDraft } from './publish/draft.ts';
export { type Outbox, outbox } from './publish/outbox.ts';
export type { PayloadFormat } from './publish/payload-format.ts';
export { type Producer, type ProducerOptions, producer } from './publish/producer.ts';
export type { StandardSchema } from './publish/standard-schema.ts';
export { type CollectOptions, collectParked } from './triage/collect-parked.ts';
export { covered } from './triage/cover.ts';
export { type Difference, type DifferencesOptions, differences } from './triage/differences.ts';
export { type FixOptions, fixForward } from './triage/fix-forward.ts';
export {
  type Maintenance,
  type MaintenanceOptions,
  type MaintenanceReport,
  maintenance,
} from './triage/maintenance.ts';
export {
  type AnyRequest,
  type OperationRun,
  type OperationRunner,
  type OperationsOptions,
  operations,
} from './triage/operation-runner.ts';
export { newJsonMistake, PayloadFieldError, withPayloadField } from './triage/payload-field.ts';
export { type RebuildOptions, type RebuildProgress, rebuild } from './triage/rebuild.ts';
export type { ReplayOptions } from './triage/replay-options.ts';
export { type Quarantined, type TopicControls, topicControls } from './triage/topic-controls.ts';
export { canUndo, undo } from './triage/undo.ts';
