import type { AttemptRecord } from './attempt-record.ts';
import type { Controls } from './controls.ts';
import type { AttemptState, Delivery, Envelope, Lease, NewEvent } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';
import type { Page, PageRequest } from './page.ts';
import type { SettlementResult } from './settlement-result.ts';
import type { SizeLimits } from './size-limits.ts';

/** Stores events until they are handled. `Tx` is the transaction that `commit` gets, if the engine has one. */
export interface Broker<Tx = unknown> {
  readonly limits: SizeLimits;
  readonly controls: Controls;

  /** Creates the topic if it does not exist. Settings that are not given keep their value, or get the default. Returns all. */
  declare(topic: string, settings?: Partial<TopicSettings>): Promise<TopicSettings>;
  topics(): Promise<readonly string[]>;

  /** Resolves when all events are stored, with the durability of the engine. The results are in the order of the events. */
  publish(topic: string, events: readonly NewEvent[]): Promise<readonly Published[]>;

  /**
   * Publishes inside a transaction of the caller: that of a handler's `commit`, or another. The events exist if it commits, and
   * do not if it rolls back. With synchronous transactions, they are written when this returns.
   */
  publishWithin(
    tx: Tx,
    topic: string,
    events: readonly NewEvent[],
  ): readonly Published[] | Promise<readonly Published[]>;

  /** Leases at most `limit` due events. It does not wait for events to become due. */
  lease(topic: string, request: LeaseRequest): Promise<Leased>;

  /**
   * Returns one result for each settlement, in the same order. If it rejects, repeat it: settlements that took effect before then
   * return `lease_lost`. Of two settlements under one lease only one takes effect, and not always the first.
   */
  settle(batch: readonly Settlement<Tx>[]): Promise<readonly SettlementResult[]>;

  /** Makes leases last `leaseMs` from now. False: the lease has ended, and another consumer may have the event: stop handling it. */
  extend(leases: readonly Lease[], leaseMs: number): Promise<readonly boolean[]>;

  counts(topic: string): Promise<TopicCounts>;
  /** Events that are not settled, in the order of publication. */
  waiting(topic: string, page: PageRequest): Promise<Page<Waiting>>;
  /** Makes delayed events due now. False: the event does not exist, or is not delayed. */
  retryNow(topic: string, ids: readonly string[]): Promise<readonly boolean[]>;
  /** Releases the keys that parked events block. False: the event blocks no key. */
  unblock(topic: string, ids: readonly string[]): Promise<readonly boolean[]>;

  /** Calls `ring` when something may be due. Returns a function that ends it. */
  doorbell(topic: string, ring: () => void): () => void;

  /** Settled events that are still kept, in the order of publication. */
  history(topic: string, range: HistoryRange): Promise<Page<SettledEvent>>;
}

export type Ordering = 'none' | 'key';

export interface TopicSettings {
  /** `none` unless given. */
  readonly ordering: Ordering;
  /** How long settled events are kept for `history`; 0 (not at all) unless given. */
  readonly keepSettledMs: number;
}

export interface Published {
  readonly id: string;
  /** An event with this id was in the store already. */
  readonly duplicate: boolean;
}

export interface LeaseRequest {
  /** The name of the consumer: a new one for each process start. */
  readonly owner: string;
  readonly limit: number;
  /** The most payload bytes of all events together; one event is always leased. Texts may be counted in characters. No limit unless given. */
  readonly bytesMax?: number;
  readonly leaseMs: number;
  /** With `ordering: 'key'`: the most events of one key; 1 unless given. */
  readonly runMax?: number;
  /** The part of `limit` that is reserved for retries, 0–1. Unless given, retries and first attempts share one queue. */
  readonly retriesShare?: number;
  /**
   * Leases one suspect, or nothing. Only for a process that holds no other event, and leases none until this one is settled.
   */
  readonly suspects?: boolean;
}

export interface Leased {
  readonly deliveries: readonly Delivery[];
  /** How many suspects wait to be run alone; an engine may stop counting at 1. */
  readonly suspects: number;
  /** When the next waiting event is due. Valid only when fewer than `limit` events were leased. `undefined`: none waits. */
  readonly nextDueInMs: number | undefined;
  /** The version of the active controls. When it has changed, read the controls again. */
  readonly controlsVersion: number;
}

/** What happens to a leased event next. */
export type Settlement<Tx = unknown> = {
  readonly lease: Lease;
  /** Handlers that are done with this event. Written together with the settlement, or not at all. */
  readonly marks?: readonly string[];
} & (
  | {
      readonly kind: 'ack';
      /** Runs inside the transaction of this settlement. With synchronous transactions it must be synchronous. */
      readonly commit?: (tx: Tx) => void | Promise<void>;
    }
  | {
      readonly kind: 'retry';
      readonly delayMs: number;
      readonly error: ErrorNote;
      /** The whole story so far: `continueStory(delivery.story, …)`. Stored as it is. */
      readonly story: readonly AttemptRecord[];
      /** False: later events of the key no longer wait for this one. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'return' }
  | {
      readonly kind: 'park';
      /** A stop reason of core, or a handler's own text. */
      readonly stop: string;
      readonly error?: ErrorNote;
      readonly story: readonly AttemptRecord[];
      /** How long the parking lot keeps the event; the engine's default unless given. */
      readonly keepMs?: number;
      /** True: later events of the key wait until this one is replayed or unblocked. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

export type SettlementKind = Settlement['kind'];

/**
 * The states of an unsettled event: due; not yet due; behind another event of its key; held by a quarantine; leased; to be run
 * alone; parked and blocking its key.
 */
export const waitingStates = ['ready', 'delayed', 'behind', 'held', 'leased', 'suspect', 'blocking'] as const;
export type WaitingState = (typeof waitingStates)[number];

/** An engine that cannot distinguish two states counts both under the first of them. */
export type TopicCounts = Readonly<Record<WaitingState, number>> & {
  /** How long the oldest due event has been due (the lag); 0 when none is due. */
  readonly oldestReadyMs: number;
  readonly nextDueInMs: number | undefined;
};

export interface Waiting
  extends Pick<Envelope, 'id' | 'type' | 'key' | 'tenant' | 'firstSeenAt'>,
    AttemptState {
  readonly state: WaitingState;
  /** Epoch ms by the store's clock. */
  readonly dueAt: number;
  /** The consumer that has leased it. */
  readonly owner: string | undefined;
}

export interface HistoryRange extends PageRequest {
  /** First seen at or after, epoch ms. */
  readonly from?: number;
  /** First seen before, epoch ms. */
  readonly to?: number;
}

export interface SettledEvent extends Envelope {
  readonly how: 'ack' | 'discard';
  /** Epoch ms by the store's clock. */
  readonly settledAt: number;
}
