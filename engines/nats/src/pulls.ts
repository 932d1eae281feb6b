import { createInbox, type Msg } from '@nats-io/transport-node';
import { type Clock, Timer } from 'holdfast';
import type { Session } from './session.ts';

/** A pull request waits on the server for at most this many ms. After that, the next one is sent. */
const expiresMs = 20_000;
/** A pull request counts as lost if the server has not reported its end this many ms after `expiresMs`. */
const graceMs = 2_000;

/**
 * How many ms `look` waits for messages after a new pull request. A request with "no wait" would not help.
 * The server answers it with "no messages", even if messages must be delivered again.
 */
const answerMs = 60;
/**
 * How many ms `look` waits if a pull request is already open. The server answers an open request as soon as
 * it has stored a message.
 */
const pushMs = 15;

export interface PullSettings {
  readonly session: Session;
  readonly clock: Clock;
  readonly stream: string;
  readonly consumer: string;
  /** The most messages that one request asks for. */
  readonly batchMax: number;
  onMessages(messages: readonly Msg[]): void;
}

interface Pull {
  readonly number: string;
  readonly sentAt: number;
  left: number;
}

/** Pulls messages of one consumer with plain requests: the iterator of the client is ten times slower. */
export class Pulls {
  readonly #settings: PullSettings;
  readonly #inbox = createInbox();
  readonly #timer: Timer;
  #isSubscribed = false;
  /** Pull requests that wait on the server. The server answers the oldest one first. */
  #pulls: Pull[] = [];
  #credit = 0;
  #last = 0;
  /** Messages that arrived in this turn of the event loop. They are passed on together. */
  #arrived: Msg[] = [];
  readonly #looks = new Set<(pending: number) => void>();

  constructor(settings: PullSettings) {
    this.#settings = settings;
    this.#timer = new Timer(settings.clock, () => this.#pull());
    settings.session.onReconnect(() => {
      this.#pulls = [];
      this.#pull();
    });
  }

  credit(count: number): void {
    this.#credit = count;
    this.#pull();
  }

  /**
   * Asks the server for messages. Resolves when all messages that were in the queue at the time of the call
   * have arrived.
   */
  look(): Promise<void> {
    const { clock } = this.#settings;
    this.#pull();
    const [first] = this.#pulls;
    if (!first) return Promise.resolve();
    return new Promise((resolve) => {
      const arrived = (pending: number) => {
        // The server has more messages for the open requests, so wait for them.
        if (pending > 0 && this.#pulls.length > 0) timer.setIn(pushMs);
        else end();
      };
      const end = () => {
        timer.clear();
        this.#looks.delete(arrived);
        resolve();
      };
      const timer = new Timer(clock, end);
      timer.setAt(Math.max(first.sentAt + answerMs, clock.now() + pushMs));
      this.#looks.add(arrived);
    });
  }

  close(): void {
    this.#credit = 0;
    this.#timer.clear();
  }

  #pull(): void {
    const { clock, batchMax, session } = this.#settings;
    if (session.isClosed) return;
    const now = clock.now();
    this.#pulls = this.#pulls.filter(({ left, sentAt }) => left > 0 && sentAt + expiresMs + graceMs > now);
    const asked = this.#pulls.reduce((sum, { left }) => sum + left, 0);
    const more = Math.min(this.#credit, batchMax) - asked;
    // Send another request only if the open requests cover at most half of the credit (the number of wanted
    // messages). So there are few, large requests.
    if (more <= 0 || (this.#pulls.length > 0 && more * 2 < this.#credit)) return;
    const pull = { number: `${++this.#last}`, sentAt: now, left: more };
    this.#pulls.push(pull);
    this.#timer.setAt(now + expiresMs + graceMs);
    this.#send(pull.number, { batch: more, expires: expiresMs * 1e6 }).catch(() => this.#end(pull.number));
  }

  async #send(number: string, body: object): Promise<void> {
    const { session, stream, consumer } = this.#settings;
    const connection = await session.connection();
    if (!this.#isSubscribed)
      connection.subscribe(`${this.#inbox}.*`, { callback: (_, message) => this.#onMessage(message) });
    this.#isSubscribed = true;
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, JSON.stringify(body), {
      reply: `${this.#inbox}.${number}`,
    });
  }

  #onMessage(message: Msg): void {
    // An event arrives with the subject to which it was published. A status message arrives with the reply subject of
    // the pull request.
    if (message.subject.startsWith(this.#inbox)) {
      this.#onStatus(message);
      return;
    }
    const [first] = this.#pulls;
    if (first) first.left -= 1;
    if (first?.left === 0) this.#pulls.shift();
    if (this.#arrived.push(message) === 1) queueMicrotask(() => this.#handOver());
  }

  /**
   * Code 408: the pull request has expired, so the next one is sent. Code 409 and others: the server refused
   * the request, so the next one is sent after `graceMs`.
   */
  #onStatus({ subject, headers }: Msg): void {
    const code = headers?.code ?? 0;
    if (code < 400) return;
    this.#end(subject.slice(this.#inbox.length + 1));
    if (code === 408) this.#pull();
    else this.#timer.setIn(graceMs);
  }

  #end(number: string): void {
    this.#pulls = this.#pulls.filter((pull) => pull.number !== number);
  }

  #handOver(): void {
    const messages = this.#arrived;
    this.#arrived = [];
    this.#credit = Math.max(0, this.#credit - messages.length);
    this.#settings.onMessages(messages);
    const pending = pendingAfter(messages.at(-1)!);
    for (const arrived of [...this.#looks]) arrived(pending);
    this.#pull();
  }
}

/**
 * How many messages the server still had when it sent this message. The number is the last part of the acknowledgement
 * subject.
 */
function pendingAfter({ reply = '' }: Msg): number {
  return Number(reply.slice(reply.lastIndexOf('.') + 1));
}
