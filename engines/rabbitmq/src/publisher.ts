import type { ConfirmChannel, Options } from 'amqplib';
import { type Clock, Timer } from 'holdfast';
import { RabbitmqError, saidBy } from './rabbitmq-errors.ts';
import type { Session } from './session.ts';

export interface Publication {
  readonly exchange: string;
  readonly routingKey: string;
  readonly content: Buffer;
  readonly properties: Options.Publish;
}

interface OpenChannel {
  readonly channel: ConfirmChannel;
  /** Ids of messages that reached no queue. The server returns such a message to us, and then confirms it. */
  readonly returned: Set<string>;
  error: unknown;
}

/** Publishes messages, and waits until the server has confirmed them. */
export class Publisher {
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #opening: Promise<OpenChannel> | undefined;

  constructor(session: Session, clock: Clock, timeoutMs: number) {
    this.#session = session;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Rejects if at least one message was refused or not confirmed; the other messages may be stored. A message
   * is not sent again here: the server cannot recognize a duplicate, and would store the message twice.
   */
  async publish(publications: readonly Publication[]): Promise<void> {
    if (publications.length === 0) return;
    const open = await this.#channel();
    await this.#session.untilUnblocked();
    const errors = await this.#confirmed(open, publications);
    const lost = publications.filter(({ properties }) => open.returned.delete(properties.messageId!));
    if (lost.length > 0)
      throw new RabbitmqError('REFUSED', `RabbitMQ has no queue "${lost[0]!.routingKey}": was it deleted?`);
    const [error] = errors;
    if (error === undefined) return;
    const count = `${errors.length} of ${publications.length} events`;
    if (error.message === 'message nacked')
      throw new RabbitmqError('REFUSED', `RabbitMQ refused ${count}: a queue is full, or not available`);
    const cause = open.error ?? error;
    throw new RabbitmqError('UNANSWERED', `RabbitMQ did not confirm ${count}: ${saidBy(cause)}`, { cause });
  }

  #channel(): Promise<OpenChannel> {
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<OpenChannel> {
    const channel = await this.#session.openChannel((connection) => connection.createConfirmChannel());
    const open: OpenChannel = { channel, returned: new Set(), error: undefined };
    channel.on('error', (error) => {
      open.error = error;
    });
    channel.on('close', () => {
      this.#opening = undefined;
    });
    channel.on('return', ({ properties }) => open.returned.add(properties.messageId));
    return open;
  }

  /**
   * Resolves with the errors when each message is confirmed or refused. Rejects if no answer comes for
   * `timeoutMs`.
   */
  #confirmed({ channel }: OpenChannel, publications: readonly Publication[]): Promise<Error[]> {
    return new Promise((resolve, reject) => {
      const errors: Error[] = [];
      let left = publications.length;
      let lastAt = this.#clock.now();
      const timer = new Timer(this.#clock, (now) => {
        if (lastAt + this.#timeoutMs > now) timer.setAt(lastAt + this.#timeoutMs);
        else reject(this.#lateError(left, publications.length));
      });
      const confirmed = (error: Error | null) => {
        if (error) errors.push(error);
        lastAt = this.#clock.now();
        left -= 1;
        if (left > 0) return;
        timer.clear();
        resolve(errors);
      };
      timer.setIn(this.#timeoutMs);
      try {
        for (const { exchange, routingKey, content, properties } of publications)
          channel.publish(exchange, routingKey, content, properties, confirmed);
      } catch (error) {
        // The channel was closed after `#channel` returned it.
        timer.clear();
        reject(
          new RabbitmqError('UNANSWERED', `RabbitMQ took no events: ${saidBy(error)}`, { cause: error }),
        );
      }
    });
  }

  #lateError(left: number, count: number): RabbitmqError {
    if (this.#session.blockedBecause !== undefined) return this.#session.blockedError();
    return new RabbitmqError(
      'UNANSWERED',
      `RabbitMQ did not confirm ${left} of ${count} events within ${this.#timeoutMs} ms`,
    );
  }
}
