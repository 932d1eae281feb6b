import type { AttemptRecord } from './attempt-record.ts';
import type { Act, Controls } from './controls.ts';
import type { AttemptState, Delivery, Envelope, Lease, NewEvent } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';
import type { Page, PageRequest } from './page.ts';
import type { SettlementResult } from './settlement-result.ts';
import type { SizeLimits } from './size-limits.ts';

/** Stores events until they are handled. `Tx` is the type of the store's transactions. */
export interface Broker<Tx = unknown> {
  readonly limits: SizeLimits;
  readonly controls: Controls;

  /**
   * Creates the topic if it does not exist, and returns its settings. A setting that is not given keeps its
   * stored value, or gets its default.
   */
  declare(topic: string, settings?: Partial<TopicSettings>): Promise<TopicSettings>;
  topics(): Promise<readonly string[]>;

  /** Stores events. Resolves when the events are durable. The results are in the order of `events`. */
  publish(topic: string, events: readonly NewEvent[]): Promise<readonly Published[]>;

  /** Publishes within the caller's transaction: the events exist only if the transaction commits. */
  publishWithin(
    tx: Tx,
    topic: string,
    events: readonly NewEvent[],
  ): readonly Published[] | Promise<readonly Published[]>;

  /**
   * Leases at most `limit` due events: no other consumer gets them until the lease ends. If no event is due,
   * the call returns at once.
   */
  lease(topic: string, request: LeaseRequest): Promise<Leased>;

  /**
   * For engines that keep the retries of another broker, such as Kafka, and only with `ordering: 'key'`.
   * Stores an event in two cases: the store already has an event with its id, or an earlier event of its key
   * is not finished. Returns for each event whether the store has it now.
   */
  publishBehind?(topic: string, events: readonly NewEvent[]): Promise<readonly boolean[]>;

  /**
   * Ends leases; each settlement says what happens to its event. Returns one result per settlement. If the
   * call rejects, repeat it: settlements that were already applied return `lease_lost`. Of two settlements
   * with the same lease, only one is applied.
   */
  settle(batch: readonly Settlement<Tx>[]): Promise<readonly SettlementResult[]>;

  /**
   * Makes the leases end `leaseMs` from now. Returns false for a lease that has ended: stop handling its
   * event, because another consumer may have it.
   */
  extend(leases: readonly Lease[], leaseMs: number): Promise<readonly boolean[]>;

  counts(topic: string): Promise<TopicCounts>;
  /**
   * Lists unsettled events: those that wait, are leased, or are parked and block their key. They are in the
   * order of publication, unless `question.order` is `due`.
   */
  waiting(topic: string, page: PageRequest, question?: WaitingQuestion): Promise<Page<Waiting>>;
  /**
   * Counts waiting events by the ms until they are due. Leased events, and parked events that block their
   * key, are not counted. The ascending bounds `[10, 20]` give three counts: below 10, from 10 to 20, and
   * later.
   */
  due(topic: string, bounds: readonly number[]): Promise<readonly number[]>;
  /** Makes delayed events due now. Returns false for an event that is not delayed. */
  retryNow(topic: string, ids: readonly string[], act: Act): Promise<readonly boolean[]>;
  /**
   * For parked events that block their key: lets later events of the key run. Returns false for an event that
   * blocks no key.
   */
  unblock(topic: string, ids: readonly string[], act: Act): Promise<readonly boolean[]>;

  /** Calls `ring` when an event of the topic may have become due. The returned function unsubscribes. */
  doorbell(topic: string, ring: () => void): () => void;

  /**
   * Lists acknowledged and discarded events in the order of publication. The topic keeps them for
   * `keepSettledMs`.
   */
  history(topic: string, range: HistoryRange): Promise<Page<SettledEvent>>;
}

/**
 * `key`: an event waits until the earlier events of its key are settled (acknowledged, for example). `none`:
 * no event waits for another.
 */
export type Ordering = 'none' | 'key';

/** The settings of a topic, as given to `declare`. */
export interface TopicSettings {
  /** `key`: events with the same key are handled one after the other. The default is `none`. */
  readonly ordering: Ordering;
  /** How long acknowledged and discarded events are kept for `history`. The default is 0: not at all. */
  readonly keepSettledMs: number;
}

/** The result of publishing one event. */
export interface Published {
  readonly id: string;
  /** True: the store already has an event with this id, so this event was not stored. */
  readonly duplicate: boolean;
}

/** The request of a consumer for events to lease. */
export interface LeaseRequest {
  /** The name of the consumer. It must change with every start of the process. */
  readonly owner: string;
  readonly limit: number;
  /**
   * The most payload bytes of all leased events together (an engine may count characters). The first event
   * may be larger. No limit by default.
   */
  readonly bytesMax?: number;
  readonly leaseMs: number;
  /** With `ordering: 'key'`: how many successive events of one key are leased together; 1 by default. */
  readonly runMax?: number;
  /** The share of `limit` that is reserved for retries, from 0 to 1. By default, nothing is reserved. */
  readonly retriesShare?: number;
  /**
   * True: leases at most one suspect (an event that may have crashed its process) and no other event. Use it
   * only while the process handles nothing else.
   */
  readonly suspects?: boolean;
}

/** The result of a `lease` call: the leased events, and when to call `lease` again. */
export interface Leased {
  readonly deliveries: readonly Delivery[];
  /**
   * How many suspects (events that may have crashed their process) wait to be leased. An engine may stop
   * counting at 1. It is 0 while the retries of the topic are paused.
   */
  readonly suspects: number;
  /**
   * The ms until the next event is due; `undefined`: no event waits, or the engine does not know. Valid only
   * if fewer than `limit` events were leased.
   */
  readonly nextDueInMs: number | undefined;
  /**
   * Changes when an operator sets or removes a control, for example a pause. The consumer then reads the
   * controls again.
   */
  readonly controlsVersion: number;
}

/**
 * What happens to a leased event next: for example, it is acknowledged, retried or parked (set aside for an operator).
 */
export type Settlement<Tx = unknown> = {
  readonly lease: Lease;
  /**
   * The names of the handlers that have handled this event. They are stored, so that no handler runs twice
   * for the event.
   */
  readonly marks?: readonly string[];
} & (
  | {
      readonly kind: 'ack';
      /**
       * Writes the effect of the handler in the transaction of the acknowledgement. It must be synchronous if
       * the engine's transactions are synchronous.
       */
      readonly commit?: (tx: Tx) => void | Promise<void>;
    }
  | {
      readonly kind: 'retry';
      readonly delayMs: number;
      readonly error: ErrorNote;
      /** All attempt records of the event. Make them with `continueStory(delivery.story, …)`. */
      readonly story: readonly AttemptRecord[];
      /** False: later events of the same key do not wait for this retry. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'return' }
  | {
      readonly kind: 'park';
      /** Why there are no more retries, such as `attempts_exhausted`. */
      readonly stop: string;
      readonly error?: ErrorNote;
      readonly story: readonly AttemptRecord[];
      /** The name of the consumer that parks the event. */
      readonly consumer?: string;
      /** How long the parked event (set aside for an operator) is kept. Each engine has its own default. */
      readonly keepMs?: number;
      /** True: later events of the same key wait until this event is replayed or unblocked. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

/** The ways to settle a leased event, such as `ack`, `retry` and `park`. */
export type SettlementKind = Settlement['kind'];

/**
 * `ready`: due now. `delayed`: due later. `behind`: waits for an earlier event of its key. `held`: its tenant
 * or key is in quarantine, so it is not leased. `leased`: a consumer handles it. `suspect`: its lease
 * expired, so it must be handled alone. `blocking`: it is parked, and later events of its key wait for it.
 */
export const waitingStates = ['ready', 'delayed', 'behind', 'held', 'leased', 'suspect', 'blocking'] as const;
/** The state of an unsettled event: why it waits, or that a consumer handles it (`leased`). */
export type WaitingState = (typeof waitingStates)[number];

/** The number of events in each state. An engine that cannot distinguish some states counts them as one state. */
export type TopicCounts = Readonly<Record<WaitingState, number>> & {
  /** How long the oldest ready event has been due; 0 when no event is ready, or the engine does not know. */
  readonly oldestReadyMs: number;
  /** The time until the next event is due; `undefined`: no event waits, or the engine does not know. */
  readonly nextDueInMs: number | undefined;
  /** When the events were counted, epoch ms by the store's clock. */
  readonly asOf: number;
};

/** Selects unsettled events, for example by their state. An event must match all given fields. */
export interface WaitingQuestion {
  readonly state?: WaitingState | readonly WaitingState[];
  readonly key?: string;
  readonly tenant?: string;
  /** `due`: sorted by due time, the earliest first. The default is `published`: sorted by publication. */
  readonly order?: 'published' | 'due';
}

/** An unsettled event (it waits or is leased) in a list for operators. It has no payload. */
export interface Waiting
  extends Pick<Envelope, 'id' | 'type' | 'key' | 'tenant' | 'firstSeenAt'>,
    AttemptState {
  readonly state: WaitingState;
  /** Epoch ms by the store's clock. */
  readonly dueAt: number;
  /** The consumer that has leased the event; `undefined`: the event is not leased. */
  readonly owner: string | undefined;
}

/** Selects settled events (acknowledged or discarded) by the time of their first publication. */
export interface HistoryRange extends PageRequest {
  /** Only events that were first published at this time or later, epoch ms. */
  readonly from?: number;
  /** Only events that were first published before this time, epoch ms. */
  readonly to?: number;
}

/** An acknowledged or discarded event in a topic that keeps settled events (`keepSettledMs`). */
export interface SettledEvent extends Envelope {
  readonly how: 'ack' | 'discard';
  /** Epoch ms by the store's clock. */
  readonly settledAt: number;
}
