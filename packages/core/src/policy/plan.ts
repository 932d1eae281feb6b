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
import type { Policy } from './policy.ts';

/** A compiled policy: numbers and functions that are made once from a document. */
export interface Plan extends Rules, JudgingPlan, TargetPlan, RunningPlan, FastPaths {
  readonly name: string | undefined;
  /** The policy that this plan was made for; undefined while the plan is being made. */
  policy: Policy | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly counters: Counters;
  /** What runs count that mode `observe` only imagines. Nothing reads it. */
  readonly imaginedCounters: Counters;
  /** The share of the work on which the policy acts, 0–1. It only observes the rest. */
  enforcedShare: number;
  patienceMs: number;
  attempts: number;
  delay: Rules['delay'];
  hintCapMs: number;
  /** While on, work is attempted only once: no retries and no hedges (second attempts). */
  readonly killSwitch: { isOn: boolean };
  /** Each function passes the state of one part to the plan that `update` compiles. */
  readonly carryOver: ((next: Plan) => void)[];
}

/** How outcomes are classified. */
export interface JudgingPlan {
  /** The packs (named classifiers) that `retryOn` can name. */
  readonly packs: readonly Pack[];
  classify: Classifier;
  /** Which returned values are classified: 0 none, 1 objects, 2 all. Other values are successes. */
  judgesValues: 0 | 1 | 2;
}

/** The state of each target. A field is undefined if no part of the policy needs it. */
export interface TargetPlan {
  /** Returns the retry budget of a run, and counts the run there. Undefined if no part limits retries. */
  budgetOf: ((work: Work, now: number) => RetryBudget | undefined) | undefined;
  /** Finds or creates the state of a run's target. */
  targetOf: ((options: RunOptions | undefined, now: number) => Target) | undefined;
  targets: Targets<Target> | undefined;
  /** Returns all targets, including the one for runs that name no target. */
  everyTarget: (() => Iterable<Target>) | undefined;
  /** Chooses one of the run's `targets` that is not in `refused`. Returns undefined if none admits a call. */
  choose:
    | ((work: Work, now: number, refused: ReadonlySet<Target> | undefined) => Target | undefined)
    | undefined;
  /** Each function creates the state of one part for a new target. */
  readonly createForTarget: ((target: Target, pooled: boolean) => void)[];
}

/** How a piece of work is run. */
export interface RunningPlan {
  /** Creates the state machine of one piece of work under this plan. */
  work: (this: Plan, options: RunOptions | undefined, now: number, patienceEndsAt: number) => Work;
  /** Above 0: the time limit of every attempt. 0: the limit is learnt, or is a share of the time that is left. */
  attemptTimeoutMs: number;
  /** True: work waits for an open breaker instead of ending. */
  waitsForBreaker: boolean;
  /** The longest wait of an attempt for the rate limiter. */
  limiterWaitMs: number;
  hedge: HedgeRules | undefined;
  /** Undefined if no part reports to listeners. */
  reporter: Reporter | undefined;
  /** Layers around the whole work (mode, fallback, cache), outermost first. */
  readonly layers: Layer[];
  /** Runs an operation through the layers; undefined without layers. */
  runLayers: typeof runLayers | undefined;
  /** Cached results and calls in flight, by key; undefined without a cache. */
  results: Results | undefined;
  /** Runs `fn` outside the async context of every caller. Undefined if the policy does not need it. */
  runWithoutContext: ((fn: () => void) => void) | undefined;
}

/** Which runs may skip the state machine `Work`, to be faster. */
export interface FastPaths {
  /** Runs an operation without the state machine. Returns undefined when the state machine is needed. */
  fastPath:
    | (<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined) => Promise<T> | undefined)
    | undefined;
  /** Refuses a call without the state machine. Returns undefined when the state machine is needed. */
  fastRefusal: ((plan: Plan, options: RunOptions | undefined) => Failure<never> | undefined) | undefined;
  /** Counts a success of a run in a policy without guards, and returns the value. */
  countSuccess: (value: unknown) => unknown;
  /** True: the policy has no guards, so a run without options needs no state machine until an attempt fails. */
  canSkipMachine: boolean;
  /** True: some part needs the start time of an attempt. */
  needsClock: boolean;
  /** True: some part may make an attempt wait or send a second one, so every run needs the state machine. */
  needsMachine: boolean;
}
