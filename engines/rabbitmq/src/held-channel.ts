import type { Channel, ConsumeMessage } from 'amqplib';
import { AckWindow } from './ack-window.ts';
import type { Session } from './session.ts';

/** One delivery. Only the channel that got it can settle it. */
export interface RabbitmqHandle {
  readonly held: HeldChannel;
  readonly message: ConsumeMessage;
}

/** A channel of one consumer, with the deliveries that are not settled. They are lost with the channel. */
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

  /** Acknowledges deliveries, and resolves when the server has them. False: the channel was lost before. */
  async ack(handles: readonly RabbitmqHandle[]): Promise<boolean> {
    if (!this.isOpen) return false;
    const { upTo, single } = this.window.settle(handles.map(tagOf));
    if (upTo !== undefined) this.channel.ack(tagged(upTo), true);
    for (const tag of single) this.channel.ack(tagged(tag));
    return this.#answered();
  }

  /** Gives deliveries back, in their order: they are delivered again before what is behind them. */
  async giveBack(handles: readonly RabbitmqHandle[]): Promise<void> {
    if (!this.isOpen) return;
    const tags = handles.map(tagOf).sort((a, b) => a - b);
    for (const tag of tags) if (this.window.remove(tag)) this.channel.nack(tagged(tag), false, true);
    await this.#answered();
  }

  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.channel.close().catch(() => {});
  }

  /** False: the channel was closed meanwhile. Rejects if the server does not answer in time. */
  async #answered(): Promise<boolean> {
    try {
      await this.#session.within('confirm acknowledgements', this.#barrier());
    } catch (error) {
      if (this.isOpen) throw error;
    }
    return this.isOpen;
  }

  /**
   * Acknowledgements have no answer. But the channel and the queue take requests in their order, so the answer of a question
   * about the queue tells that they have those before it. Calls at the same time share one question.
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

/** The client takes whole messages, and reads only their tags. */
function tagged(deliveryTag: number): ConsumeMessage {
  return { fields: { deliveryTag } } as ConsumeMessage;
}
