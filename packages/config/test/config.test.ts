import fc from 'fast-check';
import { policies as listed, policy, policyOf } from 'holdfast';
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
    ['a tag that makes bytes of a text', 'a: !!binary aGk=', 1],
    ['a tag that makes a list of pairs', 'a: 1\nb: !!omap [x: 1]', 2],
    ['an anchor at a key', 'a: 1\n&x b: 2', 2],
    ['a tag at a key', 'a: 1\n!!str b: 2', 2],
    ['a merge key', 'a:\n  <<: { b: 1 }', 2],
    ['one key twice', 'a: 1\na: 2', 2],
    ['one key twice, as a number and as a text', '1: a\n"1": b', 2],
    ['__proto__', 'a: 1\n__proto__: { b: 1 }', 2],
    ['constructor, deep inside', 'a:\n  b:\n    constructor: 1', 3],
    ['a key that is a map', '? { a: 1 }\n: 2', 1],
    ['two documents', 'a: 1\n---\nb: 2', 2],
    ['broken YAML', 'a: [1\nb: 2', 2],
  ])('with %s is refused, with its line', (_what, text, line) => {
    const problems = problemsOf(() => readDocument(text, 'file.yaml'));
    expect(problems[0]).toMatch(new RegExp(`^file\\.yaml:${line}:\\d+: `));
  });

  test('of more than 1 MiB is not read', () => {
    expect(problemsOf(() => readDocument(`a: ${'x'.repeat(1024 * 1024)}`))).toEqual([
      'document:1:1: a document is at most 1 MiB long',
    ]);
  });

  test('nested too deep is refused', () => {
    expect(problemsOf(() => readDocument('['.repeat(80) + ']'.repeat(80))).length).toBeGreaterThan(0);
  });

  test('nested deeper than its parser can follow is refused in one sentence', () => {
    expect(problemsOf(() => readDocument(`a: ${'['.repeat(20_000)}`))).toEqual([
      expect.stringMatching(/^document:1:\d+: nested deeper than 64$/),
    ]);
  });

  test('of nothing but mistakes is told with the first hundred of them', () => {
    expect(problemsOf(() => readDocument(`a:\n${'  - *b\n'.repeat(5000)}`))).toHaveLength(100);
  });

  test('of a hundred thousand keys is read', () => {
    const text = Array.from({ length: 100_000 }, (_, n) => `k${n}: 1`).join('\n');
    expect(Object.keys(readDocument(text).data as object)).toHaveLength(100_000);
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
      ['a', { name: 'a', attempts: 2 }],
      ['b', { name: 'b' }],
    ]);
  });

  test('have their key as their name, so that an update keeps them in the registry', () => {
    const documents = parsePolicies('policies:\n  payments: { attempts: 2 }\n  mail: { name: post }\n');
    const made = policy(documents.get('payments'));
    expect([made.name, documents.get('mail')!.name]).toEqual(['payments', 'post']);
    made.update(documents.get('payments')!);
    expect(policyOf('payments')).toBe(made);
  });

  test('a document without policies: is one, under its name or as default', () => {
    expect([...parsePolicies('attempts: 2').keys()]).toEqual(['default']);
    expect([...parsePolicies('name: a\nattempts: 2').keys()]).toEqual(['a']);
  });

  test('are not listed as in use because they were checked', () => {
    parsePolicies('name: only-checked');
    expect(listed().some(({ name }) => name === 'only-checked')).toBe(false);
  });

  test('every mistake of every policy is told with its line and column, in the order of the text', () => {
    const text = [
      'policies:',
      '  a:',
      '    backoff: { base: 8 seconds, cap: -1, strategi: linear }',
      '    breaker: { slow: { over: 1s, ratio: 7 }, probes: 0 }',
      '  b:',
      '    attempts: 2',
      '    atempts: 3',
      '    retryOn: [http, 5]',
      '  c: 1',
      'd: 1',
    ];
    expect(problemsOf(() => parsePolicies(text.join('\n'), 'p.yaml'))).toEqual([
      'p.yaml:3:22: policies.a.backoff.base: expected a duration such as "200ms", got "8 seconds"',
      'p.yaml:3:38: policies.a.backoff.cap: expected a duration such as "200ms", got -1',
      'p.yaml:3:42: policies.a.backoff.strategi: not an option; did you mean strategy?',
      'p.yaml:4:41: policies.a.breaker.slow.ratio: expected a number from 0 to 1, got 7',
      'p.yaml:4:54: policies.a.breaker.probes: expected a whole number of at least 1, got 0',
      expect.stringMatching(/^p\.yaml:7:5: policies\.b\.atempts: not an option; did you mean attempts\?$/),
      expect.stringMatching(/^p\.yaml:8:21: policies\.b\.retryOn\[1\]: expected network, http, .*, got 5$/),
      'p.yaml:9:6: policies.c: expected a policy, got 1',
      'p.yaml:10:4: d: stands beside policies: put it inside one',
    ]);
  });

  test('conflicts are told together with the mistakes of single fields', () => {
    const text = [
      'atempts: 3',
      'budget: { ratio: -1 }',
      'breaker: { openFor: [30s, 1s], probes: 0 }',
      'retryOn: [sqll, http, htpp]',
      'neverOn: [TypeError]',
      'hedge: { percentile: 0.9, after: 1s }',
      'fallback: { reserve: 1s }',
    ];
    expect(problemsOf(() => parsePolicies(text.join('\n'), 'p'))).toEqual([
      'p:1:1: atempts: not an option; did you mean attempts?',
      'p:2:18: budget.ratio: expected a number from 0 to 1, got -1',
      'p:3:21: breaker.openFor: expected the shortest and the longest time, in this order, got ["30s","1s"]',
      'p:3:40: breaker.probes: expected a whole number of at least 1, got 0',
      expect.stringMatching(/^p:4:11: retryOn\[0\]: expected network, .*, got "sqll"$/),
      expect.stringMatching(/^p:4:23: retryOn\[2\]: expected network, .*, got "htpp"$/),
      'p:5:11: neverOn[0]: expected a function, got "TypeError"; a function or class can be given only in TypeScript',
      'p:6:22: hedge.percentile: expected either a percentile or a delay, not both, got 0.9',
      'p:7:11: fallback.to: expected a value, a function or a list of them, got undefined',
    ]);
  });

  test.each([
    ['patience: 60 s\nattemptTimeout: 20s', 'patience'],
    ['patience: 60 s\nattempts: unlimited', 'patience'],
    ['backoff: { base: 1m, cap: 5 m }', 'backoff.cap'],
    ['backoff: { base: x, cap: 50ms }', 'backoff.base'],
  ])('%j has one mistake: nothing conflicts with a value that was not understood', (text, path) => {
    expect(problemsOf(() => parsePolicies(text, 'p'))).toEqual([
      expect.stringMatching(new RegExp(`^p:1:\\d+: ${path}: `)),
    ]);
  });

  test('of no policy at all are refused', () => {
    expect(problemsOf(() => parsePolicies('policies: {}', 'p'))).toEqual([
      'p:1:11: policies: expected at least one policy, got none',
    ]);
  });

  test('what concerns several fields is told when each of them is right', () => {
    const text = ['policies:', '  a: { retryOn: [htpp] }', '  b: { backoff: { base: 9s, cap: 1s } }'];
    expect(problemsOf(() => parsePolicies(text.join('\n'), 'p.yaml'))).toEqual([
      expect.stringMatching(/^p\.yaml:2:18: policies\.a\.retryOn\[0\]: expected network, http, /),
      'p.yaml:3:25: policies.b.backoff.base: expected at most the cap of 1000 ms, got 9000',
    ]);
  });

  test('of a thousand mistakes the first hundred are told', () => {
    const text = Array.from({ length: 1000 }, (_, n) => `unknown${n}: 1`).join('\n');
    const problems = problemsOf(() => parsePolicies(text, 'p.yaml'));
    expect(problems).toHaveLength(100);
    expect(problems.at(-1)).toMatch(/^p\.yaml:100:\d+: unknown99: /);
  });

  test.each([
    ['polices:\n  a: { attempts: 2 }', 'p.yaml:1:1: polices: did you mean `policies:`?'],
    ['policy:\n  a: { attempts: 2 }', 'p.yaml:1:1: policy: did you mean `policies:`?'],
    [
      '# names at the top\npayments: { attempts: 2 }\nsearch: { patience: 1s }',
      'p.yaml:2:1: payments: did you mean `policies:` with payments below it? attempts is a field of a policy',
    ],
  ])('%j was meant to have policies:', (text, sentence) => {
    expect(problemsOf(() => parsePolicies(text, 'p.yaml'))).toEqual([sentence]);
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
  const rounded = Array.from({ length: 3 }, (_, n) => `{ share: 0.33, constant: ${n}s }`).join(', ');

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
    [
      '  web: { to: toString, arrivals: { poisson: 100/s } }',
      /^s:6:14: clients\.web\.to: there is no service "toString"/,
    ],
    [
      '  web: { to: api, arrivals: { poisson: 1/s, from: 9s, until: 1s } }',
      /^s:6:62: clients\.web\.arrivals\.until: expected at least its from of 9000 ms, got 1000 ms/,
    ],
    [
      '  web: { to: api, calls: 3, arrivals: { poisson: 1/s } }',
      /^s:6:26: clients\.web\.calls: are counted of clients that think/,
    ],
    ['  web: { to: api, arrivals: {} }', /^s:6:29: clients\.web\.arrivals: say one of/],
    ['  web: { arrivals: { poisson: 100/s } }', /^s:6:8: clients\.web\.to: expected a text, got nothing/],
    [
      '  web: { to: api, rout: x, arrivals: { poisson: 1/s } }',
      /^s:6:19: clients\.web\.rout: not an option; did you mean/,
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
    [
      'expect: [{ metric: goodput, atLeast: 1, clients: bot }]',
      'expect[0]: there are no clients "bot": there are web',
    ],
    [
      'damage: [{ metric: peak, atLeast: 1, service: db }]',
      'damage[0]: there is no service "db": there are api',
    ],
    [
      'expect: [{ metric: peak, atMost: 1, from: 2s, until: 1s }]',
      'expect[0].until: expected at least its from of 2000 ms, got 1000 ms',
    ],
    [
      'faults: [{ kind: stall, service: toString, from: 0s }]',
      'faults[0].service: there is no service "toString": there are api',
    ],
    ['expect: [{ metric: peak }]', 'expect[0]: say atLeast or atMost: without them it bounds nothing'],
    [
      'expect: [{ metric: peak, atMost: 1, instance: 0 }]',
      'expect[0].instance: say the service that it is an instance of',
    ],
    ['seeds: []', 'seeds: expected at least one, got none'],
  ])('%s is refused', (line, sentence) => {
    const problems = problemsOf(() => parseScenario([...minimal, line].join('\n'), 's'));
    expect(problems.map((each) => each.replace(/^s:7:\d+: /, ''))).toEqual([sentence]);
  });

  test('every mistake is told, in services, lists and policies alike', () => {
    const text = [
      'id: 5',
      'duration: soon',
      'services:',
      '  api: { workers: none, queue: { max: -1 }, calls: [{ to: b }, { too: b }] }',
      'clients:',
      '  web: { to: api, arrivals: { poisson: fast } }',
      'policies:',
      '  a: { attempts: none, budget: { ratio: 2 } }',
    ].join('\n');
    expect(problemsOf(() => parseScenario(text, 's')).map((line) => line.split(' ', 2).join(' '))).toEqual([
      's:1:5: id:',
      's:2:11: duration:',
      's:4:19: services.api.workers:',
      's:4:39: services.api.queue.max:',
      's:4:64: services.api.calls[1].to:',
      's:4:66: services.api.calls[1].too:',
      's:6:40: clients.web.arrivals.poisson:',
      's:8:18: policies.a.attempts:',
      's:8:41: policies.a.budget.ratio:',
    ]);
  });

  test('names that are nowhere are told together with the mistakes of fields', () => {
    const text = [
      'id: S',
      'duration: soon',
      'services:',
      '  api: { workers: none, calls: [{ to: nowhere }] }',
      '  db: { calls: [{ to: apii }] }',
      'clients:',
      '  web: { to: dbb, arrivals: { poisson: 1/s } }',
      '  app: { to: api, arrivals: { poisson: fast } }',
      'faults:',
      '  - { kind: stal, service: db, from: 1s }',
      '  - { kind: stall, service: dbx, from: 1s }',
      '  - { kind: flush, service: api, from: 1s, instance: 3 }',
      'policies:',
      '  a: { attempts: 0, breaker: { openFor: [30s, 1s] } }',
      'expect: [{ metric: success, clients: api → db, atLeast: 0.9 }]',
      'toString: 1',
    ].join('\n');
    expect(problemsOf(() => parseScenario(text, 's')).map((line) => line.split(' ', 2).join(' '))).toEqual([
      's:2:11: duration:',
      's:4:19: services.api.workers:',
      's:5:23: services.db.calls[0].to:',
      's:7:14: clients.web.to:',
      's:8:40: clients.app.arrivals.poisson:',
      's:10:7: faults[0].kind:',
      's:11:29: faults[1].service:',
      's:14:18: policies.a.attempts:',
      's:14:41: policies.a.breaker.openFor:',
      's:16:1: toString:',
    ]);
  });

  test('fields that are missing are told by their names', () => {
    expect(problemsOf(() => parseScenario('title: x', 's'))).toEqual([
      's:1:1: id: expected a text, got nothing',
      's:1:1: duration: expected a duration such as "200ms" of at least 1, got nothing',
      's:1:1: services: expected a map of names, got nothing',
      's:1:1: clients: expected a map of names, got nothing',
    ]);
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

  test.each([
    ['time: { mix: [{ share: 1 }] }', /time\.mix\[0\]: expected one of constant, .*, recorded, got/],
    [
      'time: { mix: [{ share: 1, constant: 1s, exponential: 1s }] }',
      /time\.mix\[0\]: expected one of constant/,
    ],
    [
      'time: { mix: [{ share: 0.9, constant: 1s }, { share: 0.9, constant: 2s }] }',
      /time\.mix: expected shares that add up to 1, got 1\.8$/,
    ],
    ['time: { mix: [] }', /time\.mix: expected at least one, got \[\]$/],
    ['time: { recorded: [] }', /time\.recorded: expected at least one, got \[\]$/],
    ['recording: []', /recording: expected at least one, got \[\]$/],
    [
      'time: { uniform: { from: 1s, to: 10ms } }',
      /time\.uniform\.to: expected at least its from of 1000 ms, got 10$/,
    ],
    [
      'time: { pareto: { least: 1s, alpha: 2, until: 10ms } }',
      /time\.pareto\.until: expected at least its least of 1000 ms, got 10$/,
    ],
  ])('a service of which nothing can be drawn is refused: %s', (said, sentence) => {
    const text = [...minimal.slice(0, 3), `  api: { ${said} }`, ...minimal.slice(4)].join('\n');
    expect(problemsOf(() => parseScenario(text, 's'))).toEqual([expect.stringMatching(sentence)]);
  });

  test('a mix may have rounded shares', () => {
    const text = minimal.join('\n').replace('{ exponential: 10ms }', `{ mix: [${rounded}] }`);
    expect(parseScenario(text).services.api?.time).toMatchObject({ mix: [{ share: 0.33 }, {}, {}] });
  });

  test('may say a word that stands for what was not said', () => {
    expect(parseScenario(minimal.join('\n').replace('id: S', 'id: nothing')).id).toBe('nothing');
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
