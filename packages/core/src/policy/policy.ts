import type { Pack } from '../decide/outcome.ts';
import { isDocument, readTable, type Table } from '../fields.ts';
import { OptionsError } from '../report/errors.ts';
import { ambientContext } from '../run/ambient-context.ts';
import { runnerOf } from '../run/fast-path.ts';
import { attemptRun, type Ending } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';
import { runOptionsError } from '../run/run-options.ts';
import { Work } from '../run/work.ts';
import type { Clock, Random } from '../time/clock.ts';
import { systemClock, systemRandom } from '../time/system-clock.ts';
import { Counters } from './counters.ts';
import type { Part, SpecOfParts } from './part.ts';
import type { Plan } from './plan.ts';

/** The sources of time and randomness of a policy. Default: those of the system. */
export interface Environment {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** A policy that runs operations. `spec` is the document from which it was made. */
export interface Policy<Spec = object> {
  readonly name: string | undefined;
  readonly spec: Spec;
  readonly counters: Counters;
  /** The compiled policy, for `explain`, the simulator and other packages. */
  readonly plan: Plan;
  /** The parts of the policy. `explain`, `lint` and the JSON Schema read their tables of fields. */
  readonly parts: readonly Part[];
  /** The document after validation: with defaults, and with words and durations converted to numbers. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Runs `operation`. Throws its last error, unchanged. */
  run<T>(operation: Operation<T>, options?: RunOptions): Promise<T>;
  /**
   * Runs `operation` and returns how it ended, with the story (the record of its attempts). Rejects only for wrong
   * options.
   */
  try<T>(operation: Operation<T>, options?: RunOptions): Promise<Ending<T>>;
  /** Returns a function of the same type. Each call of it runs under this policy. */
  wrap<A extends unknown[], T>(fn: (...args: A) => PromiseLike<T> | T): (...args: A) => Promise<T>;
  /**
   * Makes a policy with some fields changed, and with its own state. `environment` replaces the clock and the
   * randomness.
   */
  with(overrides: Spec, environment?: Environment): Policy<Spec>;
  /**
   * Replaces the document. Breakers, budgets, permits and cached results are kept, and work in progress ends under the
   * old document. A document that is refused changes nothing.
   */
  update(spec: Spec): void;
  /** Switches all retries and hedges off, so that each piece of work is attempted once, or on again. */
  kill(on?: boolean): void;
}

/**
 * Makes a kind of policy from chosen parts: `definePolicy([retry, breaker])(spec)`. The bundle contains only these parts, and
 * the document only their fields.
 */
export function definePolicy<const P extends readonly (Part | Pack)[]>(
  chosen: P,
): (spec?: SpecOfParts<P>, environment?: Environment) => Policy<SpecOfParts<P>> {
  const parts = chosen
    .filter((each): each is Part => 'fields' in each)
    .sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  const packs = chosen.filter((each): each is Pack => 'pack' in each);
  const table: Table = Object.assign({}, ...parts.map(({ fields }) => fields));

  function read(document: SpecOfParts<P>): Input {
    if (!isDocument(document)) throw new OptionsError('policy', document, 'an object');
    const { name, ...fields } = document as { name?: string } & object;
    if (name !== undefined && (typeof name !== 'string' || !name))
      throw new OptionsError('name', name, 'a text');
    return { name, fields, settings: readTable(table, fields) };
  }

  function make(
    spec = {} as SpecOfParts<P>,
    environment: Environment = {},
    input = read(spec),
  ): Policy<SpecOfParts<P>> {
    const counters = new Counters();
    const killSwitch = { isOn: false };

    function compile({ name, fields, settings }: Input): Pick<Policy, 'name' | 'plan' | 'settings'> {
      const plan = emptyPlan(name, packs, environment, counters, killSwitch);
      for (const part of parts) part.create(settings, plan, fields);
      plan.needsClock ||= plan.patienceMs < Infinity;
      if (plan.layers[0]) plan.fastPath = plan.fastRefusal = undefined;
      else plan.canSkipMachine = !(plan.targetOf || plan.reporter || plan.judgesValues);
      return { name, plan, settings };
    }

    // `update` replaces the fields of this object. It has no getters: an object literal with getters is a hash table to
    // the JavaScript engine, which makes every property slower to read, `run` included.
    const made: Mutable<Policy<SpecOfParts<P>>> = {
      spec,
      ...compile(input),
      parts,
      counters,
      run: undefined as never,
      try(operation, options) {
        const { plan } = made;
        const wrong = options && runOptionsError(options);
        if (wrong) return Promise.reject(wrong);
        const refused = ambientContext() ? undefined : plan.fastRefusal?.(plan, options);
        return refused ? Promise.resolve(refused) : (plan.runLayers ?? attemptRun)(plan, operation, options);
      },
      wrap(fn) {
        return function (this: unknown, ...args) {
          return made.run(() => fn.apply(this, args));
        };
      },
      with(overrides, elsewhere) {
        // Without overrides the document is not read again, which matters for the simulator with 10,000 clients.
        return make(
          merge(table, made.spec, overrides),
          { ...environment, ...elsewhere },
          Object.keys(overrides).length ? undefined : input,
        );
      },
      update(document) {
        const { plan } = made;
        // The next two calls may throw, so they come first: a document that is refused changes nothing.
        const nextInput = read(document);
        const next = compile(nextInput);
        input = nextInput;
        for (const give of plan.carryOver) give(next.plan);
        Object.assign(made, next, { spec: document });
      },
      kill(on = true) {
        killSwitch.isOn = on;
      },
    };
    made.run = runnerOf(made);
    return made;
  }

  return make;
}

/** A policy document, and the settings that were read from its fields. */
interface Input {
  readonly name: string | undefined;
  readonly fields: object;
  readonly settings: Readonly<Record<string, unknown>>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function emptyPlan(
  name: string | undefined,
  packs: readonly Pack[],
  environment: Environment,
  counters: Counters,
  killSwitch: Plan['killSwitch'],
): Plan {
  // All fields are set, always in the same order: the code that the JavaScript engine compiles is faster for objects of
  // one shape.
  const plan: Plan = {
    name,
    packs,
    clock: environment.clock ?? systemClock,
    random: environment.random ?? systemRandom,
    counters,
    patienceMs: Infinity,
    attempts: 1,
    hintCapMs: 0,
    attemptTimeoutMs: Infinity,
    limiterWaitMs: 0,
    judgesValues: 0,
    waitsForBreaker: false,
    killSwitch,
    needsClock: false,
    canSkipMachine: false,
    needsMachine: false,
    delay: () => 0,
    classify: () => undefined,
    work: (options, now, patienceEndsAt) => new Work(plan, options, now, patienceEndsAt),
    fastPath: undefined,
    fastRefusal: undefined,
    countSuccess(value) {
      counters.succeeded++;
      return value;
    },
    budgetOf: undefined,
    targetOf: undefined,
    targets: undefined,
    everyTarget: undefined,
    choose: undefined,
    hedge: undefined,
    runWithoutContext: undefined,
    reporter: undefined,
    runLayers: undefined,
    results: undefined,
    createForTarget: [],
    carryOver: [],
    layers: [],
  };
  return plan;
}

/** Returns `spec` with `overrides`. Groups are merged field by field, and everything else is replaced. */
function merge<S extends object>(table: Table, spec: S, overrides: S): S {
  const merged = { ...spec } as Record<string, unknown>;
  for (const [key, value] of Object.entries(overrides)) {
    const field = table[key];
    const group = (field?.of ?? [field]).find((each) => each?.fields)?.fields;
    const before = merged[key];
    merged[key] = group && isDocument(before) && isDocument(value) ? merge(group, before, value) : value;
  }
  return merged as S;
}
