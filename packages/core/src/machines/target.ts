import type { AutoTimeout } from './auto-timeout.ts';
import type { Breaker } from './breaker.ts';
import type { RetryBudget } from './budget.ts';
import type { Bulkhead } from './bulkhead.ts';
import type { TargetHealth } from './choice.ts';
import type { Gcra } from './gcra.ts';
import type { Latency } from './latency.ts';
import type { Throttle } from './throttle.ts';

/** The state that a policy keeps for one target, such as a host. Each part of the policy sets its own field. */
export class Target {
  /** The name of the target. Undefined: the state that all runs without a target share. */
  readonly name: string | undefined;
  inFlight = 0;
  /**
   * To save time, the clock is read only at the end of some successful attempts. `untimed` counts the
   * successes since the clock was last read.
   */
  untimed = 0;
  budget: RetryBudget | undefined = undefined;
  hedgeBudget: RetryBudget | undefined = undefined;
  throttle: Throttle | undefined = undefined;
  breaker: Breaker | undefined = undefined;
  limiter: Gcra | undefined = undefined;
  bulkhead: Bulkhead | undefined = undefined;
  latency: Latency | undefined = undefined;
  autoTimeout: AutoTimeout | undefined = undefined;
  /** How well the target answers. Undefined until `Choice` considers this target for the first time. */
  health: TargetHealth | undefined = undefined;

  constructor(name: string | undefined) {
    this.name = name;
  }

  refuses(now: number): boolean {
    return this.breaker?.refuses(now) ?? false;
  }
}
