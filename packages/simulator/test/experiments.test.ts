import { parseScenario, type Scenario } from '@holdfast/config';
import { describe, expect, test } from 'vitest';
import { boundsOf, simulate } from '../src/index.ts';
import {
  brooker,
  brookerMaker,
  brookerPolicies,
  brookerTable,
  layers,
  published,
  publishedNames,
} from './published.ts';
import { library } from './setup.ts';

const bare = 'patience: unlimited, attemptTimeout: none, budget: false, breaker: false';

describe('the files of published experiments hold what they assert', () => {
  // Twelve million calls in full: the drill makes them, and it has tests of its own below.
  const cases = publishedNames
    .filter((name) => name !== 'tail-at-scale')
    .flatMap((name) => Object.keys(published(name).policies).map((policy) => [name, policy] as const));
  test.each(cases)('%s with %s', (name, policy) => {
    const scenario = published(name);
    const results = simulate(scenario, { policy });
    for (const bound of boundsOf(scenario, policy)) {
      const { metric, atLeast = -Infinity, atMost = Infinity } = bound;
      expect(results.figure(metric, bound)).toBeGreaterThanOrEqual(atLeast);
      expect(results.figure(metric, bound)).toBeLessThanOrEqual(atMost);
    }
  });
});

describe('layers that all retry', () => {
  test.each([
    [3, 4, 64],
    [4, 4, 256],
    [3, 3, 27],
    [5, 3, 243],
  ])('%i layers of %i attempts make %i calls', (depth, attempts, calls) => {
    const results = simulate(layers(depth, attempts, 1, 3), { policy: 'p' });
    expect(results.figure('multiplication', { service: `t${depth - 1}` })).toBe(calls);
  });

  test('and fewer the likelier a call succeeds: (1 − pᵐ) / (1 − p)', () => {
    const results = simulate(layers(3, 4, 0.9, 1500), { policy: 'p' });
    expect(results.figure('multiplication', { service: 't2' })).toBeCloseTo((1 - 0.9 ** 64) / 0.1, 0);
  });
});

describe('retries of a service that fails by chance', () => {
  function failing(p: number, policy: string): Scenario {
    return parseScenario(`
id: brooker
duration: 50s
services: { s: { time: { exponential: 10ms }, network: { exponential: 10ms } } }
clients: { c: { to: s, count: 100, arrivals: { poisson: 1000/s }, failing: ${p} } }
policies: { p: { ${policy}, patience: unlimited, attemptTimeout: none, breaker: false } }
`);
  }

  /** Plain 503s by chance. */
  function overloadOf(p: number): Scenario['faults'] {
    return parseScenario(`
id: overload
duration: 1s
services: { s: { time: 1ms } }
clients: { c: { to: s, arrivals: { poisson: 1/s } } }
faults: [{ kind: errorRate, value: ${p}, gives: '503', service: s, from: 0s }]
`).faults;
  }

  test.each([0.02, 0.1, 0.3, 0.5, 0.75])(
    'three retries at p = %d: the load and success of the closed form',
    (p) => {
      const results = simulate(failing(p, 'attempts: 4, backoff: false, budget: false'), { policy: 'p' });
      expect(results.figure('success')).toBeCloseTo(1 - p ** 4, 2);
      expect(results.figure('multiplication') / ((1 - p ** 4) / (1 - p))).toBeCloseTo(1, 2);
    },
  );

  test.each([0.05, 0.2, 0.5, 0.9])(
    'a budget that successes pay for at p = %d, where failures mean overload',
    (p) => {
      const scenario = {
        ...failing(0, 'attempts: 4, budget: true'),
        faults: overloadOf(p),
      };
      const results = simulate(scenario, { policy: 'p' });
      const paid = (0.1 * (1 - p)) / (1 - 0.1 * (1 - p));
      const load = 1 + Math.min(p + p ** 2 + p ** 3, paid);
      expect(results.figure('multiplication', { from: 20_000 }) / load).toBeCloseTo(1, 1);
    },
  );

  test('backoff does nothing for an open loop', () => {
    const quick = simulate(failing(0.5, 'attempts: 4, backoff: false, budget: false'), { policy: 'p' });
    const slow = simulate(failing(0.5, 'attempts: 4, backoff: { base: 100ms }, budget: false'), {
      policy: 'p',
    });
    expect(quick.figure('multiplication')).toBeCloseTo(1.875, 1);
    expect(slow.figure('multiplication')).toBeCloseTo(1.875, 1);
  });
});

describe('the metastable queue', () => {
  /** 30 workers of 100 ms, a stall of 10 s, a limit of 1 s (HotOS’21): what its file does not vary. */
  function queue(rate: number, policy: string, server = ''): Scenario {
    return parseScenario(`
id: metastable
duration: 220s
services: { db: { workers: 30, time: { exponential: 100ms }${server} } }
clients: { web: { to: db, arrivals: { poisson: ${rate}/s }, attemptTimeout: 1s } }
faults: [{ kind: stall, service: db, from: 20s, until: 30s }]
measure: { from: 5s }
policies: { p: { ${policy} } }
`);
  }
  const retry = `attempts: 2, backoff: false, ${bare}`;

  test.each([
    ['one retry at 160 a second', 160, retry, ''],
    ['a queue as long as the limit', 280, retry, ', queue: { max: 300 }'],
    ['dropping only what has expired already', 280, retry, ', queue: { dropExpired: true }'],
  ])('%s never recovers', (_name, rate, policy, server) => {
    const results = simulate(queue(rate, policy, server), { policy: 'p', seed: 4 });
    expect(results.figure('goodput', { from: 190_000 })).toBeLessThan(rate / 2);
    expect(results.figure('metastable')).toBe(1);
    expect(results.figure('recovery')).toBeGreaterThan(60);
  });

  test.each([
    ['one retry at less than capacity ÷ 2', 140, retry, '', [60, 180]],
    ['a short queue', 280, retry, ', queue: { max: 100 }', [0, 1]],
    ['the newest first', 280, retry, ', queue: { order: lifo }', [0, 2]],
  ] as const)('%s recovers', (_name, rate, policy, server, [least, most]) => {
    const results = simulate(queue(rate, policy, server), { policy: 'p', seed: 4 });
    expect(results.figure('recovery')).toBeGreaterThanOrEqual(least);
    expect(results.figure('recovery')).toBeLessThanOrEqual(most);
    expect(results.figure('metastable')).toBe(0);
  });
});

describe('the MongoDB experiment of OSDI’22', () => {
  /** 30 workers, 3,000 calls a second at most, at a load of 0.375: a limit of 3 s and four more tries at once. */
  function mongo(rate: number, factor: number, seconds: number): Scenario {
    return parseScenario(`
id: mongo
duration: 110s
services: { db: { workers: 30, time: { exponential: 10ms } } }
clients: { c: { to: db, arrivals: { poisson: ${rate}/s }, attemptTimeout: 3s } }
faults: [{ kind: capacityFactor, value: ${factor}, service: db, from: 20s, until: ${20 + seconds}s }]
measure: { from: 5s }
policies: { p: { attempts: 5, backoff: false, ${bare} } }
`);
  }

  test.each([
    ['78 % less capacity for 10 s', 1125, 0.22, 10, 0],
    ['80 % less for 9 s', 1125, 0.2, 9, 0],
    ['80 % less for 10 s at 30 % less load', 787, 0.2, 10, 0],
  ])('%s', (_name, rate, factor, seconds, metastable) => {
    const results = simulate(mongo(rate, factor, seconds), { policy: 'p', seed: 5 });
    expect(results.figure('metastable')).toBe(metastable);
  });
});

describe('loss each way', () => {
  test.each([0.01, 0.05, 0.2])('of %d: f = 1 − (1 − q)², success 1 − fⁿ', (q) => {
    const scenario = parseScenario(`
id: loss
duration: 60s
services: { s: { time: 10ms } }
clients: { c: { to: s, arrivals: { poisson: 1000/s }, attemptTimeout: 100ms } }
faults: [{ kind: loss, value: ${q}, service: s, from: 0s }]
policies: { p: { attempts: 4, backoff: false, ${bare} } }
`);
    const results = simulate(scenario, { policy: 'p' });
    const f = 1 - (1 - q) ** 2;
    expect(results.figure('success')).toBeCloseTo(1 - f ** 4, 2);
    expect(results.figure('multiplication')).toBeCloseTo((1 - f ** 4) / (1 - f), 1);
  });
});

describe('The Tail at Scale', () => {
  test('hedging after 10 ms takes the tail of a read of a thousand keys away, for 2 % more requests', () => {
    const scenario = published('tail-at-scale');
    const run = (policy: string) => simulate(scenario, { policy, durationMs: 3_000 });
    const plain = run('plain');
    const hedged = run('hedged');
    const leaf = { clients: 'read → leaf' };
    expect(hedged.figure('extra', leaf)).toBeGreaterThan(0.019);
    expect(hedged.figure('extra', leaf)).toBeLessThan(0.021);
    // One call in a hundred is slower than its p99: nearly every read has one.
    const p99 = hedged.figure('p99', leaf);
    expect(plain.figure('p50', { clients: 'user' })).toBeGreaterThan(p99);
    // Three hundred reads say nothing of one in a thousand; the drill has twenty times as many.
    expect(
      plain.figure('p99', { clients: 'user' }) / hedged.figure('p99', { clients: 'user' }),
    ).toBeGreaterThan(4);
    expect(hedged.figure('p999', { clients: 'user' })).toBeLessThan(0.1);
  });

  test('a hedge has its price limited by the policy', () => {
    const results = simulate(
      parseScenario(`
id: hedge
duration: 30s
services: { s: { time: 100ms } }
clients: { c: { to: s, arrivals: { poisson: 500/s } } }
policies: { p: { attempts: 2, hedge: { after: 10ms, extraLoad: 0.05 }, ${bare} } }
`),
      { policy: 'p' },
    );
    expect(results.figure('extra')).toBeLessThanOrEqual(0.051);
  });
});

describe('Brooker: retries, a token bucket and a breaker', () => {
  const some = brookerTable.filter(([p]) => [0.05, 0.5].includes(p));
  const cells = some.flatMap(([p, ...row]) =>
    row.map(([success, load], index) => [p, brookerPolicies[index]!, success, load] as const),
  );
  test.each(cells)('at p = %d, %s', (p, policy, success, load) => {
    const results = simulate(brooker(p), {
      policy,
      make: brookerMaker(policy) as never,
      durationMs: 100_000,
    });
    expect(Math.abs(100 * results.figure('success') - success)).toBeLessThanOrEqual(0.5);
    expect(Math.abs(results.figure('multiplication') / (load / 100) - 1)).toBeLessThanOrEqual(0.01);
  });

  test.each([
    [10, 110.4],
    [100, 114.2],
    [1000, 145.8],
  ])('a bucket for each of %i clients of few calls lets through %d percent', (count, load) => {
    const scenario = brooker(0.5, { count, rate: 0.1 });
    const results = simulate(scenario, { policy: 'adaptive', make: brookerMaker('adaptive') as never });
    expect(Math.abs(results.figure('multiplication') / (load / 100) - 1)).toBeLessThanOrEqual(0.025);
  });
});

test('the throttle sends twice what a server takes, whatever is offered', () => {
  const scenario = parseScenario(`
id: throttle
duration: 120s
services: { s: { time: 10ms, rateLimit: { calls: 10, per: 100ms, tellsWhen: false } } }
clients: { c: { to: s, arrivals: { poisson: 400/s } } }
policies: { p: { attempts: 1, throttle: { window: 30s }, ${bare} } }
`);
  const results = simulate(scenario, { policy: 'p', policies: library });
  expect(results.figure('attempts', { from: 60_000 }) / 60).toBeGreaterThan(190);
  expect(results.figure('attempts', { from: 60_000 }) / 60).toBeLessThan(212);
});
