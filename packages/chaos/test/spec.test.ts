import { OptionsError } from 'holdfast';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { FaultSpec } from '../src/fault-spec.ts';
import { type ChaosSpec, type Place, type ReadFault, readChaos } from '../src/spec.ts';

const complaint = (spec: unknown, place?: Place): string => {
  try {
    readChaos(spec as ChaosSpec, place);
  } catch (error) {
    expect(error).toBeInstanceOf(OptionsError);
    return (error as Error).message;
  }
  return 'none';
};

test('the type of a fault accepts exactly what the tables read', () => {
  expectTypeOf<FaultSpec>().toExtend<ReadFault>();
  expectTypeOf<ReadFault>().toExtend<FaultSpec>();
});

test('fills in what is not said, and reads durations', () => {
  const { seed, faults } = readChaos({
    faults: [{ kind: 'latency', delay: '20ms', from: '1s', flap: { up: '5s', down: 100 } }],
  });
  expect(seed).toBe(0);
  expect(faults).toEqual([
    {
      kind: 'latency',
      rate: 1,
      from: 1000,
      until: undefined,
      flap: { up: 5000, down: 100 },
      first: undefined,
      every: 1,
      match: undefined,
      delay: 20,
      direction: 'response',
    },
  ]);
});

test('takes a document that has been through JSON', () => {
  const spec: ChaosSpec = {
    seed: 'storm',
    faults: [
      {
        kind: 'status',
        status: 429,
        retryAfter: '2s',
        headers: { 'x-why': 'chaos' },
        match: { path: '/a*' },
      },
      { kind: 'latency', delay: { distribution: 'pareto', min: '5ms' } },
      { kind: 'reorder' },
    ],
  };
  expect(readChaos(JSON.parse(JSON.stringify(spec)))).toEqual(readChaos(spec));
});

test.each([
  [null, 'spec: expected an object with faults, got null'],
  [[], 'spec: expected an object with faults, got []'],
  [{}, 'faults: expected a list, each an object with kind, got undefined'],
  [{ fault: [] }, 'fault: not an option; did you mean faults?'],
  [{ faults: [7] }, 'faults[0]: expected an object with kind, got 7'],
  [{ faults: [null] }, 'faults[0]: expected an object with kind, got null'],
  [{ seed: {}, faults: [] }, 'seed: expected a number or a text, got {}'],
  [
    { faults: [{ kind: 'hang' }, { kind: 'toString' }] },
    'faults[1].kind: expected one of latency, slow, hang, refuse, reset, truncate, error, status, duplicate, reorder, got "toString"',
  ],
  [{ faults: [{ kind: 'hang', rate: 1.5 }] }, 'faults[0].rate: expected a number from 0 to 1, got 1.5'],
  [
    { faults: [{ kind: 'latency' }] },
    'faults[0].delay: expected a duration such as "200ms" or an object with distribution, got undefined',
  ],
  [
    { faults: [{ kind: 'latency', delay: 'soon' }] },
    'faults[0].delay: expected a duration such as "200ms" or an object with distribution, got "soon"',
  ],
  [
    { faults: [{ kind: 'latency', delay: { distribution: 'normal' } }] },
    'faults[0].delay.distribution: expected one of uniform, exponential, lognormal, pareto, got "normal"',
  ],
  [
    { faults: [{ kind: 'latency', delay: { distribution: 'uniform', min: 9, max: '5ms' } }] },
    'faults[0].delay.max: expected at least min, 9, got 5',
  ],
  [{ faults: [{ kind: 'slow' }] }, 'faults[0].bytesPerSecond: expected a whole number, got undefined'],
  [
    { faults: [{ kind: 'slow', bytesPerSecond: 0 }] },
    'faults[0].bytesPerSecond: expected a whole number of at least 1, got 0',
  ],
  [
    { faults: [{ kind: 'status', status: 99 }] },
    'faults[0].status: expected a whole number from 200 to 599, got 99',
  ],
  [
    { faults: [{ kind: 'status', headers: { 'bad name': 'x' } }] },
    'faults[0].headers: expected an object of header names and texts, got {"bad name":"x"}',
  ],
  [
    { faults: [{ kind: 'hang', from: '2s', until: '1s' }] },
    'faults[0].until: expected a time after from, 2000 ms, got 1000',
  ],
  [
    { faults: [{ kind: 'hang', flap: { up: '1s' } }] },
    'faults[0].flap.down: expected a duration above zero such as "5s", got undefined',
  ],
  [{ faults: [{ kind: 'refuse', cut: 'yes' }] }, 'faults[0].cut: expected true or false, got "yes"'],
  [{ faults: [{ kind: 'error', code: 7 }] }, 'faults[0].code: expected a text, got 7'],
])('refuses %j with one sentence', (spec, sentence) => {
  expect(complaint(spec)).toBe(sentence);
});

describe('refuses what a place cannot do', () => {
  test.each<[FaultSpec, Place, string]>([
    [
      { kind: 'duplicate' },
      'proxy',
      'faults[0].kind: expected one of latency, slow, hang, refuse, reset, truncate for a proxy, got "duplicate"',
    ],
    [
      { kind: 'status' },
      'handler',
      'faults[0].kind: expected one of latency, hang, error, duplicate, reorder for a handler, got "status"',
    ],
    [
      { kind: 'hang', match: { path: '/x' } },
      'proxy',
      'faults[0].match: expected no method and no path for a proxy, which knows only bytes, got {"path":["/x"]}',
    ],
    [
      { kind: 'slow', bytesPerSecond: 9, direction: 'both' },
      'fetch',
      'faults[0].direction: expected "response" for a fetch, got "both"',
    ],
    [
      { kind: 'reset', afterBytes: 9, direction: 'request' },
      'fetch',
      'faults[0].afterBytes: expected 0 for a fetch, whose request goes out whole or not at all, got 9',
    ],
  ])('%j for a %s', (fault, place, sentence) => {
    expect(complaint({ faults: [fault] }, place)).toBe(sentence);
  });
});

test('the types know what each kind takes', () => {
  expectTypeOf<{ kind: 'latency'; delay: '5ms' }>().toExtend<FaultSpec>();
  expectTypeOf<{ kind: 'latency' }>().not.toExtend<FaultSpec>();
  expectTypeOf<{ kind: 'latency'; delay: 'soon' }>().not.toExtend<FaultSpec>();
  expectTypeOf<{ kind: 'hang'; from: 'later' }>().not.toExtend<FaultSpec>();
  expectTypeOf<{
    kind: 'latency';
    delay: { distribution: 'pareto'; min: 'some' };
  }>().not.toExtend<FaultSpec>();
  expectTypeOf<{ kind: 'reset'; afterBytes: 'many' }>().not.toExtend<FaultSpec>();
  expectTypeOf<{ kind: 'status'; retryAfter: 'later' }>().not.toExtend<FaultSpec>();
});
