import type { Rules } from '../decide/decide.ts';
import type { Classifier, Pack } from '../decide/outcome.ts';
import type { RetryBudget } from '../machines/budget.ts';
import type { Target } from '../machines/target.ts';
import type { Targets } from '../machines/targets.ts';
import type { Results } from '../parts/cache.ts';
import type { HedgeRules } from '../parts/hedge.ts';
import type { Layer, runLayers } from '../parts/layer.ts';
import type { Reporter } from '../report/reporter.ts';
import type { Failure } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';
import type { Work } from '../run/work.ts';
import type { Clock, Random } from '../time/clock.ts';
import type { Counters } from './counters.ts';

/** A compiled policy: numbers and functions, made once from a document. Only counters, targets and cached results change. */
export interface Plan extends Rules, JudgingPlan, TargetPlan, RunningPlan, FastPaths {
  readonly name: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly counters: Counters;
  patienceMs: number;
  attempts: number;
  delay: Rules['delay'];
  hintCapMs: number;
  /** While it is on there are no retries and no hedges: one attempt for each piece of work. */
  readonly killSwitch: { isOn: boolean };
  /** Each passes the state of one part to the plan of the next document. */
  readonly carryOver: ((next: Plan) => void)[];
}

/** How outcomes are classified. */
export interface JudgingPlan {
  /** The packs that this kind of policy knows by name. */
  readonly packs: readonly Pack[];
  /** Classifies every outcome that may be a failure. */
  classify: Classifier;
  /** Which returned values are classified: 0 none, 1 objects, 2 all. The others are successes. */
  judgesValues: 0 | 1 | 2;
}

/** The state of each target; undefined where no part keeps any. */
export interface TargetPlan {
  /** Returns the budget of a run and counts a first try there; undefined where no part limits retries. */
  budgetOf: ((work: Work, now: number) => RetryBudget | undefined) | undefined;
  /** Finds or creates the state of a run's target. */
  targetOf: ((options: RunOptions | undefined, now: number) => Target) | undefined;
  targets: Targets<Target> | undefined;
  /** All targets, including the pools and the target of runs that name none. */
  everyTarget: (() => Iterable<Target>) | undefined;
  /** Chooses one of the run's `targets` that is not in `refused`. Undefined: none of them admits. */
  choose:
    | ((work: Work, now: number, refused: ReadonlySet<Target> | undefined) => Target | undefined)
    | undefined;
  /** Each creates the state of one part for a new target. */
  readonly createForTarget: ((target: Target, pooled: boolean) => void)[];
}

/** How a piece of work is run. */
export interface RunningPlan {
  /** Makes the state machine of one piece of work: with `guards` where a part guards attempts. */
  work: (options: RunOptions | undefined, now: number, patienceEndsAt: number) => Work;
  /** Above 0: the time limit of every attempt. 0: the limit that was learnt, or a share of the patience that is left. */
  attemptTimeoutMs: number;
  /** True: work waits for an open breaker if patience allows, instead of stopping. */
  waitsForBreaker: boolean;
  /** The longest wait of an attempt for the rate limiter. */
  limiterWaitMs: number;
  hedge: HedgeRules | undefined;
  /** Undefined where no part reports. */
  reporter: Reporter | undefined;
  /** Layers around the whole work, outermost first: fallback, cache, mode. */
  readonly layers: Layer[];
  /** Runs an operation through the layers; undefined where there are none. */
  runLayers: typeof runLayers | undefined;
  /** Cached results and calls in flight, by key; undefined without a cache. */
  results: Results | undefined;
  /** Runs `fn` outside every caller's async context; undefined where no attempt can start while another is in flight. */
  runWithoutContext: ((fn: () => void) => void) | undefined;
}

/** Which fast paths of `fast-path.ts` a run may take. */
export interface FastPaths {
  /** Runs without a state machine while all guards admit. Returns undefined where the state machine is needed. */
  fastPath:
    | (<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined) => Promise<T> | undefined)
    | undefined;
  /** Refuses without a state machine. Returns undefined where the state machine is needed. */
  fastRefusal: ((plan: Plan, options: RunOptions | undefined) => Failure<never> | undefined) | undefined;
  /** Counts a success of a run without guards, and returns the value. */
  countSuccess: (value: unknown) => unknown;
  /** There are no guards: a run without options needs no state machine until it fails. */
  canSkipMachine: boolean;
  /** A part needs the start time of an attempt. */
  needsClock: boolean;
  /** A part may let an attempt wait or race, so that no fast path is possible. */
  needsMachine: boolean;
}
