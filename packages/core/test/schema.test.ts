import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Field, Table } from '../src/fields.ts';
import { budget, definePolicy, network, OptionsError, type PolicySpec, policy, retry } from '../src/index.ts';
import { fieldNotes } from '../src/policy/field-notes.ts';
import { type JsonSchema, jsonSchema } from '../src/schema.ts';

const schema = jsonSchema();

describe('the schema of a whole policy', () => {
  test('names every field with its note and its default', () => {
    expect(schema.properties?.patience).toEqual({
      description: fieldNotes.patience,
      anyOf: [
        { type: ['number', 'string'], minimum: 0, pattern: expect.any(String) },
        { enum: ['unlimited'] },
      ],
      default: '10s',
    });
    expect(schema.properties?.breaker?.properties?.openFor?.default).toEqual(['1s', '30s']);
    expect(Object.keys(schema.properties ?? {})).toEqual([
      'name',
      ...policy().parts.flatMap(({ fields }) => Object.keys(fields)),
    ]);
  });

  test('gives no default that it would refuse', () => {
    const check = (by: JsonSchema): void => {
      if (by.default !== undefined) expect([by.default, accepts(by, by.default)]).toEqual([by.default, true]);
      Object.values(by.properties ?? {}).forEach(check);
      by.anyOf?.forEach(check);
    };
    check(schema);
  });

  test('is plain JSON', () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  });

  test.each<[spec: object]>([
    [{}],
    [{ name: 'payments', patience: '2s', attempts: 3 }],
    [{ patience: 'unlimited', attempts: 9 }],
    [{ backoff: false }],
    [{ backoff: { strategy: 'linear', base: '50ms', cap: '1.5s', jitter: { plusMinus: 20 } } }],
    [{ backoff: { jitter: 0.5 } }],
    [{ retryOn: 'network' }],
    [{ retryOn: ['sql', 'any'] }],
    [{ respectServer: false, budget: true, breaker: { window: { calls: 50 }, openFor: '5s' } }],
    [{ breaker: { slow: false, openFor: ['2s', '1m'], whenOpen: 'wait' } }],
    [{ limiter: { rate: '0.5/s', wait: 'unlimited' }, bulkhead: true, throttle: { k: 1.5 } }],
    [{ mode: 'observe' }],
    [{ mode: { enforce: 0.25 } }],
    [{ attemptTimeout: 'split', fallback: { to: { any: ['thing'] } } }],
  ])('accepts %j as `policy` does', (spec) => {
    expect(accepts(schema, spec)).toBe(true);
    expect(isMade(spec)).toBe(true);
  });

  test.each<[spec: object]>([
    [{ retries: 3 }],
    [{ name: '' }],
    [{ patience: 'soon' }],
    [{ patience: '-1s' }],
    [{ patience: -1 }],
    [{ attempts: 0 }],
    [{ attempts: 1.5 }],
    [{ attempts: '3' }],
    [{ attempts: Number.NaN }],
    [{ attemptTimeout: 'fast' }],
    [{ attemptTimeout: '0s' }],
    [{ attemptTimeout: '0.5ms' }],
    [{ backoff: 'none' }],
    [{ backoff: { strategy: 'random' } }],
    [{ backoff: { factor: 0.5 } }],
    [{ backoff: { jitter: 1.5 } }],
    [{ backoff: { jitter: { plus: 1 } } }],
    [{ retryOn: 'htpp' }],
    [{ retryOn: [true] }],
    [{ budget: { ratio: 1.1 } }],
    [{ breaker: { window: { calls: 0 } } }],
    [{ breaker: 'on' }],
    [{ breaker: { slow: { over: 'long' } } }],
    [{ limiter: { rate: 50 } }],
    [{ limiter: { rate: '0/s' } }],
    [{ limiter: { rate: '50' } }],
    [{ mode: 'off' }],
    [{ mode: true }],
    [{ mode: { enforce: 2 } }],
  ])('refuses %j as `policy` does', (spec) => {
    expect(accepts(schema, spec)).toBe(false);
    expect(isMade(spec)).toBe(false);
  });

  test('accepts a document exactly when `policy` does, but for what concerns several fields', () => {
    fc.assert(
      fc.property(documents(), (spec) => {
        const refusal = refusalOf(spec);
        const isAccepted = accepts(schema, spec);
        if (!refusal) expect(isAccepted).toBe(true);
        else if (!refusal.expected.startsWith(betweenFields[refusal.path] ?? ' ')) {
          expect(isAccepted).toBe(false);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

test('the schema of chosen parts knows their fields and packs only', () => {
  const chosen = [retry, budget, network] as const;
  const small = jsonSchema(chosen);
  expect(accepts(small, { attempts: 3, budget: false, retryOn: 'network' })).toBe(true);
  expect(() => definePolicy(chosen)({ attempts: 3, budget: false, retryOn: 'network' })).not.toThrow();
  expect(accepts(small, { breaker: true })).toBe(false);
  expect(accepts(small, { retryOn: 'http' })).toBe(false);
});

describe('field notes', () => {
  const paths = ['name', ...policy().parts.flatMap(({ fields }) => pathsOf(fields))];

  test('there is one for each path', () => {
    expect(paths.filter((path) => !fieldNotes[path])).toEqual([]);
  });

  test('there is none for a path that does not exist', () => {
    expect(Object.keys(fieldNotes).filter((path) => !paths.includes(path))).toEqual([]);
  });

  test('each is made of sentences', () => {
    for (const note of Object.values(fieldNotes)) expect(note).toMatch(/^[A-Z`].*\.$/);
  });
});

/** What a part checks for itself, because it is about several fields or about the length of a list. */
const betweenFields: Record<string, string> = {
  retryOnly: 'nothing beside retryOn',
  attempts: 'a number, or a patience of its own beside it',
  'backoff.base': 'at most the cap',
  attemptTimeout: 'less than the patience',
  'breaker.openFor': 'the shortest and the longest time, in this order',
  'choice.ejectFor': 'the shortest and the longest time, in this order',
  'hedge.percentile': 'either a percentile or a delay, not both',
  'fallback.to': 'a value, a function or a list of them',
};

function refusalOf(spec: object): OptionsError | undefined {
  try {
    policy(spec as PolicySpec);
    return undefined;
  } catch (error) {
    if (error instanceof OptionsError) return error;
    throw error;
  }
}

function isMade(spec: object): boolean {
  return refusalOf(spec) === undefined;
}

function pathsOf(fields: Table, prefix = ''): string[] {
  return Object.entries(fields).flatMap(([key, field]) => [prefix + key, ...pathsIn(field, prefix + key)]);
}

function pathsIn({ fields, of = [] }: Field, path: string): string[] {
  return [...(fields ? pathsOf(fields, `${path}.`) : []), ...of.flatMap((each) => pathsIn(each, path))];
}

/** Documents that are nearly right: each field says something of its own kind, or now and then something else. */
function documents(): fc.Arbitrary<object> {
  return objects(Object.assign({}, ...policy().parts.map(({ fields }) => fields)));
}

/** Few fields at a time: of many, one would nearly always be wrong. */
function objects(fields: Table): fc.Arbitrary<object> {
  const all = Object.keys(fields);
  return fc.subarray(all, { maxLength: Math.min(3, all.length) }).chain((keys) => {
    const said = keys.map((key) => [
      key,
      fc.oneof({ arbitrary: saidOf(fields[key]!, key), weight: 15 }, { arbitrary: strange, weight: 1 }),
    ]);
    return fc.record(Object.fromEntries(said), { noNullPrototype: true });
  });
}

const durations = fc.constantFrom(
  0,
  1,
  250,
  '0ms',
  '1ms',
  '20ms',
  '1.5s',
  '3s',
  '10s',
  '2m',
  '1h',
  '1d',
  '0s',
);
const strange: fc.Arbitrary<unknown> = fc.constantFrom(
  -1,
  0.5,
  3,
  'soon',
  '5',
  '5 s',
  '1s ',
  true,
  false,
  { unknown: 1 },
  'unlimited',
  'auto',
  'network',
  '5/s',
);

function saidOf(field: Field, key: string): fc.Arbitrary<unknown> {
  const { kind, words, fields, of } = field;
  const said: fc.Arbitrary<unknown>[] = [];
  if (words) said.push(fc.constantFrom(...Object.keys(words)));
  if (fields) said.push(objects(fields), fc.boolean());
  if (key === 'retryOn') said.push(fc.subarray(['network', 'http', 'any']), fc.constant('grpc'));
  else if (key === 'neverOn') said.push(fc.constant([]));
  else if (of && kind.startsWith('a list'))
    said.push(fc.array(saidOf(of[0]!, key), { minLength: 1, maxLength: 3 }));
  else if (of) said.push(...of.map((each) => saidOf(each, key)));
  if (kind === 'a number') said.push(fc.constantFrom(0, 0.1, 0.5, 1, 1.5, 2, -0.5));
  if (kind === 'a whole number') said.push(fc.constantFrom(0, 1, 2, 7, 100, 1.5));
  if (kind.startsWith('a duration')) said.push(durations);
  if (kind.startsWith('a rate')) said.push(fc.constantFrom('5/s', '0.1/m', '100/h', '0/s', '5/x'));
  if (kind === 'anything') said.push(fc.jsonValue().filter((value) => value !== null));
  return said.length > 0 ? fc.oneof(...said) : strange;
}

/** Checks a value by the few keywords that are used, and knows no other. */
function accepts(by: JsonSchema, value: unknown): boolean {
  return Object.entries(by).every(([keyword, says]) => {
    const check = keywords[keyword];
    if (!check) throw new Error(`the schema uses ${keyword}, which this test cannot check`);
    return check(says as never, value, by);
  });
}

const keywords: Record<string, (says: never, value: unknown, by: JsonSchema) => boolean> = {
  $schema: () => true,
  title: () => true,
  description: () => true,
  default: () => true,
  type: (says: string | string[], value) => [says].flat().some((type) => isOfType(type, value)),
  enum: (says: unknown[], value) => says.includes(value),
  minimum: (says: number, value) => typeof value !== 'number' || value >= says,
  maximum: (says: number, value) => typeof value !== 'number' || value <= says,
  minLength: (says: number, value) => typeof value !== 'string' || value.length >= says,
  pattern: (says: string, value) => typeof value !== 'string' || new RegExp(says, 'u').test(value),
  properties: (says: Record<string, JsonSchema>, value) =>
    !isObject(value) ||
    Object.entries(says).every(([key, its]) => !(key in value) || accepts(its, value[key])),
  additionalProperties: (_says: false, value, by) =>
    !isObject(value) || Object.keys(value).every((key) => Object.hasOwn(by.properties ?? {}, key)),
  items: (says: JsonSchema, value) => !Array.isArray(value) || value.every((item) => accepts(says, item)),
  anyOf: (says: JsonSchema[], value) => says.some((each) => accepts(each, value)),
  not: (says: JsonSchema, value) => !accepts(says, value),
};

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return Number.isFinite(value);
  if (type === 'array') return Array.isArray(value);
  return type === 'object' ? isObject(value) : typeof value === type;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
