import { type Duration, durationMs, OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Step } from './step.ts';

/** A program of several steps. The same program is run for many assemblies. */
export interface Program<Input = unknown, Result = unknown, Tx = unknown> {
  readonly name: string;
  readonly version: number;
  readonly options: AssemblyOptions;
  readonly run: (step: Step<Tx>, input: Input) => Result | PromiseLike<Result>;
}

/** The options of a program, the same for all assemblies of it. */
export interface AssemblyOptions {
  /** An assembly keeps the version with which it began. Versions can run side by side. Default: `1`. */
  readonly version?: number | undefined;
  /**
   * How long the customer waits, if `start` does not say: a duration, or one for each class of customers. Default: no
   * limit.
   */
  readonly patience?: Duration | Readonly<Record<string, Duration>> | undefined;
  /**
   * What becomes of an assembly with an error that the program does not catch. `park`: it waits for people. `undo`: it
   * is compensated. Default: `park`.
   */
  readonly onFailure?: 'park' | 'undo' | undefined;
  /** The names of the main steps, for "step 2 of 4". Default: none. */
  readonly plan?: readonly string[] | undefined;
  /** How long an assembly is kept after its end. Default: 30 days. */
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
 * Declares work of several steps. The program runs from its beginning whenever it goes on; finished steps answer from the
 * record. So effects, waits, time and chance belong in steps.
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

/** The patience of a start: a class of the program, a duration, or what the program says. */
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
