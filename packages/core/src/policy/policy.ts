import type { Pack } from '../decide/outcome.ts';
import { isDocument, readTable, type Table, text } from '../fields.ts';
import { OptionsError } from '../report/errors.ts';
import { ambientContext } from '../run/ambient-context.ts';
import { runnerOf } from '../run/fast-path.ts';
import { attemptRun, type Ending } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';
import { argumentsError, runFields } from '../run/run-options.ts';
import { Work } from '../run/work.ts';
import type { Clock, Random } from '../time/clock.ts';
import { systemClock, systemRandom } from '../time/system-clock.ts';
import { Counters } from './counters.ts';
import type { Part, SpecOfParts } from './part.ts';
import type { Plan } from './plan.ts';

/** The sources of time and randomness of a policy. */
export interface Environment {
  /** The clock for deadlines and waits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers, for example for jitter: a number from 0 to below 1. Default: the system's. */
  readonly random?: Random | undefined;
}

/**
 * A policy: it runs operations with retries and other protection. `spec` is the document from which it was
 * made.
 */
export interface Policy<Spec = object> {
  readonly name: string | undefined;
  readonly spec: Spec;
  readonly counters: Counters;
  /** The compiled policy, for `explain`, the simulator and other packages. */
  readonly plan: Plan;
  /** The parts that the policy can use, such as the breaker. */
  readonly parts: readonly Part[];
  /**
   * The document after validation: missing fields have their defaults, and words and durations are numbers.
   */
  readonly settings: Readonly<Record<string, unknown>>;
  /**
   * Runs `operation` and returns its value. If all attempts fail, throws the last error of `operation`
   * unchanged.
   */
  run<T>(operation: Operation<T>, options?: RunOptions): Promise<T>;
  /**
   * Runs `operation` and returns how the run ended, with its story (the record of its attempts). Rejects only
   * for invalid arguments.
   */
  try<T>(operation: Operation<T>, options?: RunOptions): Promise<Ending<T>>;
  /** Returns a function with the same arguments as `fn`. Each call of it runs `fn` under this policy. */
  wrap<A extends unknown[], T>(fn: (...args: A) => PromiseLike<T> | T): (...args: A) => Promise<T>;
  /**
   * Makes a copy of the policy with some fields changed. The copy has its own breakers, budgets and caches.
   * `environment` replaces the clock and the random numbers of the copy.
   */
  with(overrides: Spec, environment?: Environment): Policy<Spec>;
  /**
   * Replaces the document. Breakers, budgets and cached results are kept, and runs in progress end under the
   * old document. An invalid document throws an error and changes nothing.
   */
  update(spec: Spec): void;
  /**
   * Replaces some fields of the document until `override()` is called without fields. The replaced fields
   * stay in force when `update` changes the document. `spec` remains the document without the replaced
   * fields.
   */
  override(fields?: Spec): void;
  /** The fields that `override` has replaced, with their new values. */
  readonly overridden: Spec | undefined;
  /** Switches all retries and hedges (second attempts) off. `kill(false)` switches them on again. */
  kill(on?: boolean): void;
}

/**
 * Returns a function that makes policies with these parts only: `definePolicy([retry, breaker])(spec)`. A
 * bundle then contains only these parts.
 */
export function definePolicy<const P extends readonly (Part | Pack)[]>(
  chosen: P,
): (spec?: SpecOfParts<P>, environment?: Environment) => Policy<SpecOfParts<P>> {
  const parts = chosen
    .filter((each): each is Part => 'fields' in each)
    .sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  const packs = chosen.filter((each): each is Pack => 'pack' in each);
  const table: Table = Object.assign({ name: text() }, ...parts.map(({ fields }) => fields));

  function read(document: SpecOfParts<P>): Input {
    if (!isDocument(document)) throw new OptionsError('policy', document, 'an object');
    return { fields: document, settings: readTable(table, document, '', [runFields, 'run()']) };
  }

  function make(
    spec = {} as SpecOfParts<P>,
    environment: Environment = {},
    input = read(spec),
  ): Policy<SpecOfParts<P>> {
    const counters = new Counters();
    const killSwitch = { isOn: false };

    function compile({ fields, settings }: Input): Pick<Policy, 'name' | 'plan' | 'settings'> {
      const name = settings.name as string | undefined;
      const plan = emptyPlan(name, packs, environment, counters, killSwitch);
      for (const part of parts) part.create(settings, plan, fields);
      plan.needsClock ||= plan.patienceMs < Infinity;
      if (plan.layers[0]) plan.fastPath = plan.fastRefusal = undefined;
      else plan.canSkipMachine = !(plan.targetOf || plan.reporter || plan.judgesValues);
      return { name, plan, settings };
    }

    // `update` assigns new values to the fields of this object. Getters instead would make `run` slower in
    // V8.
    const made: Mutable<Policy<SpecOfParts<P>>> = {
      spec,
      overridden: undefined,
      ...compile(input),
      parts,
      counters,
      run: undefined as never,
      try(operation, options) {
        const { plan } = made;
        const wrong = argumentsError(operation, options, plan);
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
        // Without overrides, the validated document is reused. This saves time in a simulator that copies a
        // policy for 10,000 clients.
        return make(
          merge(table, made.spec, overrides),
          { ...environment, ...elsewhere },
          Object.keys(overrides).length ? undefined : input,
        );
      },
      update(document) {
        replace(document, made.overridden);
      },
      override(fields) {
        replace(made.spec, fields);
      },
      kill(on = true) {
        killSwitch.isOn = on;
      },
    };
    made.run = runnerOf(made);
    made.plan.policy = made;
    return made;

    function replace(document: SpecOfParts<P>, overridden: SpecOfParts<P> | undefined): void {
      // `read` and `compile` throw for an invalid document. They come first, so that an invalid document
      // changes nothing.
      const asked = read(document);
      const nextInput = overridden ? read(merge(table, document, overridden)) : asked;
      const next = compile(nextInput);
      for (const give of made.plan.carryOver) give(next.plan);
      next.plan.policy = made;
      input = asked;
      Object.assign(made, next, { spec: document, overridden });
    }
  }

  return make;
}

interface Input {
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
  // Every plan has the same fields in the same order, because V8 is faster with objects of one shape.
  return {
    name,
    policy: undefined,
    packs,
    clock: environment.clock ?? systemClock,
    random: environment.random ?? systemRandom,
    counters,
    imaginedCounters: new Counters(),
    enforcedShare: 1,
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
    work(options, now, patienceEndsAt) {
      return new Work(this, options, now, patienceEndsAt);
    },
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
}

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
