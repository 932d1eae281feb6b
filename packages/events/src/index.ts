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
export { type Consumer, type ConsumerState, consumer } from './consumer.ts';
export type { ConsumerOptions } from './consumer-options.ts';
export type { ConsumerPolicySpec } from './consumer-policy.ts';
export {
  ConflictError,
  ConsumerStoppedError,
  CrashedError,
  LeaseLostError,
  PoisonError,
} from './event-errors.ts';
export {
  type ConsumerStatus,
  type EventListener,
  type EventNotice,
  subscribeEvents,
} from './event-notices.ts';
export type { Handler } from './handler.ts';
export type { PayloadFormat } from './payload-format.ts';
export type { StandardSchema } from './standard-schema.ts';
export type { HandledEvent } from './task.ts';
