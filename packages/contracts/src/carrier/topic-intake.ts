import { type Clock, Timer } from 'holdfast';
import { Backlog, type Entry } from './backlog.ts';
import { readEvent } from './carried-event.ts';
import { type Arrival, type Carrier, type Intake, type QueueName, queueNames } from './carrier.ts';
import { type HeldLeases, isOver } from './held-leases.ts';

export interface IntakeSettings<Handle> {
  readonly topic: string;
  readonly carrier: Carrier<Handle>;
  readonly clock: Clock;
  readonly leases: HeldLeases<Handle>;
  readonly prefetchMax: number;
  /** While waiting events of a queue have more payload bytes than this, no more are fetched. */
  readonly prefetchBytesMax: number;
  /** If no consumer leases events for this many ms, waiting events are given back to the server. */
  readonly idleMs: number;
}

/**
 * The process stops using a message when this share of `holdMs` is left. After `holdMs`, the server may
 * deliver the message to another process.
 */
const holdMargin = 0.1;
const keepsPerHold = 3;

/** Receives the messages of one topic, and extends their visibility timeout while they wait. */
export class TopicIntake<Handle> {
  readonly backlog = new Backlog<Handle>();
  readonly #settings: IntakeSettings<Handle>;
  readonly #byHandle = new Map<Handle, Entry<Handle>>();
  readonly #rings = new Set<() => void>();
  readonly #keepTimer: Timer;
  readonly #dueTimer: Timer;
  readonly #idleTimer: Timer;
  #intakes: Record<QueueName, Intake> | undefined;
  /** Events that arrived before they were due, sorted by due time. Only for carriers without `later`. */
  #early: Entry<Handle>[] = [];
  /** The largest `limit` of recent lease calls. This number of events is fetched in advance. */
  #wanted = 1;
  #arrivals = 0;
  /** The earliest time at which a lease or a visibility timeout can end. Nothing is checked before. */
  #checkAt = Infinity;
  /** True: no consumer leases events of this topic. Messages that still arrive are given back at once. */
  #isIdle = false;
  isPaused = false;

  constructor(settings: IntakeSettings<Handle>) {
    const { clock } = settings;
    this.#settings = settings;
    this.#keepTimer = new Timer(clock, () => void this.#keep());
    this.#dueTimer = new Timer(clock, () => this.#wakeEarly());
    this.#idleTimer = new Timer(clock, () => {
      if (this.#rings.size === 0) void this.giveBack().catch(() => {});
    });
  }

  get nextDueInMs(): number | undefined {
    const [first] = this.#early;
    return first && Math.max(0, first.event.dueAt - this.#settings.clock.epochMs());
  }

  doorbell(ring: () => void): () => void {
    this.#rings.add(ring);
    this.#isIdle = false;
    this.updateCredit();
    return () => {
      this.#rings.delete(ring);
      this.#idleTimer.setIn(this.#settings.idleMs);
    };
  }

  ring(): void {
    for (const ring of this.#rings) queueMicrotask(ring);
  }

  /** Asks the server for messages if no event waits in this process. */
  async fill(limit: number): Promise<void> {
    this.#isIdle = false;
    this.#wanted = Math.max(limit, this.#wanted / 2);
    this.#idleTimer.setIn(this.#settings.idleMs);
    this.updateCredit();
    const { hot, retry } = this.#open();
    const isEmpty = this.backlog.readyIn('hot') === 0;
    if (isEmpty && this.backlog.readyIn('retry') === 0) await Promise.all([hot.look(), retry.look()]);
    else if (isEmpty) await hot.look();
  }

  updateCredit(): void {
    const { prefetchMax, prefetchBytesMax } = this.#settings;
    const intakes = this.#open();
    const most = Math.min(prefetchMax, Math.max(1, Math.ceil(2 * this.#wanted)));
    // Each queue has its own limit. Otherwise early retries would leave no room for first attempts.
    for (const queue of queueNames) {
      const { events, bytes } = this.backlog.waitingIn(queue);
      const isFull = this.isPaused || bytes > prefetchBytesMax;
      const waiting = events + this.#earlyIn(queue);
      intakes[queue].credit(isFull ? 0 : Math.max(0, most - waiting));
    }
  }

  /** Ends expired leases. Their events can be leased again if the server still reserves the messages. */
  endLeases(): void {
    const now = this.#settings.clock.now();
    if (now < this.#checkAt) return;
    this.#checkAt = Infinity;
    for (const entry of this.#byHandle.values()) {
      if (entry.heldUntil <= now) this.forget(entry);
      else if (isOver(entry, now)) {
        this.#settings.leases.end(entry);
        this.backlog.putBack(entry);
      }
      this.#checkAt = Math.min(this.#checkAt, entry.heldUntil, entry.lease?.endsAt ?? Infinity);
    }
  }

  checkAt(time: number): void {
    this.#checkAt = Math.min(this.#checkAt, time);
  }

  forget(entry: Entry<Handle>): void {
    this.#settings.leases.end(entry);
    this.backlog.remove(entry);
    this.#byHandle.delete(entry.handle);
    if (entry.event.dueAt > 0) this.#early = this.#early.filter((other) => other !== entry);
  }

  /** Gives events that are not leased back to the server, until the next lease. */
  async giveBack(): Promise<void> {
    this.#isIdle = true;
    this.#wanted = 1;
    if (this.#intakes) for (const queue of queueNames) this.#intakes[queue].credit(0);
    const unused = [...this.#byHandle.values()].filter(({ lease }) => lease === undefined);
    for (const entry of unused) this.forget(entry);
    if (unused.length > 0) await this.#settings.carrier.release(unused.map(({ handle }) => handle));
  }

  async close(): Promise<void> {
    for (const entry of this.#byHandle.values()) this.#settings.leases.end(entry);
    await this.giveBack().finally(() => {
      for (const timer of [this.#keepTimer, this.#dueTimer, this.#idleTimer]) timer.clear();
    });
  }

  #open(): Record<QueueName, Intake> {
    const { carrier, topic } = this.#settings;
    const open = (queue: QueueName) =>
      carrier.open(topic, queue, {
        arrived: (messages) => this.#arrived(queue, messages),
        lost: (handles) => this.#lost(handles),
      });
    this.#intakes ??= { hot: open('hot'), retry: open('retry') };
    return this.#intakes;
  }

  #arrived(queue: QueueName, messages: readonly Arrival<Handle>[]): void {
    const { clock, carrier, topic } = this.#settings;
    if (this.#isIdle) {
      // If this fails, the server delivers the messages again when their visibility timeout ends.
      void carrier.release(messages.map(({ handle }) => handle)).catch(() => {});
      return;
    }
    const holdMs = (carrier.holdMs ?? Infinity) * (1 - holdMargin);
    const now = clock.epochMs();
    for (const message of messages) {
      const { handle, messageId, askedAt } = message;
      const event = readEvent(message, topic, queue);
      const entry: Entry<Handle> = {
        handle,
        messageId,
        queue,
        event,
        order: ++this.#arrivals,
        heldUntil: askedAt + holdMs,
        lease: undefined,
        written: undefined,
        settleCall: 0,
        lane: undefined,
        isInHand: false,
      };
      const isEarly = event.dueAt > now;
      const keepsPlace = this.backlog.hasKeyOrder && event.key !== undefined;
      if (isEarly && !keepsPlace && carrier.later) carrier.later(handle, event.dueAt - now);
      else {
        this.#byHandle.set(handle, entry);
        this.checkAt(entry.heldUntil);
        if (isEarly && !keepsPlace) this.#wait(entry);
        else this.backlog.add(entry);
      }
    }
    if (carrier.keep && this.#byHandle.size > 0 && !this.#keepTimer.isSet)
      this.#keepTimer.setIn(carrier.holdMs! / keepsPerHold);
    this.ring();
  }

  #lost(handles: readonly Handle[]): void {
    for (const handle of handles) {
      const entry = this.#byHandle.get(handle);
      if (entry) this.forget(entry);
    }
    this.updateCredit();
    this.ring();
  }

  async #keep(): Promise<void> {
    const { carrier, clock } = this.#settings;
    const sentAt = clock.now();
    const entries = [...this.#byHandle.values()].filter(({ heldUntil }) => heldUntil > sentAt);
    if (entries.length === 0) return;
    this.#keepTimer.setIn(carrier.holdMs! / keepsPerHold);
    try {
      await carrier.keep!(entries.map(({ handle }) => handle));
      for (const entry of entries) entry.heldUntil = sentAt + carrier.holdMs! * (1 - holdMargin);
    } catch {
      // The server gave no answer. These messages count as lost at `heldUntil`, unless the next call extends
      // them in time.
    }
  }

  #wait(entry: Entry<Handle>): void {
    const after = this.#early.findLastIndex(({ event }) => event.dueAt <= entry.event.dueAt);
    this.#early.splice(after + 1, 0, entry);
    this.#dueTimer.setIn(this.nextDueInMs!);
  }

  #earlyIn(queue: QueueName): number {
    if (this.#early.length === 0) return 0;
    return this.#early.reduce((count, entry) => count + Number(entry.queue === queue), 0);
  }

  #wakeEarly(): void {
    const now = this.#settings.clock.epochMs();
    const later = this.#early.findIndex(({ event }) => event.dueAt > now);
    const due = this.#early.splice(0, later < 0 ? this.#early.length : later);
    for (const entry of due) this.backlog.add(entry);
    if (this.#early.length > 0) this.#dueTimer.setIn(this.nextDueInMs!);
    if (due.length > 0) this.ring();
  }
}
