import { OptionsError, type PolicySpec } from 'holdfast';
import {
  count,
  duration,
  either,
  type Field,
  flag,
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
import { ConfigError } from './config-error.ts';
import { readDocument } from './document.ts';
import { readPolicySpec } from './policies.ts';
import { brokenRules } from './scenario-rules.ts';
import { checked, mapAt, mapOf, needed } from './table.ts';
import { type Schema, schemaOf } from './table-schema.ts';

const unlimited = { unlimited: Infinity };

/** What a scenario calls the policy that is being compared. */
export const underTest = 'under-test';

const policyField: Field<PolicySpec, PolicySpec> = {
  kind: 'a policy',
  read: (value, path) => nested(value, path),
};

/** A policy inside a scenario: its own errors name the path from the top. */
function nested(value: unknown, path: string): PolicySpec {
  try {
    return readPolicySpec(value, path);
  } catch (error) {
    if (!(error instanceof OptionsError) || error.path === path) throw error;
    throw new OptionsError(`${path}.${error.path}`, error.value, error.expected);
  }
}

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
    /** Longer times are cut to this. */
    cap: duration('unlimited', unlimited),
    /** The distribution ends here: longer times are never drawn. */
    until: duration('unlimited', unlimited),
  }),
  uniform: shape({ from: duration('0ms'), to: needed(duration()) }),
  /** The magnitude of a normal one, as messages are delayed in one of the experiments. */
  normal: shape({ mean: needed(duration()), sd: needed(duration()) }),
  /** Measured times, drawn from with equal chance. */
  recorded: filled(list(duration())),
  /** Added to the drawn time. */
  plus: duration(),
};

const kinds = Object.keys(amounts).filter((each) => each !== 'plus');

/** How long something takes: one kind, or a mix of kinds with shares. */
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

/** Exactly one kind is required: two would be ambiguous, and none would take no time. */
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

/** A list from which values are drawn: it cannot be empty. */
function filled<In, Out>(field: Field<In, Out>): Field<In, Out> {
  return {
    ...field,
    read(value, path) {
      if (Array.isArray(value) && value.length === 0) throw new OptionsError(path, value, 'at least one');
      return field.read(value, path);
    },
  };
}

/** Shares that sum up to 1, except for rounding. */
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
  /** The name of a policy; `under-test` is the one that is being compared. */
  policy: text(underTest),
  attemptTimeout: duration(),
  /** Passed on with the call: the remaining patience, and whether a caller above retries already. */
  tells: list(word(undefined, 'patience', 'ownership'), []),
  /** The number of calls. */
  times: count(1, 1),
});

const route = shape({ time, calls: list(call, []) });

const service = shape({
  instances: count(1, 1),
  /** Calls that each instance works on at once. */
  workers: count('unlimited', 1, unlimited),
  time,
  /** How much longer a call takes for each call in flight. */
  slowdown: duration('0ms'),
  queue: shape({
    max: count('unlimited', 0, unlimited),
    /** `codel`: core's; it serves the newest first and drops the oldest while the queue stands. */
    order: word('fifo', 'fifo', 'lifo', 'codel'),
    target: duration('20ms'),
    interval: duration('100ms'),
    /** Calls whose caller has given up are dropped when their turn comes. */
    dropExpired: flag(false),
  }),
  /** Core's adaptive limit: calls above it are refused. */
  limit: shape({ initial: count(20, 1), floor: count(1, 1), ceiling: count(1000, 1) }),
  rateLimit: shape({
    calls: needed(count(undefined, 1)),
    per: duration('1s', undefined, 1),
    /** `window`: a number of calls in each window; `gcra`: core's, evenly, with the same burst. */
    kind: word('window', 'window', 'gcra'),
    tellsWhen: flag(true),
  }),
  /** A refusal of a full queue has a Retry-After. */
  retryAfter: duration(),
  /** The time of one direction; a call takes both. */
  network: time,
  /** A cancelled call is removed from the queue. */
  cancels: flag(false),
  /** Work that a refusal costs; the next call takes longer by it. */
  refusalCost: duration('0ms'),
  /** Calls that are made, one after the other, once its own time has passed. */
  calls: list(call, []),
  /** The calls are made at the same time; the answer waits for all. */
  together: flag(false),
  /** A worker stays busy while it calls other services. */
  holdsWorker: flag(true),
  routes: mapOf(route, {}),
  /** Capacity over time: from `at` on, work goes `factor` times as fast. */
  capacity: list(shape({ at: needed(duration()), factor: needed(number(undefined, 0.001)) }), []),
  /** How an instance is chosen: by the policy, by chance, or the one of two with fewer calls in flight. */
  balance: word('policy', 'policy', 'random', 'leastOutstanding'),
  cache: shape({
    keys: needed(count(undefined, 1)),
    zipf: number(0.9, 0),
    warm: count(0, 0),
    /** Misses of one key at one time share one call. */
    coalesces: flag(false),
  }),
  /** A database row: an attempt reads it, then writes it, and fails if another attempt has written it in between. */
  conditionalWrite: flag(false),
  /** Recorded answers of a real service: an attempt gets the answer nearest to its time. */
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
  /** The number of clients. Each has policy state of its own, unless state is shared. */
  count: count(1, 1),
  state: word('shared', 'shared', 'each'),
  arrivals: needed(
    shape({
      poisson: rate(),
      constant: rate(),
      /** Each client calls, waits for this time, and calls again. */
      think: time,
      /** All clients call at this time, once. */
      burst: duration(),
      /** One call at each of these times, in their order. */
      at: list(duration()),
      spikes: list(shape({ from: needed(duration()), until: needed(duration()), rate: needed(rate()) }), []),
      from: duration('0ms'),
      until: duration(),
    }),
  ),
  /** Calls that each client makes. */
  calls: count('unlimited', 1, unlimited),
  /** A client whose call fails makes no more: a script that throws. */
  quits: flag(false),
  /** After a failure the same client calls again after this time, until it succeeds. */
  repeat: time,
  /** The most repetitions of one piece of work. */
  repeatMax: count('unlimited', 0, unlimited),
  policy: text(underTest),
  /** The attempt timeout of policies that have none. */
  attemptTimeout: duration(),
  /** How long the customer waits; the policy knows it. */
  patience: duration(),
  /** The customer cancels after this time; the policy does not know it before. */
  leavesAfter: duration(),
  priority: word('default', 'critical', 'default', 'sheddable'),
  /** The share of calls that fail at every attempt, after `poisonTime`. */
  poison: number(0, 0, 1),
  poisonTime: duration(),
  /** The share of attempts that fail by chance. */
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
  /** The number of the instance, from 0; all instances unless given. */
  instance: count(),
  from: needed(duration()),
  until: duration('unlimited', unlimited),
  /** The share of `errorRate` and `loss` (each direction), or the factor of `capacityFactor`. */
  value: number(1, 0),
  /** For `errorRate`: the error that an attempt gets. */
  gives: word('500', '500', '503', '429', 'reset'),
  /** For `errorRate` with 503 or 429: the Retry-After of the server. */
  retryAfter: duration(),
  /** For `extraLatency`. */
  extra: duration('0ms'),
  /** Of `flap`: it refuses while it is down, and starts so. */
  up: duration('5s'),
  down: duration('5s'),
});

/** What can be measured and bounded. */
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
  /** Of these clients alone. */
  clients: text(),
  /** At this service, not at the customer. */
  service: text(),
  instance: count(),
  /** Of `peak`: how long a step is counted. */
  step: duration('1s', undefined, 100),
  atLeast: number(),
  atMost: number(),
  /** These policies alone; in `damage` the ones that must show it. */
  policies: list(text()),
};

const bound = shape(boundFields);

/** What a scenario can say. */
export const scenarioFields = {
  id: needed(text()),
  title: text('a scenario'),
  /** One of several variants of a scenario. */
  variant: text(),
  /** Load stops then; what is in flight is let finish. */
  duration: needed(duration(undefined, undefined, 1)),
  seeds: list(count(), [7919, 15838, 23757, 31676, 39595]),
  services: needed(mapOf(service)),
  clients: needed(mapOf(clients)),
  faults: list(fault, []),
  /** What is taken for normal, and where the trouble ends; from the faults unless said. */
  measure: shape({ from: duration('0ms'), troubleFrom: duration(), troubleUntil: duration() }),
  policies: mapOf(policyField, {}),
  compare: list(text(), []),
  expect: list(bound, []),
  damage: list(bound, []),
  /** What a reader should know of it. */
  notes: list(text(), []),
};

/** A scenario, checked: durations in ms, rates in ms⁻¹. */
export type Scenario = SettingsOf<typeof scenarioFields>;
export type ServiceSettings = OutputOf<typeof service>;
export type ClientsSettings = OutputOf<typeof clients>;
export type FaultSettings = OutputOf<typeof fault>;
export type CallSettings = OutputOf<typeof call>;
export type TimeSettings = OutputOf<typeof time>;
export type Bound = OutputOf<typeof bound>;
export type Metric = (typeof metrics)[number];

/** Reads a scenario of the simulator. Throws a `ConfigError`. */
export function parseScenario(text: string, file?: string): Scenario {
  const source = readDocument(text, file);
  const scenario = checked(source, () => readTable(scenarioFields, mapAt(source)));
  const problems = brokenRules(scenario).map(({ path, message }) => source.problemAt(path, message));
  if (problems.length > 0) throw new ConfigError(source.file, problems);
  return scenario;
}

/** The JSON Schema of what `parseScenario` takes. */
export function scenarioSchema(): Schema {
  const { $schema, ...policy } = jsonSchema();
  const schema = schemaOf(scenarioFields, 'Holdfast scenario', (field) =>
    field === policyField ? { $ref: '#/$defs/policy' } : undefined,
  );
  return { ...schema, $defs: { policy } };
}
