import type { Intake } from '@holdfast/contracts/carrier';
import type { ConsumeMessage } from 'amqplib';
import { type Clock, later, sleep, Timer } from 'holdfast';
import { HeldChannel, type RabbitmqHandle } from './held-channel.ts';
import type { Session } from './session.ts';

export interface ConsumerSettings {
  readonly session: Session;
  readonly clock: Clock;
  readonly queue: string;
  /** True if the server delivers the messages of this queue in order, and to one process at a time. */
  readonly isOrdered: () => Promise<boolean>;
  /** The most unacknowledged deliveries of an ordered queue. */
  readonly prefetchMax: number;
  /** Called before a channel is opened: creates the queue again if it was deleted. */
  readonly restore: () => Promise<void>;
  arrived(handles: readonly RabbitmqHandle[]): void;
  lost(handles: readonly RabbitmqHandle[]): void;
}

/**
 * How many ms `look` waits for a message if the queue is empty. After each message, it waits a quarter of
 * this time for the next one.
 */
const quietMs = 20;
/**
 * How many ms `look` waits for the first message if the queue has messages. The wait is limited, because the
 * server may deliver them to another process.
 */
const waitingMs = 150;
/**
 * A consumer is cancelled after this many ms without credit (nobody wants messages). Usually new credit comes
 * earlier.
 */
const lingerMs = 500;
/** The consumer is kept if the server may still send this many messages, even if this process wants more. */
const roomMin = 64;
/** The largest prefetch count that AMQP allows. */
const prefetchLimit = 65_535;

/**
 * Consumes one queue. The server sends messages until `prefetch` of them are unacknowledged. A running
 * consumer cannot change its prefetch. So a large change of the credit (the number of wanted messages) starts
 * a new consumer.
 */
export class QueueConsumer implements Intake {
  readonly #settings: ConsumerSettings;
  readonly #linger: Timer;
  #held: HeldChannel | undefined;
  #active: { readonly tag: string; readonly prefetch: number } | undefined;
  #credit = 0;
  #isClosed = false;
  #isOrdered = false;
  /** The running call of `#adjust`, so that there is only one change at a time. */
  #changing: Promise<void> | undefined;
  #isChanged = false;
  #tags = 0;
  #arrived: RabbitmqHandle[] = [];
  #arrivedAt = 0;
  /**
   * Unhandled messages of an ordered queue. They are returned to the server when all other delivered messages are
   * acknowledged.
   */
  #returned: RabbitmqHandle[] = [];

  constructor(settings: ConsumerSettings) {
    this.#settings = settings;
    this.#linger = new Timer(settings.clock, () => void this.#adjust());
  }

  get unsettled(): number {
    return this.#held?.window.size ?? 0;
  }

  credit(count: number): void {
    this.#credit = count;
    if (count > 0) {
      this.#linger.clear();
      void this.#adjust();
    } else if (!this.#linger.isSet) this.#linger.setIn(lingerMs);
  }

  async look(): Promise<void> {
    const { clock, queue, session } = this.#settings;
    if (this.#credit === 0) return;
    const arrivals = this.#arrivedAt;
    await Promise.race([this.#adjust(), sleep(clock, 10 * waitingMs)]);
    const held = this.#held;
    if (!held?.isOpen) return;
    const counted = await session.within('count', held.channel.checkQueue(queue)).catch(() => undefined);
    const patienceMs = (counted?.messageCount ?? 0) > 0 ? waitingMs : quietMs;
    const askedAt = clock.now();
    for (;;) {
      const hasArrived = this.#arrivedAt > arrivals;
      if (hasArrived && this.#credit === 0) return;
      const endsAt = hasArrived ? Math.max(this.#arrivedAt, askedAt) + quietMs / 4 : askedAt + patienceMs;
      const leftMs = endsAt - clock.now();
      if (leftMs <= 0) return;
      await sleep(clock, Math.min(leftMs, quietMs / 4));
    }
  }

  async release(handles: readonly RabbitmqHandle[]): Promise<void> {
    const held = this.#held;
    const ours = handles.filter((handle) => handle.held === held);
    if (!held?.isOpen || ours.length === 0) return;
    if (this.#isOrdered) {
      this.#returned.push(...ours);
      await this.#returnInOrder();
      return;
    }
    // Cancel the consumer first. Otherwise the server would deliver the returned messages to this process
    // again at once.
    if (this.#credit === 0) {
      this.#linger.clear();
      await this.#adjust();
    }
    await held.giveBack(ours);
  }

  /** Call this after deliveries were acknowledged. */
  settled(): void {
    void this.#returnInOrder();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#linger.clear();
    await this.#held?.close();
  }

  /**
   * Returns messages to an ordered queue by closing the channel. The server then puts all of them back in
   * their original order. With single `nack`s, a message could end up behind a later one.
   */
  async #returnInOrder(): Promise<void> {
    const held = this.#held;
    if (this.#credit > 0 || !held || this.#returned.length === 0 || this.#returned.length < held.window.size)
      return;
    this.#returned = [];
    await held.close();
  }

  /**
   * Starts, replaces or cancels the consumer, as the credit (the number of wanted messages) requires. Calls
   * during a change share the next change.
   */
  #adjust(): Promise<void> {
    const { session } = this.#settings;
    this.#isChanged = true;
    this.#changing ??= session
      .persist(async () => {
        while (this.#isChanged) {
          this.#isChanged = false;
          if (await this.#change()) this.#isChanged = true;
        }
      })
      .finally(() => {
        this.#changing = undefined;
        if (this.#isChanged && !session.isClosed) void this.#adjust();
      });
    return this.#changing;
  }

  /** Makes one change. Returns true if another change may be needed. */
  async #change(): Promise<boolean> {
    if (this.#isClosed) return false;
    const held = this.#held;
    const active = this.#active;
    if (this.#credit === 0) {
      const mayEnd = active && held?.isOpen && !this.#linger.isSet;
      // Keep the consumer of an ordered queue while this process still handles its events. Otherwise another
      // process would get later events of the same key.
      if (!mayEnd || (this.#isOrdered && held.window.size > 0)) return false;
      await this.#end(held, active.tag);
      return false;
    }
    if (!held?.isOpen) {
      await this.#open();
      return true;
    }
    if (this.#returned.length > 0) {
      const again = this.#returned;
      this.#returned = [];
      this.#settings.arrived(again);
      return true;
    }
    if (!active) {
      await this.#begin(held);
      return true;
    }
    const unsettled = held.window.size;
    const room = active.prefetch - unsettled;
    // `room` (how many messages the server may still send) need not equal the credit. Otherwise a new
    // consumer would be started for every thousand events.
    const isFit =
      room >= Math.min(this.#credit, roomMin) && active.prefetch <= 4 * (unsettled + this.#credit) + roomMin;
    const isLargest = active.prefetch === this.#prefetch(held);
    if (this.#isOrdered || isFit || isLargest) return false;
    await this.#end(held, active.tag);
    return true;
  }

  #prefetch(held: HeldChannel): number {
    if (this.#isOrdered) return Math.min(this.#settings.prefetchMax, prefetchLimit);
    return Math.min(2 ** Math.ceil(Math.log2(held.window.size + this.#credit)), prefetchLimit);
  }

  async #open(): Promise<void> {
    const { session, queue, restore, isOrdered } = this.#settings;
    await restore();
    this.#isOrdered = await isOrdered();
    const channel = await session.openChannel((connection) => connection.createChannel());
    const held = new HeldChannel(channel, queue, session);
    channel.on('error', () => {}); // The event `close` follows each error.
    channel.on('close', () => this.#onClose(held));
    this.#held = held;
    if (this.#isClosed) await held.close();
  }

  async #begin(held: HeldChannel): Promise<void> {
    const { session, queue } = this.#settings;
    const prefetch = this.#prefetch(held);
    const consumerTag = `holdfast-${++this.#tags}`;
    this.#active = { tag: consumerTag, prefetch };
    const begin = async () => {
      await held.channel.prefetch(prefetch);
      await held.channel.consume(queue, (message) => this.#onMessage(held, message), { consumerTag });
    };
    try {
      await session.within('begin to deliver', begin());
    } catch (error) {
      // The server may have started the consumer or not. Closing the channel ends it in both cases.
      await held.close();
      throw error;
    }
  }

  async #end(held: HeldChannel, tag: string): Promise<void> {
    this.#active = undefined;
    await this.#settings.session.within('stop to deliver', held.channel.cancel(tag));
  }

  #onMessage(held: HeldChannel, message: ConsumeMessage | null): void {
    // The server has cancelled this consumer: the queue was deleted, or its server failed. `#onClose` opens a
    // new channel.
    if (message === null) return void held.close();
    const handle = { held, message };
    held.window.add(message.fields.deliveryTag, handle);
    // Messages that arrive in the same turn of the event loop are passed on in one call of `#handOver`.
    if (this.#arrived.push(handle) === 1) later(() => this.#handOver());
  }

  #handOver(): void {
    const handles = this.#arrived.filter(({ held }) => held.isOpen);
    this.#arrived = [];
    this.#arrivedAt = this.#settings.clock.now();
    this.#credit = Math.max(0, this.#credit - handles.length);
    if (handles.length > 0) this.#settings.arrived(handles);
  }

  #onClose(held: HeldChannel): void {
    held.isOpen = false;
    const lost = held.window.clear();
    if (this.#held === held) {
      this.#held = undefined;
      this.#active = undefined;
      this.#returned = [];
    }
    if (lost.length > 0) this.#settings.lost(lost);
    if (this.#credit > 0 && !this.#isClosed) void this.#adjust();
  }
}
