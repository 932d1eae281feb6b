import type { ActiveControl, PolicyControl } from '@holdfast/contracts';
import { breakersOf, type Policy, policies, policyOf } from 'holdfast';
import type { Breaker } from 'holdfast/machines';

type Mode = 'enforce' | 'observe';

/** What the operators' controls ask of one policy. */
interface Wanted {
  readonly breakers: Map<Breaker, { readonly state: 'open' | 'closed'; readonly because: string }>;
  isRetryOff: boolean;
  mode: Mode | undefined;
}

/**
 * Applies operators' controls to the policies of this process: forces breakers, switches retries off, changes
 * the mode. When a control ends, this class reverts only what it has set itself.
 */
export class PolicyControlState {
  /** The policies that the controls of the last `obey` call apply to. */
  #changed: ReadonlySet<Policy> = new Set();
  /**
   * The reasons with which this class forced breakers. If a breaker has another reason, the application
   * forced it.
   */
  #reasons: ReadonlySet<string | undefined> = new Set();
  readonly #switchedOff = new Set<Policy>();

  /**
   * Makes the policies obey these controls and no others. Call it regularly, because policies and targets may
   * be created later. Returns the ids of controls that no policy can obey: no policy has this name, or the
   * policy does not have this breaker or a setting `mode`.
   */
  obey(controls: readonly ActiveControl[]): string[] {
    const wanted = new Map<Policy, Wanted>();
    const notObeyed: string[] = [];
    for (const { id, control, act } of controls.toSorted(byScope)) {
      if (!('policy' in control)) continue;
      let isObeyed = false;
      for (const policy of policiesNamed(control.policy)) {
        const asked = wanted.get(policy) ?? { breakers: new Map(), isRetryOff: false, mode: undefined };
        wanted.set(policy, asked);
        isObeyed = ask(asked, policy, control, `${act.who}: ${act.why}`) || isObeyed;
      }
      if (!isObeyed) notObeyed.push(id);
    }
    const nothing: Wanted = { breakers: new Map(), isRetryOff: false, mode: undefined };
    const reasons = new Set(
      [...wanted.values()].flatMap(({ breakers }) => [...breakers.values()].map(({ because }) => because)),
    );
    for (const policy of new Set([...this.#changed, ...wanted.keys()])) {
      const asked = wanted.get(policy) ?? nothing;
      this.#force(policy, asked);
      this.#switch(policy, asked.isRetryOff);
      setMode(policy, asked.mode, this.#changed.has(policy));
    }
    this.#changed = new Set(wanted.keys());
    this.#reasons = reasons;
    return notObeyed;
  }

  #force(policy: Policy, { breakers }: Wanted): void {
    const now = policy.plan.clock.now();
    for (const breaker of breakersOf(policy.name!)) {
      const asked = breakers.get(breaker);
      if (!asked) {
        if (breaker.forced && this.#reasons.has(breaker.forcedBecause)) breaker.force(undefined, now);
      } else if (breaker.forced !== asked.state || breaker.forcedBecause !== asked.because)
        breaker.force(asked.state, now, asked.because);
    }
  }

  /**
   * Switches the retries of a policy off or on. If the application itself has switched them off, they stay off when the
   * control ends.
   */
  #switch(policy: Policy, isOff: boolean): void {
    if (isOff && !policy.plan.killSwitch.isOn) {
      policy.kill(true);
      this.#switchedOff.add(policy);
    }
    if (!isOff && this.#switchedOff.delete(policy)) policy.kill(false);
  }
}

/**
 * Adds what `control` asks of this policy to `wanted`. Returns false if the policy does not have this breaker
 * or a setting `mode`.
 */
function ask(wanted: Wanted, policy: Policy, control: PolicyControl, because: string): boolean {
  switch (control.kind) {
    case 'breaker': {
      const breakers = breakersOf(policy.name!, control.target);
      for (const breaker of breakers) wanted.breakers.set(breaker, { state: control.state, because });
      return breakers.length > 0;
    }
    case 'retries':
      wanted.isRetryOff = true;
      return true;
    case 'mode':
      if (!('mode' in policy.settings)) return false;
      wanted.mode = control.mode;
      return true;
  }
}

function setMode(policy: Policy, mode: Mode | undefined, isOurs: boolean): void {
  const current = (policy.overridden as { mode?: Mode } | undefined)?.mode;
  if (mode !== undefined && current !== mode) policy.override({ mode });
  if (mode === undefined && current !== undefined && isOurs) policy.override();
}

/**
 * Sorts controls: first those for all policies, then those for one policy, then those for one target. So the
 * most specific control is applied last and wins.
 */
function byScope(a: ActiveControl, b: ActiveControl): number {
  return scopeOf(a) - scopeOf(b);
}

function scopeOf({ control }: ActiveControl): number {
  if (!('policy' in control) || control.policy === '*') return 0;
  return control.kind === 'breaker' && control.target !== undefined ? 2 : 1;
}

function policiesNamed(name: string): Policy[] {
  const names = name === '*' ? policies().map((state) => state.name) : [name];
  return names.flatMap((each) => policyOf(each) ?? []);
}
