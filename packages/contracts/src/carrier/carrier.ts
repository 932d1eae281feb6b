import type { HistoryRange, TopicSettings } from '../broker.ts';
import type { Headers, Payload } from '../envelope.ts';
import type { Features } from '../features.ts';
import type { Page } from '../page.ts';
import type { SizeLimits } from '../size-limits.ts';

/**
 * Each topic has two queues: `hot` for first attempts, and `retry` for events that are due later. So a
 * delayed retry never blocks first attempts.
 */
export type QueueName = 'hot' | 'retry';
export const queueNames = ['hot', 'retry'] as const satisfies readonly QueueName[];

/**
 * The adapter for one message broker, such as Kafka or SQS: it sends, receives and acknowledges messages.
 * `carrierBroker` makes all decisions.
 *
 * `Handle` identifies one delivery of one message. Handles are compared by identity, so always use the same
 * value for the same delivery.
 */
export interface Carrier<Handle = unknown> {
  readonly name: string;
  readonly limits: SizeLimits;
  /** The features that depend on the server. `anyDelay` is about the `retry` queue. */
  readonly features: Pick<Features, 'arrivalOrder' | 'anyDelay' | 'durable'>;
  /**
   * What the server itself reports with each message, so that no header is needed for it. `key`: the key of
   * the message. `time`: when the server received the message.
   */
  readonly tells: { readonly key: boolean; readonly time: boolean };
  /**
   * The visibility timeout: how many ms the server reserves a delivered message for this process. The process
   * stops using the message after nine tenths of this time. `undefined`: the message is reserved until the
   * connection ends.
   */
  readonly holdMs: number | undefined;

  /**
   * Creates both queues of a topic if they do not exist. Settings that are not given keep their value.
   * Rejects if a queue exists with other settings. If the process may not create queues, the error message
   * has the command to run.
   */
  ensure(topic: string, settings: Partial<TopicSettings>): Promise<TopicSettings>;
  has(topic: string): Promise<boolean>;
  topics(): Promise<readonly string[]>;

  /**
   * Sends messages. Resolves when all are durable, with the indexes of those that the server already had. If
   * it rejects, some messages may be stored.
   */
  send(topic: string, queue: QueueName, messages: readonly Message[]): Promise<readonly number[] | undefined>;

  /**
   * Starts to receive messages; none arrives before `credit` is called. Called once for each queue of a
   * topic.
   */
  open(topic: string, queue: QueueName, listener: IntakeListener<Handle>): Intake;

  /**
   * Acknowledges messages, so that the server removes them. Returns false for a message that now belongs to
   * another process. If it rejects, the caller repeats the call.
   */
  done(handles: readonly Handle[]): Promise<readonly boolean[]>;
  /**
   * Gives messages back that were not handled. The server delivers them again, to this process or another.
   */
  release(handles: readonly Handle[]): Promise<void>;
  /**
   * Extends the visibility timeout of messages to `holdMs` from now. It is called every `holdMs` / 3. For
   * handles that the server refuses, the carrier calls `listener.lost`.
   */
  keep?(handles: readonly Handle[]): Promise<void>;
  /**
   * Gives back a message that arrived before it was due. The server delivers it again after `delayMs`, or
   * earlier. Without this method, the message waits in this process.
   */
  later?(handle: Handle, delayMs: number): void;

  counts(topic: string): Promise<CarrierCounts>;
  /**
   * Lists the messages of the `hot` queue in the order of publication, including acknowledged ones. Only for
   * servers that keep them.
   */
  history?(topic: string, range: HistoryRange): Promise<Page<Omit<Arrival<Handle>, 'handle' | 'askedAt'>>>;
  /** Removes at most `limit` messages that are not needed any more, and returns how many. */
  sweep?(limit: number): Promise<number>;
  /** Stops receiving and closes the connection. The server delivers unacknowledged messages again. */
  close(): Promise<void>;
}

/** A message to be sent to the server. */
export interface Message {
  /**
   * Two messages with the same `dedupId` are one message that was sent twice. A server that detects
   * duplicates keeps only one of them.
   */
  readonly dedupId: string;
  /**
   * Names and values can be any text. The carrier (the adapter for a message broker) must encode characters
   * that the server does not accept.
   */
  readonly headers: Headers;
  /** The payload is text, unless there is a header `payload-kind: bytes`. */
  readonly payload: Payload;
  readonly key: string | undefined;
  /**
   * The ms before the delivery; above 0 only in the `retry` queue. The header `due-ts` has the exact due
   * time, so the server may be early or late.
   */
  readonly delayMs: number;
}

/** A message that the server has delivered. */
export interface Arrival<Handle> {
  readonly handle: Handle;
  /** A permanent id of this message, such as `orders/3/17`. It is the event id if the producer gave none. */
  readonly messageId: string;
  /**
   * The carrier (the adapter for a message broker) converts numbers and booleans to text, and tables to JSON.
   * If a header is repeated, only its last value counts.
   */
  readonly headers: Headers;
  /**
   * Text is used as it is. Bytes are decoded later, as the header `payload-kind` says. Without a payload,
   * this is an empty text.
   */
  readonly payload: Payload;
  readonly key: string | undefined;
  /** When the server received the message, epoch ms. */
  readonly at: number;
  /**
   * The value of `clock.now()` just before this process requested the message. `holdMs` counts from this
   * time.
   */
  readonly askedAt: number;
}

/**
 * The callbacks of a carrier (the adapter for a message broker): messages have arrived, or the server has
 * taken messages back.
 */
export interface IntakeListener<Handle> {
  arrived(messages: readonly Arrival<Handle>[]): void;
  /**
   * The server does not reserve these messages for this process any more, for example because the channel was
   * closed.
   */
  lost(handles: readonly Handle[]): void;
}

/** The stream of messages from one queue to this process. Without credit, no messages arrive. */
export interface Intake {
  /**
   * Sets how many more messages may arrive from now on. Messages that are already on their way may exceed
   * this number.
   */
  credit(count: number): void;
  /**
   * Requests messages, up to the credit. Resolves when the messages that were in the queue have arrived, or
   * the queue is empty.
   */
  look(): Promise<void>;
}

/** How many messages a topic has. Some servers only give an estimate. */
export interface CarrierCounts {
  /** Messages in the `hot` queue that are not delivered to any process. */
  readonly waiting: number;
  /** Messages in the `retry` queue that are not delivered to any process, or were given back with `later`. */
  readonly delayed: number;
  /** Messages that are delivered to a process and not acknowledged. */
  readonly delivered: number;
}
