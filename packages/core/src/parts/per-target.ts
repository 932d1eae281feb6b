import { Target } from '../machines/target.ts';
import { Targets } from '../machines/targets.ts';
import type { Plan, RunOptions } from '../policy/plan.ts';
import { runFast } from '../run/fast-path.ts';
import { refuseFast } from '../run/fast-refusal.ts';
import { GuardedWork } from '../run/guarded-work.ts';
import { runWithoutContext } from '../run/no-context.ts';

/** Strangers can name targets, so there is a limit to how many are kept apart. */
const targetsMax = 1000;

/** Puts guards around the attempts of a plan. One that may wait or race closes the short way through them. */
export function guard(plan: Plan, isSwift = true): void {
  plan.work = (options, now, patienceEndsAt) => new GuardedWork(plan, options, now, patienceEndsAt);
  plan.runWithoutContext = runWithoutContext;
  plan.needsMachine ||= !isSwift;
  plan.fastPath = plan.needsMachine ? undefined : runFast;
  plan.fastRefusal = plan.needsMachine ? undefined : refuseFast;
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
      if (options.target != null) return targets.get(options.target, now);
      if (options.targets) return pools.get(options.targets.join(' '), now);
    }
    home ??= make(undefined, false);
    return home;
  };
  plan.everyTarget = function* () {
    if (home) yield home;
    for (const [, target] of targets) yield target;
    for (const [, pool] of pools) yield pool;
  };
  plan.carryOver.push((next) => {
    const now = plan.clock.now();
    const give = (target: Target, to: RunOptions | undefined) => {
      const heir = next.targetOf?.(to, now);
      if (heir) inherit(heir, target, now);
    };
    if (home) give(home, undefined);
    for (const [target, from] of targets) give(from, { target });
    for (const [names, pool] of pools) give(pool, { targets: names.split(' ') });
  });
}

/**
 * State outlives the document: what the old target has learnt, the new one starts with. From then on they share it, so
 * that what is still in flight under the old document is counted, paid for and limited together with the rest.
 */
function inherit(heir: Target, from: Target, now: number): void {
  const { breaker, limiter, throttle, budget, hedgeBudget, bulkhead, latency } = from;
  if (breaker && heir.breaker) {
    heir.breaker.restore(breaker.save(now), now);
    from.breaker = heir.breaker;
  }
  if (limiter && heir.limiter) {
    heir.limiter.tat = limiter.tat;
    from.limiter = heir.limiter;
  }
  if (throttle && heir.throttle) {
    heir.throttle.takeOver(throttle, now);
    from.throttle = heir.throttle;
  }
  // These must be the very same: work in flight holds on to them.
  if (budget && heir.budget) heir.budget = budget.resize(now, heir.budget.settings);
  if (hedgeBudget && heir.hedgeBudget) {
    heir.hedgeBudget = hedgeBudget.resize(now, heir.hedgeBudget.settings);
  }
  if (bulkhead && heir.bulkhead) {
    bulkhead.resize(now, heir.bulkhead.settings);
    heir.bulkhead = bulkhead;
  }
  heir.standing = from.standing;
  // A limit that learns reads the latencies it was made with.
  if (latency && heir.latency && (from.autoTimeout || !heir.autoTimeout)) {
    heir.latency = latency;
    heir.autoTimeout &&= from.autoTimeout;
  }
}

/** Nothing is lost by forgetting it; a budget made anew, for one, would have credit anew. */
function idle({ inFlight, breaker, bulkhead, budget }: Target, now: number): boolean {
  return (
    inFlight === 0 && !bulkhead?.inFlight && (breaker?.isClosed ?? true) && (budget?.isUnused(now) ?? true)
  );
}
