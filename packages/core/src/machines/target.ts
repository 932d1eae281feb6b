import type { AutoTimeout } from './auto-timeout.ts';
import type { Breaker } from './breaker.ts';
import type { RetryBudget } from './budget.ts';
import type { Bulkhead } from './bulkhead.ts';
import type { TargetHealth } from './choice.ts';
import type { Gcra } from './gcra.ts';
import type { Latency } from './latency.ts';
import type { Throttle } from './throttle.ts';

/**
 * The state that a policy keeps for one target, such as a host. Each part of the policy (breaker, bulkhead, …) sets its
 * own field; the fields of absent parts stay undefined.
 */
export class Target {
  /** Undefined if this is the state of the runs that name no target. */
  readonly name: string | undefined;
  inFlight = 0;
  /** The number of successes since the last success at whose end the clock was read. */
  untimed = 0;
  budget: RetryBudget | undefined = undefined;
  hedgeBudget: RetryBudget | undefined = undefined;
  throttle: Throttle | undefined = undefined;
  breaker: Breaker | undefined = undefined;
  limiter: Gcra | undefined = undefined;
  bulkhead: Bulkhead | undefined = undefined;
  latency: Latency | undefined = undefined;
  autoTimeout: AutoTimeout | undefined = undefined;
  /** Undefined until `Choice` may choose this target. */
  health: TargetHealth | undefined = undefined;

  constructor(name: string | undefined) {
    this.name = name;
  }

  refuses(now: number): boolean {
    return this.breaker?.refuses(now) ?? false;
  }
}
