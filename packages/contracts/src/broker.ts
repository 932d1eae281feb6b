import type { AttemptRecord } from './attempt-record.ts';
import type { Controls } from './controls.ts';
import type { AttemptState, Delivery, Envelope, Lease, NewEvent } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';
import type { Page, PageRequest } from './page.ts';
import type { SettlementResult } from './settlement-result.ts';
import type { SizeLimits } from './size-limits.ts';

/** Events on their way. `Tx` is the transaction that `commit` gets, where the engine shares one. */
export interface Broker<Tx = unknown> {
  readonly limits: SizeLimits;
  readonly controls: Controls;

  /** Makes sure that the topic exists. What is not said stays as it is, or is the default. Answers with what holds. */
  declare(topic: string, settings?: Partial<TopicSettings>): Promise<TopicSettings>;
  topics(): Promise<readonly string[]>;

  /** Resolves when all events are stored as durably as the engine stores. In the order given. */
  publish(topic: string, events: readonly NewEvent[]): Promise<readonly Published[]>;

  /**
   * Publishes inside a transaction of the caller's, a handler's `commit` or its own: the events are there when that commits,
   * and not if it does not. Where transactions are synchronous, all is done when this returns.
   */
  publishWithin(
    tx: Tx,
    topic: string,
    events: readonly NewEvent[],
  ): readonly Published[] | Promise<readonly Published[]>;

  /** Gives what is due, at most `limit`, or nothing: it does not wait. */
  lease(topic: string, request: LeaseRequest): Promise<Leased>;

  /**
   * One answer for each, in the order given. If it rejects, repeat it: what took effect already then answers `lease_lost`. Of two
   * settlements under one lease only one takes effect, and not always the first.
   */
  settle(batch: readonly Settlement<Tx>[]): Promise<readonly SettlementResult[]>;

  /** The lease lasts `leaseMs` from now. False: it has ended, and the event may be in other hands: stop working on it. */
  extend(leases: readonly Lease[], leaseMs: number): Promise<readonly boolean[]>;

  counts(topic: string): Promise<TopicCounts>;
  /** Events not yet settled, in the order of publication. */
  waiting(topic: string, page: PageRequest): Promise<Page<Waiting>>;
  /** Makes delayed events due. False: it is not there, or is not delayed. */
  retryNow(topic: string, ids: readonly string[]): Promise<readonly boolean[]>;
  /** Lets the keys of parked events flow without them. False: it holds no key. */
  unblock(topic: string, ids: readonly string[]): Promise<readonly boolean[]>;

  /** Calls `ring` when something may be due. The answer ends it. */
  doorbell(topic: string, ring: () => void): () => void;

  /** Settled events that are kept, in the order of publication. */
  history(topic: string, range: HistoryRange): Promise<Page<SettledEvent>>;
}

export type Ordering = 'none' | 'key';

export interface TopicSettings {
  /** `none` unless given. */
  readonly ordering: Ordering;
  /** How long settled events are kept to be read back; 0, not at all, unless given. */
  readonly keepSettledMs: number;
}

export interface Published {
  readonly id: string;
  /** It was in the store already. */
  readonly duplicate: boolean;
}

export interface LeaseRequest {
  /** Who asks: one name a process start, never used again. */
  readonly owner: string;
  readonly limit: number;
  /** Payloads of so many bytes together, and one event at least; texts may be counted by their characters. No limit unless given. */
  readonly bytesMax?: number;
  readonly leaseMs: number;
  /** With `ordering: 'key'`: the longest run of one key; 1 unless given. */
  readonly runMax?: number;
  /** The part of `limit` that is the retries' own, 0–1; absent: all are one line. */
  readonly retriesShare?: number;
  /**
   * Gives one suspect, alone, or nothing. Ask with empty hands only, and for nothing else until it is settled.
   */
  readonly suspects?: boolean;
}

export interface Leased {
  readonly deliveries: readonly Delivery[];
  /** Suspects that wait to be run alone; an engine may stop counting at one. */
  readonly suspects: number;
  /** When the next waiting event falls due; known only when fewer than `limit` were given. `undefined`: none waits. */
  readonly nextDueInMs: number | undefined;
  /** Of the controls in force; when it has changed there is something to read. */
  readonly controlsVersion: number;
}

/** What is to become of a leased event. */
export type Settlement<Tx = unknown> = {
  readonly lease: Lease;
  /** Handlers that are done with this event: written with the settlement, or not at all. */
  readonly marks?: readonly string[];
} & (
  | {
      readonly kind: 'ack';
      /** Runs inside the transaction of this settlement; where transactions are synchronous it must be, too. */
      readonly commit?: (tx: Tx) => void | Promise<void>;
    }
  | {
      readonly kind: 'retry';
      readonly delayMs: number;
      readonly error: ErrorNote;
      /** The whole story so far: `continueStory(delivery.story, …)`. Stored as given. */
      readonly story: readonly AttemptRecord[];
      /** False: later events of the key need not wait for it any longer. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'return' }
  | {
      readonly kind: 'park';
      /** A stop reason of core, or a handler's own word. */
      readonly stop: string;
      readonly error?: ErrorNote;
      readonly story: readonly AttemptRecord[];
      /** How long the parking lot keeps it; its own default unless given. */
      readonly keepMs?: number;
      /** True: later events of the key wait until it is replayed or unblocked. */
      readonly holdsKey?: boolean;
    }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

export type SettlementKind = Settlement['kind'];

/**
 * Where an unsettled event is: due, not yet due, behind the head of its key, held by a quarantine, in hand, to be run
 * alone, or parked and holding its key.
 */
export const waitingStates = ['ready', 'delayed', 'behind', 'held', 'leased', 'suspect', 'blocking'] as const;
export type WaitingState = (typeof waitingStates)[number];

/** An engine that cannot tell two states apart counts both under the first of them. */
export type TopicCounts = Readonly<Record<WaitingState, number>> & {
  /** How long the oldest due event has been due: the lag. 0 when none is. */
  readonly oldestReadyMs: number;
  readonly nextDueInMs: number | undefined;
};

export interface Waiting
  extends Pick<Envelope, 'id' | 'type' | 'key' | 'tenant' | 'firstSeenAt'>,
    AttemptState {
  readonly state: WaitingState;
  /** Epoch ms by the store's clock. */
  readonly dueAt: number;
  /** Who has it in hand. */
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
