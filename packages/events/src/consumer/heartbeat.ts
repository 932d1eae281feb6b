import type { Broker } from '@holdfast/contracts';
import type { Clock } from 'holdfast';
import { Bell } from './bell.ts';
import { type Batch, OVER, type Task } from './task.ts';

export interface HeartbeatSettings {
  readonly broker: Broker;
  readonly clock: Clock;
  readonly leaseMs: number;
  /** Its lease has ended: it may be in other hands. */
  onLost(task: Task): void;
  onFailure(what: string, delayMs: number): void;
}

/** Leases are renewed when a third of their time has passed, so that two heartbeats may fail. */
const beatsPerLease = 3;

/** Renews the leases of all that is in hand: one call a beat, however many there are; none where all is settled in time. */
export class Heartbeat {
  readonly #settings: HeartbeatSettings;
  readonly #bell: Bell;
  #batches: Batch[] = [];

  constructor(settings: HeartbeatSettings) {
    this.#settings = settings;
    this.#bell = new Bell(settings.clock, () => void this.#beat());
  }

  watch(batch: Batch): void {
    // What is over is let go at once: a thousand events that live on for a moment cost more than they did.
    this.#batches = this.#batches.filter(({ open }) => open > 0);
    this.#batches.push(batch);
    this.#bell.within(this.#everyMs);
  }

  stop(): void {
    this.#batches = [];
    this.#bell.clear();
  }

  /** What is in hand: waiting, running or being settled. */
  *inHand(): Generator<Task> {
    for (const { tasks } of this.#batches) {
      for (const task of tasks) if (task.phase !== OVER) yield task;
    }
  }

  /** Of the payloads in hand, as if those of a batch were all as large. */
  get bytesInHand(): number {
    let bytes = 0;
    for (const batch of this.#batches)
      if (batch.open > 0) bytes += (batch.bytes * batch.open) / batch.tasks.length;
    return bytes;
  }

  get #everyMs(): number {
    return this.#settings.leaseMs / beatsPerLease;
  }

  async #beat(): Promise<void> {
    const { broker, clock, leaseMs, onLost, onFailure } = this.#settings;
    // An earlier beat may still wait for its answer, and would for as long as a dead connection lasts.
    this.#loseEnded();
    this.#batches = this.#batches.filter(({ open }) => open > 0);
    if (this.#batches.length === 0) return;
    this.#bell.within(this.#everyMs);
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

  /** Without an answer leases end when they end; what is done after that might be done twice. */
  #loseEnded(): void {
    const { clock, onLost } = this.#settings;
    const now = clock.now();
    const ended = [...this.inHand()].filter(({ batch }) => now >= batch.leaseEndsAt);
    for (const task of ended) onLost(task);
  }
}
