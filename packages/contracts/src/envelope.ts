import type { AttemptRecord } from './attempt-record.ts';
import type { ErrorNote } from './error-note.ts';

/** Text comes back as text and bytes as bytes; what is in them is the producer's and the handler's business. */
export type Payload = string | Uint8Array;

export type Headers = Readonly<Record<string, string>>;

/** An event as a producer gives it. */
export interface NewEvent {
  /** Time-ordered (`timeOrderedId`) and unique everywhere; made by the engine when absent. Repeat a publish with the same one. */
  readonly id?: string;
  readonly payload: Payload;
  readonly type?: string;
  /** What order is kept by, in topics that keep order. */
  readonly key?: string;
  readonly tenant?: string;
  /** The names in `reservedHeaders` are refused. */
  readonly headers?: Headers;
  /** The id unless given. */
  readonly correlationId?: string;
  /** What external effects of this event are made under, in every attempt; the id unless given. */
  readonly idempotencyKey?: string;
  /** Not before so long from now, by the store's clock. Not together with `dueAt`. */
  readonly delayMs?: number;
  /** Not before this time of day (epoch ms). */
  readonly dueAt?: number;
  /** How long the customer will wait, from now. Absent: for ever. */
  readonly patienceMs?: number;
  /** Only for an event that has been somewhere before: a replay, a move between engines. */
  readonly past?: Past;
}

/** What an event keeps over every hop. */
export interface Past {
  readonly originTopic: string;
  /** Epoch ms. */
  readonly firstSeenAt: number;
  /** The replay operation that released it. */
  readonly replay?: string;
}

/** An event as it is stored: what does not change from attempt to attempt. */
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
  /** Where it was first published; set once. */
  readonly originTopic: string;
  /** When, epoch ms by the store's clock; set once. */
  readonly firstSeenAt: number;
  /** When the customer's patience ends, epoch ms by the store's clock. */
  readonly expiresAt: number | undefined;
  /** The replay operation that released it. */
  readonly replay: string | undefined;
}

/** What has happened to an event so far. */
export interface AttemptState {
  /** Attempts made and settled as failed. */
  readonly attempts: number;
  readonly snoozes: number;
  /** Leases that ended unsettled since it was last settled: how often it was in hand when a process died. */
  readonly deaths: number;
  /** The delay that was decided last. */
  readonly nextDelayMs: number | undefined;
  readonly lastError: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/** The right to settle one event, for a while. Plain data: it may cross threads, and is given back as it came. */
export interface Lease {
  readonly topic: string;
  /** The event's. */
  readonly id: string;
  /** Opaque, and never the same for two leases of one event. */
  readonly token: string;
}

/** An event in hand. */
export interface Delivery extends Envelope, AttemptState {
  readonly lease: Lease;
  /** This attempt, counted from 1. */
  readonly attempt: number;
  /** Of the customer, by the store's clock at the time of the lease; Infinity without a limit, never below 0. */
  readonly patienceLeftMs: number;
  /** It was in hand when a process died: run it alone. */
  readonly suspect: boolean;
  /** Why it was parked, where the parking lot is a topic and this came from it. */
  readonly diagnosis: Diagnosis | undefined;
}

/** Why an event was set aside. */
export interface Diagnosis {
  /** The error's type: `dlq-reason`. */
  readonly reason: string;
  /** At most 512 characters: `dlq-message`. */
  readonly message: string;
  /** A stop reason of core, or a handler's own word: `dlq-stop`. */
  readonly stop: string;
  readonly finalAttempt: number;
  readonly error: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/** The topic that is the parking lot of `topic`, where there is no Triage in the same store. */
export function parkedTopic(topic: string): string {
  return `${topic}.parked`;
}
