import { OptionsError } from 'holdfast';
import { TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import type { EditChange } from './edit-diff.ts';
import type { Diagnosis, Envelope, Headers, Payload } from './envelope.ts';
import type { Operations } from './operations.ts';
import type { Page, PageRequest } from './page.ts';
import type { ParkedFilter } from './parked-filter.ts';

/**
 * Stores parked events: events that failed and get no more retries. Operators inspect, edit, replay or
 * discard them.
 */
export interface Triage {
  /**
   * Stores parked events. Returns false for an event that is already parked. If a replay has published the
   * event and the event is parked again, the replay counts it as failed.
   */
  put(events: readonly NewlyParked[]): Promise<readonly boolean[]>;
  get(id: string): Promise<ParkedEvent | undefined>;
  /** Lists parked events (events that wait for an operator), the latest first. */
  list(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedSummary>>;
  count(filter: ParkedFilter): Promise<number>;
  /**
   * Groups parked events (events that wait for an operator) by the fingerprint of their error, the largest
   * group first.
   */
  groups(filter: ParkedFilter, page: PageRequest): Promise<Page<ParkedGroup>>;

  /** Counts events by the values of a property, the most frequent value first. */
  breakdown(filter: ParkedFilter, by: BreakdownBy, limit: number): Promise<Breakdown>;
  /**
   * Counts events by the time at which they were parked (set aside for an operator), the earliest bucket
   * first. Empty buckets are left out. At most the latest 500 buckets are returned.
   */
  histogram(filter: ParkedFilter, bucketMs: number): Promise<readonly HistogramBucket[]>;

  /**
   * Changes payload or headers, and keeps the original. Returns `undefined` for an unknown id. Rejects if the
   * event belongs to a replay, or its version is not `edit.version`.
   */
  edit(id: string, edit: Edit, act: Act): Promise<ParkedEvent | undefined>;
  /**
   * Records that replayed events succeeded. Consumers call it before they acknowledge, if broker and triage
   * are different stores. Returns false for an event that does not belong to this replay.
   */
  resolve(replayed: readonly ReplayedEvent[]): Promise<readonly boolean[]>;

  /** Changes many events: replay, discard, restore, keep, and the undo of a discard, restore or keep. */
  readonly operations: Operations;

  rules(): Promise<readonly TriageRule[]>;
  /** Adds a rule, or replaces the rule with the same name. */
  setRule(rule: TriageRule, act: Act): Promise<void>;
  removeRule(name: string, act: Act): Promise<boolean>;
}

/** An event that will be parked: it failed, and waits for an operator. */
export interface NewlyParked extends Envelope {
  readonly diagnosis: Diagnosis;
  /** How long the parked event is kept. Each engine has its own default. */
  readonly keepMs?: number;
}

/**
 * The states of a parked event. `parked`: waits for an operator. `replaying`: a replay has published it
 * again. `resolved`: the replay succeeded. `discarded`: an operator decided not to handle it again.
 */
export type ParkedStatus = 'parked' | 'replaying' | 'resolved' | 'discarded';

/** A stored parked event, with the reason why it was parked and the changes that operators made. */
export interface ParkedEvent extends Envelope {
  readonly diagnosis: Diagnosis;
  readonly status: ParkedStatus;
  /** When the event was last parked, epoch ms by the store's clock. */
  readonly parkedAt: number;
  /** How often the event was parked (set aside for an operator). A failed replay parks it once more. */
  readonly parkings: number;
  /** When the store removes the event, epoch ms by the store's clock. */
  readonly removedAt: number;
  /** The id of the replay to which the event belongs now; `undefined`: it belongs to no replay. */
  readonly operation: string | undefined;
  /** The id of the latest replay that published the event again. `status` tells how that replay ended. */
  readonly replayedBy: string | undefined;
  /** Increases with every edit, and each time the event is parked. */
  readonly version: number;
  /** The earlier parkings of the event, the earliest first. Only the first and the three latest are kept. */
  readonly earlier: readonly EarlierParking[];
  /** Payload and headers before the first edit; `undefined`: the event was never edited. */
  readonly original: { readonly payload: Payload; readonly headers: Headers } | undefined;
  readonly edits: readonly EditNote[];
  readonly discarded: (Act & { readonly at: number }) | undefined;
}

/** One earlier time that the event was parked: why and when. */
export interface EarlierParking extends Diagnosis {
  readonly parkedAt: number;
  /** The id of the replay that had failed when the event was parked; `undefined` for the first parking. */
  readonly replay: string | undefined;
}

/** A parked event (it waits for an operator) in a list: without payload, headers and story. */
export interface ParkedSummary
  extends Pick<
      ParkedEvent,
      | 'id'
      | 'topic'
      | 'type'
      | 'key'
      | 'tenant'
      | 'status'
      | 'parkedAt'
      | 'parkings'
      | 'operation'
      | 'replayedBy'
      | 'version'
    >,
    Pick<Diagnosis, 'reason' | 'message' | 'stop' | 'finalAttempt' | 'consumer'> {
  readonly fingerprint: string;
  /** The time until the store removes the event. */
  readonly removedInMs: number;
  readonly edited: boolean;
}

/** Parked events whose errors have the same fingerprint: they probably have the same cause. */
export interface ParkedGroup {
  readonly fingerprint: string;
  /** The `reason` and `message` of the latest event of the group. */
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  /** When the first and the last event of the group were parked, epoch ms. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly topics: readonly string[];
}

/** The properties by which `breakdown` can count parked events. It can also count by a header. */
export const breakdownProperties = [
  'topic',
  'type',
  'key',
  'tenant',
  'reason',
  'stop',
  'fingerprint',
  'consumer',
  'status',
] as const;
/** What `breakdown` counts by: a property of parked events, or a header. */
export type BreakdownBy = (typeof breakdownProperties)[number] | { readonly header: string };

/**
 * The result of `breakdown`: how many parked events (events that wait for an operator) have each value of a
 * property.
 */
export interface Breakdown {
  /** The values, the most frequent first. `value` is `undefined` for events without this property. */
  readonly items: readonly { readonly value: string | undefined; readonly count: number }[];
  /** How many events have a value that is not in `items`. */
  readonly others: number;
}

/**
 * How many events were parked (set aside for an operator) in one bucket (an interval of time) of the
 * histogram.
 */
export interface HistogramBucket {
  /** The start of the bucket, epoch ms. It is a multiple of the bucket length. */
  readonly at: number;
  readonly count: number;
}

/** Changes to a parked event (it waits for an operator). Fields that are not given stay unchanged. */
export interface Edit {
  /**
   * The version of the event that the operator edited. The edit is refused if the event has another version
   * by then.
   */
  readonly version?: number;
  readonly payload?: Payload;
  /** Replaces all headers. */
  readonly headers?: Headers;
}

/** Who changed which fields of a parked event, when and why, with the values before and after. */
export interface EditNote extends Act {
  readonly at: number;
  readonly changes: readonly EditChange[];
}

/** An event that a replay has published again. */
export interface ReplayedEvent {
  readonly id: string;
  /** The id of the replay. */
  readonly operation: string;
}

/**
 * What `maintenance` (a regular background task) does with newly parked events. Only the first matching rule
 * applies.
 */
export interface TriageRule {
  readonly name: string;
  readonly filter: ParkedFilter;
  readonly action: 'replay' | 'discard' | 'notify';
  /** The rule waits this long after the event was parked; it does not wait by default. */
  readonly afterMs?: number;
}

/** The most entries of `earlier`: the first parking and the three latest. */
const earlierMax = 4;

/**
 * Returns the new list `earlier` of an event that is parked again. `known` is the event as it was stored
 * before.
 */
export function earlierParkings(
  known: Pick<ParkedEvent, 'earlier' | 'diagnosis' | 'parkedAt' | 'replay'>,
): EarlierParking[] {
  const { diagnosis, parkedAt, replay } = known;
  const [first, ...later] = [...known.earlier, { ...diagnosis, parkedAt, replay }];
  return [first!, ...later.slice(1 - earlierMax)];
}

/** Throws if the edit was made for another version than the stored version `version`. */
export function assertEditVersion(id: string, version: number, edit: Edit): void {
  if (edit.version !== undefined && edit.version !== version)
    throw new TriageError(
      'CHANGED',
      `event ${id} has version ${version}, and the edit was made of version ${edit.version}`,
    );
}

/** The most buckets of a histogram. */
export const bucketsMax = 500;

/** Throws an `OptionsError` unless the width of the buckets is a whole number of ms from 1. */
export function assertBucketMs(bucketMs: number): void {
  if (!(Number.isSafeInteger(bucketMs) && bucketMs >= 1))
    throw new OptionsError('bucketMs', bucketMs, 'a whole number of ms from 1');
}

/** Throws an `OptionsError` for a property that `breakdown` does not know, or for a limit below 1. */
export function assertBreakdown(by: BreakdownBy, limit: number): void {
  const isKnown =
    typeof by === 'object' && by !== null
      ? typeof by.header === 'string'
      : breakdownProperties.some((name) => name === by);
  if (!isKnown) throw new OptionsError('by', by, `{ header } or one of ${breakdownProperties.join(', ')}`);
  if (!(Number.isSafeInteger(limit) && limit >= 1))
    throw new OptionsError('limit', limit, 'a whole number from 1');
}
