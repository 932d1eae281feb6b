import type { AttemptRecord } from './attempt-record.ts';
import type { ErrorNote } from './error-note.ts';

/** The content of an event. Engines store it without reading it: text is returned as text, and bytes as bytes. */
export type Payload = string | Uint8Array;

export type Headers = Readonly<Record<string, string>>;

/** An event that a producer publishes. */
export interface NewEvent {
  /**
   * The id must be unique in all topics; the engine creates one unless given. Time-ordered ids (`timeOrderedId`) are
   * fastest. To repeat a failed publish safely, use the same id.
   */
  readonly id?: string;
  readonly payload: Payload;
  readonly type?: string;
  /**
   * In topics with `ordering: 'key'`, events with the same key are handled one after the other, in the order of
   * publication.
   */
  readonly key?: string;
  readonly tenant?: string;
  /** Names in `reservedHeaders` are not allowed. */
  readonly headers?: Headers;
  /** Connects events that belong together; the id of the event unless given. */
  readonly correlationId?: string;
  /**
   * The idempotency key for calls of other systems, which is the same in every attempt; the id of the event unless
   * given.
   */
  readonly idempotencyKey?: string;
  /** The event becomes due this long after the publish, by the store's clock. Do not give it together with `dueAt`. */
  readonly delayMs?: number;
  /** The time at which the event becomes due, epoch ms. */
  readonly dueAt?: number;
  /**
   * How long the customer waits for the result, counted from the publish; without limit unless given. After that,
   * consumers park the event instead of handling it.
   */
  readonly patienceMs?: number;
  /** Only for an event that was published before, and is now replayed or moved to another engine. */
  readonly past?: Past;
}

/** Data of the first publish, which an event keeps when it is published again. */
export interface Past {
  readonly originTopic: string;
  /** Epoch ms. */
  readonly firstSeenAt: number;
  /** The id of the replay operation that published the event again. */
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
  /** The topic to which the event was first published. A reroute does not change it. */
  readonly originTopic: string;
  /** When the event was first published, epoch ms by the store's clock. Retries and replays do not change it. */
  readonly firstSeenAt: number;
  /** When the customer stops waiting for the result, epoch ms by the store's clock. */
  readonly expiresAt: number | undefined;
  /** The id of the replay operation that published the event again. */
  readonly replay: string | undefined;
}

/** The part of a stored event that changes with each attempt. */
export interface AttemptState {
  /** How many failed attempts the settlements of this event have recorded. */
  readonly attempts: number;
  readonly snoozes: number;
  /**
   * How many leases have expired since the last settlement. A lease expires when the process that handles the event
   * dies or hangs.
   */
  readonly deaths: number;
  /** The delay of the last retry or snooze. */
  readonly nextDelayMs: number | undefined;
  readonly lastError: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/** The right to settle one event, for a limited time. It is plain data and can be sent to another thread. */
export interface Lease {
  readonly topic: string;
  /** The id of the event. */
  readonly id: string;
  /** A text that is different for each lease of the event. Only the engine interprets it. */
  readonly token: string;
}

/** A leased event, as a consumer gets it. */
export interface Delivery extends Envelope, AttemptState {
  readonly lease: Lease;
  /** The number of this attempt, counted from 1. */
  readonly attempt: number;
  /**
   * How long the customer was still willing to wait when the event was leased, by the store's clock. Infinity: no
   * limit. Never below 0.
   */
  readonly patienceLeftMs: number;
  /**
   * True: an earlier lease of the event expired, perhaps because the event crashed the process. Handle the event while
   * the process handles nothing else.
   */
  readonly suspect: boolean;
  /** Why the event was parked, if this topic is the dead-letter topic of another topic. */
  readonly diagnosis: Diagnosis | undefined;
}

/** Why an event was parked, that is, moved to the dead-letter store. */
export interface Diagnosis {
  /** The type of the error. Its message header is `dlq-reason`. */
  readonly reason: string;
  /** The message of the error, at most 512 characters. Its message header is `dlq-message`. */
  readonly message: string;
  /**
   * Why there are no more retries: a stop reason of the retry policy, or a text of the handler. Its message header is
   * `dlq-stop`.
   */
  readonly stop: string;
  readonly finalAttempt: number;
  readonly error: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/** The name of the topic to which an engine without a `Triage` moves the parked events of `topic`. */
export function parkedTopic(topic: string): string {
  return `${topic}.parked`;
}
