import type { Act } from './controls.ts';
import type { EditChange } from './edit-diff.ts';
import type { Diagnosis, Envelope, Headers, NewEvent, Payload } from './envelope.ts';
import type { Page, PageRequest } from './page.ts';
import type { ParkedFilter } from './parked-filter.ts';

/** Parked events, and what operators do with them. Every act is written to the audit log before its promise resolves. */
export interface Triage {
  /**
   * Parks events. An event whose replay failed is parked again, and the replay operation counts it. An event that is parked
   * already stays as it is. False: nothing changed.
   */
  put(events: readonly NewlyParked[]): Promise<readonly boolean[]>;
  get(id: string): Promise<ParkedEvent | undefined>;
  /** The latest parked first. */
  list(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedSummary>>;
  count(filter: ParkedFilter): Promise<number>;
  /** By fingerprint, the largest group first. */
  groups(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedGroup>>;

  /** Changes an event and keeps the original. `undefined`: there is no such event. Rejects while a replay has the event. */
  edit(id: string, edit: Edit, act: Act): Promise<ParkedEvent | undefined>;
  /** False: the event does not exist, is discarded already, or a replay has it. */
  discard(ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /** Undoes a discard, as long as retention has not removed the event. */
  restore(ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /** Makes retention keep events for `keepMs` from now. */
  keep(ids: readonly string[], keepMs: number, act: Act): Promise<readonly boolean[]>;
  /**
   * Records that the replays of these events succeeded. If the parking lot is in another store, consumers call it before they
   * acknowledge the event; otherwise the settlement does it. False: recorded before, or the event left this operation.
   */
  resolve(replayed: readonly ReplayedEvent[]): Promise<readonly boolean[]>;

  readonly replays: Replays;

  rules(): Promise<readonly TriageRule[]>;
  /** Adds the rule, or replaces the one of the same name. */
  setRule(rule: TriageRule, act: Act): Promise<void>;
  removeRule(name: string, act: Act): Promise<boolean>;

  /** The latest first. */
  audit(page: PageRequest): Promise<Page<AuditEntry>>;
}

export interface NewlyParked extends Envelope {
  readonly diagnosis: Diagnosis;
  /** How long retention keeps it; the store's default unless given. */
  readonly keepMs?: number;
}

/** `replaying`: released, and its outcome is pending. `resolved`: its replay succeeded. */
export type ParkedStatus = 'parked' | 'replaying' | 'resolved' | 'discarded';

export interface ParkedEvent extends Envelope {
  readonly diagnosis: Diagnosis;
  readonly status: ParkedStatus;
  /** When it was last parked, epoch ms by the store's clock. */
  readonly parkedAt: number;
  /** How often it has been parked. */
  readonly parkings: number;
  /** When retention removes it, epoch ms by the store's clock. */
  readonly removedAt: number;
  /** The id of the replay operation that has it. */
  readonly operation: string | undefined;
  /** Payload and headers before the first edit. */
  readonly original: { readonly payload: Payload; readonly headers: Headers } | undefined;
  readonly edits: readonly EditNote[];
  /** Who discarded it, and why. */
  readonly discarded: Act | undefined;
}

/** A parked event in a list: without the payload. */
export interface ParkedSummary
  extends Pick<
      ParkedEvent,
      'id' | 'topic' | 'type' | 'key' | 'tenant' | 'status' | 'parkedAt' | 'parkings' | 'operation'
    >,
    Pick<Diagnosis, 'reason' | 'message' | 'stop' | 'finalAttempt'> {
  readonly fingerprint: string;
  /** The time until retention removes it, by the store's clock. */
  readonly removedInMs: number;
  readonly edited: boolean;
}

export interface ParkedGroup {
  readonly fingerprint: string;
  /** `reason` and `message` are those of the latest event of the group. */
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  /** Epoch ms. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly topics: readonly string[];
}

export interface Edit {
  readonly payload?: Payload;
  /** All new headers: those that are not named are removed. */
  readonly headers?: Headers;
}

export interface EditNote extends Act {
  readonly at: number;
  readonly changes: readonly EditChange[];
}

export interface ReplayedEvent {
  readonly id: string;
  /** `replay` of the delivery: the id of the operation. */
  readonly operation: string;
}

/** Replays as the engine stores them. `advanceReplay` decides what a replay does; engines only store and count. */
export interface Replays {
  /** Rejects an empty filter. The replay selects events that match and were parked before now, also after a crash. */
  begin(request: ReplayRequest, act: Act): Promise<ReplayOperation>;
  get(id: string): Promise<ReplayOperation | undefined>;
  /** The latest first. */
  list(page: PageRequest): Promise<Page<ReplayOperation>>;
  /** Changes an operation if its version is still `version`; `undefined` if another process changed it first. */
  move(id: string, version: number, change: ReplayChange): Promise<ReplayOperation | undefined>;

  /** Selects at most `limit` parked events that match and belong to no operation. Returns how many; 0: none is left. */
  select(id: string, limit: number): Promise<number>;
  /** Gives up at most `limit` events that were selected and not released. Returns how many; 0: none is left. */
  unselect(id: string, limit: number): Promise<number>;
  /**
   * Releases at most `limit` selected events, the oldest parked first, and returns how many. Calls `publish` for each topic, and
   * records the release when that has resolved: after a crash in between, they are published again with the same ids. If broker
   * and triage share a store, the engine may move them in one transaction instead.
   */
  release(id: string, limit: number, publish: PublishReplay): Promise<number>;
}

export type PublishReplay = (topic: string, events: readonly NewEvent[]) => Promise<unknown>;

export interface ReplayRequest {
  readonly filter: ParkedFilter;
  /** The topic to publish to; each event's own topic unless given. */
  readonly to?: string;
  /** Events a second. */
  readonly rate: number;
  /** How many events are released first. The others are released when these have succeeded. 0: no canary. */
  readonly canary: number;
  /** The shortest time for which the canary is watched. */
  readonly canaryMs: number;
  /** The most events that are released and whose outcome is pending. */
  readonly outstandingMax: number;
  /** The replay stops by itself when more than this share of the latest events failed again, 0–1. */
  readonly stopAbove: number;
}

export type ReplayStage = 'selecting' | 'canary' | 'releasing' | 'tracking' | 'done' | 'stopping' | 'stopped';

export interface ReplayOperation {
  readonly id: string;
  readonly request: ReplayRequest;
  readonly act: Act;
  readonly stage: ReplayStage;
  /** For `move`: grows with each `move`. Changes of `counts` do not change it. */
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

/** The state of `advanceReplay` between two steps. The engine stores it as it is. */
export interface ReplayState {
  /** Epoch ms until which the rate is used up by released events. */
  readonly paidUntil: number;
  readonly canarySince: number;
  /** The counts at the start of the current window of outcomes. */
  readonly judged: { readonly succeeded: number; readonly failedAgain: number };
}

export interface ReplayChange {
  readonly stage?: ReplayStage;
  readonly stopped?: string;
  readonly memo?: ReplayState;
  /** Given for changes that a person makes; written to the audit log. */
  readonly act?: Act;
}

/** What is done with newly parked events automatically. The first rule that matches applies. */
export interface TriageRule {
  readonly name: string;
  readonly filter: ParkedFilter;
  readonly action: 'replay' | 'discard' | 'notify';
  /** The rule acts this long after the event was parked; at once unless given. */
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
  /** The ids of events (at most 100), the id of an operation, or the name of a rule. */
  readonly subjects: readonly string[];
  /** How many subjects there were, also those above 100. */
  readonly count: number;
}
