import type { AttemptRecord } from './attempt-record.ts';
import type { Controls } from './controls.ts';
import type { AttemptState, Delivery, Envelope, Lease, NewEvent } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';
import type { Page, PageRequest } from './page.ts';
import type { SettlementResult } from './settlement-result.ts';
import type { SizeLimits } from './size-limits.ts';

/** Stores events until they are handled. `Tx` is the type of the engine's transaction, which is passed to `commit`. */
export interface Broker<Tx = unknown> {
  readonly limits: SizeLimits;
  readonly controls: Controls;

  /**
   * Creates the topic if it does not exist. A setting that is not given keeps its stored value, or gets its default.
   * Returns all settings of the topic.
   */
  declare(topic: string, settings?: Partial<TopicSettings>): Promise<TopicSettings>;
  topics(): Promise<readonly string[]>;

  /**
   * Stores events. Resolves when all events are as durable as the engine makes them. The results are in the order of
   * `events`.
   */
  publish(topic: string, events: readonly NewEvent[]): Promise<readonly Published[]>;

  /**
   * Publishes within a transaction of the caller: the events exist if the transaction commits, and do not exist if it
   * rolls back. If the engine's transactions are synchronous, the events are written when this function returns.
   */
  publishWithin(
    tx: Tx,
    topic: string,
    events: readonly NewEvent[],
  ): readonly Published[] | Promise<readonly Published[]>;

  /**
   * Leases at most `limit` due events: until the lease ends, no other consumer gets these events. Does not wait for
   * events to become due.
   */
  lease(topic: string, request: LeaseRequest): Promise<Leased>;

  /**
   * Applies settlements: each settlement decides what happens to a leased event next. Returns one result per
   * settlement, in the same order. If the call rejects, repeat it: a settlement that was applied before returns
   * `lease_lost`. Of two settlements with the same lease only one is applied, and not always the first.
   */
  settle(batch: readonly Settlement<Tx>[]): Promise<readonly SettlementResult[]>;

  /**
   * Extends leases so that they end `leaseMs` from now. False: the lease has ended already and another consumer may
   * have leased the event, so stop handling it.
   */
  extend(leases: readonly Lease[], leaseMs: number): Promise<readonly boolean[]>;

  counts(topic: string): Promise<TopicCounts>;
  /** Lists the events that are not finished, in the order of publication. */
  waiting(topic: string, page: PageRequest): Promise<Page<Waiting>>;
  /** Makes delayed events due now. False: the event does not exist, or is not delayed. */
  retryNow(topic: string, ids: readonly string[]): Promise<readonly boolean[]>;
  /**
   * Removes the block of parked events on their keys, so that later events of the key can be leased. False: the event
   * blocks no key.
   */
  unblock(topic: string, ids: readonly string[]): Promise<readonly boolean[]>;

  /** Calls `ring` when an event of the topic may have become due. Returns a function that unsubscribes `ring`. */
  doorbell(topic: string, ring: () => void): () => void;

  /**
   * Lists acknowledged and discarded events that the topic still keeps (`keepSettledMs`), in the order of publication.
   */
  history(topic: string, range: HistoryRange): Promise<Page<SettledEvent>>;
}

export type Ordering = 'none' | 'key';

export interface TopicSettings {
  /** `key`: events with the same key are handled one after the other. `none` unless given. */
  readonly ordering: Ordering;
  /** How long acknowledged and discarded events are kept for `history`; 0 (not at all) unless given. */
  readonly keepSettledMs: number;
}

export interface Published {
  readonly id: string;
  /** True: an event with this id was stored already, so this event was not stored again. */
  readonly duplicate: boolean;
}

export interface LeaseRequest {
  /** The name of the consumer. It is different for each start of the process. */
  readonly owner: string;
  readonly limit: number;
  /**
   * The most payload bytes of all leased events together; no limit unless given. A single event is leased even if it is
   * larger. Engines may count the characters of text payloads instead of bytes.
   */
  readonly bytesMax?: number;
  readonly leaseMs: number;
  /** In topics with `ordering: 'key'`: how many successive events of one key may be leased together; 1 unless given. */
  readonly runMax?: number;
  /**
   * The part of `limit` that is reserved for retries, 0–1. Unless given, retries and first attempts are leased in one
   * order.
   */
  readonly retriesShare?: number;
  /**
   * True: leases one suspect (an event whose earlier lease expired, perhaps because it crashed the process), or
   * nothing. Use it only while the process holds no other event, and lease nothing else until the suspect is settled.
   */
  readonly suspects?: boolean;
}

export interface Leased {
  readonly deliveries: readonly Delivery[];
  /**
   * How many suspects (events whose earlier lease expired) wait to be handled alone. An engine may stop counting at 1.
   */
  readonly suspects: number;
  /**
   * The time until the next waiting event is due; `undefined`: no event waits. The value is only valid if fewer than
   * `limit` events were leased.
   */
  readonly nextDueInMs: number | undefined;
  /**
   * The version of the operators' controls (pause, skip, reroute …). When it has changed, the consumer reads the
   * controls again.
   */
  readonly controlsVersion: number;
}

/**
 * What happens to a leased event next: for example, it is acknowledged, retried later, or parked (moved to the
 * dead-letter store).
 */
export type Settlement<Tx = unknown> = {
  readonly lease: Lease;
  /**
   * The names of handlers that have handled this event. The engine writes these names as idempotency marks, in one
   * transaction with the settlement.
   */
  readonly marks?: readonly string[];
} & (
  | {
      readonly kind: 'ack';
      /**
       * Writes the effect of the handler within the transaction of this settlement. Must be synchronous if the engine's
       * transactions are.
       */
      readonly commit?: (tx: Tx) => void | Promise<void>;
    }
  | {
      readonly kind: 'retry';
      readonly delayMs: number;
      readonly error: ErrorNote;
      /**
       * All attempt records of the event, made with `continueStory(delivery.story, …)`. The engine stores them
       * unchanged.
       */
      readonly story: readonly AttemptRecord[];
      /** False: later events of the same key no longer wait for this event. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'return' }
  | {
      readonly kind: 'park';
      /**
       * Why there are no more retries: a stop reason of the retry policy, such as `attempts_exhausted`, or a text of
       * the handler.
       */
      readonly stop: string;
      readonly error?: ErrorNote;
      readonly story: readonly AttemptRecord[];
      /** How long the parked event is kept; the engine's default unless given. */
      readonly keepMs?: number;
      /** True: later events of the same key wait until this event is replayed or unblocked. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

export type SettlementKind = Settlement['kind'];

/**
 * The states of an unfinished event. `ready`: due now. `delayed`: due later. `behind`: waits for an earlier event of
 * its key. `held`: its tenant or key is in quarantine. `leased`: a consumer has it. `suspect`: its last lease expired,
 * so it must be handled alone. `blocking`: it is parked, and later events of its key wait for it.
 */
export const waitingStates = ['ready', 'delayed', 'behind', 'held', 'leased', 'suspect', 'blocking'] as const;
export type WaitingState = (typeof waitingStates)[number];

/**
 * The number of events in each state. An engine that cannot distinguish two states counts both under the first of them.
 */
export type TopicCounts = Readonly<Record<WaitingState, number>> & {
  /** How long the oldest ready event has been due (the lag); 0 when no event is ready. */
  readonly oldestReadyMs: number;
  readonly nextDueInMs: number | undefined;
};

export interface Waiting
  extends Pick<Envelope, 'id' | 'type' | 'key' | 'tenant' | 'firstSeenAt'>,
    AttemptState {
  readonly state: WaitingState;
  /** Epoch ms by the store's clock. */
  readonly dueAt: number;
  /** The consumer that has leased the event. */
  readonly owner: string | undefined;
}

export interface HistoryRange extends PageRequest {
  /** Only events that were first published at this time or later, epoch ms. */
  readonly from?: number;
  /** Only events that were first published before this time, epoch ms. */
  readonly to?: number;
}

export interface SettledEvent extends Envelope {
  readonly how: 'ack' | 'discard';
  /** Epoch ms by the store's clock. */
  readonly settledAt: number;
}
