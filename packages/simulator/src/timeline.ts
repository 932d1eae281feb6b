import { Alarm, type Clock } from 'holdfast';
import { EventQueue } from './event-queue.ts';

/** What `epochMs` says at the start: the first day of 2026. */
const epochMs = 1_767_225_600_000;

/** Integers below this are kept in place. */
const SMALL_MAX = 2 ** 31;

/** Something to be handed over once the event that caused it has been dealt with. */
export interface Delivery {
  deliver(): void;
}

/** An alarm of many: each of them may have set it. */
export abstract class CrowdAlarm extends Alarm {
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
  /** By slot: whom an alarm of many rings for. */
  #entities = new Int32Array(1024);
  /** Reused from event to event; what is beyond `#deliveriesLeft` is old. */
  readonly #deliveries: Delivery[] = [];
  #deliveriesLeft = 0;
  readonly #isPromised: boolean;

  /** `isPromised`: what is delivered settles promises, which wait for the end of the event by themselves. */
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

  /** Rings one alarm for one of many, who then need none of their own. It cannot be cleared. */
  setFor(crowd: CrowdAlarm, entity: number, us: number): void {
    const slot = this.#queue.add(us > this.nowUs ? us : this.nowUs);
    if (slot >= this.#entities.length) {
      const longer = new Int32Array(2 * slot);
      longer.set(this.#entities);
      this.#entities = longer;
    }
    this.#entities[slot] = entity;
    this.#alarms[slot] = crowd;
  }

  clear(alarm: Alarm): void {
    const slot = alarm.index;
    if (slot < 0 || this.#alarms[slot] !== alarm) return;
    alarm.index = -1;
    this.#alarms[slot] = undefined;
    this.#queue.remove(slot);
  }

  /** Hands something over when the present event is over, so that whatever that sets in motion meets a world in order. */
  deliver(delivery: Delivery): void {
    if (this.#isPromised) delivery.deliver();
    else this.#deliveries[this.#deliveriesLeft++] = delivery;
  }

  /** Rings everything up to and including `untilUs`, while `goesOn` says so. */
  run(untilUs: number, goesOn: () => boolean): void {
    for (;;) {
      const us = this.#queue.firstAt;
      if (!(us <= untilUs && goesOn())) return;
      this.#ringFirst(us);
      if (this.#deliveriesLeft > 0) this.#carryOver();
    }
  }

  /** The same for promises: all that an event set in motion has settled before the next. */
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
    // As a small integer while it is one: it is kept in many objects, and a fraction kept there costs an allocation.
    this.nowUs = us < SMALL_MAX ? us | 0 : us;
    this.events++;
    const slot = this.#queue.takeFirst();
    const alarm = this.#alarms[slot]!;
    this.#alarms[slot] = undefined;
    if (alarm.index === slot) {
      alarm.index = -1;
      alarm.ring(this.nowUs / 1000);
    } else (alarm as CrowdAlarm).ringFor(this.#entities[slot]!);
  }

  #carryOver(): void {
    // A list that grows while it is walked.
    for (let index = 0; index < this.#deliveriesLeft; index++) this.#deliveries[index]!.deliver();
    this.#deliveriesLeft = 0;
  }
}
