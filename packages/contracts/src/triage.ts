import type { Act } from './controls.ts';
import type { EditChange } from './edit-diff.ts';
import type { Diagnosis, Envelope, Headers, NewEvent, Payload } from './envelope.ts';
import type { Page, PageRequest } from './page.ts';
import type { ParkedFilter } from './parked-filter.ts';

/**
 * Stores parked events (events that were moved out of their topic because no retry helps) and lets operators inspect,
 * edit, replay and discard them. Every change by an operator is in the audit log before its promise resolves.
 */
export interface Triage {
  /**
   * Stores parked events. If the replay of an event failed, the event is parked again and the replay operation counts
   * the failure. An event that is parked already stays unchanged. False: nothing changed.
   */
  put(events: readonly NewlyParked[]): Promise<readonly boolean[]>;
  get(id: string): Promise<ParkedEvent | undefined>;
  /** Lists parked events. The events that were parked last come first. */
  list(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedSummary>>;
  count(filter: ParkedFilter): Promise<number>;
  /** Groups parked events by the fingerprint of their error. The largest group comes first. */
  groups(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedGroup>>;

  /**
   * Changes payload or headers of an event; the store also keeps the original. `undefined`: there is no such event.
   * Rejects if the event belongs to a replay.
   */
  edit(id: string, edit: Edit, act: Act): Promise<ParkedEvent | undefined>;
  /** Marks events as discarded. False: the event does not exist, is discarded already, or belongs to a replay. */
  discard(ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /**
   * Undoes a discard. False: the event is not discarded, or the engine has removed it because its retention time is
   * over.
   */
  restore(ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /** Sets the retention time of events: the engine removes the events `keepMs` from now. */
  keep(ids: readonly string[], keepMs: number, act: Act): Promise<readonly boolean[]>;
  /**
   * Records that the replays of these events succeeded. If parked events are in another store than the broker,
   * consumers call it before they acknowledge an event; otherwise the settlement records the success. False: the
   * success was recorded before, or the event no longer belongs to this replay operation.
   */
  resolve(replayed: readonly ReplayedEvent[]): Promise<readonly boolean[]>;

  readonly replays: Replays;

  rules(): Promise<readonly TriageRule[]>;
  /** Adds a rule, or replaces the rule with the same name. */
  setRule(rule: TriageRule, act: Act): Promise<void>;
  removeRule(name: string, act: Act): Promise<boolean>;

  /** Lists the audit log. The latest entries come first. */
  audit(page: PageRequest): Promise<Page<AuditEntry>>;
}

export interface NewlyParked extends Envelope {
  readonly diagnosis: Diagnosis;
  /** How long the parked event is kept; the store's default unless given. */
  readonly keepMs?: number;
}

/**
 * `parked`: the event waits for an operator. `replaying`: a replay has published the event, and its result is not known
 * yet. `resolved`: the replay succeeded.
 */
export type ParkedStatus = 'parked' | 'replaying' | 'resolved' | 'discarded';

export interface ParkedEvent extends Envelope {
  readonly diagnosis: Diagnosis;
  readonly status: ParkedStatus;
  /** When the event was last parked, epoch ms by the store's clock. */
  readonly parkedAt: number;
  /** How often the event has been parked, replays included. */
  readonly parkings: number;
  /** When the event is removed from the store, epoch ms by the store's clock. */
  readonly removedAt: number;
  /** The id of the replay operation to which the event belongs now. */
  readonly operation: string | undefined;
  /** Payload and headers before the first edit; `undefined` if the event was never edited. */
  readonly original: { readonly payload: Payload; readonly headers: Headers } | undefined;
  readonly edits: readonly EditNote[];
  readonly discarded: Act | undefined;
}

export interface ParkedSummary
  extends Pick<
      ParkedEvent,
      'id' | 'topic' | 'type' | 'key' | 'tenant' | 'status' | 'parkedAt' | 'parkings' | 'operation'
    >,
    Pick<Diagnosis, 'reason' | 'message' | 'stop' | 'finalAttempt'> {
  readonly fingerprint: string;
  /** The time until the event is removed from the store, by the store's clock. */
  readonly removedInMs: number;
  readonly edited: boolean;
}

export interface ParkedGroup {
  readonly fingerprint: string;
  /** `reason` and `message` are taken from the latest event of the group. */
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  /** When the first and the last event of the group were parked, epoch ms. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly topics: readonly string[];
}

export interface Edit {
  readonly payload?: Payload;
  /** Replaces all headers: headers that are not given here are removed. */
  readonly headers?: Headers;
}

export interface EditNote extends Act {
  readonly at: number;
  readonly changes: readonly EditChange[];
}

export interface ReplayedEvent {
  readonly id: string;
  /** The id of the replay operation, which is in `replay` of the delivery. */
  readonly operation: string;
}

/**
 * Stores replay operations and counts their results. What a replay does next is decided by `advanceReplay`, not by
 * engines.
 */
export interface Replays {
  /**
   * Stores a new replay operation. It will select the events that match the filter and were parked before now. Rejects
   * a filter that matches all events.
   */
  begin(request: ReplayRequest, act: Act): Promise<ReplayOperation>;
  get(id: string): Promise<ReplayOperation | undefined>;
  /** Lists replay operations. The latest operations come first. */
  list(page: PageRequest): Promise<Page<ReplayOperation>>;
  /**
   * Changes an operation if its stored version is still `version`. `undefined`: another process has changed it first.
   */
  move(id: string, version: number, change: ReplayChange): Promise<ReplayOperation | undefined>;

  /**
   * Assigns at most `limit` parked events to this operation: events that match the filter and belong to no operation.
   * Returns how many events it assigned; 0: there are no more.
   */
  select(id: string, limit: number): Promise<number>;
  /**
   * Removes at most `limit` events that are not released yet from this operation. Returns how many events it removed;
   * 0: there are no more.
   */
  unselect(id: string, limit: number): Promise<number>;
  /**
   * Publishes at most `limit` events of the operation again, the oldest parked first, and returns how many. Calls
   * `publish` for each topic and then records the release. After a crash between the two, the events are published
   * again with the same ids. If broker and triage share a store, the engine may publish and record in one transaction
   * instead.
   */
  release(id: string, limit: number, publish: PublishReplay): Promise<number>;
}

export type PublishReplay = (topic: string, events: readonly NewEvent[]) => Promise<unknown>;

export interface ReplayRequest {
  readonly filter: ParkedFilter;
  /** The topic to which events are published; the topic of each event unless given. */
  readonly to?: string;
  /** How many events are released per second. */
  readonly rate: number;
  /**
   * How many events are released first, as a test. The other events are released when all test events have succeeded.
   * 0: no test.
   */
  readonly canary: number;
  /** The replay waits at least this long after the release of the canary before it releases other events. */
  readonly canaryMs: number;
  /** The most released events that have neither succeeded nor failed yet. */
  readonly outstandingMax: number;
  /** The replay stops when more than this share of the latest events failed again, 0–1. */
  readonly stopAbove: number;
}

export type ReplayStage = 'selecting' | 'canary' | 'releasing' | 'tracking' | 'done' | 'stopping' | 'stopped';

export interface ReplayOperation {
  readonly id: string;
  readonly request: ReplayRequest;
  readonly act: Act;
  readonly stage: ReplayStage;
  /**
   * Increases with each `move`, and `move` only succeeds for the current version. Changes of `counts` do not increase
   * it.
   */
  readonly version: number;
  /** Epoch ms by the store's clock. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  readonly stopped: string | undefined;
  readonly counts: ReplayCounts;
  readonly memo: ReplayState;
}

export interface ReplayCounts {
  readonly selected: number;
  readonly released: number;
  readonly succeeded: number;
  readonly failedAgain: number;
}

/** The data that `advanceReplay` needs in its next step. The engine stores it unchanged. */
export interface ReplayState {
  /** The time until which the released events have used up the rate, epoch ms. */
  readonly paidUntil: number;
  readonly canarySince: number;
  /** The counts at the start of the current window over which the failure rate is computed. */
  readonly judged: { readonly succeeded: number; readonly failedAgain: number };
}

export interface ReplayChange {
  readonly stage?: ReplayStage;
  readonly stopped?: string;
  readonly memo?: ReplayState;
  /** Given if a person makes the change; the engine then writes the change to the audit log. */
  readonly act?: Act;
}

/**
 * An action that `maintenance` applies to newly parked events. Only the first rule that matches an event is applied.
 */
export interface TriageRule {
  readonly name: string;
  readonly filter: ParkedFilter;
  readonly action: 'replay' | 'discard' | 'notify';
  /** The rule is applied this long after the event was parked; immediately unless given. */
  readonly afterMs?: number;
}

export type AuditedAct =
  | 'edit'
  | 'discard'
  | 'restore'
  | 'keep'
  | 'replay'
  | 'replay_stopped'
  | 'rule_set'
  | 'rule_removed'
  | 'retention';

export interface AuditEntry extends Act {
  readonly id: string;
  /** Epoch ms by the store's clock. */
  readonly at: number;
  readonly what: AuditedAct;
  /** What was changed: the ids of at most 100 events, the id of a replay operation, or the name of a rule. */
  readonly subjects: readonly string[];
  /** How many events, operations or rules were changed, also if `subjects` lists fewer. */
  readonly count: number;
}
