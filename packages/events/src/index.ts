export {
  type Answer,
  type Commit,
  commit,
  discard,
  done,
  park,
  reroute,
  retry,
  retryAfter,
} from './answer.ts';
export { type Caretaker, type CaretakerOptions, caretaker, type RoundReport } from './caretaker.ts';
export { type CollectOptions, collectParked } from './collect-parked.ts';
export { type Consumer, type ConsumerState, consumer } from './consumer.ts';
export type { ConsumerOptions } from './consumer-options.ts';
export type { ConsumerPolicySpec } from './consumer-policy.ts';
export type { DraftOptions, EventDraft } from './draft.ts';
export { type DrainOptions, drainOnSignals, type Stoppable } from './drain-on-signals.ts';
export {
  ConflictError,
  ConsumerStoppedError,
  CrashedError,
  LeaseLostError,
  PoisonError,
  RebuildError,
} from './event-errors.ts';
export {
  type ConsumerStatus,
  type EventListener,
  type EventNotice,
  subscribeEvents,
} from './event-notices.ts';
export { type FixOptions, fixForward } from './fix-forward.ts';
export type { Handler } from './handler.ts';
export { type Outbox, outbox } from './outbox.ts';
export type { PayloadFormat } from './payload-format.ts';
export { type Producer, type ProducerOptions, producer } from './producer.ts';
export { type RebuildOptions, type RebuildProgress, rebuild } from './rebuild.ts';
export { type Replayer, type ReplayerOptions, type ReplayRun, replayer } from './replayer.ts';
export { Solitude } from './solitude.ts';
export type { StandardSchema } from './standard-schema.ts';
export type { HandledEvent } from './task.ts';
export { type Quarantined, type TopicControls, topicControls } from './topic-controls.ts';
