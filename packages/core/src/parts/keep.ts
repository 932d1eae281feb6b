import { GuardedWork } from '../guarded-work.ts';
import type { Plan } from '../plan.ts';
import { runSwiftly } from '../swift-run.ts';
import { Target } from '../target.ts';
import { Targets } from '../targets.ts';

/** Strangers can name targets, so there is a limit to how many are kept apart. */
const targetsMax = 1000;

/** Puts guards around the attempts of a plan. One that may wait or race closes the short way through them. */
export function guard(plan: Plan, isSwift = true): void {
  plan.work = (options, now, patienceEndsAt) => new GuardedWork(plan, options, now, patienceEndsAt);
  plan.isIntricate ||= !isSwift;
  plan.swift = plan.isIntricate ? undefined : runSwiftly;
}

/**
 * Lets a part keep a machine for each target. What belongs to a `member` is about one host or shard; what belongs to
 * a `pool` is about the caller, and interchangeable targets share it.
 */
export function keep(plan: Plan, scope: 'member' | 'pool', equip: (target: Target) => void): void {
  plan.equip.push((target, isPool) => {
    if (!isPool || scope === 'pool') equip(target);
  });
  if (plan.targets) return;

  const make = (name: string | undefined, isPool: boolean): Target => {
    const target = new Target(name);
    for (const each of plan.equip) each(target, isPool);
    return target;
  };
  const targets = new Targets({ targetsMax, idle, create: (name) => make(name, false) });
  const pools = new Targets({ targetsMax, idle, create: (name) => make(name, true) });
  let home: Target | undefined;
  plan.targets = targets;
  plan.targetOf = (options, now) => {
    if (options) {
      if (options.target !== undefined) return targets.get(options.target, now);
      if (options.targets) return pools.get(options.targets.join(' '), now);
    }
    home ??= make(undefined, false);
    return home;
  };
  plan.everyTarget = function* () {
    if (home) yield home;
    for (const [, target] of targets) yield target;
  };
  plan.handOver = (next) => {
    const now = plan.clock.now();
    for (const target of plan.everyTarget!()) {
      const heir = next.targetOf?.(target.name === undefined ? undefined : { target: target.name }, now);
      if (heir) inherit(heir, target, now);
    }
    for (const [names, pool] of pools) {
      const heir = next.targetOf?.({ targets: names.split(' ') }, now);
      if (heir) inherit(heir, pool, now);
    }
  };
}

/** State outlives the document: what the old target has learnt, the new one starts with. */
function inherit(heir: Target, from: Target, now: number): void {
  if (from.breaker) heir.breaker?.restore(from.breaker.save(now), now);
  if (from.budget) heir.budget?.restore(from.budget.save(now), now);
  if (heir.latency && from.latency) {
    heir.latency = from.latency;
    if (from.autoTimeout) heir.autoTimeout &&= from.autoTimeout;
  }
  heir.standing &&= from.standing;
  if (heir.bulkhead && from.bulkhead) {
    // The very same one: calls in flight hold its permits.
    const { settings } = heir.bulkhead;
    heir.bulkhead = from.bulkhead;
    heir.bulkhead.resize(now, settings);
  }
}

/** Nothing is lost by forgetting it. */
function idle({ inFlight, breaker, bulkhead }: Target, now: number): boolean {
  return inFlight === 0 && !bulkhead?.inFlight && (!breaker || breaker.state(now) === 'closed');
}
