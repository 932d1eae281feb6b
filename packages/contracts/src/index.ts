export {
  advanceReplay,
  defaultReplay,
  initialReplayState,
  type ReplayStep,
  replayed,
  stopReplay,
} from './advance-replay.ts';
export { type AttemptNote, continueStory, storyMax } from './attempt-record.ts';
export {
  type Broker,
  type HistoryRange,
  type Leased,
  type LeaseRequest,
  type Ordering,
  type Published,
  type SettledEvent,
  type Settlement,
  type SettlementKind,
  type TopicCounts,
  type TopicSettings,
  type Waiting,
  type WaitingState,
  waitingStates,
} from './broker.ts';
export { checkName } from './check-name.ts';
export { checkSpan } from './check-span.ts';
export { checkTopic } from './check-topic.ts';
export { clampMs } from './clamp-ms.ts';
export {
  EngineFullError,
  FeatureMissingError,
  TooLargeError,
  TopicError,
  TriageError,
} from './contract-errors.ts';
export {
  type Act,
  type Control,
  type ControlSheet,
  type Controls,
  checkControl,
  controlId,
  type StandingControl,
} from './controls.ts';
export { type EditChange, editDiff } from './edit-diff.ts';
export type { Engine } from './engine.ts';
export {
  type Delivery,
  type Diagnosis,
  type Envelope,
  type Headers,
  type Lease,
  type NewEvent,
  type Past,
  type Payload,
  parkedTopic,
  type Trials,
} from './envelope.ts';
export { type CauseNote, type ErrorNote, errorNote, messageMax } from './error-note.ts';
export {
  type Feature,
  type FeatureName,
  type Features,
  featureNames,
  type Missing,
  missing,
  whyMissing,
} from './features.ts';
export { fingerprint, normalizeStack } from './fingerprint.ts';
export { jsonWithInfinity } from './json-with-infinity.ts';
export type { Begun, Claim, Completion, Hold, Ledger, Mark } from './ledger.ts';
export { numberIn, type Page, type PageRequest, type Place, placeIn } from './page.ts';
export {
  assertFilterNotEmpty,
  checkFilter,
  demandReason,
  fingerprintOf,
  isEmptyFilter,
  matches,
  type ParkedFilter,
  ruleFor,
} from './parked-filter.ts';
export type { RateAnswer, RateLeft, RateLimits, RateRequest, RateTake } from './rate-limits.ts';
export {
  commitFailed,
  LEASE_LOST,
  REPEATED,
  type Settled,
  TOOK,
  TOPIC_UNKNOWN,
} from './settlement-result.ts';
export { checkEdit, checkEvents, defaultSizeLimits, readLimits, type SizeLimits } from './size-limits.ts';
export { timeOfId, timeOrderedId } from './time-ordered-id.ts';
export type {
  AuditEntry,
  AuditedAct,
  Edit,
  EditNote,
  NewlyParked,
  ParkedEvent,
  ParkedGroup,
  ParkedStatus,
  ParkedSummary,
  PublishReplay,
  ReplayChange,
  ReplayCounts,
  ReplayedEvent,
  ReplayMemo,
  ReplayOperation,
  ReplayRequest,
  ReplayStage,
  Replays,
  Triage,
  TriageRule,
} from './triage.ts';
export { fromWire, reservedHeaders, toWire, type WireState } from './wire-headers.ts';
