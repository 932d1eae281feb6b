import { Alarm, type Clock } from 'holdfast';
import { EventQueue } from './event-queue.ts';

/** The wall-clock time at which every run starts, in epoch ms: 2026-01-01 at midnight UTC. */
const epochMs = 1_767_225_600_000;

/** V8 (the JavaScript engine) stores integers below this limit without allocating memory. */
const SMALL_MAX = 2 ** 31;

/** A result, such as the answer to an attempt, that its receiver gets after the current event. */
export interface Delivery {
  deliver(): void;
}

/** One alarm object that serves many entities, such as clients. `ringFor` gets the number of the entity. */
export abstract class SharedAlarm extends Alarm {
  abstract ringFor(entity: number): void;

  ring(): void {}
}

/**
 * The clock of a simulation: virtual time in whole microseconds. An event is an alarm that rings at its time. Alarms
 * with the same time ring in the order in which they were set.
 */
export class Timeline implements Clock {
  nowUs = 0;
  events = 0;
  readonly #queue = new EventQueue();
  /** The alarm of each slot of the queue. */
  readonly #alarms: (Alarm | undefined)[] = [];
  /** For a slot with a shared alarm: the entity to ring for. */
  #entities = new Int32Array(1024);
  /**
   * The results to deliver after the current event. The array is reused: entries from index `#deliveriesLeft` on belong
   * to earlier events.
   */
  readonly #deliveries: Delivery[] = [];
  #deliveriesLeft = 0;
  readonly #isPromised: boolean;

  /**
   * `isPromised`: deliveries settle promises. If so, `deliver` is called immediately, because the handlers of a promise
   * run after the current event anyway.
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

  /** Sets an alarm for the time `at` in ms, rounded up to a whole microsecond: a clock must not ring early. */
  set(alarm: Alarm, at: number): void {
    let us = Math.ceil(at * 1000);
    if (us / 1000 < at) us++;
    this.setUs(alarm, us);
    alarm.at = Math.max(us, this.nowUs) / 1000;
  }

  /**
   * Sets an alarm for the time `us` in µs. The time is not stored in the alarm, because storing a fraction in an object
   * costs an allocation. So only alarms that do not read their time may use this function.
   */
  setUs(alarm: Alarm, us: number): void {
    if (alarm.index >= 0) this.clear(alarm);
    const slot = this.#queue.add(us > this.nowUs ? us : this.nowUs);
    alarm.index = slot;
    this.#alarms[slot] = alarm;
  }

  /** Sets a shared alarm for one entity. Such an alarm cannot be cleared. */
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

  /** Calls `delivery.deliver` after the current event, when the state of the simulation is consistent. */
  deliver(delivery: Delivery): void {
    if (this.#isPromised) delivery.deliver();
    else this.#deliveries[this.#deliveriesLeft++] = delivery;
  }

  /** Rings all alarms up to and including `untilUs`, while `goesOn` returns true. */
  run(untilUs: number, goesOn: () => boolean): void {
    for (;;) {
      const us = this.#queue.firstAt;
      if (!(us <= untilUs && goesOn())) return;
      this.#ringFirst(us);
      if (this.#deliveriesLeft > 0) this.#carryOver();
    }
  }

  /**
   * Rings all alarms up to and including `untilUs`, while `goesOn` returns true. It is for deliveries that settle
   * promises: all promises of an event have settled before the next event.
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
        // Node runs `nextTick` callbacks only when no microtask is left, so a tick that a microtask requests runs after
        // all microtasks.
        queueMicrotask(nextStep);
      };
      const nextStep = () => process.nextTick(step);
      nextStep();
    });
  }

  #ringFirst(us: number): void {
    // Stored as a small integer if possible: many objects copy this time, and V8 allocates memory for any other number.
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
    // A delivery may append further deliveries to the list during this loop.
    for (let index = 0; index < this.#deliveriesLeft; index++) this.#deliveries[index]!.deliver();
    this.#deliveriesLeft = 0;
  }
}
