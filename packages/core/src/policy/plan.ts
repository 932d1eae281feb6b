import type { Rules } from '../decide/decide.ts';
import type { Classifier, Judgement, OutcomeClass, Pack } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { BreakerCause, BreakerState } from '../machines/breaker.ts';
import type { RetryBudget } from '../machines/budget.ts';
import type { Target } from '../machines/target.ts';
import type { Targets } from '../machines/targets.ts';
import type { Results } from '../parts/cache.ts';
import type { Layer, runLayers } from '../parts/layer.ts';
import type { Attempt, GuardedAttempt } from '../run/attempt.ts';
import type { GuardedWork } from '../run/guarded-work.ts';
import type { Failure } from '../run/promise-driver.ts';
import type { Work } from '../run/work.ts';
import type { Clock, Random } from '../time/clock.ts';
import type { Counters } from './counters.ts';
import type { Duration } from './duration.ts';

/** What a function gets for each attempt. */
export interface Context {
  /** Counted from 1. */
  readonly attempt: number;
  /** The target chosen for this attempt; undefined when the run named none. */
  readonly target: string | undefined;
  /** Aborts when the attempt is over: timed out, cancelled, or beaten by its hedgeTwin. Made when first read. */
  readonly signal: AbortSignal;
  /** Ms the customer will still wait; Infinity without a limit. */
  readonly patienceLeft: number;
}

/** An asynchronous function that can be attempted more than once. */
export type Operation<T> = (context: Context) => PromiseLike<T> | T;

/** What a caller may say about one run. */
export interface RunOptions {
  /** At most this long for everything, waits included. It can shorten what the ambientContext allow, never extend it. */
  readonly patience?: Duration | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whose state (breaker, budget, bulkhead, latency) this call belongs to: a shard, a host. */
  readonly target?: string | undefined;
  /** Interchangeable targets: each attempt goes to one of them, a retry preferably to another. */
  readonly targets?: readonly string[] | undefined;
  /** False: repeat only what was provably not processed. */
  readonly idempotent?: boolean | undefined;
  /** Asked before each repetition: what forbids it, if something does, such as a body that can be read only once. */
  readonly retryVeto?: (() => StopReason | undefined) | undefined;
  /** Asked of every outcome of this run before the policy's classifiers, which judge what it declines. If it throws, nothing is repeated. */
  readonly classify?: Classifier | undefined;
  /** Under load the least important waits and is refused first. */
  readonly priority?: Priority | undefined;
  /** The key of this call's result in the cache; without one it is not cached. */
  readonly cacheKey?: string | undefined;
  /** Carry patience and ownership to the runs inside this one. Needs `holdfast/ambient`. */
  readonly ambient?: boolean | undefined;
  /** Said by the mode `observe` alone: what is told of this run is what would have been done. */
  readonly observed?: boolean | undefined;
  /** Told before each wait, so that a person can be told. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

export type Priority = 'critical' | 'default' | 'sheddable';

export interface Wait {
  /** The attempt that has just failed. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly because: OutcomeClass;
  readonly patienceLeft: number;
}

/** A policy as the machines read it. Made once from a document; only `counters` and what targets hold changes. */
export interface Plan extends Rules {
  readonly name: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The packs that this kind of policy knows by name. */
  readonly packs: readonly Pack[];
  readonly counters: Counters;
  patienceMs: number;
  attempts: number;
  delay: Rules['delay'];
  hintCapMs: number;
  /** What is asked of every outcome that may be a failure. */
  classify: Classifier;
  /** Which values are judged as well as errors: 0 none, 1 objects, 2 all. The others end the work with no question. */
  judgesValues: 0 | 1 | 2;
  /** Makes the machine of one piece of work; a part that puts guards around attempts brings its own. */
  work: (options: RunOptions | undefined, now: number, patienceEndsAt: number) => Work;
  /** Whose retries this run adds to; absent where no part limits them. Counts a first try. */
  budgetOf: ((work: Work, now: number) => RetryBudget | undefined) | undefined;
  /** Finds or makes the state that a run belongs to; absent where no part keeps any. */
  targetOf: ((options: RunOptions | undefined, now: number) => Target) | undefined;
  targets: Targets<Target> | undefined;
  /** All that is kept, for lists; absent where no part keeps any. */
  everyTarget: (() => Iterable<Target>) | undefined;
  /** One of the run's `targets`, or none of them admits. Those in `refused` have just said no. */
  choose:
    | ((work: GuardedWork, now: number, refused: ReadonlySet<Target> | undefined) => Target | undefined)
    | undefined;
  /** Each gives something that is kept to the plan that takes over. */
  readonly carryOver: ((next: Plan) => void)[];
  /** What each part keeps for a target. */
  readonly equip: ((target: Target, pooled: boolean) => void)[];
  /** Runs `fn` in nobody's async context; absent where no attempt can follow one that has not settled. */
  runWithoutContext: ((fn: () => void) => void) | undefined;
  /** Told everything; absent while no part listens. */
  reporter: Reporter | undefined;
  /** Layers around the whole work, outermost first: fallback, cache, mode. */
  readonly layers: Layer[];
  /** Results by key, and the calls that will give one; absent where none are kept. */
  results: Results | undefined;
  /** Runs through the layers; absent where there are none. */
  runLayers: typeof runLayers | undefined;
  /** Above 0: every attempt's limit. 0: what the target's measurements say, or a share of what is left. */
  attemptTimeoutMs: number;
  /** True: an open breaker is waited for if patience allows, instead of ending the work. */
  waitsForBreaker: boolean;
  /** How long an attempt may wait for the rate limiter. */
  limiterWaitMs: number;
  hedge: HedgeRules | undefined;
  /** A shorter way for runs that ask for nothing special; undefined when it cannot be gone now. */
  fastPath:
    | (<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined) => Promise<T> | undefined)
    | undefined;
  /** The same for a refusal: undefined when the long way has to find out. */
  fastRefusal: ((plan: Plan, options: RunOptions | undefined) => Failure<never> | undefined) | undefined;
  /** What a success passes through on that way, where nothing stands around the attempts. */
  countSuccess: (value: unknown) => unknown;
  /** Nothing stands around its attempts: a run that asks for nothing needs no machine until it fails. */
  canSkipMachine: boolean;
  /** A part must know when an attempt started. */
  needsClock: boolean;
  /** A part may let an attempt wait or race. */
  needsMachine: boolean;
  /** No retries and no hedges while set: one attempt for each piece of work. */
  readonly killSwitch: { isOn: boolean };
}

/** When a second attempt may be started beside the first. */
export interface HedgeRules {
  /** When, for an attempt that is sent at `now`; Infinity: not at all. */
  at(work: GuardedWork, target: Target, now: number): number;
  /** Asks the budgets at that moment, and spends. */
  may(work: GuardedWork, now: number): boolean;
  /** It was not sent after all. */
  refund(work: GuardedWork): void;
}

/** Hears of everything that happens to work. */
export interface Reporter {
  /** False while nobody listens. */
  isHeard(): boolean;
  /** Calls an operation inside of what those who listen put around it. */
  enter<T>(work: Work, attempt: Attempt, call: () => T): T;
  started(work: Work, now: number): void;
  attempt(work: Work, attempt: Attempt, now: number, judged: Judgement, verdict: Verdict): void;
  ended(work: Work, now: number): void;
  refused(work: Work, now: number, target: string | undefined, because: StopReason): void;
  hedged(work: Work, attempt: GuardedAttempt, now: number): void;
  /** A layer answered in the place of the work. */
  served(target: string | undefined, now: number, by: 'fallback' | 'fresh' | 'stale'): void;
  zombie(attempt: GuardedAttempt, now: number): void;
  breaker(
    target: string | undefined,
    now: number,
    from: BreakerState,
    to: BreakerState,
    because: BreakerCause,
  ): void;
}
