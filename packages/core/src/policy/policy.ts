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

/** Where a policy gets its time and its chance from; the system's unless said. */
export interface Environment {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** A policy that runs work. The document it was made from can be read back, changed and made again. */
export interface Policy<Spec = object> {
  readonly name: string | undefined;
  readonly spec: Spec;
  readonly counters: Counters;
  /** What the machines read: for `explain`, the simulator and the packages above. */
  readonly plan: Plan;
  /** The parts it is made of, whose tables `explain`, `lint` and JSON Schema read. */
  readonly parts: readonly Part[];
  /** What those tables made of the document: defaults filled in, words and durations as numbers. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Runs `operation`; throws what it threw last, untouched. */
  run<T>(operation: Operation<T>, options?: RunOptions): Promise<T>;
  /** Runs `operation` and tells how it ended, with the story; never throws. */
  try<T>(operation: Operation<T>, options?: RunOptions): Promise<Ending<T>>;
  /** `fn` with the same type, each call of it run under this policy. */
  wrap<A extends unknown[], T>(fn: (...args: A) => PromiseLike<T> | T): (...args: A) => Promise<T>;
  /** A new policy with some fields said otherwise, and state of its own; with time and chance of its own too, if given. */
  with(overrides: Spec, environment?: Environment): Policy<Spec>;
  /**
   * Takes another document from now on. Breakers, budgets, permits and cached results live on, and work that has begun ends by the
   * old one. A document that is refused changes nothing.
   */
  update(spec: Spec): void;
  /** Switches all retries and hedges off, or on again: each piece of work is attempted once. */
  kill(on?: boolean): void;
}

/**
 * Makes a kind of policy from chosen parts: `definePolicy([retry, breaker])(spec)`. Only what is named is in
 * the bundle, and only its fields are in the document.
 */
export function definePolicy<const P extends readonly (Part | Pack)[]>(
  chosen: P,
): (spec?: SpecOfParts<P>, environment?: Environment) => Policy<SpecOfParts<P>> {
  const parts = chosen
    .filter((each): each is Part => 'fields' in each)
    .sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  const packs = chosen.filter((each): each is Pack => 'pack' in each);
  const table: Table = Object.assign({}, ...parts.map(({ fields }) => fields));

  function read(document: SpecOfParts<P>): Said {
    if (!isDocument(document)) throw new OptionsError('policy', document, 'an object');
    const { name, ...fields } = document as { name?: string } & object;
    if (name !== undefined && (typeof name !== 'string' || !name))
      throw new OptionsError('name', name, 'a text');
    return { name, fields, settings: readTable(table, fields) };
  }

  function make(
    spec = {} as SpecOfParts<P>,
    environment: Environment = {},
    said = read(spec),
  ): Policy<SpecOfParts<P>> {
    const counters = new Counters();
    const killSwitch = { isOn: false };

    function compile({ name, fields, settings }: Said): Pick<Policy, 'name' | 'plan' | 'settings'> {
      const plan = emptyPlan(name, packs, environment, counters, killSwitch);
      for (const part of parts) part.create(settings, plan, fields);
      plan.needsClock ||= plan.patienceMs < Infinity;
      if (plan.layers[0]) plan.fastPath = plan.fastRefusal = undefined;
      else plan.canSkipMachine = !(plan.targetOf || plan.reporter || plan.judgesValues);
      return { name, plan, settings };
    }

    // Its fields are replaced by `update`. No getters: the engine looks up every property of an object literal
    // that has some in a hash table, and `run` with them.
    const made: Mutable<Policy<SpecOfParts<P>>> = {
      spec,
      ...compile(said),
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
        // What has been read once need not be read for each of ten thousand simulated clients.
        return make(
          merge(table, made.spec, overrides),
          { ...environment, ...elsewhere },
          Object.keys(overrides).length ? undefined : said,
        );
      },
      update(document) {
        const { plan } = made;
        // First, so that a document that is refused changes nothing.
        const nextSaid = read(document);
        const next = compile(nextSaid);
        said = nextSaid;
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

/** What a document says, and what the tables made of it. */
interface Said {
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
  // Every field, in one order: plans of one shape keep the code that reads them fast.
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

/** `overrides` on top of `spec`, group by group; what is not a group of the table is replaced as a whole. */
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
