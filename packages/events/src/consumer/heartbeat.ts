import type { Broker } from '@holdfast/contracts';
import { type Clock, Timer } from 'holdfast';
import { type Batch, OVER, type Task } from './task.ts';

export interface HeartbeatSettings {
  readonly broker: Broker;
  readonly clock: Clock;
  readonly leaseMs: number;
  /** The lease of `task` has ended: another consumer may have leased the event. */
  onLost(task: Task): void;
  onFailure(what: string, delayMs: number): void;
}

/** Leases are renewed after a third of their time, so that two heartbeats may fail. */
const beatsPerLease = 3;

/** Renews the leases of all unsettled events with one call a beat. No call is made while there are none. */
export class Heartbeat {
  readonly #settings: HeartbeatSettings;
  readonly #timer: Timer;
  #batches: Batch[] = [];

  constructor(settings: HeartbeatSettings) {
    this.#settings = settings;
    this.#timer = new Timer(settings.clock, () => void this.#beat());
  }

  watch(batch: Batch): void {
    // Drop finished batches at once: keeping a thousand finished events until the next beat costs more than handling them did.
    this.#batches = this.#batches.filter(({ open }) => open > 0);
    this.#batches.push(batch);
    this.#setTimer();
  }

  stop(): void {
    this.#batches = [];
    this.#timer.clear();
  }

  /** Tasks that wait, run or are being settled. */
  *inHand(): Generator<Task> {
    for (const { tasks } of this.#batches) {
      for (const task of tasks) if (task.phase !== OVER) yield task;
    }
  }

  /** Payload bytes of unsettled events, estimated: within a batch, each counts with the average. */
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
    // An earlier beat may hang on a dead connection, so check for ended leases here as well.
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

  /** Revokes tasks whose lease has ended by our clock: another consumer may be handling them. */
  #loseEnded(): void {
    const { clock, onLost } = this.#settings;
    const now = clock.now();
    const ended = [...this.inHand()].filter(({ batch }) => now >= batch.leaseEndsAt);
    for (const task of ended) onLost(task);
  }
}
