import { afterEach, describe, expect, test, vi } from 'vitest';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { OptionsError } from '../src/report/errors.ts';
import { setAmbientStore } from '../src/run/ambient-context.ts';
import { after, type Beat, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');

function setup(spec: PolicySpec, ...beats: Beat[]) {
  const clock = virtualClock();
  const made = policy({ retryOn: 'any', attempts: 1, ...spec }, { clock, random: seededRandom('fallback') });
  const operation = scripted(clock, ...beats);
  return { clock, policy: made, operation, attempt: (options = {}) => made.try(operation, options) };
}

afterEach(() => setAmbientStore(undefined));

describe('answers instead of a failure', () => {
  test('with a value', async () => {
    const { attempt, policy: made, operation } = setup({ fallback: { to: [['a', 'list']] } }, down);
    expect(await attempt()).toMatchObject({
      ok: true,
      value: ['a', 'list'],
      from: 'fallback',
      story: { attempts: 1, stop: 'attempts_exhausted', log: [{ outcome: down }] },
    });
    await expect(made.run(operation)).resolves.toEqual(['a', 'list']);
    expect(made.counters).toMatchObject({ failed: 2, fallbacks: 2 });
  });

  test('and null is a value', async () => {
    const { policy: made, operation } = setup({ fallback: { to: null } }, down);
    await expect(made.run(operation)).resolves.toBe(null);
  });

  test('with what a function makes of the failure', async () => {
    const to = vi.fn(async ({ error }: { error: unknown }) => `despite ${(error as Error).message}`);
    const { attempt } = setup({ fallback: { to } }, down);
    expect(await attempt()).toMatchObject({ value: 'despite down' });
    expect(to.mock.calls[0]![0]).toMatchObject({ error: down, story: { stop: 'attempts_exhausted' } });
  });

  test('also where the failure is a value', async () => {
    const to = ({ value }: { value: unknown }) => (value as Response).status;
    const { attempt } = setup({ retryOn: 'http', fallback: { to } }, new Response(null, { status: 503 }));
    expect(await attempt()).toMatchObject({ ok: true, value: 503 });
  });

  test('by the first of a chain that does not throw', async () => {
    const worse = () => Promise.reject(new Error('worse'));
    const { attempt } = setup({ fallback: { to: [worse, worse, 'good enough', worse] } }, down);
    expect(await attempt()).toMatchObject({ value: 'good enough' });
  });

  test('and when all of them throw, the real failure comes through', async () => {
    const {
      attempt,
      policy: made,
      operation,
    } = setup(
      {
        fallback: {
          to: () => {
            throw new Error('worse');
          },
        },
      },
      down,
    );
    expect(await attempt()).toMatchObject({ ok: false, error: down });
    await expect(made.run(operation)).rejects.toBe(down);
    expect(made.counters.fallbacks).toBe(0);
  });

  test('never to a success', async () => {
    const { attempt, policy: made } = setup({ fallback: { to: 'instead' } }, 'real');
    expect(await attempt()).toMatchObject({ value: 'real' });
    expect(made.counters.fallbacks).toBe(0);
  });

  test('a document that does not say with what is refused', () => {
    expect(() => setup({ fallback: {} })).toThrow(OptionsError);
    expect(() => setup({ fallback: true })).toThrow('fallback.to: expected a value, a function');
    expect(() => setup({ fallback: { to: [] } })).toThrow('fallback.to: expected a value, a function');
  });
});

describe('the caller', () => {
  test('who has left gets no fallback', async () => {
    const to = vi.fn();
    const { attempt, clock } = setup({ fallback: { to } }, 'hang');
    const caller = new AbortController();
    const ending = attempt({ signal: caller.signal });
    await clock.advance('1s');
    caller.abort('left');
    expect(await ending).toMatchObject({ ok: false, error: 'left', story: { stop: 'cancelled' } });
    expect(to).not.toHaveBeenCalled();
  });

  test('who leaves during a fallback is free at once, and the rest of the chain is not asked', async () => {
    const next = vi.fn();
    const { policy: made, operation, clock } = setup({}, down);
    const slow = scripted(clock, after('1s', new Error('worse')));
    const chained = made.with({ fallback: { to: [() => slow(), next] } });
    const caller = new AbortController();
    const ending = chained.try(operation, { signal: caller.signal });
    await clock.advance('500ms');
    caller.abort('left');
    expect(await ending).toMatchObject({
      ok: false,
      error: 'left',
      story: { stop: 'cancelled', log: [{ outcome: down }] },
    });
    await clock.advance('1m');
    expect(next).not.toHaveBeenCalled();
    expect(chained.counters.fallbacks).toBe(0);
  });
});

test('a function is told how long it has, and when nobody waits any more', async () => {
  let heard: { signal: AbortSignal; patienceLeft: number } | undefined;
  const to = (failed: { signal: AbortSignal; patienceLeft: number }) => {
    heard = failed;
    return new Promise(() => {});
  };
  const { clock, attempt } = setup({ patience: '10s', fallback: { to, reserve: '2s' } }, after('3s', down));
  const ending = attempt();
  await clock.advance('3s');
  expect(heard).toMatchObject({ patienceLeft: 7_000, signal: { aborted: false } });
  await clock.advance('7s');
  expect(heard?.signal.aborted).toBe(true);
  expect(await ending).toMatchObject({ ok: false, error: down });
});

describe('patience', () => {
  test('has time set aside for the fallback', async () => {
    const { attempt, clock, operation } = setup(
      { patience: '5s', attemptTimeout: 'none', fallback: { to: 'in time', reserve: '1s' } },
      'hang',
    );
    const ending = attempt();
    await clock.advance('4s');
    expect(await ending).toMatchObject({ value: 'in time', story: { tookMs: 4000 } });
    const own = attempt({ patience: '3s' });
    await clock.advance('2s');
    expect(await own).toMatchObject({ value: 'in time', story: { tookMs: 2000 } });
    expect(operation.calls.length).toBe(2);
  });

  test('also where it is what the ambientContext allow', async () => {
    setAmbientStore({ getStore: () => ({ patienceEndsAt: 3000 }), run: (_, fn) => fn() });
    const { attempt, clock } = setup(
      { patience: '5s', attemptTimeout: 'none', fallback: { to: 'in time', reserve: '1s' } },
      'hang',
    );
    const ending = attempt();
    await clock.advance('2s');
    expect(await ending).toMatchObject({ value: 'in time', story: { tookMs: 2000 } });
  });

  test('a fallback that never answers does not go past it: the real failure comes through', async () => {
    const {
      attempt,
      clock,
      policy: made,
    } = setup({ patience: '5s', fallback: { to: () => new Promise(() => {}), reserve: '1s' } }, down);
    let ended: unknown;
    void attempt().then((ending) => {
      ended = ending;
    });
    await clock.advance('4999ms');
    expect(ended).toBe(undefined);
    await clock.advance('1ms');
    expect(ended).toMatchObject({ ok: false, error: down });
    expect([made.counters.fallbacks, clock.pendingTimers]).toEqual([0, 0]);
  });

  test('a fallback that answers at once is heard even when patience is spent', async () => {
    const { attempt, clock } = setup({ patience: '5s', fallback: { to: async () => 'instead' } }, 'hang');
    const ending = attempt();
    await clock.advance('5s');
    expect(await ending).toMatchObject({ value: 'instead' });
    expect(clock.pendingTimers).toBe(0);
  });
});
