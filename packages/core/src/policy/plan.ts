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

/** A policy as the machines read it: numbers and functions, made once from a document. Only counters and targets change. */
export interface Plan extends Rules, JudgingPlan, TargetPlan, RunningPlan, FastPaths {
  readonly name: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly counters: Counters;
  patienceMs: number;
  attempts: number;
  delay: Rules['delay'];
  hintCapMs: number;
  /** No retries and no hedges while it is on: one attempt for each piece of work. */
  readonly killSwitch: { isOn: boolean };
  /** Each hands something over to the plan of the next document. */
  readonly carryOver: ((next: Plan) => void)[];
}

/** How outcomes are judged. */
export interface JudgingPlan {
  /** The packs that this kind of policy knows by name. */
  readonly packs: readonly Pack[];
  /** Judges every outcome that may be a failure. */
  classify: Classifier;
  /** Which values are judged as well as errors: 0 none, 1 objects, 2 all. Others are successes. */
  judgesValues: 0 | 1 | 2;
}

/** What is kept for each target; absent where no part keeps anything. */
export interface TargetPlan {
  /** The budget of a run, which counts a first try with it; absent where no part limits retries. */
  budgetOf: ((work: Work, now: number) => RetryBudget | undefined) | undefined;
  /** Finds or makes the state of a run's target. */
  targetOf: ((options: RunOptions | undefined, now: number) => Target) | undefined;
  targets: Targets<Target> | undefined;
  /** All targets, for lists. */
  everyTarget: (() => Iterable<Target>) | undefined;
  /** One of the run's `targets` that is not in `refused`; undefined: none of them admits. */
  choose:
    | ((work: Work, now: number, refused: ReadonlySet<Target> | undefined) => Target | undefined)
    | undefined;
  /** Each creates what one part keeps for a new target. */
  readonly createForTarget: ((target: Target, pooled: boolean) => void)[];
}

/** How a piece of work is run. */
export interface RunningPlan {
  /** Makes the state machine of one piece of work: with `guards` where a part guards attempts. */
  work: (options: RunOptions | undefined, now: number, patienceEndsAt: number) => Work;
  /** Above 0: the time limit of every attempt. 0: what the target has learnt, or a share of the patience that is left. */
  attemptTimeoutMs: number;
  /** True: work waits for an open breaker if patience allows, instead of stopping. */
  waitsForBreaker: boolean;
  /** How long an attempt may wait for the rate limiter. */
  limiterWaitMs: number;
  hedge: HedgeRules | undefined;
  /** Absent while no part reports. */
  reporter: Reporter | undefined;
  /** Layers around the whole work, outermost first: fallback, cache, mode. */
  readonly layers: Layer[];
  /** Runs through the layers; absent where there are none. */
  runLayers: typeof runLayers | undefined;
  /** Cached results by key, and calls in flight that will give one; absent without a cache. */
  results: Results | undefined;
  /** Runs `fn` in an async context of no caller; absent where no attempt can follow one that is still in flight. */
  runWithoutContext: ((fn: () => void) => void) | undefined;
}

/** Which short ways of `fast-path.ts` a run may take. */
export interface FastPaths {
  /** Runs through open guards without a state machine. Undefined as a result: take the long way. */
  fastPath:
    | (<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined) => Promise<T> | undefined)
    | undefined;
  /** Refuses without a state machine. Undefined as a result: take the long way. */
  fastRefusal: ((plan: Plan, options: RunOptions | undefined) => Failure<never> | undefined) | undefined;
  /** Counts a success on the way without guards, and passes the value on. */
  countSuccess: (value: unknown) => unknown;
  /** There are no guards: a run without options needs no state machine until it fails. */
  canSkipMachine: boolean;
  /** A part must know when an attempt started. */
  needsClock: boolean;
  /** A part may let an attempt wait or race, so that there is no short way. */
  needsMachine: boolean;
}
