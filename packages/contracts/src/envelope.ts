import type { AttemptRecord } from './attempt-record.ts';
import type { ErrorNote } from './error-note.ts';

/** Text is returned as text and bytes as bytes. Engines do not look inside. */
export type Payload = string | Uint8Array;

export type Headers = Readonly<Record<string, string>>;

/** An event as a producer gives it. */
export interface NewEvent {
  /** Unique everywhere, best time-ordered (`timeOrderedId`); made by the engine unless given. Repeat a publish with the same id. */
  readonly id?: string;
  readonly payload: Payload;
  readonly type?: string;
  /** In topics with `ordering: 'key'`, events with the same key are handled in order. */
  readonly key?: string;
  readonly tenant?: string;
  /** Names in `reservedHeaders` are refused. */
  readonly headers?: Headers;
  /** The id unless given. */
  readonly correlationId?: string;
  /** The key for effects outside of the store, the same in every attempt; the id unless given. */
  readonly idempotencyKey?: string;
  /** The event is due after this time, by the store's clock. Not together with `dueAt`. */
  readonly delayMs?: number;
  /** When the event is due, epoch ms. */
  readonly dueAt?: number;
  /** How long the customer will wait, from now; without limit unless given. */
  readonly patienceMs?: number;
  /** Only for an event that was published before: a replay, or a move between engines. */
  readonly past?: Past;
}

/** What an event keeps when it is published again. */
export interface Past {
  readonly originTopic: string;
  /** Epoch ms. */
  readonly firstSeenAt: number;
  /** The replay operation that released it. */
  readonly replay?: string;
}

/** The part of a stored event that is the same in every attempt. */
export interface Envelope {
  readonly id: string;
  readonly topic: string;
  readonly payload: Payload;
  readonly type: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly headers: Headers;
  readonly correlationId: string;
  readonly idempotencyKey: string;
  /** The topic of the first publish; never changes. */
  readonly originTopic: string;
  /** The time of the first publish, epoch ms by the store's clock; never changes. */
  readonly firstSeenAt: number;
  /** When the customer's patience ends, epoch ms by the store's clock. */
  readonly expiresAt: number | undefined;
  /** The replay operation that released it. */
  readonly replay: string | undefined;
}

/** The part of a stored event that changes with attempts. */
export interface AttemptState {
  /** Attempts that failed and were settled. */
  readonly attempts: number;
  readonly snoozes: number;
  /** Leases that ended without a settlement since the last settlement: the handling process died, or hung. */
  readonly deaths: number;
  /** The delay of the last retry or snooze. */
  readonly nextDelayMs: number | undefined;
  readonly lastError: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/** The right to settle one event, for a limited time. Plain data, which may be sent to another thread. */
export interface Lease {
  readonly topic: string;
  /** The id of the event. */
  readonly id: string;
  /** Opaque, and different for each lease of an event. */
  readonly token: string;
}

/** A leased event. */
export interface Delivery extends Envelope, AttemptState {
  readonly lease: Lease;
  /** This attempt, counted from 1. */
  readonly attempt: number;
  /** The patience that was left at the time of the lease, by the store's clock; Infinity without a limit, never below 0. */
  readonly patienceLeftMs: number;
  /** It was leased when a process died: run it alone. */
  readonly suspect: boolean;
  /** Why it was parked, if this topic is a parking lot. */
  readonly diagnosis: Diagnosis | undefined;
}

/** Why an event was parked. */
export interface Diagnosis {
  /** The error's type: `dlq-reason`. */
  readonly reason: string;
  /** At most 512 characters: `dlq-message`. */
  readonly message: string;
  /** A stop reason of core, or a handler's own text: `dlq-stop`. */
  readonly stop: string;
  readonly finalAttempt: number;
  readonly error: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/** The topic that is the parking lot of `topic`, for engines without a triage. */
export function parkedTopic(topic: string): string {
  return `${topic}.parked`;
}
