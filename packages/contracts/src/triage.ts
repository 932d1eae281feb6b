import type { Act } from './controls.ts';
import type { EditChange } from './edit-diff.ts';
import type { Diagnosis, Envelope, Headers, NewEvent, Payload } from './envelope.ts';
import type { Page, PageRequest } from './page.ts';
import type { ParkedFilter } from './parked-filter.ts';

/** Parked events and what people do about them. Every act is in the audit log before it is answered. */
export interface Triage {
  /**
   * Sets events aside. One that its replay could not help is parked again, and its operation counts it; one that is
   * parked already stays as it is. False: nothing changed.
   */
  put(events: readonly NewlyParked[]): Promise<readonly boolean[]>;
  get(id: string): Promise<ParkedEvent | undefined>;
  /** The latest parked first. */
  list(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedSummary>>;
  count(filter: ParkedFilter): Promise<number>;
  /** By fingerprint, the largest group first. */
  groups(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedGroup>>;

  /** Keeps the original. `undefined`: there is none. Rejects while a replay has the event. */
  edit(id: string, edit: Edit, act: Act): Promise<ParkedEvent | undefined>;
  /** False: not there, discarded already, or a replay has it. */
  discard(ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /** Undoes a discard, as long as retention has not removed the event. */
  restore(ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /** Keeps events for `keepMs` from now. */
  keep(ids: readonly string[], keepMs: number, act: Act): Promise<readonly boolean[]>;
  /**
   * The replays of these events succeeded. Where the parking lot is elsewhere, consumers tell it before they acknowledge
   * the delivery; where a settlement feeds the triage, it does. False: told before, or not of this operation any more.
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
  /** The store's default unless given. */
  readonly keepMs?: number;
}

/** `replaying`: released, and not heard of yet. `resolved`: its replay succeeded. */
export type ParkedStatus = 'parked' | 'replaying' | 'resolved' | 'discarded';

export interface ParkedEvent extends Envelope {
  readonly diagnosis: Diagnosis;
  readonly status: ParkedStatus;
  /** The last time, epoch ms by the store's clock. */
  readonly parkedAt: number;
  /** How often it has been parked. */
  readonly parkings: number;
  /** When retention removes it, epoch ms by the store's clock. */
  readonly removedAt: number;
  /** The replay that has it. */
  readonly operation: string | undefined;
  /** As it was before the first edit. */
  readonly original: { readonly payload: Payload; readonly headers: Headers } | undefined;
  readonly edits: readonly EditNote[];
  /** Why it was discarded. */
  readonly discarded: Act | undefined;
}

/** What a list shows: small, whatever the payload. */
export interface ParkedSummary
  extends Pick<
      ParkedEvent,
      'id' | 'topic' | 'type' | 'key' | 'tenant' | 'status' | 'parkedAt' | 'parkings' | 'operation'
    >,
    Pick<Diagnosis, 'reason' | 'message' | 'stop' | 'finalAttempt'> {
  readonly fingerprint: string;
  /** The countdown of retention, by the store's clock. */
  readonly removedInMs: number;
  readonly edited: boolean;
}

export interface ParkedGroup {
  readonly fingerprint: string;
  /** Of the latest event of the group. */
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
  /** All of them: what is not named is gone. */
  readonly headers?: Headers;
}

export interface EditNote extends Act {
  readonly at: number;
  readonly changes: readonly EditChange[];
}

export interface ReplayedEvent {
  readonly id: string;
  /** `replay` of the delivery. */
  readonly operation: string;
}

/** Replays as the engine stores them. `advanceReplay` moves them: engines count and mark, they do not decide. */
export interface Replays {
  /** Rejects an empty filter. What it selects is fixed by the filter and this moment, also after a crash. */
  begin(request: ReplayRequest, act: Act): Promise<ReplayOperation>;
  get(id: string): Promise<ReplayOperation | undefined>;
  /** The latest first. */
  list(page: PageRequest): Promise<Page<ReplayOperation>>;
  /** Changes it if `version` still holds; `undefined` if another was first. */
  move(id: string, version: number, change: ReplayChange): Promise<ReplayOperation | undefined>;

  /** Takes at most so many parked events that match and that no operation has; 0: none is left. */
  select(id: string, limit: number): Promise<number>;
  /** Gives back what was selected and not released; 0: none is left. */
  unselect(id: string, limit: number): Promise<number>;
  /**
   * Releases at most so many of the selected, those parked first before the others, and says how many. Calls `publish` for
   * each topic, and notes them as released only when it has resolved: a crash in between publishes them again, under the same
   * ids. Where broker and triage share a store, the engine may move them in one transaction instead.
   */
  release(id: string, limit: number, publish: PublishReplay): Promise<number>;
}

export type PublishReplay = (topic: string, events: readonly NewEvent[]) => Promise<unknown>;

export interface ReplayRequest {
  readonly filter: ParkedFilter;
  /** The topic each came from unless given. */
  readonly to?: string;
  /** Events a second. */
  readonly rate: number;
  /** How many are released first; the rest waits until these have succeeded. 0: no canary. */
  readonly canary: number;
  /** How long the canary is watched at least. */
  readonly canaryMs: number;
  /** Released and not heard of, at most. */
  readonly outstandingMax: number;
  /** Stops by itself when more than this part of the latest replays failed again, 0–1. */
  readonly stopAbove: number;
}

export type ReplayStage = 'selecting' | 'canary' | 'releasing' | 'tracking' | 'done' | 'stopping' | 'stopped';

export interface ReplayOperation {
  readonly id: string;
  readonly request: ReplayRequest;
  readonly act: Act;
  readonly stage: ReplayStage;
  /** Of the stored operation, for `move`. Counts change without it. */
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

/** What `advanceReplay` has to remember; the engine stores it as it is. */
export interface ReplayState {
  /** Epoch ms until which what was released has used up the rate. */
  readonly paidUntil: number;
  readonly canarySince: number;
  /** The counts when the failures were last judged. */
  readonly judged: { readonly succeeded: number; readonly failedAgain: number };
}

export interface ReplayChange {
  readonly stage?: ReplayStage;
  readonly stopped?: string;
  readonly memo?: ReplayState;
  /** Who does it; for what people do. */
  readonly act?: Act;
}

/** What is to happen to newly parked events by itself. The first rule that matches counts. */
export interface TriageRule {
  readonly name: string;
  readonly filter: ParkedFilter;
  readonly action: 'replay' | 'discard' | 'notify';
  /** Waits so long before it acts. */
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
  /** The ids of events (at most 100 of them), the id of an operation, the name of a rule. */
  readonly subjects: readonly string[];
  /** How many there were. */
  readonly count: number;
}
