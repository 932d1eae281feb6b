import fc from 'fast-check';
import { policies as listed, policy } from 'holdfast';
import { count, duration } from 'holdfast/fields';
import { describe, expect, test } from 'vitest';
import {
  ConfigError,
  mapOf,
  needed,
  parsePolicies,
  parseScenario,
  parseTable,
  policiesSchema,
  readDocument,
  scenarioSchema,
} from '../src/index.ts';

function problemsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('a document', () => {
  test('is YAML or JSON', () => {
    expect(readDocument('a: [1, two]').data).toEqual({ a: [1, 'two'] });
    expect(readDocument('{"a": [1, "two"]}').data).toEqual({ a: [1, 'two'] });
  });

  test.each([
    ['an alias', 'a: &x 1\nb: *x', 1],
    ['a tag', 'a: !!js/function "x"', 1],
    ['a tag of one’s own', 'a: !Ref x', 1],
    ['one key twice', 'a: 1\na: 2', 2],
    ['__proto__', 'a: 1\n__proto__: { b: 1 }', 2],
    ['constructor, deep inside', 'a:\n  b:\n    constructor: 1', 3],
    ['a key that is a map', '? { a: 1 }\n: 2', 1],
    ['two documents', 'a: 1\n---\nb: 2', 2],
    ['broken YAML', 'a: [1\nb: 2', 2],
  ])('with %s is refused, with its line', (_what, text, line) => {
    const problems = problemsOf(() => readDocument(text, 'file.yaml'));
    expect(problems[0]).toMatch(new RegExp(`^file\\.yaml:${line}:\\d+: `));
  });

  test('with a merge key has a field of that name, which no table knows', () => {
    const [problem] = problemsOf(() => parsePolicies('a: 1\n<<: { attempts: 2 }', 'f'));
    expect(problem).toMatch(/^f:1:1: a: expected one of/);
  });

  test('of more than 1 MiB is not read', () => {
    expect(problemsOf(() => readDocument(`a: ${'x'.repeat(1024 * 1024)}`))).toEqual([
      'document:1:1: a document is at most 1 MiB long',
    ]);
  });

  test('nested too deep is refused', () => {
    expect(problemsOf(() => readDocument('['.repeat(80) + ']'.repeat(80))).length).toBeGreaterThan(0);
  });

  test('a hundred lines of aliases do not expand', () => {
    const bomb = Array.from({ length: 100 }, (_, n) => `k${n}: &a${n} [*a${n - 1}, *a${n - 1}]`).join('\n');
    expect(problemsOf(() => readDocument(bomb)).length).toBeGreaterThan(0);
  });

  test('whatever it is, gives data or a ConfigError', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'a:-[]{}&*!|>#"\'\n ,?%@1.~<'), maxLength: 60 }),
        (text) => {
          problemsOf(() => readDocument(text));
          problemsOf(() => parsePolicies(text));
          problemsOf(() => parseScenario(text));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('policies', () => {
  test('are found by name', () => {
    const found = parsePolicies('policies:\n  a: { attempts: 2 }\n  b:\n');
    expect([...found]).toEqual([
      ['a', { attempts: 2 }],
      ['b', {}],
    ]);
  });

  test('a document without policies: is one, under its name or as default', () => {
    expect([...parsePolicies('attempts: 2').keys()]).toEqual(['default']);
    expect([...parsePolicies('name: a\nattempts: 2').keys()]).toEqual(['a']);
  });

  test('are not listed as in use because they were checked', () => {
    parsePolicies('name: only-checked');
    expect(listed().some(({ name }) => name === 'only-checked')).toBe(false);
  });

  test('every mistake is told with its line and column, one for each policy', () => {
    const text = [
      'policies:',
      '  a:',
      '    backoff: { base: 8 seconds }',
      '  b:',
      '    attempts: 2',
      '    atempts: 3',
      '  c: 1',
      'd: 1',
    ];
    expect(problemsOf(() => parsePolicies(text.join('\n'), 'p.yaml'))).toEqual([
      'p.yaml:8:4: d: stands beside policies: put it inside one',
      'p.yaml:3:22: policies.a.backoff.base: expected a duration such as "200ms", got "8 seconds"',
      expect.stringMatching(/^p\.yaml:6:5: policies\.b\.atempts: expected one of patience, /),
      'p.yaml:7:6: policies.c: expected a policy, got 1',
    ]);
  });

  test('a mistake in a list is told where the item stands', () => {
    const [problem] = problemsOf(() => parsePolicies('retryOn:\n  - http\n  - htpp\n', 'p.yaml'));
    expect(problem).toMatch(/^p\.yaml:3:5: retryOn\[1\]: /);
  });

  test('what concerns two fields is told at one of them', () => {
    const [problem] = problemsOf(() => parsePolicies('backoff:\n  base: 10s\n  cap: 1s', 'p.yaml'));
    expect(problem).toBe('p.yaml:2:9: backoff.base: expected at most the cap of 1000 ms, got 10000');
  });

  test('any that core takes is taken as it is', () => {
    const spec = { patience: '2s', hedge: true, breaker: { openFor: ['1s', '5s'] } } as const;
    expect(parsePolicies(JSON.stringify(spec)).get('default')).toEqual(spec);
    expect(policy(spec).plan.patienceMs).toBe(2000);
  });
});

describe('scenarios', () => {
  const minimal = [
    'id: S',
    'duration: 10s',
    'services:',
    '  api: { workers: 2, time: { exponential: 10ms } }',
    'clients:',
    '  web: { to: api, arrivals: { poisson: 100/s } }',
  ];

  test('have defaults filled in', () => {
    const scenario = parseScenario(minimal.join('\n'));
    expect(scenario.duration).toBe(10_000);
    expect(scenario.services.api).toMatchObject({ instances: 1, workers: 2, time: { exponential: 10 } });
    expect(scenario.clients.web).toMatchObject({ policy: 'under-test', arrivals: { poisson: 0.1 } });
    expect(scenario.seeds).toHaveLength(5);
  });

  test.each([
    [
      '  web: { to: app, arrivals: { poisson: 100/s } }',
      /^s:6:14: clients\.web\.to: there is no service "app"/,
    ],
    [
      '  web: { to: api, arrivals: { poisson: fast } }',
      /^s:6:40: clients\.web\.arrivals\.poisson: expected a rate/,
    ],
    ['  web: { to: api, arrivals: {} }', /^s:6:29: clients\.web\.arrivals: say one of/],
    ['  web: { arrivals: { poisson: 100/s } }', /^s:6:8: clients\.web\.to: expected a text, got "nothing"/],
    [
      '  web: { to: api, rout: x, arrivals: { poisson: 1/s } }',
      /^s:6:19: clients\.web\.rout: expected one of/,
    ],
  ])('%s is refused', (line, problem) => {
    expect(problemsOf(() => parseScenario([...minimal.slice(0, 5), line].join('\n'), 's'))[0]).toMatch(
      problem,
    );
  });

  test.each([
    [
      'faults: [{ kind: stall, service: api, from: 5s, until: 1s }]',
      'faults[0].until: expected at least its from of 5000 ms, got 1000 ms',
    ],
    [
      'faults: [{ kind: stall, service: api, from: 0s, instance: 1 }]',
      'faults[0].instance: there is no instance 1 of api: they are counted from 0, and there is 1',
    ],
    [
      'faults: [{ kind: loss, service: api, from: 0s, value: 7 }]',
      'faults[0].value: expected a share from 0 to 1, got 7',
    ],
    [
      'faults: [{ kind: capacityFactor, service: api, from: 0s, value: 0 }]',
      'faults[0].value: expected a number above 0, got 0: to stand still is a stall',
    ],
    [
      'faults: [{ kind: flap, service: api, from: 0s, up: 0s, down: 0s }]',
      'faults[0].up: expected a time above 0 ms, of up or of down, got 0 ms',
    ],
    [
      'faults: [{ kind: flush, service: api, from: 0s }]',
      'faults[0].service: there is nothing to flush: api has no cache',
    ],
    ['expect: [{ metric: goodput, clients: bot }]', 'expect[0]: there are no clients "bot": there are web'],
    ['damage: [{ metric: peak, service: db }]', 'damage[0]: there is no service "db": there are api'],
    [
      'expect: [{ metric: peak, from: 2s, until: 1s }]',
      'expect[0].until: expected at least its from of 2000 ms, got 1000 ms',
    ],
    ['seeds: []', 'seeds: expected at least one, got none'],
  ])('%s is refused', (line, sentence) => {
    const problems = problemsOf(() => parseScenario([...minimal, line].join('\n'), 's'));
    expect(problems.map((each) => each.replace(/^s:7:\d+: /, ''))).toEqual([sentence]);
  });

  test('spikes are of a rate, and end after they begin', () => {
    const withArrivals = (arrivals: string) =>
      problemsOf(() =>
        parseScenario([...minimal.slice(0, 5), `  web: { to: api, arrivals: ${arrivals} }`].join('\n'), 's'),
      );
    expect(withArrivals('{ think: 1s, spikes: [{ from: 1s, until: 2s, rate: 9/s }] }')).toEqual([
      's:6:50: clients.web.arrivals.spikes: change a rate: say poisson or constant beside them',
    ]);
    expect(withArrivals('{ poisson: 1/s, spikes: [{ from: 3s, until: 2s, rate: 9/s }] }')).toEqual([
      's:6:73: clients.web.arrivals.spikes[0].until: expected at least its from of 3000 ms, got 2000 ms',
    ]);
  });

  test('of no time at all are refused', () => {
    const text = minimal.join('\n').replace('10s', '0s');
    expect(problemsOf(() => parseScenario(text, 's'))[0]).toMatch(/^s:2:11: duration: expected .*got "0s"$/);
  });

  test('without services or clients there is nothing to run', () => {
    const text = ['id: S', 'duration: 10s', 'services: {}', 'clients: {}'].join('\n');
    expect(problemsOf(() => parseScenario(text, 's'))).toEqual([
      's:3:11: services: expected at least one, got none',
      's:4:10: clients: expected at least one, got none',
    ]);
  });

  test('a time is of one kind', () => {
    const withTime = (time: string) =>
      problemsOf(() =>
        parseScenario(
          [...minimal.slice(0, 3), `  api: { time: ${time} }`, ...minimal.slice(4)].join('\n'),
          's',
        ),
      );
    const kinds = 'one of constant, exponential, lognormal, pareto, uniform, normal, recorded, mix';
    expect(withTime('{ constant: 5ms, exponential: 9ms }')).toEqual([
      `s:4:10: services.api.time: expected ${kinds}, got {"constant":"5ms","exponential":"9ms"}`,
    ]);
    expect(withTime('{}')).toEqual([`s:4:10: services.api.time: expected ${kinds}, got {}`]);
  });

  test('a policy inside is checked', () => {
    const text = [...minimal, 'policies:', '  a: { attempts: none }'].join('\n');
    expect(problemsOf(() => parseScenario(text, 's'))[0]).toMatch(/^s:8:18: policies\.a\.attempts: /);
  });

  test('services that call in a circle are refused', () => {
    const text = [
      ...minimal.slice(0, 3),
      '  api: { calls: [{ to: b }] }',
      '  b: { calls: [{ to: api }] }',
      ...minimal.slice(4),
    ].join('\n');
    expect(problemsOf(() => parseScenario(text, 's'))[0]).toMatch(/calls itself: api → b → api/);
  });
});

describe('tables of one’s own', () => {
  const table = { limits: needed(mapOf(count())), wait: duration('1s') };

  test('are read with defaults', () => {
    expect(parseTable(table, 'limits: { a: 1 }')).toEqual({ limits: { a: 1 }, wait: 1000 });
  });

  test('tell where a map is wrong', () => {
    expect(problemsOf(() => parseTable(table, 'limits:\n  a: 1\n  b: x', 't'))).toEqual([
      't:3:6: limits.b: expected a whole number, got "x"',
    ]);
  });
});

describe('schemas', () => {
  test('name every field', () => {
    const { $defs } = policiesSchema() as { $defs: { policy: { properties: object } } };
    expect(Object.keys($defs.policy.properties)).toContain('backoff');
    const { properties, required } = scenarioSchema() as {
      properties: Record<string, unknown>;
      required: string[];
    };
    expect(required).toEqual(['id', 'duration', 'services', 'clients']);
    expect(properties.policies).toEqual({
      type: 'object',
      additionalProperties: { $ref: '#/$defs/policy' },
      default: {},
    });
  });

  test('are plain JSON', () => {
    const schema = scenarioSchema();
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  });
});
