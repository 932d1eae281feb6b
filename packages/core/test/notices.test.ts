import { type ChannelListener, channel } from 'node:diagnostics_channel';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { any } from '../src/classify/any.ts';
import { retry } from '../src/parts/retry.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy } from '../src/policy/policy.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { type Around, type Notice, notices, subscribe } from '../src/report/notices.ts';
import { after, type Beat, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const made = policy(
    { name: 'told', retryOn: 'any', attempts: 2, backoff: { base: '100ms', jitter: 'none' }, ...spec },
    { clock, random: seededRandom('notices') },
  );
  const heard: Notice[] = [];
  stops.push(subscribe((notice) => heard.push(notice)));
  const types = () => heard.map(({ type }) => type);
  return { clock, policy: made, heard, types, call: (...beats: Beat[]) => scripted(clock, ...beats) };
}

test('a listener that is not a function is refused', () => {
  expect(() => subscribe('x' as never)).toThrow('listener: expected a function, got "x"');
});

describe('what is put around calls', () => {
  test('is there for each attempt, with guards and without, and whoever came last is outermost', async () => {
    for (const define of [policy, definePolicy([retry, notices, any])]) {
      const clock = virtualClock();
      const seen: string[] = [];
      for (const who of ['inner', 'outer']) {
        const stop = subscribe(
          () => {},
          ({ attempt, at }, call) => {
            seen.push(`${who} ${attempt} at ${at}`);
            return call();
          },
        );
        stops.push(stop);
      }
      const made = define({ retryOn: 'any', backoff: { base: '1s', jitter: 'none' } }, { clock });
      const running = made.run(scripted(clock, down, 'up'));
      await clock.advance('5s');
      await expect(running).resolves.toBe('up');
      expect(seen).toEqual(['outer 1 at 0', 'inner 1 at 0', 'outer 2 at 1000', 'inner 2 at 1000']);
      for (const stop of stops.splice(0)) stop();
    }
  });

  test('is there once for work that is only observed: around the real call', async () => {
    const sent: object[] = [];
    const around: Around = (each, call) => {
      sent.push(each);
      return call();
    };
    stops.push(subscribe(() => {}, around));
    const failing = () => Promise.reject(new Error('down'));
    await policy({ mode: 'observe', retryOn: 'any', backoff: false }).try(failing);
    expect(sent).toHaveLength(1);
    expect(sent[0]).not.toHaveProperty('observed');
  });
});

describe('what is told', () => {
  test('a piece of work from its start to its end, under one number', async () => {
    const { clock, policy: made, heard, types, call } = setup();
    void made.run(call(down, 'up'));
    void made.run(call('fine'));
    await clock.advance('1s');
    const numbers = new Set(heard.map((notice) => 'work' in notice && notice.work));
    expect(numbers.size).toBe(2);
    expect(types()).toEqual(['start', 'start', 'attempt', 'retry', 'attempt', 'done', 'attempt', 'done']);
    expect(heard.at(-1)).toMatchObject({ type: 'done', attempts: 2, tookMs: 100, at: 100 });
  });

  test('each attempt with its own time, with guards and without', async () => {
    for (const define of [policy, definePolicy([retry, notices, any])]) {
      const clock = virtualClock();
      const heard: Notice[] = [];
      const stop = subscribe((notice) => heard.push(notice));
      const made = define({ retryOn: 'any', backoff: { base: '1s', jitter: 'none' } }, { clock });
      void made.run(scripted(clock, after('20ms', down), after('30ms', down), after('40ms', 'up')));
      await clock.advance('5s');
      stop();
      const took = heard.map((notice) => notice.type === 'attempt' && notice.tookMs).filter(Boolean);
      expect(took).toEqual([20, 30, 40]);
    }
  });

  test('a refusal, and why', async () => {
    const { policy: made, heard, types } = setup({ breaker: { consecutive: 1 }, attempts: 1 });
    await made.try(() => Promise.reject(down), { target: 'a' });
    await made.try(() => 1, { target: 'a' });
    expect(types()).toEqual(['start', 'breaker', 'attempt', 'gave_up', 'start', 'refused', 'gave_up']);
    expect(heard.find(({ type }) => type === 'refused')).toMatchObject({
      target: 'a',
      because: 'breaker_open',
    });
    expect(heard.find(({ type }) => type === 'breaker')).toMatchObject({
      policy: 'told',
      target: 'a',
      from: 'closed',
      to: 'open',
      because: 'consecutive_failures',
    });
  });

  test('a hedge, and a call that has become a zombie', async () => {
    const {
      clock,
      policy: made,
      types,
      call,
    } = setup({
      hedge: { after: '100ms', extraLoad: 1 },
      bulkhead: true,
    });
    for (let n = 0; n < 20; n++) await made.run(() => n);
    void made.run(call('hang', 'fast'));
    await clock.advance('1m');
    expect(types().filter((type) => type === 'hedge' || type === 'zombie')).toEqual(['hedge', 'zombie']);
  });

  test('a budget that is exhausted and one that pays again, each once', async () => {
    const {
      clock,
      policy: made,
      heard,
      call,
    } = setup({ breaker: false, budget: { ratio: 1, window: '1s' } });
    // The first spends the credit; then two have nothing to spend, and a success pays for the next.
    for (const beats of [[down, down], [down], [down], ['up'], [down, 'up']]) {
      void made.try(call(...(beats as Beat[])));
      await clock.advance('2s');
    }
    const told = heard.filter((notice) => notice.type === 'budget');
    expect(told).toMatchObject([
      { to: 'exhausted', tokens: 0, policy: 'told' },
      { to: 'restored', tokens: 1 },
    ]);
  });

  test('answers that are not a result of the work', async () => {
    const {
      clock,
      policy: made,
      heard,
    } = setup({
      attempts: 1,
      fallback: { to: 'instead' },
      cache: { fresh: '1s', staleIfError: '1s' },
    });
    const options = { cacheKey: 'k', target: 'a' };
    await made.run(() => 'up', options);
    await made.run(() => 'not called', options);
    await clock.advance('1s');
    await expect(made.run(() => Promise.reject(down), options)).resolves.toBe('up');
    await clock.advance('2s');
    await expect(made.run(() => Promise.reject(down), options)).resolves.toBe('instead');
    const told = heard.filter(({ type }) => type === 'cache' || type === 'fallback');
    expect(told).toEqual([
      { policy: 'told', target: 'a', at: 0, type: 'cache', stale: false },
      { policy: 'told', target: 'a', at: 1000, type: 'cache', stale: true },
      { policy: 'told', target: 'a', at: 3000, type: 'fallback' },
    ]);
  });

  test('a hint that nobody could read', async () => {
    const { policy: made, heard } = setup({ retryOn: 'http', attempts: 1 });
    await made.run(() => new Response(null, { status: 503, headers: { 'retry-after': 'soon' } }));
    expect(heard.find(({ type }) => type === 'unreadable_hint')).toMatchObject({ hint: 'retry-after: soon' });
  });
});

describe('who hears', () => {
  test('Node’s diagnostics channel too', async () => {
    const { policy: made } = setup();
    const listener = vi.fn<ChannelListener>();
    channel('holdfast:notice').subscribe(listener);
    await made.run(() => 1);
    channel('holdfast:notice').unsubscribe(listener);
    await made.run(() => 1);
    expect(listener.mock.calls.map(([notice]) => (notice as Notice).type)).toEqual([
      'start',
      'attempt',
      'done',
    ]);
  });

  test('nobody after the last has stopped', async () => {
    const { policy: made, heard } = setup();
    for (const stop of stops.splice(0)) stop();
    await made.run(() => 1);
    expect(heard).toEqual([]);
  });

  test('one who stops while being told does not silence the others', async () => {
    const { policy: made, types } = setup();
    const stop = subscribe(() => stop());
    await made.run(() => 1);
    expect(types()).toEqual(['start', 'attempt', 'done']);
  });

  test('whoever joins in the middle hears the rest', async () => {
    const { clock, policy: made, call } = setup();
    for (const stop of stops.splice(0)) stop();
    void made.run(call(down, 'up'));
    await clock.advance('50ms');
    const late: Notice[] = [];
    stops.push(subscribe((notice) => late.push(notice)));
    await clock.advance('1s');
    expect(late.map(({ type }) => type)).toEqual(['attempt', 'done']);
  });
});
