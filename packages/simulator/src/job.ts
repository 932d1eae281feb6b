import { Alarm } from 'holdfast';
import type { Attempt, GuardedAttempt } from 'holdfast/machines';
import type { Call, Origin } from './caller.ts';
import type { Queued } from './job-queue.ts';
import type { Instance } from './service.ts';
import type { Delivery } from './timeline.ts';
import type { World } from './world.ts';

const COMING = 0;
const SERVED = 1;
const GOING = 2;
const DELIVERED = 3;

/**
 * One attempt of a call. It travels to a service, waits in the queue, is served, and returns to the caller.
 */
export class Job extends Alarm implements Queued, Delivery, Origin {
  declare readonly call: Call;
  declare readonly attempt: Attempt | GuardedAttempt;
  declare ahead: Queued | undefined;
  declare behind: Queued | undefined;
  declare instance: Instance;
  declare phase: number;
  declare arrivedUs: number;
  declare startedUs: number;
  /**
   * The value of the instance's `stoodUs` (its total stall time) when this job began, or when a stall last
   * delayed this job.
   */
  declare stoodUs: number;
  declare callsMade: number;
  declare callsOpen: number;
  declare fate: object | undefined;
  declare ok: boolean;
  declare given: unknown;
  declare promise: { resolve(value: unknown): void; reject(error: unknown): void } | undefined;

  constructor(call: Call, attempt: Attempt | GuardedAttempt) {
    super();
    this.call = call;
    this.attempt = attempt;
    this.ahead = undefined;
    this.behind = undefined;
    this.phase = COMING;
    this.arrivedUs = 0;
    this.startedUs = 0;
    this.stoodUs = 0;
    this.callsMade = 0;
    this.callsOpen = 0;
    this.fate = undefined;
    this.ok = false;
    this.given = undefined;
    this.promise = undefined;
  }

  get world(): World {
    return this.call.caller.world;
  }

  get rank(): number {
    return this.call.caller.rank;
  }

  get isDelivered(): boolean {
    return this.phase === DELIVERED;
  }

  get expiresAt(): number {
    const { attempt } = this;
    return 'endsAt' in attempt ? attempt.endsAt : attempt.patienceEndsAt;
  }

  get isOrphan(): boolean {
    return this.call.isOver || (this.attempt as GuardedAttempt).abandoned === true;
  }

  travel(delayUs: number): void {
    this.phase = COMING;
    this.world.timeline.setUs(this, this.world.timeline.nowUs + delayUs);
  }

  serve(timeUs: number): void {
    this.phase = SERVED;
    this.world.timeline.setUs(this, this.world.timeline.nowUs + timeUs);
  }

  reply(ok: boolean, given: unknown, delayUs: number): void {
    this.ok = ok;
    this.given = given;
    this.phase = GOING;
    const { timeline } = this.world;
    if (delayUs > 0) timeline.setUs(this, timeline.nowUs + delayUs);
    else timeline.deliver(this);
  }

  ring(): void {
    if (this.phase === SERVED) this.instance.served(this);
    else if (this.phase === COMING) this.instance.accept(this);
    else this.world.timeline.deliver(this);
  }

  deliver(): void {
    this.phase = DELIVERED;
    this.call.answered(this);
  }

  ended(_call: Call, ok: boolean): void {
    this.instance.calledOthers(this, ok);
  }
}
