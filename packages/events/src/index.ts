export { type Consumer, type ConsumerState, consumer } from './consumer/consumer.ts';
export type { ConsumerOptions } from './consumer/consumer-options.ts';
export type { ConsumerPolicySpec } from './consumer/consumer-policy.ts';
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
export type { HandledEvent, Handler } from './consumer/task.ts';
export type { DraftOptions, EventDraft } from './publish/draft.ts';
export { type Outbox, outbox } from './publish/outbox.ts';
export type { PayloadFormat } from './publish/payload-format.ts';
export { type Producer, type ProducerOptions, producer } from './publish/producer.ts';
export type { StandardSchema } from './publish/standard-schema.ts';
export { type CollectOptions, collectParked } from './triage/collect-parked.ts';
export { type FixOptions, fixForward } from './triage/fix-forward.ts';
export {
  type Maintenance,
  type MaintenanceOptions,
  type MaintenanceReport,
  maintenance,
} from './triage/maintenance.ts';
export { type RebuildOptions, type RebuildProgress, rebuild } from './triage/rebuild.ts';
export { type Replayer, type ReplayerOptions, type ReplayRun, replayer } from './triage/replayer.ts';
export { type Quarantined, type TopicControls, topicControls } from './triage/topic-controls.ts';
