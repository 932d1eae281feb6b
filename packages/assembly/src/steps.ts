import type { Payload } from '@holdfast/contracts';
import { durationMs, fnv1a, OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Program } from './assembly.ts';
import { AmbiguousStepError, StepFailedError } from './assembly-errors.ts';
import type { AssemblySettings } from './assembly-settings.ts';
import { backOrderWords } from './assembly-status.ts';
import { assertCheck, type Check } from './check.ts';
import type { ProgramRun } from './program-run.ts';
import { assertStepName, Scope } from './program-scope.ts';
import type { StepRequest } from './run-port.ts';
import type { ChildOptions, EachOptions, Step, StepContext, StepOptions, WaitOptions } from './step.ts';
import { type PolicyEnvironment, stepPolicy } from './step-policy.ts';
import { toStored } from './stored-value.ts';

/** The payload of the signal that a child sends to its parent when the child ends. */
export interface ChildEnd {
  readonly result?: string | undefined;
  /** Why the child was stopped; `undefined` if it has a result. */
  readonly stopped?: { readonly because: string; readonly message: string };
}

const knownOptions: Readonly<Record<keyof StepOptions, true>> = {
  policy: true,
  undo: true,
  undoPolicy: true,
  check: true,
  timeout: true,
  once: true,
  whenUnknown: true,
  pivot: true,
};

const noOptions = {};

/** Creates the `Step` object for a program, or for one branch of it. */
export function stepsOf(run: ProgramRun, id: string, scope: Scope, environment: PolicyEnvironment): Step {
  const branch = (path: string, key: string) => new Scope(`${path}/${key}/`, scope);
  const inside = (inner: Scope) => stepsOf(run, id, inner, environment);

  /**
   * Runs `fn` under the name of a group of branches (`all`, `each` or `race`). Throws if a step or group with
   * this name already runs in this scope.
   */
  async function within<T>(name: string, fn: (path: string) => Promise<T>): Promise<T> {
    assertStepName(name);
    if (scope.isClosed) return new Promise<T>(() => {});
    if (scope.underWay.has(name)) throw new AmbiguousStepError(scope.prefix + name);
    scope.underWay.add(name);
    try {
      return await fn(scope.nextPath(name));
    } finally {
      scope.underWay.delete(name);
    }
  }

  function random(): number {
    return fraction(fnv1a(`${id}\0${scope.prefix}\0${++scope.drawn}`));
  }

  return {
    async run(name, fn, options = noOptions) {
      assertStepName(name);
      return run.ask(scope, name, {
        kind: 'run',
        fn,
        ...optionsOf(options as unknown as StepOptions<never>, environment),
      }) as Promise<never>;
    },

    async transaction(name, fn, options = noOptions) {
      assertStepName(name);
      const transaction = fn as (tx: unknown, context: StepContext) => unknown;
      const request = {
        kind: 'transaction',
        transaction,
        ...optionsOf(options as unknown as StepOptions<never>, environment),
      } as const;
      return run.ask(scope, name, request) as Promise<never>;
    },

    async sleep(name, duration) {
      assertStepName(name);
      const ms = durationMs(duration);
      await run.ask(scope, name, { kind: 'sleep', dueInMs: () => ms });
    },

    async sleepUntil(name, time) {
      assertStepName(name);
      const at = Number(time);
      if (!Number.isFinite(at)) throw new OptionsError('time', time, 'a date, or a number of ms since 1970');
      await run.ask(scope, name, { kind: 'sleep', dueInMs: (storeNow) => at - storeNow });
    },

    async waitFor<T>(signal: string, { patience, because, backOrder, check }: WaitOptions<T> = {}) {
      assertStepName(signal);
      assertCheck('check', check);
      const ms = patience === undefined ? undefined : durationMs(patience, 'patience');
      return run.ask(scope, signal, {
        ...{ kind: 'wait', signal, check: check as Check<never> | undefined },
        because: backOrder ? `${backOrderWords}${because ?? `waiting for ${signal}`}` : because,
        dueInMs: ms === undefined ? undefined : () => ms,
      }) as Promise<T>;
    },

    async child<Input, Result>(
      name: string,
      program: Program<Input, Result>,
      input: Input,
      options: ChildOptions = {},
    ) {
      assertStepName(name);
      const stored = toStored(input, 'input') ?? 'null';
      const request: StepRequest = {
        kind: 'child',
        start: (childId, patienceLeftMs) => ({
          id: childId,
          name: program.name,
          version: program.version,
          input: stored,
          ...(patienceLeftMs < Infinity && { patienceMs: Math.max(0, patienceLeftMs) }),
          ...(options.queue !== undefined && { queue: options.queue }),
          ...(options.key !== undefined && { key: options.key }),
          settings: childSettings(program as Program, id, childId),
        }),
        read: readChild,
      };
      return run.ask(scope, name, request) as Promise<Result>;
    },

    all(name, branches) {
      return within(name, async (path) => {
        const names = Object.keys(branches);
        const results = await settleAll(
          names.map((each) => async () => branches[each]!(inside(branch(path, checkKey(each))))),
        );
        return Object.fromEntries(names.map((each, index) => [each, results[index]])) as never;
      });
    },

    each(name, items, keyOf, fn, { concurrency = Infinity }: EachOptions = {}) {
      return within(name, async (path) => {
        const seen = new Set<string>();
        const branches = [...items].map((item) => {
          const key = checkKey(String(keyOf(item)));
          if (seen.has(key)) throw new OptionsError('key', key, `a key of its own for each item of ${path}`);
          seen.add(key);
          return async () => fn(inside(branch(path, key)), item);
        });
        return (await settleAll(branches, concurrency)) as never;
      });
    },

    race(name, branches) {
      return within(name, async (path) => {
        const scopes = Object.keys(branches).map((each) => branch(path, checkKey(each)));
        if (scopes.length === 0) throw new OptionsError('branches', branches, 'at least one branch');
        const running = Object.values(branches).map(async (fn, index) => {
          const winner = scopes[index]!;
          const decide = () => run.close(scopes.filter((each) => each !== winner && !winner.isClosed));
          try {
            const value = await fn(inside(winner));
            if (winner.isClosed) return new Promise<never>(() => {});
            decide();
            return value;
          } catch (error) {
            if (winner.isClosed) return new Promise<never>(() => {});
            decide();
            throw error;
          }
        });
        for (const each of running) each.catch(() => {});
        return (await Promise.race(running)) as never;
      });
    },

    changed(name) {
      assertStepName(name);
      return run.hasChanged(`~changed/${scope.prefix}${name}`);
    },

    now: () => run.lastGivenAt,
    random,

    uuid() {
      const digits = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('');
      const variant = '89ab'[Math.floor(random() * 4)];
      return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
    },
  };
}

function optionsOf(options: StepOptions<never>, environment: PolicyEnvironment): Omit<StepRequest, 'kind'> {
  if (options === noOptions) return { policy: stepPolicy(undefined, environment) };
  assertKnownFields(knownOptions, options);
  const { policy, undo, check, timeout, once, whenUnknown, pivot } = options;
  assertCheck('check', check);
  return {
    ...{ policy: stepPolicy(policy, environment), undo, undoPolicy: options.undoPolicy },
    ...{ check, once, whenUnknown, pivot },
    timeoutMs: timeout === undefined ? undefined : durationMs(timeout, 'timeout'),
  };
}

/**
 * Runs branches, at most `concurrency` at the same time, and waits for all of them. Throws the first error.
 * Its `also` has the errors of failed steps in other branches.
 */
async function settleAll(
  branches: readonly (() => Promise<unknown>)[],
  concurrency = Infinity,
): Promise<unknown[]> {
  const results: unknown[] = [];
  const errors: unknown[] = [];
  let next = 0;
  async function work(): Promise<void> {
    while (next < branches.length) {
      const index = next++;
      try {
        results[index] = await branches[index]!();
      } catch (error) {
        errors.push(error);
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, branches.length) }, work));
  if (errors.length === 0) return results;
  const [first, ...others] = errors;
  if (first instanceof StepFailedError)
    first.also.push(...others.filter((each): each is StepFailedError => each instanceof StepFailedError));
  throw first;
}

function checkKey(key: string): string {
  assertStepName(key);
  return key;
}

function readChild(payload: Payload | undefined): unknown {
  const { result, stopped } = JSON.parse(String(payload)) as ChildEnd;
  if (!stopped) return result === undefined ? undefined : JSON.parse(result);
  throw new StepFailedError('child', stopped.because, undefined, [], stopped.message);
}

function childSettings(program: Program, parent: string, childId: string): string {
  const settings: AssemblySettings = {
    ...(program.options.plan && { plan: program.options.plan }),
    parent: { id: parent, path: childId.slice(parent.length + 1) },
  };
  return JSON.stringify(settings);
}

/** Mixes the bits of a 32-bit hash, and returns a number in [0, 1). */
function fraction(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  mixed ^= mixed >>> 16;
  return (mixed >>> 0) / 2 ** 32;
}
