import { afterEach, describe, expect, test } from 'vitest';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { type AmbientContext, ambientContext, setAmbientStore } from '../src/run/ambient-context.ts';
import { after, type Beat, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');

function setup(spec: PolicySpec = {}, ...beats: Beat[]) {
  const clock = virtualClock();
  const made = policy(
    { retryOn: 'any', attempts: 1, cache: { fresh: '10s' }, ...spec },
    { clock, random: seededRandom('cache') },
  );
  const operation = scripted(clock, ...beats);
  const get = (cacheKey: string, options = {}) => made.try(operation, { cacheKey, ...options });
  return { clock, policy: made, operation, get, run: made.run };
}

afterEach(() => setAmbientStore(undefined));

describe('fresh', () => {
  test('a result spares the call for as long as it is fresh', async () => {
    const { clock, get, operation } = setup({}, 'first', 'second');
    expect(await get('a')).toMatchObject({ ok: true, value: 'first', story: { attempts: 1 } });
    await clock.advance('9999ms');
    expect(await get('a')).toMatchObject({ value: 'first', from: 'cache', story: { attempts: 0 } });
    await clock.advance('1ms');
    expect(await get('a')).toMatchObject({ value: 'second' });
    expect(operation.calls.length).toBe(2);
  });

  test('is of one key, and runs without a key are not cached', async () => {
    const { get, run, operation } = setup({}, 1, 2, 3, 4);
    await get('a');
    expect(await get('b')).toMatchObject({ value: 2 });
    expect([await run(operation), await run(operation)]).toEqual([3, 4]);
  });

  test('a failure is not kept', async () => {
    const { get } = setup({}, down, 'up');
    expect(await get('a')).toMatchObject({ ok: false, error: down });
    expect(await get('a')).toMatchObject({ value: 'up' });
  });

  test('nor is a value that was judged a failure', async () => {
    const { get } = setup({ retryOn: 'http' }, new Response(null, { status: 503 }), 'up');
    expect(await get('a')).toMatchObject({ ok: false, thrown: false, value: { status: 503 } });
    expect(await get('a')).toMatchObject({ value: 'up' });
  });

  test('undefined and null are results like any other', async () => {
    const { get, operation } = setup({}, undefined);
    await get('a');
    expect(await get('a')).toMatchObject({ ok: true, from: 'cache' });
    expect(operation.calls.length).toBe(1);
  });

  test('holds so many results, and lets go of the one that was used least recently', async () => {
    const { get } = setup({ cache: { entriesMax: 2 } }, 1, 2, 3, 4);
    await get('a');
    await get('b');
    await get('a');
    await get('c');
    expect(await get('a')).toMatchObject({ from: 'cache', value: 1 });
    expect(await get('b')).toMatchObject({ value: 4 });
  });
});

describe('stale if error', () => {
  const stale = { cache: { fresh: '1s', staleIfError: '1m' } } satisfies PolicySpec;

  test('a value that was fresh not long ago replaces a failure', async () => {
    const { clock, get } = setup(stale, 'old', down);
    await get('a');
    await clock.advance('61s');
    expect(await get('a')).toMatchObject({ ok: false });
  });

  test('until its time is over', async () => {
    const { clock, get } = setup(stale, 'old', down);
    await get('a');
    await clock.advance('60999ms');
    expect(await get('a')).toMatchObject({ ok: true, value: 'old', from: 'cache' });
  });

  test('also for who has no patience left to wait for a new one', async () => {
    const { clock, get } = setup(stale, 'old', 'hang');
    await get('a');
    await clock.advance('2s');
    const late = get('a', { patience: '500ms' });
    await clock.advance('500ms');
    expect(await late).toMatchObject({ value: 'old', from: 'cache', story: { tookMs: 500 } });
  });

  test('but not for who has left', async () => {
    const { clock, get } = setup(stale, 'old', 'hang');
    await get('a');
    await clock.advance('2s');
    const caller = new AbortController();
    const left = get('a', { signal: caller.signal });
    await clock.advance('1ms');
    caller.abort('left');
    expect(await left).toMatchObject({ ok: false, error: 'left', story: { stop: 'cancelled' } });
  });
});

describe('single flight', () => {
  test('calls for one key at one time share one flight', async () => {
    const { clock, get, operation } = setup({}, after('1s', 'shared'));
    const all = Promise.all([get('a'), get('a'), get('a')]);
    await clock.advance('1s');
    expect((await all).map((ending) => ending.ok && ending.value)).toEqual(['shared', 'shared', 'shared']);
    expect(operation.calls.length).toBe(1);
  });

  test('and its failure; the next call starts another', async () => {
    const { clock, get } = setup({}, after('1s', down), 'up');
    const all = Promise.all([get('a'), get('a')]);
    await clock.advance('1s');
    expect(await all).toMatchObject([{ error: down }, { error: down }]);
    expect(await get('a')).toMatchObject({ value: 'up' });
  });

  test('each waits only as long as its own patience, which is the policy’s unless it says so', async () => {
    const { clock, get } = setup({ patience: '5s', attemptTimeout: 'none' }, after('3s', 'late'));
    const starter = get('a', { patience: '1s' });
    await clock.advance('500ms');
    const other = get('a', { patience: '2s' });
    const patient = get('a');
    await clock.advance('500ms');
    expect(await starter).toMatchObject({
      ok: false,
      error: { code: 'HOLDFAST_PATIENCE_SPENT' },
      story: { stop: 'patience_too_short', tookMs: 1000 },
    });
    await clock.advance('1500ms');
    expect(await other).toMatchObject({ ok: false, story: { tookMs: 2000 } });
    await clock.advance('500ms');
    expect(await patient).toMatchObject({ ok: true, value: 'late' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('a later caller waits no longer than its patience from the policy', async () => {
    const { clock, get } = setup({ patience: '5s', attempts: 2, attemptTimeout: 'none' }, after('4s', 'x'));
    void get('a', { patience: '10s' });
    await clock.advance('1s');
    const other = get('a');
    await clock.advance('3s');
    expect(await other).toMatchObject({ ok: true, value: 'x' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('one who leaves takes nobody along, and the result is kept', async () => {
    const { clock, get, operation } = setup({}, after('1s', 'kept'));
    const caller = new AbortController();
    const starter = get('a', { signal: caller.signal });
    const other = get('a');
    await clock.advance('100ms');
    caller.abort('left');
    expect(await starter).toMatchObject({ ok: false, error: 'left', story: { stop: 'cancelled' } });
    await clock.advance('1s');
    expect(await other).toMatchObject({ value: 'kept' });
    expect(await get('a')).toMatchObject({ value: 'kept', from: 'cache' });
    expect([operation.calls.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  test('nor does one who leaves by throwing when it is told of a wait', async () => {
    const { clock, get } = setup({ attempts: 2, budget: false }, down, 'up');
    const left = new Error('left');
    const onWait = () => {
      throw left;
    };
    const starter = get('a', { onWait });
    const other = get('a');
    await clock.advance('1m');
    expect(await starter).toMatchObject({ ok: false, error: left, story: { stop: 'cancelled' } });
    expect(await other).toMatchObject({ ok: true, value: 'up' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('who had left before starts none', async () => {
    const { get, operation } = setup({}, 'never');
    expect(await get('a', { signal: AbortSignal.abort('early') })).toMatchObject({ error: 'early' });
    expect(operation.calls).toEqual([]);
  });

  test('runs withoutAmbient: what surrounds the first caller is not everybody’s', async () => {
    let around: AmbientContext | undefined;
    setAmbientStore({
      getStore: () => around,
      run(inner, fn) {
        const before = around;
        around = inner;
        try {
          return fn();
        } finally {
          around = before;
        }
      },
    });
    const { clock, policy: made } = setup({ attemptTimeout: 'none' });
    const seen: (AmbientContext | undefined)[] = [];
    const operation = scripted(clock, () => seen.push(ambientContext()), after('2s', 'late'));
    around = { patienceEndsAt: 1000, ownedUpstream: true };
    await made.try(operation, { cacheKey: 'a' });
    const waiting = made.try(operation, { cacheKey: 'b' });
    around = undefined;
    expect(seen).toEqual([undefined]);
    await clock.advance('1s');
    expect(await waiting).toMatchObject({ ok: false, story: { stop: 'patience_too_short' } });
    await clock.advance('1s');
    expect(await made.try(operation, { cacheKey: 'b' })).toMatchObject({ value: 'late', from: 'cache' });
  });
});

test('a fallback’s answer is never cached', async () => {
  const { get } = setup({ fallback: { to: 'instead' } }, down, 'real');
  expect(await get('a')).toMatchObject({ value: 'instead', from: 'fallback' });
  expect(await get('a')).toMatchObject({ value: 'real' });
});
