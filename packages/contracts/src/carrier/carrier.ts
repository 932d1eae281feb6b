import type { HistoryRange, TopicSettings } from '../broker.ts';
import type { Headers, Payload } from '../envelope.ts';
import type { Features } from '../features.ts';
import type { Page } from '../page.ts';
import type { SizeLimits } from '../size-limits.ts';

/**
 * Each topic has two queues. `hot` has first attempts, `retry` has events that are due later. So an event that waits
 * for its retry never blocks the others.
 */
export type QueueName = 'hot' | 'retry';
export const queueNames = ['hot', 'retry'] as const satisfies readonly QueueName[];

/**
 * What a message broker does: it takes messages, delivers them, and forgets them when they are done. `carrierBroker`
 * makes a `Broker` of it. A carrier counts no attempts and decides nothing; it translates, and says what it lost.
 *
 * `Handle` names one delivery of one message. It is compared by identity, so give the same value for the same delivery.
 */
export interface Carrier<Handle = unknown> {
  readonly name: string;
  readonly limits: SizeLimits;
  /** What depends on the server. `anyDelay` is about the `retry` queue. */
  readonly features: Pick<Features, 'arrivalOrder' | 'anyDelay' | 'durable'>;
  /**
   * What the server tells of a message beside its headers. No header repeats it. `key`: messages have a key of their own.
   * `time`: the server knows when it got a message.
   */
  readonly tells: { readonly key: boolean; readonly time: boolean };
  /**
   * How long the server keeps a delivered message for this process. Then it delivers the message again, and takes the
   * late answer of the first process, too. So this process stops a tenth earlier, by its own clock. `undefined`: as long
   * as the connection lives, and a late answer is refused.
   */
  readonly holdMs: number | undefined;

  /**
   * Creates both queues of a topic, if they do not exist. Two processes may do so at the same time. Settings that are not
   * given keep their value. Rejects with a sentence if they exist in another form, or with the command to run if this
   * process may not create them.
   */
  ensure(topic: string, settings: Partial<TopicSettings>): Promise<TopicSettings>;
  has(topic: string): Promise<boolean>;
  topics(): Promise<readonly string[]>;

  /**
   * Resolves when all messages are durable, with the positions of those that the server already had. After a rejection,
   * some may be stored.
   */
  send(topic: string, queue: QueueName, messages: readonly Message[]): Promise<readonly number[] | undefined>;

  /** Starts to receive messages, without credit at first. Called once for each queue of a topic. */
  open(topic: string, queue: QueueName, listener: IntakeListener<Handle>): Intake;

  /**
   * Forgets messages. Resolves when the server has answered: false for a handle that it refused, because the message
   * belongs to somebody else. Rejects if there is no answer: it is then called again with the same handles.
   */
  done(handles: readonly Handle[]): Promise<readonly boolean[]>;
  /** Gives messages back unhandled: the server delivers them again, to this process or another one. */
  release(handles: readonly Handle[]): Promise<void>;
  /**
   * Makes the server keep messages for `holdMs` more. Resolves when it has answered. For handles that it refused, it
   * calls `listener.lost`. Only with `holdMs`; called after a third of that time.
   */
  keep?(handles: readonly Handle[]): Promise<void>;
  /**
   * Gives back a message that came before it was due. The server delivers it again after `delayMs`, or earlier. Without
   * this method, the message waits in this process, not done.
   */
  later?(handle: Handle, delayMs: number): void;

  counts(topic: string): Promise<CarrierCounts>;
  /** Reads what was published to the `hot` queue, in that order, also what is done. Only where the server keeps it. */
  history?(topic: string, range: HistoryRange): Promise<Page<Omit<Arrival<Handle>, 'handle' | 'askedAt'>>>;
  /** Removes at most `limit` messages that nobody needs, and returns how many. */
  sweep?(limit: number): Promise<number>;
  /** Ends all intakes and the connection. What is not done is delivered again. */
  close(): Promise<void>;
}

/** A message on its way to the server. */
export interface Message {
  /**
   * Two messages with the same id are the same message, sent twice because an answer was lost. A server that can tell
   * keeps one of them. A copy (a retry, a parked event) is named after the message that it replaces.
   */
  readonly dedupId: string;
  /** Names and values are any text: encode what the server does not take. */
  readonly headers: Headers;
  /** Without the header `payload-kind: bytes`, it is text. */
  readonly payload: Payload;
  readonly key: string | undefined;
  /** Above 0 only in the `retry` queue. The header `due-ts` tells the exact time, so early is allowed, and late is not lost. */
  readonly delayMs: number;
}

/** A message as it came from the server. */
export interface Arrival<Handle> {
  readonly handle: Handle;
  /** Names this message for ever, such as `orders/3/17`. It is the id of an event that a stranger sent without one. */
  readonly messageId: string;
  /** Numbers and booleans as text, tables as JSON; of repeated headers, the last. */
  readonly headers: Headers;
  /** Bytes are decoded later, as the header `payload-kind` says. A text is taken as it is. No payload is an empty text. */
  readonly payload: Payload;
  readonly key: string | undefined;
  /** When the server got it, epoch ms. */
  readonly at: number;
  /** `clock.now()` before this process asked for it, if the server counts `holdMs` from then on. */
  readonly askedAt: number;
}

/** What the carrier calls when messages come, and when the server has taken some back. */
export interface IntakeListener<Handle> {
  arrived(messages: readonly Arrival<Handle>[]): void;
  /** The server no longer keeps these for this process: the channel was closed, or the partition has another owner. */
  lost(handles: readonly Handle[]): void;
}

/** The stream of messages of one queue to this process. It brings nothing without credit. */
export interface Intake {
  /**
   * Sets how many more messages may come from now on; each arrival uses one. More may come if they are on their way. The
   * server pushes them, or the carrier polls, while there is credit.
   */
  credit(count: number): void;
  /** Asks for what the server has now, within the credit. Resolves when it has arrived, or if there is nothing. */
  look(): Promise<void>;
}

/** How many messages of a topic there are. A server that only estimates gives its estimate. */
export interface CarrierCounts {
  /** In the `hot` queue, and delivered to nobody. */
  readonly waiting: number;
  /** In the `retry` queue, and delivered to nobody, or given back with `later`. */
  readonly delayed: number;
  /** Delivered to any process, and not done. */
  readonly delivered: number;
}
