import { describe, expect, expectTypeOf, test } from 'vitest';
import {
  anything,
  callback,
  count,
  duration,
  either,
  group,
  list,
  number,
  rate,
  readTable,
  type SettingsOf,
  type SpecOf,
  shape,
  type Table,
  word,
} from '../src/fields.ts';
import {
  breaker,
  budget,
  bulkhead,
  cache,
  choice,
  fallback,
  hedge,
  limiter,
  mode,
  retry,
  throttle,
  timeout,
} from '../src/index.ts';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { OptionsError } from '../src/report/errors.ts';

const table = {
  patience: duration('10s', { unlimited: Infinity }),
  attempts: count(4, 1, { unlimited: Infinity }),
  ratio: number(0.1, 0, 1),
  speed: rate('50/s'),
  mode: word('on', 'on', 'off'),
  backoff: either(
    'none',
    word('none', 'none'),
    callback<(n: number) => number>(),
    shape({ base: duration('200ms') }),
  ),
  part: group({ size: count(3, 1), inner: group({ deep: duration('1s') }, true) }),
  names: list(word(undefined, 'a', 'b'), ['a']),
  gift: anything(),
};

const read = (input: object) => readTable(table, input);

test('fills in what is not said', () => {
  expect(read({})).toEqual({
    patience: 10_000,
    attempts: 4,
    ratio: 0.1,
    speed: 0.05,
    mode: 'on',
    backoff: 'none',
    part: undefined,
    names: ['a'],
    gift: undefined,
  });
});

test('reads durations, rates and words as numbers, single items as lists', () => {
  expect(read({ patience: '1.5m', attempts: 'unlimited', speed: '120/m', names: 'b' })).toMatchObject({
    patience: 90_000,
    attempts: Infinity,
    speed: 0.002,
    names: ['b'],
  });
  expect(read({ patience: 'unlimited' }).patience).toBe(Infinity);
});

test('a part is all defaults with true, off with false, and some of its fields with an object', () => {
  expect(read({ part: true }).part).toEqual({ size: 3, inner: { deep: 1000 } });
  expect(read({ part: false }).part).toBe(null);
  expect(read({ part: { size: 9, inner: false } }).part).toEqual({ size: 9, inner: null });
});

describe('refuses, naming the path, the value and what was expected', () => {
  const cases: [input: object, message: string][] = [
    [{ patience: 'soon' }, 'patience: expected a duration such as "200ms" or "unlimited", got "soon"'],
    [{ patience: -1 }, 'patience: expected a duration such as "200ms" or "unlimited", got -1'],
    [{ patience: Number.NaN }, 'patience: expected a duration such as "200ms" or "unlimited", got NaN'],
    [{ patience: Infinity }, 'patience: expected a duration such as "200ms" or "unlimited", got Infinity'],
    [{ attempts: 0 }, 'attempts: expected a whole number of at least 1 or "unlimited", got 0'],
    [{ attempts: 2.5 }, 'attempts: expected a whole number of at least 1 or "unlimited", got 2.5'],
    [{ attempts: '3' }, 'attempts: expected a whole number of at least 1 or "unlimited", got "3"'],
    [{ ratio: -1 }, 'ratio: expected a number from 0 to 1, got -1'],
    [{ ratio: 1.1 }, 'ratio: expected a number from 0 to 1, got 1.1'],
    [{ speed: '50' }, 'speed: expected a rate such as "50/s"'],
    [{ speed: '100/5s' }, 'speed: expected a rate such as "50/s", got "100/5s"'],
    [{ speed: '100/ms' }, 'speed: expected a rate such as "50/s", got "100/ms"'],
    [{ speed: '100/s/z' }, 'speed: expected a rate such as "50/s", got "100/s/z"'],
    [{ patience: ['30s'] }, 'patience: expected a duration such as "200ms" or "unlimited", got ["30s"]'],
    [{ patience: ['unlimited'] }, 'patience: expected a duration'],
    [
      { patience: Object.create(null) },
      'patience: expected a duration such as "200ms" or "unlimited", got {}',
    ],
    [{ part: [] }, 'part: expected true, false or an object, got []'],
    [{ speed: '0/s' }, 'speed: expected a rate such as "50/s"'],
    [{ mode: 'maybe' }, 'mode: expected one of on, off, got "maybe"'],
    [{ backoff: 5 }, 'backoff: expected one of none or a function or an object, got 5'],
    [{ backoff: { base: 'x' } }, 'backoff.base: expected a duration such as "200ms", got "x"'],
    [{ part: { size: 0 } }, 'part.size: expected a whole number of at least 1, got 0'],
    [{ part: { inner: { deep: [] } } }, 'part.inner.deep: expected a duration such as "200ms", got []'],
    [{ part: 7 }, 'part: expected true, false or an object, got 7'],
    [{ names: ['a', 'c'] }, 'names[1]: expected one of a, b, got "c"'],
    [{ atempts: 3 }, 'atempts: not an option; did you mean attempts?'],
    [{ part: { siz: 3 } }, 'part.siz: not an option; did you mean size?'],
    [{ constructor: 1 }, 'constructor: not an option; there are patience'],
    [{ patience: 'constructor' }, 'patience: expected a duration'],
  ];
  test.each(cases)('%j', (input, message) => {
    expect(() => read(input)).toThrow(OptionsError);
    expect(() => read(input)).toThrow(message);
  });

  test('a value that cannot be printed', () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(() => read({ mode: cycle })).toThrow('mode: expected one of on, off, got object');
    expect(() => read({ mode: 'x'.repeat(1000) })).toThrow(/got "x{79}$/);
  });
});

describe('a document', () => {
  test.each([[null], [[]], [5], [true], ['10s']])('that is no object is refused: %j', (document) => {
    const expected = `policy: expected an object, got ${JSON.stringify(document)}`;
    expect(() => policy(document as never)).toThrow(new OptionsError('policy', document, 'an object'));
    expect(() => policy().update(document as never)).toThrow(expected);
  });

  test('is not refused for an attempt timeout that it does not fix', async () => {
    const ending = await policy({ patience: 0 }).try(() => 1);
    expect(ending).toMatchObject({ ok: false, error: { code: 'HOLDFAST_PATIENCE_SPENT' } });
  });
});

test('what a document cannot mean does not compile, and a name may be left out', () => {
  const wrong: PolicySpec[] = [
    // @ts-expect-error no duration
    { backoff: { base: 'a while' } },
    // @ts-expect-error no number
    { breaker: { minimum: 'many' } },
    // @ts-expect-error a number, and not its text
    { bulkhead: { concurrent: '5' } },
    // @ts-expect-error no duration
    { cache: { fresh: 'x' } },
    // @ts-expect-error no duration
    { breaker: { openFor: 'soon' } },
  ];
  for (const document of wrong) expect(() => policy(document)).toThrow(/: expected /);
  const nobody: string | undefined = undefined;
  expect(policy({ name: nobody }).name).toBeUndefined();
});

test('nothing of a document reaches a prototype', () => {
  const hostile = JSON.parse('{"__proto__": {"attempts": 0}}');
  expect(() => read(hostile)).toThrow('__proto__: not an option');
});

test('a table gives the types of both sides', () => {
  type Spec = SpecOf<typeof table>;
  type Settings = SettingsOf<typeof table>;
  expectTypeOf<Spec['patience']>().toEqualTypeOf<
    | number
    | `${number}ms`
    | `${number}s`
    | `${number}m`
    | `${number}h`
    | `${number}d`
    | 'unlimited'
    | undefined
  >();
  expectTypeOf<Settings['patience']>().toEqualTypeOf<number>();
  expectTypeOf<Settings['mode']>().toEqualTypeOf<'on' | 'off'>();
});

test('the type of a policy document accepts exactly what the tables read', () => {
  type Part = Extract<(typeof everyPart)[number], { fields: object }>;
  type Read = SpecOf<UnionToIntersection<Part['fields']>>;
  expectTypeOf<Omit<PolicySpec, 'name'>>().toExtend<Read>();
  // The table takes any text as the name of a pack. The type takes those of the packs.
  expectTypeOf<Omit<Read, 'retryOn' | 'retryOnly'>>().toExtend<PolicySpec>();
  expectTypeOf<keyof Read>().toEqualTypeOf<keyof Omit<PolicySpec, 'name'>>();
});

const everyPart = [
  retry,
  timeout,
  budget,
  breaker,
  bulkhead,
  limiter,
  throttle,
  hedge,
  choice,
  cache,
  fallback,
  mode,
] as const;
type UnionToIntersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I extends Table
    ? I
    : never
  : never;
