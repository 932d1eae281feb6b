import { Target } from '../machines/target.ts';
import { Targets } from '../machines/targets.ts';
import type { Plan } from '../policy/plan.ts';
import { runFast } from '../run/fast-path.ts';
import { refuseFast } from '../run/fast-refusal.ts';
import { Guards } from '../run/guards.ts';
import { runWithoutContext } from '../run/no-context.ts';
import type { RunOptions } from '../run/run-options.ts';
import { Work } from '../run/work.ts';

/**
 * The most targets that have their own state. Names of targets may come from requests, so the memory needs a
 * limit.
 */
const targetsMax = 1000;

/**
 * Makes the attempts of a compiled policy pass guards (breaker, bulkhead, …). `hasFastPath: false`: the guard
 * may delay an attempt or send a second one. In this case every run needs the state machine `Work`.
 */
export function addGuards(plan: Plan, hasFastPath = true): void {
  plan.work = guardedWork;
  plan.runWithoutContext = runWithoutContext;
  plan.needsMachine ||= !hasFastPath;
  plan.fastPath = plan.needsMachine ? undefined : runFast;
  plan.fastRefusal = plan.needsMachine ? undefined : refuseFast;
}

function guardedWork(this: Plan, options: RunOptions | undefined, now: number, patienceEndsAt: number): Work {
  const work = new Work(this, options, now, patienceEndsAt);
  work.guards = new Guards(work);
  return work;
}

/**
 * Registers a function that creates the state of a part for a new target. `member`: each single target has
 * its own state. `pool`: if a run has several `targets`, they share one state.
 */
export function perTarget(plan: Plan, scope: 'member' | 'pool', create: (target: Target) => void): void {
  plan.createForTarget.push((target, isPool) => {
    if (!isPool || scope === 'pool') create(target);
  });
  if (plan.targets) return;

  const make = (name: string | undefined, isPool: boolean): Target => {
    const target = new Target(name);
    for (const each of plan.createForTarget) each(target, isPool);
    return target;
  };
  const targets = new Targets({ targetsMax, idle, create: (name) => make(name, false) });
  const pools = new Targets({ targetsMax, idle, create: (name) => make(name, true) });
  let defaultTarget: Target | undefined;
  plan.targets = targets;
  plan.targetOf = (options, now) => {
    if (options) {
      if (options.target != null) return targets.get(options.target, now);
      if (options.targets) return pools.get(options.targets.join(' '), now);
    }
    defaultTarget ??= make(undefined, false);
    return defaultTarget;
  };
  plan.everyTarget = function* () {
    if (defaultTarget) yield defaultTarget;
    for (const [, target] of targets) yield target;
    for (const [, pool] of pools) yield pool;
  };
  plan.carryOver.push((nextPlan) => {
    const now = plan.clock.now();
    const give = (target: Target, to: RunOptions | undefined) => {
      const next = nextPlan.targetOf?.(to, now);
      if (next) carryOverTarget(next, target, now);
    };
    if (defaultTarget) give(defaultTarget, undefined);
    for (const [target, from] of targets) give(from, { target });
    for (const [names, pool] of pools) give(pool, { targets: names.split(' ') });
  });
}

/**
 * `update` compiles a new plan (the compiled form of a policy). This function gives the new plan the state of
 * a target. Runs in progress still use the old plan, so both plans share the state.
 */
function carryOverTarget(next: Target, from: Target, now: number): void {
  const { breaker, limiter, throttle, budget, hedgeBudget, bulkhead, latency } = from;
  if (breaker && next.breaker) {
    next.breaker.restore(breaker.save(now), now);
    from.breaker = next.breaker;
  }
  if (limiter && next.limiter) {
    next.limiter.tat = limiter.tat;
    from.limiter = next.limiter;
  }
  if (throttle && next.throttle) {
    next.throttle.takeOver(throttle, now);
    from.throttle = next.throttle;
  }
  // Runs in progress refer to these objects, so the objects are changed and not replaced.
  if (budget && next.budget) next.budget = budget.resize(now, next.budget.settings);
  if (hedgeBudget && next.hedgeBudget) {
    next.hedgeBudget = hedgeBudget.resize(now, next.hedgeBudget.settings);
  }
  if (bulkhead && next.bulkhead) {
    bulkhead.resize(now, next.bulkhead.settings);
    next.bulkhead = bulkhead;
  }
  next.health = from.health;
  // An `AutoTimeout` reads the `Latency` object that it was created with. So both objects are passed on
  // together.
  if (latency && next.latency && (from.autoTimeout || !next.autoTimeout)) {
    next.latency = latency;
    next.autoTimeout &&= from.autoTimeout;
  }
}

/**
 * Whether the state of a target can be removed. A budget in use must stay, because a new budget would start
 * with additional tokens.
 */
function idle({ inFlight, breaker, bulkhead, budget }: Target, now: number): boolean {
  return (
    inFlight === 0 && !bulkhead?.inFlight && (breaker?.isClosed ?? true) && (budget?.isUnused(now) ?? true)
  );
}
