import { describe, expect, test } from 'vitest';
import { budget } from '../src/parts/budget.ts';
import { retry } from '../src/parts/retry.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy } from '../src/policy/policy.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { OptionsError } from '../src/report/errors.ts';
import { after, type Beat, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');

function setup(spec: PolicySpec = {}) {
  const clock = virtualClock({ now: 1_000_000 });
  const base: PolicySpec = {
    retryOn: 'any',
    attempts: 1,
    backoff: { base: '100ms', jitter: 'none' },
    ...spec,
  };
  const made = policy(base, { clock, random: seededRandom('update') });
  const call = (...beats: Beat[]) => scripted(clock, ...beats);
  const update = (changes: PolicySpec = {}) => made.update({ ...base, ...changes });
  const home = () => made.plan.targetOf!(undefined, clock.now());
  return { clock, policy: made, call, update, home };
}

describe('state survives a new document', () => {
  test('an open breaker stays open, and reopens when it would have', async () => {
    const { clock, policy: made, update, home } = setup({ breaker: { consecutive: 1, openFor: '10s' } });
    await made.try(() => Promise.reject(down));
    const reopensAt = home().breaker!.reopensAt(clock.now());
    update({ breaker: { consecutive: 3, openFor: '10s' } });
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
    expect(home().breaker!.reopensAt(clock.now())).toBe(reopensAt);
    await clock.advance(Math.ceil(reopensAt - clock.now()));
    await expect(made.run(() => 1)).resolves.toBe(1);
  });

  test('also that of a named target, and what is counted in a closed one', async () => {
    const { policy: made, update } = setup({ breaker: { consecutive: 3 } });
    const fail = () => made.try(() => Promise.reject(down), { target: 'a' });
    await fail();
    await fail();
    update({ breaker: { consecutive: 3 }, attempts: 1 });
    await fail();
    expect(await made.try(() => 1, { target: 'a' })).toMatchObject({ story: { stop: 'breaker_open' } });
  });

  test('a breaker that was forced stays so', async () => {
    const { clock, policy: made, update, home } = setup();
    home().breaker!.force('open', clock.now());
    update();
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });

  test('what calls in flight give is told to the breaker that is asked now', async () => {
    const { clock, policy: made, update, call } = setup({ breaker: { consecutive: 1 } });
    void made.try(call(after('1s', down)));
    update();
    await clock.advance('1s');
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });

  test('the tokens of the budget stay, and no credit is given anew', async () => {
    const { clock, policy: made, update, home } = setup();
    for (let n = 0; n < 25; n++) await made.run(() => n);
    await clock.advance('9s');
    const tokens = home().budget!.tokens(clock.now());
    update();
    expect(home().budget!.tokens(clock.now())).toBe(tokens);
    home().budget!.spend(clock.now(), 100);
    update({ attempts: 4 });
    expect(home().budget!.tokens(clock.now())).toBe(0);
  });

  test('work in flight pays from the same budget as the work after it', async () => {
    const { clock, policy: made, update, call } = setup({ attempts: 2, breaker: false });
    for (let n = 0; n < 10; n++) await made.run(() => n);
    await clock.advance('1m');
    // One token, and two who want it: one that began under the old document, one under the new.
    const old = call(after('50ms', down));
    void made.try(old);
    update({ attempts: 2, breaker: false });
    const young = call(after('50ms', down));
    void made.try(young);
    await clock.advance('1m');
    expect(old.calls.length + young.calls.length).toBe(3);
  });

  test('a new ratio holds from now on', async () => {
    const { clock, policy: made, update, home } = setup({ budget: { ratio: 0.5 } });
    for (let n = 0; n < 20; n++) await made.run(() => n);
    expect(home().budget!.tokens(clock.now())).toBe(10);
    update({ budget: { ratio: 0.1 } });
    expect(home().budget!.tokens(clock.now())).toBe(2);
  });

  test('permits stay taken, whoever waits goes on waiting, and new limits hold', async () => {
    const { clock, policy: made, update, call, home } = setup({ bulkhead: { concurrent: 1, queue: 1 } });
    void made.run(call(after('1s', 'a')));
    const waiting = made.try(call(after('1s', 'b')));
    update({ bulkhead: { concurrent: 1, queue: 1 } });
    expect(await made.try(() => 'c')).toMatchObject({ story: { stop: 'bulkhead_full' } });
    expect(home().bulkhead!.inFlight).toBe(1);
    update({ bulkhead: { concurrent: 2, queue: 0 } });
    await clock.advance('1s');
    expect(await waiting).toMatchObject({ value: 'b', story: { tookMs: 1000 } });
    expect(home().bulkhead!.inFlight).toBe(0);
  });

  test('the rate goes on', async () => {
    const { policy: made, update } = setup({ limiter: { rate: '1/s', burst: 3 } });
    for (let n = 0; n < 3; n++) await made.run(() => n);
    update();
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'rate_limited' } });
  });

  test('so does the throttle', async () => {
    const { clock, policy: made, update, home } = setup({ throttle: true, breaker: false });
    for (let n = 0; n < 200; n++) await made.try(() => Promise.reject(down));
    const chance = home().throttle!.chance(clock.now());
    update();
    expect(chance).toBeGreaterThan(0.5);
    expect(home().throttle!.chance(clock.now())).toBe(chance);
  });

  test('latencies are kept, for the timeout that learns from them and for hedges', async () => {
    const { clock, policy: made, update, call, home } = setup();
    for (let n = 0; n < 1000; n++) {
      void made.run(call(after('20ms', 1)));
      await clock.advance('20ms');
    }
    const samples = home().latency!.samples;
    update({ hedge: true });
    expect(home().latency!.samples).toBe(samples);
    expect(home().autoTimeout!.limitMs(10_000, 4)).toBeLessThan(150);
  });

  test('a timeout that is to learn only now starts with nothing, and learns', async () => {
    const { clock, policy: made, update, call, home } = setup({ attemptTimeout: '5s', hedge: true });
    await made.run(() => 1);
    update({ attemptTimeout: 'auto', hedge: true });
    for (let n = 0; n < 1000; n++) {
      void made.run(call(after('20ms', 1)));
      await clock.advance('20ms');
    }
    expect(home().autoTimeout!.limitMs(10_000, 4)).toBeLessThan(150);
  });

  test('where targets stand is kept, and a choice that is new starts afresh', async () => {
    const { policy: made, update } = setup({ choice: false });
    const targets = ['a', 'b'];
    await made.run(() => 1, { target: 'a' });
    update({ choice: true });
    await expect(made.run(({ target }) => target, { targets })).resolves.toMatch(/a|b/);
    const health = made.plan.targets!.get('a', 0).health;
    update({ choice: { consecutive: 2 } });
    expect(made.plan.targets!.get('a', 0).health).toBe(health);
  });

  test('results are kept, for as long as the new document says, and calls for them are shared', async () => {
    const { clock, policy: made, call, update } = setup({ cache: { fresh: '10s', entriesMax: 3 } });
    const operation = call('a', 'b', 'c', after('1s', 'd'), 'e');
    const get = (cacheKey: string) => made.run(operation, { cacheKey });
    for (const key of ['a', 'b', 'c']) await get(key);
    const flying = get('d');
    update({ cache: { fresh: '5s', entriesMax: 2 } });
    const shared = get('d');
    await clock.advance('1s');
    expect([await get('c'), await flying, await shared]).toEqual(['c', 'd', 'd']);
    expect(operation.calls.length).toBe(4);
    await clock.advance('4s');
    await get('c');
    expect(operation.calls.length).toBe(5);
    expect([...made.plan.results!.entries.keys()]).toEqual(['d', 'c']);
  });

  test('the kill switch stays where it is', async () => {
    const { policy: made, update } = setup({ attempts: 3 });
    made.kill();
    update({ attempts: 3 });
    expect(await made.try(() => Promise.reject(down))).toMatchObject({ story: { stop: 'kill_switch' } });
  });

  test('and holds for work that began under the old document', async () => {
    const { clock, policy: made, call, update } = setup({ attempts: 3 });
    const operation = call(down);
    const running = made.try(operation);
    await clock.advance('10ms');
    update({ attempts: 4 });
    update({ attempts: 5 });
    made.kill();
    await clock.advance('1m');
    expect(await running).toMatchObject({ story: { stop: 'kill_switch', attempts: 1 } });
  });

  test('a part that is switched off and on again starts afresh', async () => {
    const { policy: made, update } = setup({ breaker: { consecutive: 1 } });
    await made.try(() => Promise.reject(down));
    update({ breaker: false });
    await made.run(() => 1);
    update({ breaker: { consecutive: 1 } });
    await expect(made.run(() => 1)).resolves.toBe(1);
  });

  test('a policy without guards keeps its budget too', async () => {
    const clock = virtualClock();
    const made = definePolicy([retry, budget])(
      { retryOn: () => 'transient', attempts: 2, backoff: false },
      { clock },
    );
    await made.try(() => Promise.reject(new Error('spends the credit')));
    made.update({ retryOn: () => 'transient', attempts: 2, backoff: false });
    expect(await made.try(() => Promise.reject(new Error('down')))).toMatchObject({
      story: { stop: 'budget_exhausted' },
    });
  });
});

describe('the new document', () => {
  test('holds for work that begins after it; the other ends by the old one', async () => {
    const { clock, policy: made, update, call } = setup({ attempts: 3, breaker: false, budget: false });
    const old = call(() => Promise.reject(new Error('down')));
    const young = call(() => Promise.reject(new Error('down')));
    void made.try(old);
    update({ attempts: 1, breaker: false, budget: false });
    void made.try(young);
    await clock.advance('1m');
    expect([old.calls.length, young.calls.length]).toEqual([3, 1]);
    expect(made.spec.attempts).toBe(1);
    expect(made.counters).toMatchObject({ operations: 2, attempts: 4 });
  });
});

describe('a bad document changes nothing', () => {
  const bad: PolicySpec[] = [
    { attempts: 0 },
    { attempts: 'unlimited', patience: 'unlimited' },
    { backoff: { base: '1m' } },
    { attemptTimeout: '1h' },
    { breaker: { openFor: [] as never } },
    { breaker: { openFor: ['2s', '1s'] } },
    { choice: { ejectFor: [] as never } },
    { hedge: { percentile: 0.5, after: '1s' } },
    { fallback: {} },
    { retryOn: 'nonsense' as never },
    { limiter: { rate: 'often' as never } },
    { nonsense: 1 } as never,
    { name: '' },
  ];
  test.each(bad.map((spec) => [JSON.stringify(spec), spec] as const))('%s', async (_text, spec) => {
    const { clock, policy: made, update, home } = setup({ name: 'good', breaker: { consecutive: 1 } });
    await made.try(() => Promise.reject(down));
    const before = [
      made.plan,
      made.spec,
      made.settings,
      made.name,
      JSON.stringify(home().breaker!.save(clock.now())),
    ];
    for (let times = 0; times < 3; times++) expect(() => update(spec)).toThrow(OptionsError);
    expect([
      made.plan,
      made.spec,
      made.settings,
      made.name,
      JSON.stringify(home().breaker!.save(clock.now())),
    ]).toEqual(before);
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
    // And a good one after it is taken.
    update({ name: 'good', attempts: 2, breaker: { consecutive: 1 } });
    expect(made.plan.attempts).toBe(2);
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });
});

describe('with', () => {
  test('says some fields otherwise, group by group, and has state of its own', async () => {
    const { policy: made } = setup({ breaker: { consecutive: 1, slow: { over: '1s' } }, patience: '1m' });
    await made.try(() => Promise.reject(down));
    const other = made.with({ breaker: { slow: { ratio: 0.5 } } });
    expect(other.spec).toMatchObject({
      patience: '1m',
      breaker: { consecutive: 1, slow: { over: '1s', ratio: 0.5 } },
    });
    await expect(other.run(() => 1)).resolves.toBe(1);
  });

  test('replaces as a whole what is not a group', async () => {
    const { policy: made } = setup({ fallback: { to: { items: [1], reserve: 1 }, reserve: '1s' } });
    const other = made.with({ fallback: { to: { error: true } } });
    expect(other.spec.fallback).toEqual({ to: { error: true }, reserve: '1s' });
    const date = new Date(0);
    await expect(other.with({ fallback: { to: date } }).run(() => Promise.reject(down))).resolves.toBe(date);
  });

  test('with nothing said otherwise is the document of now with state, and time and chance if given, of its own', async () => {
    const { clock, policy: made, update } = setup();
    update({ name: 'later', breaker: { consecutive: 1 } });
    await made.try(() => Promise.reject(down));
    const elsewhere = virtualClock({ now: 5 });
    const roll = () => 0.25;
    const twin = made.with({}, { clock: elsewhere, random: roll });
    expect(twin.plan).toMatchObject({ clock: elsewhere, random: roll, attempts: 1, name: 'later' });
    expect(twin.spec).toEqual(made.spec);
    expect(twin.settings).toEqual(made.settings);
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
    await expect(twin.run(() => 1)).resolves.toBe(1);
    expect(twin.counters).toMatchObject({ operations: 1, succeeded: 1 });
    expect(made.with({}).plan.clock).toBe(clock);
    expect(made.with({ attempts: 2 }, { clock: elsewhere }).plan).toMatchObject({
      clock: elsewhere,
      random: made.plan.random,
      attempts: 2,
    });
  });
});

describe('wrap', () => {
  test('can be taken off the policy, and passes `this` on', async () => {
    const { wrap } = setup().policy;
    const account = {
      balance: 5,
      read: wrap(async function (this: { balance: number }, factor: number) {
        return this.balance * factor;
      }),
    };
    await expect(account.read(2)).resolves.toBe(10);
  });
});
