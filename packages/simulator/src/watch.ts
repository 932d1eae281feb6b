import { Alarm, type Policy } from 'holdfast';
import type { Service } from './service.ts';
import type { CallerTally } from './tally.ts';
import type { World } from './world.ts';

const STEP_US = 1_000_000;
const ASKED_MAX = 100;

/** Records queue lengths and the share of open breakers once a second. It does not change the simulation. */
export class Watch extends Alarm {
  readonly #world: World;
  readonly #services: ReadonlyMap<string, Service>;
  readonly #untilUs: number;
  readonly #policies = new Map<CallerTally, Policy[]>();

  constructor(world: World, services: ReadonlyMap<string, Service>, untilUs: number) {
    super();
    this.#world = world;
    this.#services = services;
    this.#untilUs = untilUs;
  }

  start(): void {
    this.#world.timeline.setUs(this, STEP_US);
  }

  add(tally: CallerTally, policy: Policy): void {
    const its = this.#policies.get(tally) ?? [];
    if (its.length === 0) this.#policies.set(tally, its);
    if (its.length < ASKED_MAX && policy.settings.breaker) its.push(policy);
  }

  ring(now: number): void {
    const { timeline } = this.#world;
    for (const { tally, instances } of this.#services.values()) {
      tally.queued.push(instances.reduce((sum, each) => sum + each.queued, 0));
    }
    for (const [tally, policies] of this.#policies) tally.breakersOpen.push(shareOpen(policies, now));
    if (timeline.nowUs + STEP_US <= this.#untilUs) timeline.setUs(this, timeline.nowUs + STEP_US);
  }
}

function shareOpen(policies: readonly Policy[], now: number): number {
  let open = 0;
  let all = 0;
  for (const { plan } of policies) {
    for (const { breaker } of plan.everyTarget!()) {
      if (!breaker) continue;
      all++;
      if (breaker.state(now) !== 'closed') open++;
    }
  }
  return all === 0 ? 0 : open / all;
}
