import type { Channel, ConsumeMessage } from 'amqplib';
import { AckWindow } from './ack-window.ts';
import type { Session } from './session.ts';

/** One delivery of a message. Only the channel that received the message can acknowledge it. */
export interface RabbitmqHandle {
  readonly held: HeldChannel;
  readonly message: ConsumeMessage;
}

/**
 * A channel of one consumer, with its unacknowledged deliveries. When the channel closes, the server delivers
 * these messages again.
 */
export class HeldChannel {
  readonly channel: Channel;
  readonly queue: string;
  readonly window = new AckWindow<RabbitmqHandle>();
  readonly #session: Session;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;
  isOpen = true;

  constructor(channel: Channel, queue: string, session: Session) {
    this.channel = channel;
    this.queue = queue;
    this.#session = session;
  }

  /**
   * Resolves with true when the server has received the acknowledgements, with false if the channel was
   * closed before.
   */
  async ack(handles: readonly RabbitmqHandle[]): Promise<boolean> {
    if (!this.isOpen) return false;
    const { upTo, single } = this.window.settle(handles.map(tagOf));
    if (upTo !== undefined) this.channel.ack(tagged(upTo), true);
    for (const tag of single) this.channel.ack(tagged(tag));
    return this.#answered();
  }

  /**
   * Returns messages to the queue, in their original order. The server delivers them again before later
   * messages.
   */
  async giveBack(handles: readonly RabbitmqHandle[]): Promise<void> {
    if (!this.isOpen) return;
    const tags = handles.map(tagOf).sort((a, b) => a - b);
    for (const tag of tags) if (this.window.remove(tag)) this.channel.nack(tagged(tag), false, true);
    await this.#answered();
  }

  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.#session.end(this.channel);
  }

  /**
   * Waits for `#barrier`. Returns false if the channel was closed meanwhile. Rejects if the server does not
   * answer in time.
   */
  async #answered(): Promise<boolean> {
    try {
      await this.#session.within('confirm acknowledgements', this.#barrier());
    } catch (error) {
      if (this.isOpen) throw error;
    }
    return this.isOpen;
  }

  /**
   * Resolves when the server has processed all acknowledgements sent so far. AMQP does not answer
   * acknowledgements, but a channel processes requests in order. So the answer to a `checkQueue` shows that
   * all acknowledgements before it are processed.
   */
  #barrier(): Promise<void> {
    this.#next ??= this.#running
      .catch(() => {})
      .then(async () => {
        this.#next = undefined;
        this.#running = this.channel.checkQueue(this.queue);
        await this.#running;
      });
    return this.#next;
  }
}

function tagOf({ message }: RabbitmqHandle): number {
  return message.fields.deliveryTag;
}

/** The methods `ack` and `nack` of the client want a whole message, but they read only its delivery tag. */
function tagged(deliveryTag: number): ConsumeMessage {
  return { fields: { deliveryTag } } as ConsumeMessage;
}
