import type { Breaker, BreakerState } from '../machines/breaker.ts';
import type { Counters } from './counters.ts';
import { definePart } from './part.ts';
import type { Plan } from './plan.ts';

/** The state of a policy, for people and the console. Plain JSON. */
export interface PolicyState {
  readonly name: string;
  readonly counters: Readonly<Counters>;
  readonly killSwitch: boolean;
  readonly targets: readonly TargetState[];
}

export interface TargetState {
  /** The name of the target; null for the state of runs that name no target. */
  readonly target: string | null;
  readonly inFlight: number;
  readonly queued?: number;
  readonly breaker?: BreakerState;
  /** The ms until the breaker may admit a call; 0 while it admits calls. null: it is forced open. */
  readonly admitsInMs?: number | null;
  /** The tokens in the retry budget. A retry costs one token. */
  readonly tokens?: number;
  readonly latencyMs?: { readonly p50: number; readonly p99: number };
}

const plans = /* @__PURE__ */ new Map<string, Plan>();

/** The current state of every named policy. If several policies have the same name, only the latest is listed. */
export function policies(): PolicyState[] {
  return [...plans].map(([name, plan]) => stateOf(name, plan));
}

/** A breaker of a named policy, so that it can be forced open or closed; undefined when there is none. */
export function breakerOf(policy: string, target?: string) {
  const plan = plans.get(policy);
  const found = plan?.everyTarget && [...plan.everyTarget()].find(({ name }) => name === target);
  return found?.breaker;
}

/** All breakers of a named policy; none when there is no such policy. */
export function breakersOf(policy: string): Breaker[] {
  const targets = plans.get(policy)?.everyTarget?.() ?? [];
  return [...targets].flatMap(({ breaker }) => breaker ?? []);
}

/** Lists policies that have a name in `policies`. */
export const registry = /* @__PURE__ */ definePart({
  key: 'registry',
  // Created last, so that a document which another part refuses is not listed.
  order: 1,
  fields: {},
  create(_settings, plan) {
    const { name } = plan;
    if (name === undefined) return;
    plans.set(name, plan);
    plan.carryOver.push(() => {
      // After an `update` with another name, or none, the policy is no longer listed under this name.
      if (plans.get(name) === plan) plans.delete(name);
    });
  },
});

function stateOf(name: string, plan: Plan): PolicyState {
  const now = plan.clock.now();
  const targets = [...(plan.everyTarget?.() ?? [])].map((target): TargetState => {
    const { breaker, budget, bulkhead, latency, inFlight } = target;
    return {
      target: target.name ?? null,
      inFlight,
      ...(bulkhead && { queued: bulkhead.queued }),
      ...(breaker && { breaker: breaker.state(now), admitsInMs: finite(breaker.reopensAt(now) - now) }),
      ...(budget && { tokens: budget.tokens(now) }),
      ...(latency?.samples && { latencyMs: { p50: latency.quantile(0.5), p99: latency.quantile(0.99) } }),
    };
  });
  const { counters, killSwitch } = plan;
  const { loadMultiplication } = counters;
  return {
    name,
    counters: structuredClone({ ...counters, loadMultiplication }),
    killSwitch: killSwitch.isOn,
    targets,
  };
}

/** Returns null for Infinity, which JSON does not have. */
function finite(ms: number): number | null {
  return ms < Infinity ? ms : null;
}
