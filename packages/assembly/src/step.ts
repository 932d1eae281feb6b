import type { Duration, Policy } from 'holdfast';
import type { Program } from './assembly.ts';
import type { Check } from './check.ts';
import type { StepPolicySpec } from './step-policy.ts';

/**
 * The object through which a program does all side effects and waits. Each branch of `all`, `each` and `race`
 * gets its own.
 */
export interface Step<Tx = unknown> {
  /**
   * Runs `fn`, with retries, until it succeeds or fails for good. The result is stored as JSON, and `fn` is
   * not called again.
   */
  run<T>(
    name: string,
    fn: (context: StepContext) => T | PromiseLike<T>,
    options?: StepOptions<T>,
  ): Promise<T>;
  /**
   * Runs `fn` in a database transaction that also stores the result, so that both happen exactly once. With
   * SQLite `fn` must be synchronous.
   */
  transaction<T>(
    name: string,
    fn: (tx: Tx, context: StepContext) => T | PromiseLike<T>,
    options?: Omit<StepOptions<T>, 'once' | 'timeout'>,
  ): Promise<T>;
  sleep(name: string, duration: Duration): Promise<void>;
  /** Sleeps until this time by the store's clock. */
  sleepUntil(name: string, time: Date | number): Promise<void>;
  /**
   * Waits for the next signal with this name, and returns its payload. A signal that arrived earlier and was
   * not used counts.
   */
  waitFor<T = unknown>(signal: string, options?: WaitOptions<T>): Promise<T>;
  /**
   * Starts another assembly and returns its result. If this assembly is compensated, the child is compensated
   * too.
   */
  child<Input, Result>(
    name: string,
    program: Program<Input, Result, Tx>,
    input: Input,
    options?: ChildOptions,
  ): Promise<Result>;

  /** Runs branches in parallel. If a branch throws, the error is thrown when all branches have settled. */
  all<Branches extends Readonly<Record<string, (step: Step<Tx>) => unknown>>>(
    name: string,
    branches: Branches,
  ): Promise<{ [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>> }>;
  /**
   * Runs a branch for each item, in parallel. Records belong to the key of an item, so the items may change
   * their positions.
   */
  each<Item, T>(
    name: string,
    items: Iterable<Item>,
    keyOf: (item: Item) => string | number,
    fn: (step: Step<Tx>, item: Item) => T | PromiseLike<T>,
    options?: EachOptions,
  ): Promise<Awaited<T>[]>;
  /**
   * Runs branches in parallel; the first that settles wins. The other branches begin no more steps, and their
   * running steps are aborted.
   */
  race<Branches extends Readonly<Record<string, (step: Step<Tx>) => unknown>>>(
    name: string,
    branches: Branches,
  ): Promise<Awaited<ReturnType<Branches[keyof Branches]>>>;

  /**
   * For changes of a program that has running assemblies. Returns true if the assembly reaches this call with
   * the new code first; false if it had passed this place before the change. The answer is the same in each
   * run.
   */
  changed(name: string): boolean;
  /** The time of the latest result that the program was given, epoch ms. It is the same in each run. */
  now(): number;
  /** A random number in [0, 1) that is the same in each run. */
  random(): number;
  uuid(): string;
}

/** The argument of a step function. `key` is the same in each attempt; `attempt` counts from 1. */
export interface StepContext {
  /**
   * The idempotency key of this step, the same in each attempt: the id of the assembly and the path of the
   * step, such as `order-17/charge`. With the option `idempotency: 'derive'` or `'auto'`, `@holdfast/http`
   * derives the keys of its requests from it. Send it yourself in all other calls.
   */
  readonly key: string;
  /** The number of the attempt, counted from 1 over all processes. */
  readonly attempt: number;
  /**
   * Aborts when the assembly is cancelled or out of time, and when another worker has taken over the
   * assembly.
   */
  readonly signal: AbortSignal;
  /** How long the customer still waits, in ms. Infinity: no limit. */
  readonly patienceLeftMs: number;
}

/** The options of one step. By default a step is tried up to six times. */
export interface StepOptions<T = unknown> {
  /**
   * How the step is retried: a spec, or a policy of `holdfast`, of which the retry rules are used. Default:
   * six attempts, with waits from 500 ms to ten minutes.
   */
  readonly policy?: StepPolicySpec | Policy | undefined;
  /** Compensates the step. It is called when the assembly is stopped, even after its end. Default: none. */
  readonly undo?: Undo<T> | undefined;
  /** How `undo` is retried. Default: without end, at most an hour apart. */
  readonly undoPolicy?: StepPolicySpec | Policy | undefined;
  /**
   * A Standard Schema, or a function that throws or returns false. If a result does not pass, the attempt has
   * failed and the result is not stored. Default: none.
   */
  readonly check?: Check<T> | undefined;
  /** The timeout of one attempt. Default: none; only the patience of the assembly limits an attempt. */
  readonly timeout?: Duration | undefined;
  /**
   * True: the beginning of each attempt is stored before it runs, and an attempt whose outcome is unknown is
   * not repeated. The step then fails with `outcome_unknown`, or `whenUnknown` is called. Default: `false`.
   */
  readonly once?: boolean | undefined;
  /**
   * For `once`: finds out what happened in an attempt whose outcome is unknown, and returns its result.
   * Default: none.
   */
  readonly whenUnknown?: ((context: StepContext) => T | PromiseLike<T>) | undefined;
  /** True: the assembly can not be cancelled after this step is done. Default: `false`. */
  readonly pivot?: boolean | undefined;
}

/**
 * Compensates a step. `result` is `undefined` if the outcome is unknown: the step was running when the
 * assembly was stopped, and may or may not have had its effect.
 */
export type Undo<T = unknown> = (result: T | undefined, context: UndoContext) => unknown;

/** The second argument of `undo`. If `outcome` is `unknown`, the step may or may not have had its effect. */
export interface UndoContext extends StepContext {
  readonly outcome: 'done' | 'unknown';
  /** The idempotency key of the step that is being compensated. */
  readonly stepKey: string;
}

/** The options of `waitFor`. Without `patience` the wait ends with the patience of the assembly. */
export interface WaitOptions<T = unknown> {
  /**
   * The timeout of the wait. After it, the step fails with `HOLDFAST_SIGNAL_TIMEOUT` as its cause. Default:
   * until patience ends.
   */
  readonly patience?: Duration | undefined;
  /** Why the assembly waits, as text for the customer. Default: none. */
  readonly because?: string | undefined;
  /**
   * True: something is out of stock or late, and the customer is asked to wait longer. The status is
   * `back-order`. The customer agrees by `extend`; otherwise the assembly stops when the patience ends.
   * Default: `false`.
   */
  readonly backOrder?: boolean | undefined;
  /** Checks the payload. If the payload of a signal does not pass, the step fails. Default: none. */
  readonly check?: Check<T> | undefined;
}

/** The queue of a child assembly, and its key in that queue. */
export interface ChildOptions {
  /** The name of the queue whose limits apply to the child. Default: none. */
  readonly queue?: string | undefined;
  /** Limits of the queue that count per key count the child under this key. Default: none. */
  readonly key?: string | undefined;
}

/** How many items `each` handles at the same time. */
export interface EachOptions {
  /** How many branches run at the same time. Default: all. */
  readonly concurrency?: number | undefined;
}
