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

/** A compiled policy: the numbers and functions that are made once from a policy document. */
export interface Plan extends Rules, JudgingPlan, TargetPlan, RunningPlan, FastPaths {
  readonly name: string | undefined;
  /** The policy that this plan was compiled for; undefined while the plan is being compiled. */
  policy: Policy | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly counters: Counters;
  /**
   * The counters of the runs that mode `observe` only simulates. Nothing reads them: they keep these runs out
   * of `counters`.
   */
  readonly imaginedCounters: Counters;
  /** The share of the runs on which the policy acts, from 0 to 1. The policy only observes the other runs. */
  enforcedShare: number;
  patienceMs: number;
  attempts: number;
  delay: Rules['delay'];
  hintCapMs: number;
  /** While it is on, each operation is attempted only once: no retries and no hedges (second attempts). */
  readonly killSwitch: { isOn: boolean };
  /**
   * `update` calls these functions with the new plan, `next`. Each function passes the state of one part to
   * the new plan, for example the breakers.
   */
  readonly carryOver: ((next: Plan) => void)[];
}

/** How outcomes of attempts are classified. */
export interface JudgingPlan {
  /** The packs (named classifiers) that `retryOn` can name. */
  readonly packs: readonly Pack[];
  classify: Classifier;
  /**
   * Which returned values are classified: 0 none, 1 objects, 2 all. Values that are not classified are
   * successes.
   */
  judgesValues: 0 | 1 | 2;
}

/** The state of each target (a host, for example). A field is undefined if no part of the policy needs it. */
export interface TargetPlan {
  /**
   * Returns the retry budget for a run, and counts the run in that budget. Undefined if the policy has no
   * retry budget.
   */
  budgetOf: ((work: Work, now: number) => RetryBudget | undefined) | undefined;
  /** Returns the state of a run's target. Creates it for a new target. */
  targetOf: ((options: RunOptions | undefined, now: number) => Target) | undefined;
  targets: Targets<Target> | undefined;
  /** Returns the states of all targets, including the state that runs without a target share. */
  everyTarget: (() => Iterable<Target>) | undefined;
  /**
   * Chooses one of the run's `targets`, but none in `refused`. Returns undefined if none of them admits a
   * call.
   */
  choose:
    | ((work: Work, now: number, refused: ReadonlySet<Target> | undefined) => Target | undefined)
    | undefined;
  /** Called with each new target. Each function creates the state of one part, such as a breaker. */
  readonly createForTarget: ((target: Target, pooled: boolean) => void)[];
}

/** How a piece of work is run. */
export interface RunningPlan {
  /** Creates the state machine for one run (one operation with all its attempts). */
  work: (this: Plan, options: RunOptions | undefined, now: number, patienceEndsAt: number) => Work;
  /**
   * Above 0: the time limit of every attempt, in ms. 0: the limit is learnt, or is a share of the run's
   * remaining time.
   */
  attemptTimeoutMs: number;
  /** True: while the breaker is open, a run waits for it instead of ending. */
  waitsForBreaker: boolean;
  /** The longest time that an attempt may wait for the rate limiter, in ms. */
  limiterWaitMs: number;
  hedge: HedgeRules | undefined;
  /** Reports the events of runs to listeners. Undefined if the policy has no part `notices`. */
  reporter: Reporter | undefined;
  /** The layers that wrap the whole work (mode, fallback, cache), outermost first. */
  readonly layers: Layer[];
  runLayers: typeof runLayers | undefined;
  results: Results | undefined;
  /**
   * Runs `fn` outside the async context of any caller. Undefined in a policy without guards (breaker,
   * bulkhead, …).
   */
  runWithoutContext: ((fn: () => void) => void) | undefined;
}

/** The faster ways to run an operation, which do not create the state machine `Work`. */
export interface FastPaths {
  /**
   * Runs an operation without the state machine `Work`. Returns undefined if this run needs the state
   * machine.
   */
  fastPath:
    | (<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined) => Promise<T> | undefined)
    | undefined;
  /**
   * Refuses a call at an open breaker, without the state machine `Work` of a run. Returns undefined if this
   * run needs the state machine.
   */
  fastRefusal: ((plan: Plan, options: RunOptions | undefined) => Failure<never> | undefined) | undefined;
  /** Counts a successful run of a policy without guards (breaker, bulkhead, …), and returns the value. */
  countSuccess: (value: unknown) => unknown;
  /**
   * True: the policy has no guards (breaker, bulkhead, …). In this case a run without options needs the state
   * machine only if its first attempt fails.
   */
  canSkipMachine: boolean;
  /** True: some part of the policy needs the start time of an attempt, so the clock must be read. */
  needsClock: boolean;
  /**
   * True: some part may make an attempt wait or send a second attempt, so every run needs the state machine.
   */
  needsMachine: boolean;
}
