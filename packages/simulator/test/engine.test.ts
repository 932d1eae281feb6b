import { parseScenario } from '@holdfast/config';
import fc from 'fast-check';
import { type PolicySpec, policies } from 'holdfast';
import { Breaker, RetryBudget, Work } from 'holdfast/machines';
import { describe, expect, test, vi } from 'vitest';
import { EventQueue, simulate, simulateAsync } from '../src/index.ts';
import { library, queueOf, shortened, storms } from './setup.ts';

describe('the queue of events', () => {
  test('gives them by time, then in the order of adding, whoever was taken out in between', () => {
    // Close together, in other buckets, in other turns of the near wheel and of the far one.
    const at = fc.oneof(
      fc.nat(20),
      fc.nat(5_000),
      fc.nat(5_000_000),
      fc.nat(2 ** 34),
      fc.nat(2 ** 30).map((n) => n * 2 ** 12),
    );
    const event = fc.record({ at, removed: fc.boolean() });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 300 }), (events) => {
        const queue = new EventQueue();
        const slots = events.map(({ at }) => queue.add(at));
        for (const [index, { removed }] of events.entries()) if (removed) queue.remove(slots[index]!);
        const left = [...events.keys()].filter((index) => !events[index]!.removed);
        const expected = left
          .sort((a, b) => events[a]!.at - events[b]!.at || a - b)
          .map((index) => slots[index]);
        const given: number[] = [];
        while (queue.size > 0) given.push(queue.takeFirst());
        expect(given).toEqual(expected);
      }),
    );
  });

  test('takes what is added while others are taken, never before the present', () => {
    const step = fc.record({
      takes: fc.nat(3),
      after: fc.oneof(fc.nat(300), fc.nat(3_000_000), fc.nat(2 ** 33)),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const queue = new EventQueue();
        const pending: { at: number; order: number; slot: number }[] = [];
        let now = 0;
        const takeFirst = () => {
          pending.sort((a, b) => a.at - b.at || a.order - b.order);
          const expected = pending.shift()!;
          expect(queue.firstAt).toBe(expected.at);
          expect(queue.takeFirst()).toBe(expected.slot);
          now = expected.at;
        };
        for (const [order, { takes, after }] of steps.entries()) {
          pending.push({ at: now + after, order, slot: queue.add(now + after) });
          for (let take = 0; take < takes && pending.length > 0; take++) takeFirst();
        }
        while (pending.length > 0) takeFirst();
        expect(queue.firstAt).toBe(Infinity);
      }),
    );
  });

  test('gives a slot again when it is free', () => {
    const queue = new EventQueue();
    for (let round = 0; round < 10_000; round++) {
      expect(queue.add(round)).toBeLessThan(2);
      if (round > 0) queue.takeFirst();
    }
  });
});

describe('a run', () => {
  const [first] = [...storms.values()].filter(({ id }) => id === 'S10');
  const storm = shortened(first!);

  test('gives the same report for the same seed, to the byte', () => {
    const run = (seed: number) =>
      JSON.stringify(simulate(storm, { policy: 'holdfast', policies: library, seed }).report());
    expect(run(1)).toBe(run(1));
    expect(run(1)).not.toBe(run(2));
  });

  test('meets the same arrivals whatever the policy', () => {
    const offered = (policy: string) =>
      simulate(storm, { policy, policies: library }).report().all.series.offered;
    expect(offered('immediate3')).toEqual(offered('holdfast'));
  });

  test.each([
    ['budget', 'budgetOnly', () => vi.spyOn(RetryBudget.prototype, 'tokens').mockReturnValue(100)],
    ['breaker', 'holdfast', () => vi.spyOn(Breaker.prototype, 'settle').mockReturnValue()],
    [
      'verdict',
      'holdfast',
      () => vi.spyOn(Work.prototype, 'decide').mockReturnValue({ kind: 'give_up', because: 'not_retryable' }),
    ],
  ])('shows a mutant of the %s: there is no arithmetic of policies here', (_what, policy, mutate) => {
    const run = () => simulate(storm, { policy, policies: library }).hash;
    const before = run();
    mutate();
    expect(run()).not.toBe(before);
  });

  test('lists no policy among those in use', () => {
    const named = parseScenario(`
id: named
duration: 1s
services: { s: { time: 1ms } }
clients: { c: { to: s, arrivals: { constant: 10/s } } }
policies: { p: { name: only-simulated } }
`);
    simulate(named, { policy: 'p' });
    expect(policies().some(({ name }) => name === 'only-simulated')).toBe(false);
  });

  test('says so when a queue has become endless, instead of filling the memory', () => {
    const endless = parseScenario(`
id: endless
duration: 1h
services: { s: { workers: 1, time: 1h } }
clients: { c: { to: s, arrivals: { constant: 1000/s } } }
policies: { p: { attempts: 1, budget: false, breaker: false, attemptTimeout: none, patience: unlimited } }
`);
    expect(() => simulate(endless, { policy: 'p', waitingMax: 2000 })).toThrow(
      's-0 has 2,000 calls in its queue after 2 s, and more coming: give the queue a max, or the run a shorter duration.',
    );
  });

  test('counts work that never ends as not done', () => {
    const hanging = parseScenario(`
      id: hanging
      duration: 10s
      services: { api: { time: 10ms } }
      clients: { app: { to: api, arrivals: { constant: 10/s } } }
      faults: [{ kind: hang, service: api, from: 5s, until: 10s }]
      policies: { endless: { attempts: 1, patience: unlimited, attemptTimeout: none, budget: false, breaker: false } }
    `);
    const { all } = simulate(hanging, { policy: 'endless' }).report();
    expect([all.failed, all.success]).toEqual([0, all.succeeded / all.begun]);
    expect(all.success).toBeCloseTo(0.5, 1);
    expect(all.series.success.slice(6)).toEqual([0, 0, 0, 0]);
  });

  test.each([
    ['500ms', 500, false],
    [1000, 1000, false],
    [1001, 1001, true],
    ['unlimited', 3000, true],
    [undefined, 3000, true],
  ])(
    'lets an attempt last as long as its caller says, with a patience of %s',
    (patience, endsMs, isLimited) => {
      const hanging = parseScenario(`
id: hanging
duration: 500ms
services: { s: { time: 1h } }
clients: { c: { to: s, arrivals: { at: [100ms] }, attemptTimeout: 1s } }
policies: { p: { attempts: 3, backoff: false, attemptTimeout: none, budget: false, breaker: false } }
`);
      const spec = { ...hanging.policies.p, ...(patience !== undefined && { patience }) } as PolicySpec;
      const { record } = simulate({ ...hanging, policies: { p: spec } }, { policy: 'p' });
      const { attempts } = record.clients.get('c')!;
      expect(record.endedAtMs).toBeCloseTo(100 + endsMs, 0);
      expect(attempts.total > 1).toBe(isLimited);
    },
  );

  test.each([
    ['60ms', 60],
    ['8s', 5000],
    ['unlimited', 5000],
  ] as const)(
    'ends a call at the shorter of the policy’s patience, here %s, and its clients’ 5 s',
    async (patience, endsMs) => {
      const hanging = parseScenario(`
id: hanging
duration: 500ms
services: { s: { time: 1h } }
clients: { c: { to: s, arrivals: { at: [100ms] }, patience: 5s } }
policies: { p: { attempts: 1, attemptTimeout: none, budget: false, breaker: false, patience: ${patience} } }
`);
      const { record, hash } = simulate(hanging, { policy: 'p' });
      expect(record.endedAtMs).toBeCloseTo(100 + endsMs, 0);
      expect((await simulateAsync(hanging, { policy: 'p' })).hash).toBe(hash);
    },
  );

  test('names a policy that is nowhere', () => {
    expect(() => simulate(storm, { policy: 'nobody' })).toThrow('nobody');
  });
});

describe('both drivers leave the same trace', () => {
  const compared = ['holdfast', 'holdfastLearning', 'fullJitter3'];
  const cases = [...storms].flatMap(([file, scenario]) =>
    compared
      .filter((policy) => scenario.compare.includes(policy))
      .map((policy) => [file, policy, shortened(scenario)] as const),
  );
  test.each(cases)('%s with %s', async (_file, policy, scenario) => {
    const options = { policy, policies: library, durationMs: Math.min(scenario.duration, 5_000) };
    const sync = simulate(scenario, options);
    const async = await simulateAsync(scenario, options);
    expect(async.hash).toBe(sync.hash);
  });

  test('with every guard in the way', async () => {
    const scenario = parseScenario(`
id: guards
duration: 20s
services: { s: { instances: 3, workers: 4, time: { exponential: 50ms }, queue: { max: 20 }, cancels: true } }
clients: { c: { to: s, arrivals: { poisson: 250/s }, leavesAfter: 800ms, failing: 0.4 } }
faults: [{ kind: hang, service: s, instance: 1, from: 5s, until: 10s }]
policies:
  p: { patience: 1s, throttle: true, hedge: true, limiter: { rate: 200/s, wait: 50ms }, bulkhead: { concurrent: 20, queue: 5 } }
`);
    const sync = simulate(scenario, { policy: 'p' });
    expect((await simulateAsync(scenario, { policy: 'p' })).hash).toBe(sync.hash);
    expect(Object.keys(sync.report().all.stops).length).toBeGreaterThanOrEqual(4);
  });

  test('fallback and cache speak in promises, and need the async one', async () => {
    const scenario = queueOf('time: 1ms', '10/s', 2, 'compare: [once]');
    const make = { ...scenario, policies: { p: { fallback: { to: 0 } } } };
    expect(() => simulate(make as never, { policy: 'p' })).toThrow('async');
    expect((await simulateAsync(make as never, { policy: 'p' })).figure('success')).toBe(1);
  });
});

describe('a service', () => {
  const one = (service: string, more = '', clients = '') =>
    parseScenario(`
id: one
duration: 20s
services: { s: { ${service} } }
clients: { c: { to: s, arrivals: { constant: 20/s }${clients} } }
policies: { once: { attempts: 1, patience: 5s, attemptTimeout: none, budget: false, breaker: false } }
${more}
`);
  const run = (scenario: ReturnType<typeof one>) => simulate(scenario, { policy: 'once' });

  test('keeps the work of a caller who has given up, unless it cancels or drops the expired', () => {
    const slow = 'workers: 1, time: 100ms';
    const patient = ', patience: 500ms';
    const queueMost = (service: string) =>
      run(one(service, '', patient)).record.services.get('s')!.tally.queueMost;
    expect(run(one(slow, '', patient)).figure('zombies')).toBeGreaterThan(100);
    expect(queueMost(slow)).toBeGreaterThan(150);
    expect(queueMost(`${slow}, cancels: true`)).toBeLessThan(12);
    expect(queueMost(`${slow}, queue: { dropExpired: true }`)).toBeLessThan(50);
  });

  test('pays for refusals where they have a price', () => {
    const busy = 'workers: 1, time: 60ms, queue: { max: 1 }';
    const free = run(one(busy)).figure('goodput');
    expect(free).toBeGreaterThan(15);
    expect(run(one(`${busy}, refusalCost: 20ms`)).figure('goodput')).toBeLessThan(free - 1);
  });

  test('works at the pace that its capacity has over time', () => {
    const results = run(
      one('workers: 1, time: 40ms, queue: { max: 2 }, capacity: [{ at: 10s, factor: 0.5 }]'),
    );
    expect(results.figure('goodput', { from: 2_000, until: 10_000 })).toBeCloseTo(20, 0);
    expect(results.figure('goodput', { from: 12_000, until: 20_000 })).toBeCloseTo(12.5, 0);
  });

  test('goes on after a stall where it was', () => {
    const stall = 'faults: [{ kind: stall, service: s, from: 5s, until: 6s }]';
    const results = run(one('workers: 100, time: 10ms', stall));
    expect(results.figure('goodput', { from: 5_100, until: 6_000 })).toBe(0);
    expect(results.figure('success')).toBe(1);
  });

  test('stands still in a stall that is shorter than the work, and in two that overlap', () => {
    const work = (faults: string) => {
      const { record } = run(
        parseScenario(`
id: long
duration: 60s
services: { s: { time: 20s } }
clients: { c: { to: s, arrivals: { at: [1s] } } }
faults: ${faults}
policies: { once: { attempts: 1, patience: unlimited, attemptTimeout: none, budget: false, breaker: false } }
`),
      );
      return record.clients.get('c')!.latency.mean() / 1000;
    };
    expect(work('[]')).toBe(20);
    expect(work('[{ kind: stall, service: s, from: 5s, until: 8s }]')).toBe(23);
    const second = '{ kind: stall, service: s, from: 7s, until: 10s }';
    expect(work(`[{ kind: stall, service: s, from: 5s, until: 8s }, ${second}]`)).toBe(25);
    expect(work(`[{ kind: stall, service: s, from: 5s, until: 15s }, ${second}]`)).toBe(30);
  });

  test('has all that is wrong with it wrong at once, and each for its own time', () => {
    const faults = `faults:
  - { kind: refuse, service: s, from: 5s, until: 15s }
  - { kind: flap, service: s, from: 6s, until: 8s, down: 500ms, up: 500ms }
  - { kind: refuse, service: s, from: 7s, until: 10s }`;
    const refused = run(one('time: 1ms', faults)).report().services.s!.series.refused;
    expect(refused.slice(5, 15)).toEqual(Array.from({ length: 10 }, () => 20));
    expect(refused.reduce((sum, each) => sum + each)).toBe(200);

    const slow = 'workers: 1, time: 50ms, queue: { max: 1 }, capacity: [{ at: 5s, factor: 0.5 }]';
    const brownout = 'faults: [{ kind: capacityFactor, value: 0.5, service: s, from: 2s, until: 10s }]';
    const results = run(one(slow, brownout));
    expect(results.figure('goodput', { from: 6_000, until: 10_000 })).toBeCloseTo(5, 0);
    expect(results.figure('goodput', { from: 12_000, until: 20_000 })).toBeCloseTo(10, 0);
  });

  test('serves the important first, and refuses the unimportant first', () => {
    const scenario = parseScenario(`
id: ranks
duration: 20s
services: { s: { workers: 1, time: 50ms, queue: { max: 5 } } }
clients:
  vip: { to: s, arrivals: { constant: 10/s }, priority: critical }
  bulk: { to: s, arrivals: { constant: 30/s }, priority: sheddable }
policies: { once: { attempts: 1, patience: 5s, attemptTimeout: none, budget: false, breaker: false } }
`);
    const results = run(scenario);
    expect(results.figure('success', { clients: 'vip' })).toBe(1);
    expect(results.figure('success', { clients: 'bulk' })).toBeLessThan(0.5);
  });

  test('with core’s adaptive limit refuses rather than lets everybody wait', () => {
    const crowd = (limit: string) => queueOf(`workers: 10, time: { exponential: 50ms }${limit}`, '300/s', 60);
    const without = run(crowd(''));
    const limited = run(crowd(', limit: { initial: 20 }'));
    expect(without.figure('p99', { from: 30_000 })).toBeGreaterThan(2);
    expect(limited.figure('p99', { from: 30_000 })).toBeLessThan(1);
    expect(limited.figure('goodput', { from: 30_000 })).toBeGreaterThan(150);
  });

  test.each(['window', 'gcra'])('with a rate limit (%s) says when to come back', (kind) => {
    const results = run(one(`time: 1ms, rateLimit: { calls: 10, kind: ${kind} }`));
    expect(results.figure('goodput')).toBeCloseTo(10, 0);
  });
});

describe('between tiers', () => {
  const tiers = (tells: string) =>
    parseScenario(`
id: tiers
duration: 10s
services:
  a: { calls: [{ to: b, tells: ${tells} }] }
  b: { calls: [{ to: c, tells: ${tells} }] }
  c: { workers: 20, time: 50ms }
clients: { user: { to: a, arrivals: { constant: 20/s }, patience: 400ms } }
faults: [{ kind: errorRate, value: 1, service: c, from: 0s, until: 5s }, { kind: extraLatency, extra: 5s, service: c, from: 5s }]
policies: { p: { attempts: 3, backoff: false, attemptTimeout: none, budget: false, breaker: false } }
`);

  test('ownership that travels leaves the retries to the first', async () => {
    const results = simulate(tiers('[ownership]'), { policy: 'p' });
    expect(results.figure('multiplication', { service: 'c', until: 5_000 })).toBe(3);
    expect(results.report().tiers['b → c']!.stops).toHaveProperty('not_owner');
    expect(
      simulate(tiers('[]'), { policy: 'p' }).figure('multiplication', { service: 'c', until: 5_000 }),
    ).toBe(27);
    expect((await simulateAsync(tiers('[ownership]'), { policy: 'p' })).hash).toBe(results.hash);
  });

  test('patience that travels ends work that nobody waits for', async () => {
    const without = simulate(tiers('[]'), { policy: 'p' });
    const told = simulate(tiers('[patience]'), { policy: 'p' });
    const lateFailures = (results: typeof told) => results.report().tiers['b → c']!.series.failed.slice(6, 9);
    // Those who know give up with the customer; the others go on waiting for 5 s.
    expect(lateFailures(told)).toEqual([20, 20, 20]);
    expect(lateFailures(without)).toEqual([0, 0, 0]);
    expect((await simulateAsync(tiers('[patience]'), { policy: 'p' })).hash).toBe(told.hash);
  });
});

describe('a cache', () => {
  const cached = (to: string) =>
    parseScenario(`
id: cached
duration: 10s
services:
  a: { calls: [{ to: b }] }
  b: { time: 5ms, cache: { keys: 10, warm: 10 } }
clients: { c: { to: ${to}, arrivals: { constant: 20/s } } }
faults: [{ kind: flush, service: b, from: 5s }]
policies: { p: { attempts: 2 } }
`);

  test.each(['a', 'b'])('stands before a service, whoever calls it: %s', async (to) => {
    const results = simulate(cached(to), { policy: 'p' });
    const { received } = results.report().services.b!.series;
    expect(received.slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
    expect(results.report().services.b!.received).toBe(10);
    expect(results.figure('success')).toBe(1);
    expect((await simulateAsync(cached(to), { policy: 'p' })).hash).toBe(results.hash);
  });
});

describe('a closed loop', () => {
  const loop = (clients: string) =>
    simulate(
      parseScenario(`
id: loop
duration: 20s
services: { s: { time: 100ms } }
clients: { c: { to: s, count: 10, arrivals: { think: 900ms, until: 10s }${clients} } }
policies: { once: { attempts: 1, budget: false, breaker: false } }
`),
      { policy: 'once' },
    );

  test('ends when its clients do', () => {
    const { offered } = loop('').report().all.series;
    expect(offered.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 10));
    expect(offered.slice(10)).toEqual(Array.from({ length: 10 }, () => 0));
  });

  test.each(['sync', 'async'])('comes to its end where nothing takes any time (%s)', async (driver) => {
    const scenario = parseScenario(`
id: loop
duration: 2ms
services: { s: { time: 0 } }
clients: { c: { to: s, count: 1, arrivals: { think: 0 } } }
policies: { once: { attempts: 1, budget: false, breaker: false } }
`);
    const results =
      driver === 'sync'
        ? simulate(scenario, { policy: 'once' })
        : await simulateAsync(scenario, { policy: 'once' });
    expect(results.report().all).toMatchObject({ begun: 2000, succeeded: 2000 });
  });

  test('has its share of poison', () => {
    expect(loop(', poison: 1').figure('success')).toBe(0);
    const some = loop(', poison: 0.3');
    expect(some.figure('success')).toBeCloseTo(0.7, 0);
    expect(some.figure('lostGood')).toBe(0);
    expect(some.figure('failures')).toBeGreaterThan(0);
  });
});

describe('figures', () => {
  const two = parseScenario(`
id: two
duration: 30s
services: { s: { time: 100ms }, gone: { time: 1ms } }
clients:
  early: { to: s, count: 5, arrivals: { burst: 1s } }
  web: { to: s, arrivals: { constant: 10/s } }
  lost: { to: gone, arrivals: { constant: 10/s } }
faults: [{ kind: refuse, service: gone, from: 0s }, { kind: refuse, service: s, from: 10s, until: 12s }]
policies: { once: { attempts: 1, budget: false, breaker: false } }
measure: { troubleFrom: 10s }
`);
  const results = simulate(two, { policy: 'once' });

  test('of waiting are of those classes that were served at all', () => {
    expect(results.figure('p99')).toBeCloseTo(0.1, 9);
    expect(results.figure('p99', { from: 5_000 })).toBeCloseTo(0.1, 9);
    expect(results.figure('p99', { clients: 'lost' })).toBe(Number.NaN);
    expect(results.figure('finish')).toBeCloseTo(30, 1);
  });

  test('say that what never worked has not recovered', () => {
    expect(results.figure('recovery', { clients: 'web' })).toBe(0);
    expect(results.figure('recovery', { clients: 'lost' })).toBe(Infinity);
  });

  test.each([
    ['is down at the end', '30s, until: 120s', Infinity],
    ['is down for long and back at the end', '30s, until: 110s', 0],
  ])('say of what %s whether it has recovered', (_what, again, recovery) => {
    const relapse = parseScenario(`
id: relapse
duration: 120s
services: { s: { time: 1ms } }
clients: { c: { to: s, arrivals: { constant: 10/s } } }
faults: [{ kind: refuse, service: s, from: 10s, until: 12s }, { kind: refuse, service: s, from: ${again} }]
policies: { once: { attempts: 1, budget: false, breaker: false } }
measure: { troubleUntil: 12s }
`);
    const run = simulate(relapse, { policy: 'once' });
    expect(run.figure('metastable')).toBe(1);
    expect(run.figure('recovery')).toBe(recovery);
    expect(run.report().recovery).toBe(Number.isFinite(recovery) ? recovery : null);
  });

  test('are not of a service that is not there', () => {
    expect(() => results.figure('attempts', { service: 'nowhere' })).toThrow(
      'There is no service named nowhere.',
    );
  });
});

describe('customers who give up', () => {
  const reloading = (more: string) =>
    parseScenario(`
id: reloads
duration: 20s
services: { s: { workers: 1, time: 100ms } }
clients: { c: { to: s, arrivals: { constant: 1/s }, leavesAfter: 500ms, repeat: 100ms${more} } }
faults: [{ kind: hang, service: s, from: 4950ms, until: 9950ms }]
policies: { once: { attempts: 1, patience: unlimited, attemptTimeout: none, budget: false, breaker: false } }
`);

  test('reload until they are served', () => {
    const results = simulate(reloading(''), { policy: 'once' });
    expect(results.figure('reloads')).toBeGreaterThan(20);
    expect(results.figure('successes')).toBe(19);
  });

  test('but not when the load has stopped', () => {
    const { clients, services, ...rest } = reloading('');
    const dead = { ...rest, clients, services, faults: [{ ...rest.faults[0]!, from: 0, until: Infinity }] };
    const results = simulate(dead, { policy: 'once' });
    const { begun } = results.report().all;
    expect(results.figure('offered') * 20).toBe(begun);
  });

  test('are told as such by both drivers', async () => {
    const options = { policy: 'once' };
    const { stops } = (await simulateAsync(reloading(''), options)).report().all;
    expect(stops).toEqual(simulate(reloading(''), options).report().all.stops);
    expect(stops.cancelled).toBeGreaterThan(20);
  });

  test('or so often at most', () => {
    const results = simulate(reloading(', repeatMax: 2'), { policy: 'once' });
    expect(results.figure('reloads', { from: 5_000, until: 12_000 })).toBeLessThanOrEqual(10);
    expect(results.figure('successes')).toBeLessThan(19);
  });
});
