import type { AttemptRecord } from './attempt-record.ts';
import type { ErrorNote } from './error-note.ts';

/** The content of an event. Engines do not parse it: text stays text, and bytes stay bytes. */
export type Payload = string | Uint8Array;

/** The headers of an event, as text. By default, an engine accepts at most 16 KiB per event. */
export type Headers = Readonly<Record<string, string>>;

/** An event that a producer publishes. */
export interface NewEvent {
  /** A unique id; the engine creates one by default. To repeat a failed publish safely, use the same id again. */
  readonly id?: string;
  readonly payload: Payload;
  readonly type?: string;
  /** With `ordering: 'key'`, events with the same key are handled one after the other, in the order of publication. */
  readonly key?: string;
  readonly tenant?: string;
  /** Names in `reservedHeaders` are not allowed. */
  readonly headers?: Headers;
  /** The same value in several events shows that they belong together. The default is the id of the event. */
  readonly correlationId?: string;
  /** The idempotency key that the handler sends to other systems. The default is the id of the event. */
  readonly idempotencyKey?: string;
  /** The event becomes due this long after the publish. Give either `delayMs` or `dueAt`, not both. */
  readonly delayMs?: number;
  /** When the event becomes due, epoch ms. */
  readonly dueAt?: number;
  /**
   * How many ms after the publish the result is useful; no limit by default. After this time, consumers park
   * the event (set it aside for an operator).
   */
  readonly patienceMs?: number;
  /** Only for an event that was published before: by a replay, or in another engine. */
  readonly past?: Past;
}

/** The data of the first publish, for an event that is published again. */
export interface Past {
  readonly originTopic: string;
  /** When the event was first published, epoch ms. */
  readonly firstSeenAt: number;
  /** The id of the replay operation that published the event again. */
  readonly replay?: string;
  /** Only for an event that moves here from another engine. Without it, the event starts with 0 attempts. */
  readonly moved?: Moved;
}

/**
 * The attempts of an event that moves here from another engine. The number of expired leases (`deaths`) does
 * not move.
 */
export interface Moved extends Partial<Omit<AttemptState, 'deaths'>> {
  /** False: later events of the same key do not wait for this event. */
  readonly holdsKey?: boolean;
  /**
   * True: the event is parked in a triage (it waits for an operator). It is stored here only so that later
   * events of its key wait. It must have a key.
   */
  readonly blocking?: boolean;
}

/** The part of a stored event that attempts do not change. */
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
  /** The topic to which the event was first published. */
  readonly originTopic: string;
  /** When the event was first published, epoch ms by the store's clock. Retries and replays do not change it. */
  readonly firstSeenAt: number;
  /** When the result is no longer useful, epoch ms by the store's clock. */
  readonly expiresAt: number | undefined;
  /** The id of the replay operation that published the event again. */
  readonly replay: string | undefined;
}

/** The part of a stored event that attempts change. */
export interface AttemptState {
  /** The number of failed attempts. */
  readonly attempts: number;
  readonly snoozes: number;
  /**
   * How many leases have expired since the event was last settled (acknowledged, for example). A lease
   * expires when its process dies or hangs.
   */
  readonly deaths: number;
  /** The delay of the last retry or snooze. */
  readonly nextDelayMs: number | undefined;
  readonly lastError: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/**
 * The right to settle one event (acknowledge, retry or park it), for a limited time. It is plain data, so it
 * can be sent to another thread.
 */
export interface Lease {
  readonly topic: string;
  readonly id: string;
  /** A text that differs for each lease of the event. Only the engine reads it. */
  readonly token: string;
}

/** A leased event, as a consumer gets it. */
export interface Delivery extends Envelope, AttemptState {
  readonly lease: Lease;
  /** The number of this attempt, counted from 1. */
  readonly attempt: number;
  /** How long the result is still useful, measured when the event was leased. Infinity: no limit. */
  readonly patienceLeftMs: number;
  /**
   * True: an earlier lease of this event expired, perhaps because the event crashed the process. Handle it
   * while nothing else runs.
   */
  readonly suspect: boolean;
  /** Why the event was parked (set aside for an operator). Only events of a dead-letter topic have it. */
  readonly diagnosis: Diagnosis | undefined;
}

/** Why an event was parked, that is, set aside for an operator. */
export interface Diagnosis {
  /** The type of the error, stored in the header `dlq-reason`. */
  readonly reason: string;
  /** The message of the error, at most 512 characters, stored in the header `dlq-message`. */
  readonly message: string;
  /** Why there are no more retries, stored in the header `dlq-stop`. */
  readonly stop: string;
  readonly finalAttempt: number;
  /**
   * The name of the consumer that parked the event (set it aside for an operator). Its message header is
   * `dlq-consumer`.
   */
  readonly consumer: string | undefined;
  readonly error: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
}

/**
 * Returns the topic for the parked events of `topic` (those that wait for an operator): its dead-letter
 * topic. Engines without a `Triage` use it.
 */
export function parkedTopic(topic: string): string {
  return `${topic}.dlq`;
}
