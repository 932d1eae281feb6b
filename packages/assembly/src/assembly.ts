import { type Duration, durationMs, OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Step } from './step.ts';

/** A program: an async function that does its work in steps. Each assembly is one execution of a program. */
export interface Program<Input = unknown, Result = unknown, Tx = unknown> {
  readonly name: string;
  readonly version: number;
  readonly options: AssemblyOptions;
  readonly run: (step: Step<Tx>, input: Input) => Result | PromiseLike<Result>;
}

/** The options of a program. They apply to each assembly of the program. */
export interface AssemblyOptions {
  /**
   * The version of the program. An assembly keeps the version with which it was started; a process can run
   * several versions. Default: `1`.
   */
  readonly version?: number | undefined;
  /**
   * How long the customer waits if `start` does not say it: one duration, or a duration for each class of
   * customers. Default: no limit.
   */
  readonly patience?: Duration | Readonly<Record<string, Duration>> | undefined;
  /**
   * What happens when the program throws. `park`: the assembly waits for an operator. `undo`: finished steps
   * are compensated. Default: `park`.
   */
  readonly onFailure?: 'park' | 'undo' | undefined;
  /** The names of the main steps, so that the status can say "step 2 of 4". Default: none. */
  readonly plan?: readonly string[] | undefined;
  /** How long the record of an assembly is kept after the assembly has ended. Default: 30 days. */
  readonly keep?: Duration | undefined;
}

type ProgramFunction<Input, Result, Tx> = (step: Step<Tx>, input: Input) => Result | PromiseLike<Result>;

const known: Readonly<Record<keyof AssemblyOptions, true>> = {
  version: true,
  patience: true,
  onFailure: true,
  plan: true,
  keep: true,
};

/**
 * Declares a program of several steps. After a wait or a crash the program runs again from its beginning, and
 * each finished step returns its recorded result. So put side effects, waits, the time and random numbers
 * into steps.
 */
// biome-ignore lint/suspicious/noExplicitAny: a program may take the transaction type of any engine
export function assembly<Input, Result, Tx = any>(
  name: string,
  ...rest:
    | [fn: ProgramFunction<Input, Result, Tx>]
    | [options: AssemblyOptions, fn: ProgramFunction<Input, Result, Tx>]
): Program<Input, Awaited<Result>, Tx> {
  const [options, fn] = rest.length === 1 ? [{}, rest[0]] : rest;
  if (typeof name !== 'string' || !/^[^\s/#~\0][^/#\0]*$/.test(name))
    throw new OptionsError('name', name, 'a name without / and #');
  if (typeof fn !== 'function') throw new OptionsError('fn', fn, 'an async function');
  assertKnownFields(known, options);
  const { version = 1, onFailure = 'park', plan = [], keep, patience } = options;
  if (!(Number.isSafeInteger(version) && version >= 0))
    throw new OptionsError('version', version, 'a whole number from 0');
  if (onFailure !== 'park' && onFailure !== 'undo')
    throw new OptionsError('onFailure', onFailure, 'park or undo');
  if (!Array.isArray(plan)) throw new OptionsError('plan', plan, 'names of steps');
  if (keep !== undefined) durationMs(keep, 'keep');
  if (typeof patience === 'object')
    for (const [word, duration] of Object.entries(patience)) durationMs(duration, `patience.${word}`);
  else if (patience !== undefined) durationMs(patience, 'patience');
  return { name, version, options, run: fn as Program<Input, Awaited<Result>, Tx>['run'] };
}

/**
 * Returns the patience of one start. `given` is a duration or the name of a patience class; without `given`
 * the program's own duration applies.
 */
export function patienceOf(
  { options, name }: Program,
  given: Duration | string | undefined,
): { readonly ms: number | undefined; readonly class: string | undefined } {
  const { patience } = options;
  if (typeof patience === 'object') {
    if (typeof given === 'string' && Object.hasOwn(patience, given))
      return { ms: durationMs(patience[given]!), class: given };
    if (given === undefined) return { ms: undefined, class: undefined };
    if (typeof given === 'string' && !/^\d/.test(given))
      throw new OptionsError(
        'patience',
        given,
        `a duration, or a class of ${name}: ${Object.keys(patience)}`,
      );
  }
  const ms = given ?? (typeof patience === 'object' ? undefined : patience);
  return { ms: ms === undefined ? undefined : durationMs(ms as Duration, 'patience'), class: undefined };
}
