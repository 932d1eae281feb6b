export {
  advanceReplay,
  defaultReplay,
  initialReplayState,
  type ReplayStep,
  replayed,
  stopReplay,
} from './advance-replay.ts';
export { type AttemptRecord, continueStory, storyMax } from './attempt-record.ts';
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
export {
  EngineFullError,
  FeatureMissingError,
  TooLargeError,
  TopicError,
  TriageError,
} from './contract-errors.ts';
export {
  type Act,
  type ActiveControl,
  type ActiveControls,
  assertControl,
  type Control,
  type Controls,
  controlId,
} from './controls.ts';
export { type EditChange, editDiff } from './edit-diff.ts';
export type { Engine } from './engine.ts';
export {
  type AttemptState,
  type Delivery,
  type Diagnosis,
  type Envelope,
  type Headers,
  type Lease,
  type NewEvent,
  type Past,
  type Payload,
  parkedTopic,
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
export { assertDurationMs, assertName, assertTopic, clampMs, jsonWithInfinity } from './for-engines.ts';
export type { Begun, Claim, Completion, Hold, Ledger, ProcessedMark } from './ledger.ts';
export { numberIn, type Page, type PageRequest, type Place, placeIn } from './page.ts';
export {
  assertFilter,
  assertFilterNotEmpty,
  assertReason,
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
  type SettlementResult,
  TOOK,
  TOPIC_UNKNOWN,
} from './settlement-result.ts';
export { assertEdit, assertEvents, defaultSizeLimits, readLimits, type SizeLimits } from './size-limits.ts';
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
  ReplayOperation,
  ReplayRequest,
  ReplayStage,
  ReplayState,
  Replays,
  Triage,
  TriageRule,
} from './triage.ts';
export { fromWire, reservedHeaders, toWire, type WireState } from './wire-headers.ts';
