import { Alarm, type Clock } from 'holdfast';
import { EventQueue } from './event-queue.ts';

/** Every run starts on 2026-01-01 at midnight UTC. */
const epochMs = 1_767_225_600_000;

const SMALL_MAX = 2 ** 31;

export interface Delivery {
  deliver(): void;
}

/** One alarm object for many entities, such as clients. `ringFor` gets the number of the entity. */
export abstract class SharedAlarm extends Alarm {
  abstract ringFor(entity: number): void;

  ring(): void {}
}

/**
 * The clock of a simulation: virtual time in whole µs. Alarms with the same time ring in the order in which
 * they were set.
 */
export class Timeline implements Clock {
  nowUs = 0;
  events = 0;
  readonly #queue = new EventQueue();
  readonly #alarms: (Alarm | undefined)[] = [];
  #entities = new Int32Array(1024);
  /** Results to deliver after the current event. Entries from index `#deliveriesLeft` on are old. */
  readonly #deliveries: Delivery[] = [];
  #deliveriesLeft = 0;
  readonly #isPromised: boolean;

  /**
   * `isPromised`: each delivery settles a promise. In this case `deliver` runs at once, because promise
   * callbacks run later anyway.
   */
  constructor(isPromised: boolean) {
    this.#isPromised = isPromised;
  }

  get pending(): number {
    return this.#queue.size;
  }

  now(): number {
    return this.nowUs / 1000;
  }

  epochMs(): number {
    return Math.floor(epochMs + this.nowUs / 1000);
  }

  /** Sets an alarm for the time `at` in ms. The time is rounded up to 1 µs: an alarm must not ring early. */
  set(alarm: Alarm, at: number): void {
    let us = Math.ceil(at * 1000);
    if (us / 1000 < at) us++;
    this.setUs(alarm, us);
    alarm.at = Math.max(us, this.nowUs) / 1000;
  }

  /**
   * Sets an alarm for the time `us` in µs. It does not set `alarm.at`, so the alarm must not read that field.
   */
  setUs(alarm: Alarm, us: number): void {
    if (alarm.index >= 0) this.clear(alarm);
    const slot = this.#queue.add(us > this.nowUs ? us : this.nowUs);
    alarm.index = slot;
    this.#alarms[slot] = alarm;
  }

  /** Sets a shared alarm for one entity. `clear` cannot undo this. */
  setFor(shared: SharedAlarm, entity: number, us: number): void {
    const slot = this.#queue.add(us > this.nowUs ? us : this.nowUs);
    if (slot >= this.#entities.length) {
      const longer = new Int32Array(2 * slot);
      longer.set(this.#entities);
      this.#entities = longer;
    }
    this.#entities[slot] = entity;
    this.#alarms[slot] = shared;
  }

  clear(alarm: Alarm): void {
    const slot = alarm.index;
    if (slot < 0 || this.#alarms[slot] !== alarm) return;
    alarm.index = -1;
    this.#alarms[slot] = undefined;
    this.#queue.remove(slot);
  }

  deliver(delivery: Delivery): void {
    if (this.#isPromised) delivery.deliver();
    else this.#deliveries[this.#deliveriesLeft++] = delivery;
  }

  run(untilUs: number, goesOn: () => boolean): void {
    for (;;) {
      const us = this.#queue.firstAt;
      if (!(us <= untilUs && goesOn())) return;
      this.#ringFirst(us);
      if (this.#deliveriesLeft > 0) this.#carryOver();
    }
  }

  /**
   * Like `run`, for deliveries that settle promises. All promises of an event settle before the next event.
   */
  runPromised(untilUs: number, goesOn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = () => {
        try {
          const us = this.#queue.firstAt;
          if (!(us <= untilUs && goesOn())) {
            resolve();
            return;
          }
          this.#ringFirst(us);
        } catch (error) {
          reject(error);
          return;
        }
        // Node runs a tick after all microtasks. So all promises settle before the next step.
        queueMicrotask(nextStep);
      };
      const nextStep = () => process.nextTick(step);
      nextStep();
    });
  }

  #ringFirst(us: number): void {
    // V8 (the JavaScript engine) stores integers below 2³¹ without allocating memory. Many objects copy this
    // number.
    this.nowUs = us < SMALL_MAX ? us | 0 : us;
    this.events++;
    const slot = this.#queue.takeFirst();
    const alarm = this.#alarms[slot]!;
    this.#alarms[slot] = undefined;
    if (alarm.index === slot) {
      alarm.index = -1;
      alarm.ring(this.nowUs / 1000);
    } else (alarm as SharedAlarm).ringFor(this.#entities[slot]!);
  }

  #carryOver(): void {
    for (let index = 0; index < this.#deliveriesLeft; index++) this.#deliveries[index]!.deliver();
    this.#deliveriesLeft = 0;
  }
}
