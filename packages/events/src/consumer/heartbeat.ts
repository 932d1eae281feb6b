import type { Broker } from '@holdfast/contracts';
import { type Clock, Timer } from 'holdfast';
import { type Batch, OVER, type Task } from './task.ts';

export interface HeartbeatSettings {
  readonly broker: Broker;
  readonly clock: Clock;
  readonly leaseMs: number;
  /** Called when the lease of `task` has ended, so that another consumer may handle the event. */
  onLost(task: Task): void;
  onFailure(what: string, delayMs: number): void;
}

/** Leases are extended after a third of their time. So two calls may fail before a lease ends. */
const beatsPerLease = 3;

/** Extends the leases of all events that the consumer holds, with one call. */
export class Heartbeat {
  readonly #settings: HeartbeatSettings;
  readonly #timer: Timer;
  #batches: Batch[] = [];

  constructor(settings: HeartbeatSettings) {
    this.#settings = settings;
    this.#timer = new Timer(settings.clock, () => void this.#beat());
  }

  watch(batch: Batch): void {
    // Remove finished batches now: keeping thousands of events in memory would be slow.
    this.#batches = this.#batches.filter(({ open }) => open > 0);
    this.#batches.push(batch);
    this.#setTimer();
  }

  stop(): void {
    this.#batches = [];
    this.#timer.clear();
  }

  *inHand(): Generator<Task> {
    for (const { tasks } of this.#batches) {
      for (const task of tasks) if (task.phase !== OVER) yield task;
    }
  }

  /** Estimates the payload bytes of all leased events: each event has the average size of its batch. */
  get bytesInHand(): number {
    let bytes = 0;
    for (const batch of this.#batches)
      if (batch.open > 0) bytes += (batch.bytes * batch.open) / batch.tasks.length;
    return bytes;
  }

  get #everyMs(): number {
    return this.#settings.leaseMs / beatsPerLease;
  }

  #setTimer(): void {
    if (!this.#timer.isSet && this.#everyMs < Infinity) this.#timer.setIn(this.#everyMs);
  }

  async #beat(): Promise<void> {
    const { broker, clock, leaseMs, onLost, onFailure } = this.#settings;
    // Do this first, because the call of the store may hang on a dead connection.
    this.#loseEnded();
    this.#batches = this.#batches.filter(({ open }) => open > 0);
    if (this.#batches.length === 0) return;
    this.#setTimer();
    const sentAt = clock.now();
    const batches = [...this.#batches];
    const tasks = [...this.inHand()];
    try {
      const extended = await broker.extend(
        tasks.map(({ delivery }) => delivery.lease),
        leaseMs,
      );
      for (const batch of batches) batch.leaseEndsAt = sentAt + leaseMs;
      tasks.forEach((task, index) => {
        if (!extended[index]) onLost(task);
      });
    } catch {
      onFailure('extend', this.#everyMs);
      this.#loseEnded();
    }
  }

  /** Gives up the events whose lease has ended, because another consumer may handle them. */
  #loseEnded(): void {
    const { clock, onLost } = this.#settings;
    const now = clock.now();
    const ended = [...this.inHand()].filter(({ batch }) => now >= batch.leaseEndsAt);
    for (const task of ended) onLost(task);
  }
}
