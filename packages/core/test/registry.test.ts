import { describe, expect, test } from 'vitest';
import { breaker } from '../src/parts/breaker.ts';
import { retry } from '../src/parts/retry.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePart } from '../src/policy/part.ts';
import { definePolicy } from '../src/policy/policy.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { breakerOf, breakersOf, forceBreaker, policies, policyOf, registry } from '../src/policy/registry.ts';
import { after, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');
let names = 0;

function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const name = `policy ${++names}`;
  const made = policy(
    { name, retryOn: 'any', attempts: 1, ...spec },
    { clock, random: seededRandom('registry') },
  );
  return { clock, name, policy: made, state: () => policies().find((each) => each.name === name) };
}

describe('policies', () => {
  test('lists those that have a name, with their live state', async () => {
    const {
      clock,
      name,
      policy: made,
      state,
    } = setup({ bulkhead: { concurrent: 1 }, breaker: { consecutive: 1 } });
    policy({});
    void made.run(scripted(clock, after('100ms', 1)));
    void made.run(scripted(clock, 1));
    await made.try(() => Promise.reject(down), { target: 'b' });
    expect(state()).toMatchObject({
      name,
      counters: { operations: 3, attempts: 2, failed: 1, loadMultiplication: 2 / 3 },
      killSwitch: false,
      targets: [
        { target: null, inFlight: 1, queued: 1, breaker: 'closed', admitsInMs: 0, tokens: 0 },
        { target: 'b', inFlight: 0, breaker: 'open' },
      ],
    });
    await clock.advance('1s');
    made.kill();
    expect(state()).toMatchObject({
      killSwitch: true,
      counters: { succeeded: 2 },
      targets: [{ inFlight: 0, queued: 0, latencyMs: { p50: expect.any(Number) } }, { breaker: 'half-open' }],
    });
  });

  test('say why a breaker is open, since when, and what it has counted', async () => {
    const { clock, name, policy: made, state } = setup({ breaker: { consecutive: 3 } });
    await made.try(() => 1, { target: 'a' });
    for (let n = 0; n < 3; n++) await made.try(() => Promise.reject(down), { target: 'a' });
    await clock.advance('300ms');
    const target = () => state()!.targets.find((each) => each.target === 'a');
    expect(target()).toMatchObject({
      breaker: 'open',
      breakerForMs: 300,
      breakerBecause: 'consecutive_failures',
      window: { calls: 4, failures: 3, slow: 0 },
      tokensMax: expect.any(Number),
    });
    expect(target()).not.toHaveProperty('forced');

    breakerOf(name, 'a')!.force('open', clock.now(), 'ann: the bank is down');
    await clock.advance('1s');
    expect(target()).toMatchObject({
      breakerForMs: 1000,
      forced: { state: 'open', because: 'ann: the bank is down' },
      admitsInMs: null,
    });
    breakerOf(name, 'a')!.force(undefined, clock.now());
    expect(target()).not.toHaveProperty('forced');
  });

  test('say since when a breaker has not been closed, however often it was half-open in between', async () => {
    const { clock, policy: made, state } = setup({ breaker: { consecutive: 3, openFor: ['1s', '1s'] } });
    const target = () => state()!.targets.find((each) => each.target === 'a');
    await made.try(() => 1, { target: 'a' });
    expect(target()).not.toHaveProperty('failingForMs');
    for (let n = 0; n < 3; n++) await made.try(() => Promise.reject(down), { target: 'a' });
    for (let n = 0; n < 20; n++) {
      await clock.advance('1s');
      await made.try(() => Promise.reject(down), { target: 'a' });
    }
    expect(target()?.breakerForMs).toBeLessThan(2000);
    expect(target()?.failingForMs).toBe(20_000);
  });

  test('asking for the counts of a window of calls starts no new call', async () => {
    const { policy: made, state } = setup({ breaker: { window: { calls: 2 }, minimum: 2 } });
    await made.try(() => Promise.reject(down));
    for (let n = 0; n < 5; n++)
      expect(state()!.targets[0]!.window).toEqual({ calls: 1, failures: 1, slow: 0 });
  });

  test('shows the budget that interchangeable targets share', async () => {
    const { policy: made, state } = setup();
    await made.run(() => 1, { targets: ['a', 'b'] });
    const listed = state()!.targets;
    expect(listed.map(({ target }) => target).sort()).toEqual(['a', 'a b', 'b']);
    expect(listed.find(({ target }) => target === 'a b')).toMatchObject({ tokens: expect.any(Number) });
  });

  test('is plain JSON, and a picture of the moment', async () => {
    const { clock, policy: made, state, name } = setup({ hedge: true, choice: true });
    await made.run(() => 1);
    await made.run(() => 1, { target: 'a' });
    breakerOf(name)?.force('open', clock.now());
    const before = state();
    expect(JSON.parse(JSON.stringify(before))).toEqual(before);
    expect(before?.targets[0]).toMatchObject({ breaker: 'open', admitsInMs: null });
    await made.run(() => 1, { target: 'a' });
    expect([before?.counters.operations, state()?.counters.operations]).toEqual([2, 3]);
  });

  test('the latest of a name is the one that is listed', async () => {
    const { name, state } = setup();
    const later = policy({ name });
    await later.run(() => 1);
    expect(policies().filter((each) => each.name === name).length).toBe(1);
    expect(state()?.counters.operations).toBe(1);
  });

  test('an updated policy stays in the list, under the name it has now', async () => {
    const { name, policy: made, state } = setup();
    await made.run(() => 1);
    made.update({ name, attempts: 2 });
    await made.run(() => 1);
    expect(state()?.counters.operations).toBe(2);
    made.update({ name: `${name}, renamed` });
    expect(policies().filter((each) => each.name.startsWith(name))).toMatchObject([
      { name: `${name}, renamed` },
    ]);
    made.update({});
    expect(policies().filter((each) => each.name.startsWith(name))).toEqual([]);
  });

  test('an update keeps for how long and why a breaker is open', async () => {
    const { clock, name, policy: made, state } = setup({ breaker: { consecutive: 1, openFor: '1m' } });
    await made.try(() => Promise.reject(down));
    await clock.advance(2_000);
    made.update({ name, attempts: 2, breaker: { consecutive: 1, openFor: '1m' } });
    await clock.advance(1_000);
    expect(state()?.targets).toMatchObject([
      { breaker: 'open', breakerForMs: 3_000, failingForMs: 3_000, breakerBecause: 'consecutive_failures' },
    ]);
  });

  test('never lists a document that was refused, whatever the order of the parts', () => {
    const fussy = definePart({
      key: 'fussy',
      fields: {},
      create() {
        throw new Error('not this one');
      },
    });
    const name = `policy ${++names}`;
    expect(() => definePolicy([registry, retry, fussy])({ name })).toThrow('not this one');
    expect(policies().some((each) => each.name === name)).toBe(false);
  });
});

describe('breakerOf', () => {
  test('lets a person hold a breaker open, and let it go', async () => {
    const { clock, name, policy: made } = setup();
    await made.run(() => 1, { target: 'a' });
    breakerOf(name, 'a')?.force('open', clock.now());
    expect(await made.try(() => 1, { target: 'a' })).toMatchObject({
      ok: false,
      story: { stop: 'breaker_open' },
      error: { code: 'HOLDFAST_BREAKER_OPEN' },
    });
    expect(await made.try(() => 1, { target: 'b' })).toMatchObject({ ok: true });
    breakerOf(name, 'a')?.force(undefined, clock.now());
    expect(await made.try(() => 1, { target: 'a' })).toMatchObject({ ok: true });
  });

  test('or closed, whatever happens', async () => {
    const { clock, name, policy: made } = setup({ breaker: { consecutive: 1 } });
    await made.run(() => 1);
    breakerOf(name)?.force('closed', clock.now());
    for (let n = 0; n < 10; n++) await made.try(() => Promise.reject(down));
    expect(made.counters.stops).toEqual({ attempts_exhausted: 10 });
  });

  test('is undefined where there is none', () => {
    const { name } = setup({ breaker: false });
    expect(breakerOf(name)).toBe(undefined);
    expect(breakerOf('nobody')).toBe(undefined);
    definePolicy([breaker, registry])({ name });
    expect(breakerOf(name, 'never called')).toBe(undefined);
  });
});

describe('breakersOf', () => {
  test('gives those of every target, and none for a name that nobody has', async () => {
    const { name, policy: made } = setup();
    await made.run(() => 1);
    await made.run(() => 1, { target: 'a' });
    expect(breakersOf(name)).toEqual([breakerOf(name), breakerOf(name, 'a')]);
    expect(breakersOf('nobody')).toEqual([]);
  });
});

describe('policyOf', () => {
  test('gives the policy by its name, also after an update', () => {
    const { name, policy: made } = setup();
    expect(policyOf(name)).toBe(made);
    made.update({ name, attempts: 2 });
    expect(policyOf(name)).toBe(made);
    expect(policyOf('no such policy')).toBeUndefined();
  });
});

describe('override', () => {
  test('replaces fields until it is withdrawn, and an update keeps it', async () => {
    const { name, policy: made, state } = setup({ attempts: 3, backoff: { base: 0, cap: 0 } });
    const failing = () => {
      let calls = 0;
      const operation = () => {
        calls++;
        return Promise.reject(down);
      };
      return { operation, calls: () => calls };
    };
    made.override({ mode: 'observe' });
    const observed = failing();
    await expect(made.run(observed.operation)).rejects.toBe(down);
    expect(observed.calls()).toBe(1);
    expect(state()).toMatchObject({ overridden: { mode: 'observe' } });
    expect(made.spec).not.toHaveProperty('mode');

    made.update({ name, attempts: 2, retryOn: 'any' });
    expect(made.settings).toMatchObject({ mode: 'observe', attempts: 2 });
    made.override();
    expect(made.settings).toMatchObject({ mode: 'enforce', attempts: 2 });
    expect(state()).not.toHaveProperty('overridden');
  });

  test('keeps the state of breakers, and refuses what the document would refuse', async () => {
    const { clock, name, policy: made } = setup({ breaker: { consecutive: 1 } });
    await made.try(() => Promise.reject(down));
    made.override({ attempts: 5 });
    expect(breakerOf(name)!.state(clock.now())).toBe('open');
    expect(() => made.override({ attempts: -1 })).toThrow(/attempts/);
    expect(made.settings).toMatchObject({ attempts: 5 });
  });
});

describe('forceBreaker', () => {
  test('needs no clock, says how many breakers it reached, and lets go of them', async () => {
    const { name, policy: made, clock } = setup();
    expect(forceBreaker(name, 'open')).toBe(0);
    for (const target of ['a', 'b']) await made.run(() => 1, { target });
    expect(forceBreaker(name, 'open', { target: 'a', because: 'maintenance' })).toBe(1);
    await expect(made.run(() => 1, { target: 'a' })).rejects.toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN' });
    expect(breakerOf(name, 'a')!.forcedBecause).toBe('maintenance');
    await expect(made.run(() => 1, { target: 'b' })).resolves.toBe(1);
    await clock.advance('10s');
    expect(forceBreaker(name, 'auto')).toBe(2);
    await expect(made.run(() => 1, { target: 'a' })).resolves.toBe(1);
    expect(forceBreaker('no such policy', 'open')).toBe(0);
  });
});
