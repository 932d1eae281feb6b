import { Alarm, type Clock } from 'holdfast';
import { EventQueue } from './event-queue.ts';

/** `epochMs` at the start: the first day of 2026. */
const epochMs = 1_767_225_600_000;

/** V8 stores integers below this without an allocation. */
const SMALL_MAX = 2 ** 31;

/** A result that is delivered after the current event. */
export interface Delivery {
  deliver(): void;
}

/** One alarm for many entities: `ringFor` gets the entity. */
export abstract class SharedAlarm extends Alarm {
  abstract ringFor(entity: number): void;

  ring(): void {}
}

/**
 * Virtual time in whole microseconds, as the clock that policies are given. An event is an alarm of core's; those of one
 * time ring in the order of setting.
 */
export class Timeline implements Clock {
  nowUs = 0;
  events = 0;
  readonly #queue = new EventQueue();
  /** By slot. */
  readonly #alarms: (Alarm | undefined)[] = [];
  /** By slot: the entity of a shared alarm. */
  #entities = new Int32Array(1024);
  /** Reused from event to event; what is beyond `#deliveriesLeft` is old. */
  readonly #deliveries: Delivery[] = [];
  #deliveriesLeft = 0;
  readonly #isPromised: boolean;

  /** `isPromised`: deliveries settle promises, which wait for the end of the event by themselves. */
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

  /** At `at` or later, as a clock must: a whole microsecond that is no earlier. */
  set(alarm: Alarm, at: number): void {
    let us = Math.ceil(at * 1000);
    if (us / 1000 < at) us++;
    this.setUs(alarm, us);
    alarm.at = Math.max(us, this.nowUs) / 1000;
  }

  /** The same in µs, for alarms that do not read when they ring: a fraction kept in an object costs an allocation. */
  setUs(alarm: Alarm, us: number): void {
    if (alarm.index >= 0) this.clear(alarm);
    const slot = this.#queue.add(us > this.nowUs ? us : this.nowUs);
    alarm.index = slot;
    this.#alarms[slot] = alarm;
  }

  /** Rings a shared alarm for one entity. It cannot be cleared. */
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

  /** Delivers after the current event, when the state of the world is consistent. */
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

  /** The same for promises: all promises of an event have settled before the next event. */
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
        // Node looks at its ticks only when no microtask is left, so a tick asked for by one comes after all of them.
        queueMicrotask(nextStep);
      };
      const nextStep = () => process.nextTick(step);
      nextStep();
    });
  }

  #ringFirst(us: number): void {
    // As a small integer if possible: many objects store it, and a stored fraction costs an allocation.
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
    // A list that grows while it is walked.
    for (let index = 0; index < this.#deliveriesLeft; index++) this.#deliveries[index]!.deliver();
    this.#deliveriesLeft = 0;
  }
}
