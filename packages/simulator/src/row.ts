import { Alarm } from 'holdfast';
import { broken } from './failures.ts';
import type { Job } from './job.ts';
import type { Sampler } from './sampling.ts';
import type { ServiceTally } from './tally.ts';
import type { World } from './world.ts';

/**
 * A database row with a version number. A write succeeds only if nobody changed the row since it was read.
 */
export class Row {
  version = 0;
  readonly world: World;
  readonly tally: ServiceTally;
  readonly hop: Sampler;

  constructor(world: World, tally: ServiceTally, hop: Sampler) {
    this.world = world;
    this.tally = tally;
    this.hop = hop;
  }

  send(job: Job): void {
    new Visit(this, job).go(1);
  }
}

class Visit extends Alarm {
  readonly #row: Row;
  readonly #job: Job;
  #version = -1;

  constructor(row: Row, job: Job) {
    super();
    this.#row = row;
    this.#job = job;
  }

  go(hops: number): void {
    const { world, hop } = this.#row;
    let delayUs = 0;
    for (let each = 0; each < hops; each++) delayUs += hop();
    world.timeline.setUs(this, world.timeline.nowUs + delayUs);
  }

  ring(): void {
    const row = this.#row;
    if (this.#version < 0) {
      this.#version = row.version;
      this.go(2);
      return;
    }
    const { nowUs } = row.world.timeline;
    const ok = this.#version === row.version;
    if (ok) row.version++;
    row.tally.completed.add(nowUs);
    this.#job.reply(ok, ok ? true : broken(), row.hop());
  }
}
