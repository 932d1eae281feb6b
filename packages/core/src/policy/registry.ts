import type { Breaker, BreakerCause, BreakerState } from '../machines/breaker.ts';
import type { Counters } from './counters.ts';
import { definePart } from './part.ts';
import type { Plan } from './plan.ts';
import type { Policy } from './policy.ts';

/** The state of a policy as plain JSON. */
export interface PolicyState {
  readonly name: string;
  readonly counters: Readonly<Counters>;
  readonly killSwitch: boolean;
  /** The share of the runs on which the policy acts. Absent: the policy acts on all runs. */
  readonly enforcedShare?: number;
  /** The fields of the document that `override` has replaced. */
  readonly overridden?: object;
  readonly targets: readonly TargetState[];
}

/** The current state that a policy keeps for one target, such as a host. */
export interface TargetState {
  /** The name of the target. Null: this is the state that all runs without a target share. */
  readonly target: string | null;
  readonly inFlight: number;
  readonly queued?: number;
  readonly breaker?: BreakerState;
  /** How many ms the breaker has been in this state; absent if its state has never changed. */
  readonly breakerForMs?: number;
  /**
   * For how many ms the breaker has been open or half-open without closing. Absent while it is closed or
   * forced.
   */
  readonly failingForMs?: number;
  /** Why the state of the breaker last changed; absent if it never changed. */
  readonly breakerBecause?: BreakerCause;
  readonly forced?: { readonly state: 'open' | 'closed'; readonly because: string | undefined };
  /** The calls that the breaker currently counts, and how many of them failed or were slow. */
  readonly window?: { readonly calls: number; readonly failures: number; readonly slow: number };
  /** Ms until the breaker may admit a call; 0 while it admits calls. Null: an operator has forced it open. */
  readonly admitsInMs?: number | null;
  /** The tokens in the retry budget. A retry costs one token. */
  readonly tokens?: number;
  /** The most tokens that the budget may hold now. */
  readonly tokensMax?: number;
  readonly latencyMs?: { readonly p50: number; readonly p99: number };
}

const plans = /* @__PURE__ */ new Map<string, Plan>();

/**
 * Returns the current state of every named policy. If several policies have the same name, only the latest
 * one is listed.
 */
export function policies(): PolicyState[] {
  return [...plans].map(([name, plan]) => stateOf(name, plan));
}

/** Returns the policy with this name, or undefined if there is none. */
export function policyOf(name: string): Policy | undefined {
  return plans.get(name)?.policy;
}

/**
 * Returns the breaker of a target in a named policy, for example to force it open. Without `target`: the
 * breaker of the runs without a target. Undefined if there is none.
 */
export function breakerOf(policy: string, target?: string) {
  const plan = plans.get(policy);
  const found = plan?.everyTarget && [...plan.everyTarget()].find(({ name }) => name === target);
  return found?.breaker;
}

/**
 * Forces the breakers of a named policy open or closed; `auto` ends this. With `target`, only the breaker of
 * that target is set. Returns how many breakers were set. A target has no breaker before its first call.
 */
export function forceBreaker(
  policy: string,
  to: 'open' | 'closed' | 'auto',
  { target, because }: { readonly target?: string; readonly because?: string } = {},
): number {
  const found = breakersOf(policy, target);
  for (const breaker of found)
    breaker.force(to === 'auto' ? undefined : to, plans.get(policy)!.clock.now(), because);
  return found.length;
}

/** Returns the breakers of a named policy. With `target`, returns only the breaker of that target. */
export function breakersOf(policy: string, target?: string): Breaker[] {
  const targets = plans.get(policy)?.everyTarget?.() ?? [];
  return [...targets].flatMap(({ name, breaker }) =>
    breaker && (target === undefined || name === target) ? breaker : [],
  );
}

/** A part that registers each named policy for `policies()`. */
export const registry = /* @__PURE__ */ definePart({
  key: 'registry',
  // This part is created last: a policy is listed only if all its parts accept the document.
  order: 1,
  fields: {},
  create(_settings, plan) {
    const { name } = plan;
    if (name === undefined) return;
    plans.set(name, plan);
    plan.carryOver.push(() => {
      // `update` may have changed the name. In this case the old name must not be listed.
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
      ...(breaker && breakerState(breaker, now)),
      ...(budget && { tokens: budget.tokens(now), tokensMax: budget.tokensMax(now) }),
      ...(latency?.samples && { latencyMs: { p50: latency.quantile(0.5), p99: latency.quantile(0.99) } }),
    };
  });
  const { counters, enforcedShare, killSwitch, policy } = plan;
  const { loadMultiplication } = counters;
  return {
    name,
    counters: structuredClone({ ...counters, loadMultiplication }),
    killSwitch: killSwitch.isOn,
    ...(enforcedShare < 1 && { enforcedShare }),
    ...(policy?.overridden && { overridden: policy.overridden }),
    targets,
  };
}

function breakerState(breaker: Breaker, now: number): Partial<TargetState> {
  const { cause, forced, forcedBecause, changedAt, failingSince } = breaker;
  const state = breaker.state(now);
  return {
    breaker: state,
    admitsInMs: finite(breaker.reopensAt(now) - now),
    window: breaker.counts(now),
    ...(cause && { breakerForMs: now - changedAt, breakerBecause: cause }),
    ...(state !== 'closed' && !forced && { failingForMs: now - failingSince }),
    ...(forced && { forced: { state: forced, because: forcedBecause } }),
  };
}

/** Returns null instead of Infinity, because JSON has no Infinity. */
function finite(ms: number): number | null {
  return ms < Infinity ? ms : null;
}
