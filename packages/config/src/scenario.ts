import { OptionsError, type PolicySpec } from 'holdfast';
import {
  count,
  duration,
  either,
  type Field,
  flag,
  isDocument,
  list,
  number,
  type OutputOf,
  rate,
  readTable,
  type SettingsOf,
  shape,
  text,
  word,
} from 'holdfast/fields';
import { jsonSchema } from 'holdfast/schema';
import { ConfigError, type Problem, problemsMax } from './config-error.ts';
import { readDocument, type SourceDocument } from './document.ts';
import { mistakeOf, mistakesIn } from './mistakes.ts';
import { mistakesOfPolicy, policyTable, readPolicySpec } from './policies.ts';
import { type BrokenRule, brokenRules } from './scenario-rules.ts';
import { soundPart } from './sound-part.ts';
import { mapAt, mapOf, needed, problemsOf } from './table.ts';
import { type Schema, schemaOf } from './table-schema.ts';

const unlimited = { unlimited: Infinity };

/** A scenario uses this name for the policy that is being compared. */
export const underTest = 'under-test';

/** A field whose value is a policy inside of a scenario. Error paths begin at the top of the scenario. */
const policyField: Field<PolicySpec, PolicySpec> = {
  kind: 'a policy',
  fields: policyTable,
  read: (value, path) => readPolicySpec(value, path),
};

const amounts = {
  constant: duration(),
  exponential: duration(),
  lognormal: shape({
    median: needed(duration()),
    sigma: needed(number()),
    cap: duration('unlimited', unlimited),
  }),
  pareto: shape({
    least: needed(duration()),
    alpha: needed(number(undefined, 0.001)),
    /** Drawn times above this are replaced by this time. */
    cap: duration('unlimited', unlimited),
    /** The distribution is cut here: no time above this is drawn. */
    until: duration('unlimited', unlimited),
  }),
  uniform: shape({ from: duration('0ms'), to: needed(duration()) }),
  /** A normal distribution. A negative time is made positive. */
  normal: shape({ mean: needed(duration()), sd: needed(duration()) }),
  /** A list of measured times. Each time is drawn with the same probability. */
  recorded: filled(list(duration())),
  /** A constant that is added to each drawn time. */
  plus: duration(),
};

const kinds = Object.keys(amounts).filter((each) => each !== 'plus');

/** A field for how long something takes: a constant, one kind of distribution, or a mix of several. */
const time = ofOneKind(
  either(
    undefined,
    duration(),
    shape({
      ...amounts,
      mix: wholeMix(list(ofOneKind(shape({ share: needed(number(undefined, 0, 1)), ...amounts }), kinds))),
    }),
  ),
  [...kinds, 'mix'],
);

/** Returns the same field, but its value must have exactly one of the given kinds of distribution. */
function ofOneKind<In, Out>(field: Field<In, Out>, names: readonly string[]): Field<In, Out> {
  return {
    ...field,
    read(value, path) {
      const read = field.read(value, path);
      const isObject = typeof value === 'object' && value !== null;
      if (isObject && names.filter((kind) => Object.hasOwn(value, kind)).length !== 1)
        throw new OptionsError(path, value, `one of ${names.join(', ')}`);
      const { uniform, pareto } = Object(read) as Partial<SettingsOf<typeof amounts>>;
      if (uniform && uniform.to < uniform.from)
        throw new OptionsError(`${path}.uniform.to`, uniform.to, `at least its from of ${uniform.from} ms`);
      if (pareto && pareto.until < pareto.least)
        throw new OptionsError(
          `${path}.pareto.until`,
          pareto.until,
          `at least its least of ${pareto.least} ms`,
        );
      return read;
    },
  };
}

/**
 * Returns the same field, but it refuses an empty list. Values are drawn from the list, so it needs at least
 * one.
 */
function filled<In, Out>(field: Field<In, Out>): Field<In, Out> {
  return {
    ...field,
    read(value, path) {
      if (Array.isArray(value) && value.length === 0) throw new OptionsError(path, value, 'at least one');
      return field.read(value, path);
    },
  };
}

/** Returns the same field, but the shares of the mix must add up to 1. */
function wholeMix<In, Out extends readonly { readonly share: number }[]>(
  field: Field<In, Out>,
): Field<In, Out> {
  return filled({
    ...field,
    read(value, path) {
      const read = field.read(value, path);
      const sum = (read ?? []).reduce((all, { share }) => all + share, 0);
      if (read && Math.abs(sum - 1) > 0.02)
        throw new OptionsError(path, Number(sum.toPrecision(4)), 'shares that add up to 1');
      return read;
    },
  });
}

const call = shape({
  to: needed(text()),
  /** The policy for the call. `under-test` is the policy that is being compared. */
  policy: text(underTest),
  attemptTimeout: duration(),
  /**
   * What the request tells the called service: the remaining time (`patience`), and that a caller already
   * retries (`ownership`).
   */
  tells: list(word(undefined, 'patience', 'ownership'), []),
  times: count(1, 1),
});

const route = shape({ time, calls: list(call, []) });

const service = shape({
  instances: count(1, 1),
  /** The number of calls that each instance serves at the same time. */
  workers: count('unlimited', 1, unlimited),
  time,
  /** Each call takes this much longer for every other call in progress at the same instance. */
  slowdown: duration('0ms'),
  queue: shape({
    max: count('unlimited', 0, unlimited),
    /**
     * `codel` (controlled delay): when calls wait too long, the newest call is served first and the oldest
     * are dropped.
     */
    order: word('fifo', 'fifo', 'lifo', 'codel'),
    target: duration('20ms'),
    interval: duration('100ms'),
    /** True: a call whose caller has given up is dropped when it leaves the queue. */
    dropExpired: flag(false),
  }),
  /**
   * Limits the calls in flight of an instance. The limit adapts to the latency. Calls above the limit are
   * refused.
   */
  limit: shape({ initial: count(20, 1), floor: count(1, 1), ceiling: count(1000, 1) }),
  rateLimit: shape({
    calls: needed(count(undefined, 1)),
    per: duration('1s', undefined, 1),
    /**
     * `window` allows `calls` calls in each period `per`. `gcra` allows the same rate, evenly spread, with a
     * burst of up to `calls`.
     */
    kind: word('window', 'window', 'gcra'),
    tellsWhen: flag(true),
  }),
  /** The Retry-After header of the response when the queue is full. */
  retryAfter: duration(),
  /** The network delay in one direction. */
  network: time,
  /** True: a call that its caller cancels is removed from the queue. */
  cancels: flag(false),
  /** The working time that the refusal of a call costs. The next call takes longer by this time. */
  refusalCost: duration('0ms'),
  /** Calls to other services. They are made one after the other, after the service's own work. */
  calls: list(call, []),
  /** True: the calls to other services are made at the same time. The response waits for all of them. */
  together: flag(false),
  /** True: a worker stays busy during the calls to other services. */
  holdsWorker: flag(true),
  routes: mapOf(route, {}),
  /** Changes of capacity over time: from `at` on, work is done `factor` times as fast. */
  capacity: list(shape({ at: needed(duration()), factor: needed(number(undefined, 0.001)) }), []),
  /**
   * How the instance for a call is chosen: `policy`: by the policy. `random`: at random. `leastOutstanding`:
   * the less busy one of two random instances.
   */
  balance: word('policy', 'policy', 'random', 'leastOutstanding'),
  cache: shape({
    keys: needed(count(undefined, 1)),
    zipf: number(0.9, 0),
    warm: count(0, 0),
    /** True: simultaneous cache misses of the same key share one call. */
    coalesces: flag(false),
  }),
  /**
   * True: the service behaves like a database row. An attempt reads the row and then writes it. The attempt
   * fails if another attempt wrote the row in between.
   */
  conditionalWrite: flag(false),
  /** Recorded responses of a real service. An attempt gets the response that is nearest in time. */
  recording: filled(
    list(
      shape({
        at: needed(duration()),
        took: needed(duration()),
        gave: word('ok', 'ok', 'transient', 'throttled', 'fatal'),
      }),
    ),
  ),
});

const clients = shape({
  to: needed(text()),
  route: text(),
  /** The number of clients. With `state: each`, every client has its own policy state. */
  count: count(1, 1),
  state: word('shared', 'shared', 'each'),
  arrivals: needed(
    shape({
      poisson: rate(),
      constant: rate(),
      /** Each client makes a call, waits for the response, waits for this time, and calls again. */
      think: time,
      /** Every client makes one call, and all of them call at this time. */
      burst: duration(),
      /** There is one call at each of these times. */
      at: list(duration()),
      spikes: list(shape({ from: needed(duration()), until: needed(duration()), rate: needed(rate()) }), []),
      from: duration('0ms'),
      until: duration(),
    }),
  ),
  calls: count('unlimited', 1, unlimited),
  /** True: a client stops after a failed call, like a script that throws. */
  quits: flag(false),
  /** A client repeats a failed call after this time, until the call succeeds. */
  repeat: time,
  /** The most times that a client repeats one failed call. */
  repeatMax: count('unlimited', 0, unlimited),
  policy: text(underTest),
  /** The attempt timeout for policies that have none. */
  attemptTimeout: duration(),
  /**
   * The deadline of a call, retries included. The policy knows this deadline. If the policy's own `patience` is
   * shorter, that one applies.
   */
  patience: duration(),
  /** The client cancels the call after this time. The policy does not know this time in advance. */
  leavesAfter: duration(),
  priority: word('default', 'critical', 'default', 'sheddable'),
  /** The share of poison calls. Every attempt of a poison call fails, and takes `poisonTime`. */
  poison: number(0, 0, 1),
  poisonTime: duration(),
  /** The share of attempts that fail at random. */
  failing: number(0, 0, 1),
});

const fault = shape({
  kind: needed(
    word(
      undefined,
      'stall',
      'refuse',
      'hang',
      'errorRate',
      'extraLatency',
      'capacityFactor',
      'loss',
      'flap',
      'flush',
    ),
  ),
  service: needed(text()),
  /** The number of the instance, counted from 0. By default, the fault applies to all instances. */
  instance: count(),
  from: needed(duration()),
  until: duration('unlimited', unlimited),
  /**
   * For `errorRate`: the share of attempts that fail. For `loss`: the share of attempts that are lost. For
   * `capacityFactor`: the factor of the speed.
   */
  value: number(1, 0),
  /** For `errorRate`: the HTTP status of the error; `reset` is a connection reset. */
  gives: word('500', '500', '503', '429', 'reset'),
  /** For `errorRate` with 503 or 429: the Retry-After header. */
  retryAfter: duration(),
  /** For `extraLatency`: the extra time. */
  extra: duration('0ms'),
  /** For `flap`: the service refuses all calls for `down`, then works for `up`, and so on. */
  up: duration('5s'),
  down: duration('5s'),
});

/** The names of all figures that the simulator measures. */
export const metrics = [
  'goodput',
  'success',
  'successes',
  'failures',
  'offered',
  'multiplication',
  'attempts',
  'callsPerSuccess',
  'peak',
  'surge',
  'p50',
  'p99',
  'p999',
  'recovery',
  'metastable',
  'zombies',
  'wasted',
  'duplicates',
  'share',
  'finish',
  'finished',
  'backlog',
  'extra',
  'lostGood',
  'reloads',
] as const;

export const boundFields = {
  metric: needed(word(undefined, ...metrics)),
  from: duration('0ms'),
  until: duration('unlimited', unlimited),
  /** Only calls of these clients are measured. */
  clients: text(),
  /** The figure is measured at this service instead of at the clients. */
  service: text(),
  instance: count(),
  /** For `peak`: attempts are counted in intervals of this length. */
  step: duration('1s', undefined, 100),
  atLeast: number(),
  atMost: number(),
  /**
   * The bound (a limit for a figure) is checked only for these policies. In the list `damage`, these are the
   * policies that must cause the damage.
   */
  policies: list(text()),
};

const bound = shape(boundFields);

export const scenarioFields = {
  id: needed(text()),
  title: text('a scenario'),
  /** The name of this variant, if a scenario has several. */
  variant: text(),
  /** No new calls begin after this time. Calls in flight may still end. */
  duration: needed(duration(undefined, undefined, 1)),
  seeds: list(count(), [7919, 15838, 23757, 31676, 39595]),
  services: needed(mapOf(service)),
  clients: needed(mapOf(clients)),
  faults: list(fault, []),
  /**
   * The normal goodput (successful calls per second) is measured between `from` and `troubleFrom`. By
   * default, the trouble begins with the first fault and ends with the last fault.
   */
  measure: shape({ from: duration('0ms'), troubleFrom: duration(), troubleUntil: duration() }),
  policies: mapOf(policyField, {}),
  compare: list(text(), []),
  expect: list(bound, []),
  damage: list(bound, []),
  /** Remarks that are printed in reports. */
  notes: list(text(), []),
};

/** A validated scenario. Durations are in ms, and rates are per ms. */
export type Scenario = SettingsOf<typeof scenarioFields>;
/** A validated service of a scenario. Durations are in ms. */
export type ServiceSettings = OutputOf<typeof service>;
/** A validated group of clients of a scenario. Durations are in ms. */
export type ClientsSettings = OutputOf<typeof clients>;
/** A validated fault of a scenario. Its times are in ms from the start of the simulation. */
export type FaultSettings = OutputOf<typeof fault>;
/** A validated call that a service makes to another service. Durations are in ms. */
export type CallSettings = OutputOf<typeof call>;
/** How long a service works on a call: a constant or a distribution, in ms. */
export type TimeSettings = OutputOf<typeof time>;
/** A figure that the simulation measures, with its lowest and highest allowed value. */
export type Bound = OutputOf<typeof bound>;
/** The name of a figure that the simulator measures. */
export type Metric = (typeof metrics)[number];

/** Parses and validates a scenario of the simulator. Throws a `ConfigError`. */
export function parseScenario(text: string, file?: string): Scenario {
  const source = readDocument(text, file);
  const input = mapAt(source);
  const mistakes = [...firstOf(mistakesOfScenario(input))];
  if (mistakes.length === 0) {
    const scenario = readTable(scenarioFields, input);
    const broken = brokenRules(scenario);
    if (broken.length === 0) return scenario;
    throw new ConfigError(source.file, problemsAt(source, broken));
  }
  throw new ConfigError(source.file, [
    ...problemsOf(source, mistakes),
    ...problemsAt(source, brokenBeside(input, mistakes)),
  ]);
}

function problemsAt({ problemAt }: SourceDocument, broken: readonly BrokenRule[]): Problem[] {
  return broken.map(({ path, message }) => problemAt(path, message));
}

/** Returns the conflicts between those fields of a scenario that have no mistake themselves. */
function brokenBeside(
  input: Readonly<Record<string, unknown>>,
  mistakes: readonly OptionsError[],
): BrokenRule[] {
  const sound = soundPart(
    input,
    mistakes.map(({ path }) => path),
  );
  // Only the first hundred mistakes were replaced by placeholders. If there are more, the document still
  // cannot be read.
  if (!sound || mistakeOf(() => readTable(scenarioFields, sound.input))) return [];
  return brokenRules(readTable(scenarioFields, sound.input)).filter(({ path }) => sound.isSound(path));
}

function* mistakesOfScenario(input: Readonly<Record<string, unknown>>): Generator<OptionsError> {
  const { policies } = input;
  if (!isDocument(policies)) return yield* mistakesIn(scenarioFields, input);
  yield* mistakesIn(scenarioFields, { ...input, policies: {} });
  for (const [name, spec] of Object.entries(policies)) yield* mistakesOfPolicy(spec, `policies.${name}`);
}

function* firstOf<T>(all: Iterable<T>): Generator<T> {
  let count = 0;
  for (const each of all) {
    yield each;
    if (++count === problemsMax) return;
  }
}

/** The JSON Schema of the documents that `parseScenario` reads. */
export function scenarioSchema(): Schema {
  const { $schema, ...policy } = jsonSchema();
  const schema = schemaOf(scenarioFields, 'Holdfast scenario', (field) =>
    field === policyField ? { $ref: '#/$defs/policy' } : undefined,
  );
  return { ...schema, $defs: { policy } };
}
