import { Alarm, type Clock } from 'holdfast';
import { EventQueue } from './event-queue.ts';

/** The epoch time at which every run starts: 2026-01-01 at midnight UTC. */
const epochMs = 1_767_225_600_000;

/** V8 (the JavaScript engine) stores integers below this limit without allocating memory. */
const SMALL_MAX = 2 ** 31;

/** A result that is delivered after the current event, such as the answer to an attempt. */
export interface Delivery {
  deliver(): void;
}

/**
 * One alarm object that is set for many entities at once, such as clients. `ringFor` gets the number of the
 * entity.
 */
export abstract class SharedAlarm extends Alarm {
  abstract ringFor(entity: number): void;

  ring(): void {}
}

/**
 * The clock of a simulation: virtual time in whole microseconds. Alarms with the same time ring in the order in which
 * they were set.
 */
export class Timeline implements Clock {
  nowUs = 0;
  events = 0;
  readonly #queue = new EventQueue();
  readonly #alarms: (Alarm | undefined)[] = [];
  /** For a slot with a shared alarm: the entity to ring for. */
  #entities = new Int32Array(1024);
  /**
   * The results to deliver after the current event. The array is reused, so entries from index `#deliveriesLeft` on are
   * old.
   */
  readonly #deliveries: Delivery[] = [];
  #deliveriesLeft = 0;
  readonly #isPromised: boolean;

  /**
   * `isPromised`: each delivery settles a promise. Then `deliver` runs at once, because promise callbacks run
   * after the current event in any case.
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

  /** Sets an alarm for the time `at` in ms. It is rounded up to a microsecond, because an alarm must not ring early. */
  set(alarm: Alarm, at: number): void {
    let us = Math.ceil(at * 1000);
    if (us / 1000 < at) us++;
    this.setUs(alarm, us);
    alarm.at = Math.max(us, this.nowUs) / 1000;
  }

  /** Sets an alarm for the time `us` in µs. `alarm.at` is not set, so the alarm must not read it. */
  setUs(alarm: Alarm, us: number): void {
    if (alarm.index >= 0) this.clear(alarm);
    const slot = this.#queue.add(us > this.nowUs ? us : this.nowUs);
    alarm.index = slot;
    this.#alarms[slot] = alarm;
  }

  /** Sets a shared alarm for one entity. This can not be undone by `clear`. */
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

  /**
   * Calls `delivery.deliver` after the current event, when the state of the simulation is consistent again.
   */
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

  /** Like `run`, for deliveries that settle promises. All promises of an event settle before the next event. */
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
        // `nextStep` requests a tick. Node runs the tick after all microtasks, so all promises have settled by then.
        queueMicrotask(nextStep);
      };
      const nextStep = () => process.nextTick(step);
      nextStep();
    });
  }

  #ringFirst(us: number): void {
    // V8 (the JavaScript engine) allocates no memory for small integers. Many objects copy this number, so
    // convert it if possible.
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
    // A delivery may add further deliveries during this loop.
    for (let index = 0; index < this.#deliveriesLeft; index++) this.#deliveries[index]!.deliver();
    this.#deliveriesLeft = 0;
  }
}
