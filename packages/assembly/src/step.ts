import type { Duration, Policy } from 'holdfast';
import type { Program } from './assembly.ts';
import type { Check } from './check.ts';
import type { StepPolicySpec } from './step-policy.ts';

/** What a program is given: all effects and waits go through it. Each branch of `all`, `each` and `race` has its own. */
export interface Step<Tx = unknown> {
  /** Runs `fn` until it succeeds or is given up on. Its result is stored, as JSON, and never computed again. */
  run<T>(
    name: string,
    fn: (context: StepContext) => T | PromiseLike<T>,
    options?: StepOptions<T>,
  ): Promise<T>;
  /**
   * Runs `fn` in a transaction of the engine, in which the result is stored as well: both happen exactly once. With SQLite
   * `fn` must be synchronous.
   */
  transaction<T>(
    name: string,
    fn: (tx: Tx, context: StepContext) => T | PromiseLike<T>,
    options?: Omit<StepOptions<T>, 'once' | 'timeout'>,
  ): Promise<T>;
  sleep(name: string, duration: Duration): Promise<void>;
  /** Sleeps until a time of day by the store's clock. */
  sleepUntil(name: string, time: Date | number): Promise<void>;
  /** Waits for the next signal of this name, and gives its payload. A signal may have come before. */
  waitFor<T = unknown>(signal: string, options?: WaitOptions<T>): Promise<T>;
  /** Starts another assembly, and gives its result. It is compensated together with this one. */
  child<Input, Result>(
    name: string,
    program: Program<Input, Result, Tx>,
    input: Input,
    options?: ChildOptions,
  ): Promise<Result>;

  /** Runs branches in parallel, and waits for all of them before an error goes up. */
  all<Branches extends Readonly<Record<string, (step: Step<Tx>) => unknown>>>(
    name: string,
    branches: Branches,
  ): Promise<{ [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>> }>;
  /** Runs a branch for each item, in parallel. A branch is known by the key of its item, never by its position. */
  each<Item, T>(
    name: string,
    items: Iterable<Item>,
    keyOf: (item: Item) => string | number,
    fn: (step: Step<Tx>, item: Item) => T | PromiseLike<T>,
    options?: EachOptions,
  ): Promise<Awaited<T>[]>;
  /** The first branch that settles wins. The others begin nothing more, and the signals of their steps abort. */
  race<Branches extends Readonly<Record<string, (step: Step<Tx>) => unknown>>>(
    name: string,
    branches: Branches,
  ): Promise<Awaited<ReturnType<Branches[keyof Branches]>>>;

  /**
   * True for an assembly that reaches this place for the first time after the program was changed; false for one that has
   * passed it before. The answer stays the same.
   */
  changed(name: string): boolean;
  /** The time of the latest result that the program was given, epoch ms: the same in each run. */
  now(): number;
  /** A random number in [0, 1) that is the same in each run. */
  random(): number;
  uuid(): string;
}

/** What an attempt of a step is given. `key` is the same in every attempt; `attempt` counts from 1. */
export interface StepContext {
  /** The idempotency key of this step: the same in each attempt. Calls of `@holdfast/http` derive their keys from it. */
  readonly key: string;
  /** Counted from 1, over all processes. */
  readonly attempt: number;
  /** Aborts when the assembly is cancelled or out of time, and when another worker has taken over. */
  readonly signal: AbortSignal;
  /** How long the customer still waits. Infinity: without limit. */
  readonly patienceLeftMs: number;
}

/** The options of one step. Without any it is tried up to six times. */
export interface StepOptions<T = unknown> {
  /**
   * How it is retried: a document, or a policy of `holdfast` whose rules count. Default: six attempts, with waits from
   * 500 ms to ten minutes.
   */
  readonly policy?: StepPolicySpec | Policy | undefined;
  /** Compensates the step. It runs when the assembly is stopped, also after the end. Default: none. */
  readonly undo?: Undo<T> | undefined;
  /** How `undo` is retried. Default: without end, at most an hour apart. */
  readonly undoPolicy?: StepPolicySpec | Policy | undefined;
  /**
   * A Standard Schema, or a function that throws or returns false. A bad result is a failed attempt, and is not stored.
   * Default: none.
   */
  readonly check?: Check<T> | undefined;
  /** The longest an attempt may take. Default: no limit but patience. */
  readonly timeout?: Duration | undefined;
  /**
   * True: the beginning is stored first, and an attempt whose outcome nobody knows is never repeated: the step fails
   * with `outcome_unknown`, or `whenUnknown` finds out. Default: `false`.
   */
  readonly once?: boolean | undefined;
  /** Finds out what became of an attempt whose outcome is unknown, and returns its result. Default: none. */
  readonly whenUnknown?: ((context: StepContext) => T | PromiseLike<T>) | undefined;
  /** True: when this step is done, the assembly can not be cancelled any more. Default: `false`. */
  readonly pivot?: boolean | undefined;
}

/**
 * Compensates a step. `result` is undefined if the outcome of the step is unknown: it was under way when the assembly was
 * stopped, and may or may not have had its effect.
 */
export type Undo<T = unknown> = (result: T | undefined, context: UndoContext) => unknown;

/** What a compensation is given. With the outcome `unknown` the step may or may not have happened. */
export interface UndoContext extends StepContext {
  readonly outcome: 'done' | 'unknown';
  /** The idempotency key of the step that is compensated. */
  readonly stepKey: string;
}

/** The options of `waitFor`. Without `patience` it waits as long as the assembly may. */
export interface WaitOptions<T = unknown> {
  /**
   * The longest wait. Then the step fails with `HOLDFAST_SIGNAL_TIMEOUT` as its cause. Default: until patience ends.
   */
  readonly patience?: Duration | undefined;
  /** What the customer is told. Default: none. */
  readonly because?: string | undefined;
  /**
   * True: something is not there yet, and the customer is asked to wait longer. The status is `back-order`, and
   * `extend` is the customer's consent; without it the assembly stops when patience ends. Default: `false`.
   */
  readonly backOrder?: boolean | undefined;
  /** Checks the payload. A signal that does not pass fails the step. Default: none. */
  readonly check?: Check<T> | undefined;
}

/** The queue of a child, and the key by which the queue limits it. */
export interface ChildOptions {
  /** The queue whose limits apply to the child. Default: none. */
  readonly queue?: string | undefined;
  /** The key by which limits of the queue apply. Default: none. */
  readonly key?: string | undefined;
}

/** How many items `each` handles at the same time. */
export interface EachOptions {
  /** How many branches are under way at the same time. Default: all. */
  readonly concurrency?: number | undefined;
}
