import type { Broker } from '@holdfast/contracts';
import { type Clock, Timer } from 'holdfast';
import { type Batch, OVER, type Task } from './task.ts';

export interface HeartbeatSettings {
  readonly broker: Broker;
  readonly clock: Clock;
  readonly leaseMs: number;
  /** Called when the lease of `task` has ended. From this time on, another consumer may handle the event. */
  onLost(task: Task): void;
  onFailure(what: string, delayMs: number): void;
}

/**
 * How often a lease is extended during its duration. With 3, two calls of the store may fail before the lease
 * ends.
 */
const beatsPerLease = 3;

/** Extends the leases of all events that the consumer has leased, with one call of the store. */
export class Heartbeat {
  readonly #settings: HeartbeatSettings;
  readonly #timer: Timer;
  #batches: Batch[] = [];

  constructor(settings: HeartbeatSettings) {
    this.#settings = settings;
    this.#timer = new Timer(settings.clock, () => void this.#beat());
  }

  watch(batch: Batch): void {
    // Remove finished batches now, so that their events do not stay in memory until the next heartbeat.
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

  /**
   * Estimates the payload bytes of all leased events. It assumes that each event has the average size of its
   * batch.
   */
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
    // Find ended leases before the call of the store, because that call may hang on a dead connection.
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

  /**
   * Reports the events whose lease has ended by this process's clock, because another consumer may handle
   * them.
   */
  #loseEnded(): void {
    const { clock, onLost } = this.#settings;
    const now = clock.now();
    const ended = [...this.inHand()].filter(({ batch }) => now >= batch.leaseEndsAt);
    for (const task of ended) onLost(task);
  }
}
