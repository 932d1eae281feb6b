import { describe, expect, test } from 'vitest';
import { retryAfter } from '../src/classify/marks.ts';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { storyOf } from '../src/report/story.ts';
import { after, type Beat, heeding, scripted, seededRandom, virtualClock } from '../src/testing.ts';
import { Alarm } from '../src/time/clock.ts';

/** What was found wrong with others by running them: each has a test here that would find it in us. */

const down = new Error('down');

function setup(spec: PolicySpec = {}, seed = 1) {
  const clock = virtualClock();
  const made = policy({ retryOn: 'any', ...spec }, { clock, random: seededRandom('defects', seed) });
  const call = (...beats: Beat[]) => scripted(clock, ...beats);
  const fail = () => Promise.reject(new Error('down'));
  return { clock, policy: made, call, fail };
}

describe('waits', () => {
  test('abort during backoff ends the wait and calls nothing', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      patience: '1d',
      backoff: { base: '1h', cap: '1h', jitter: 'none' },
    });
    const caller = new AbortController();
    const operation = call(down, 'never');
    const ending = made.try(operation, { signal: caller.signal });
    await clock.advance('10ms');
    caller.abort('left');
    expect(await ending).toMatchObject({ error: 'left', story: { stop: 'cancelled', tookMs: 10 } });
    await clock.advance('1d');
    expect([operation.calls.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  test('no ghost attempts after the caller was rejected', async () => {
    const { clock, policy: made, call } = setup({ patience: '2s', attemptTimeout: 'none', budget: false });
    // Neither when the caller leaves an attempt that pays no heed, nor when patience ends during one.
    const caller = new AbortController();
    const left = call(after('3s', down));
    const spent = call(after('3s', down));
    void made.try(left, { signal: caller.signal });
    const ending = made.try(spent);
    await clock.advance('1s');
    caller.abort();
    await clock.advance('1s');
    expect(await ending).toMatchObject({ error: { code: 'HOLDFAST_PATIENCE_SPENT' } });
    await clock.advance('1m');
    expect([left.calls.length, spent.calls.length]).toEqual([1, 1]);
  });

  test('a deadline neither cuts a sleep nor fires past the limit, and hides no answer', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      patience: '5s',
      backoff: { base: '2s', cap: '4s', jitter: 'none' },
      budget: false,
    });
    const operation = call(down);
    const ending = made.try(operation);
    await clock.advance('2s');
    // The next wait would be 4 s of the 3 s that are left: the answer comes now, and it is the real one.
    expect(await ending).toMatchObject({ error: down, story: { stop: 'patience_too_short', tookMs: 2000 } });
    expect(operation.calls.map(({ at }) => at)).toEqual([0, 2000]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('hints', () => {
  test('a Retry-After of a day ends the work now, and the error carries the hint', async () => {
    const { policy: made, call } = setup({ retryOn: 'http', patience: '2d' });
    const error = Object.assign(new Error('busy'), { status: 503, headers: { 'retry-after': '86400' } });
    const operation = call(error);
    await expect(made.run(operation)).rejects.toBe(error);
    expect(operation.calls.length).toBe(1);
    expect(storyOf(error)).toMatchObject({
      stop: 'server_said_stop',
      tookMs: 0,
      log: [{ class: 'throttled', retryAfterMs: 86_400_000 }],
    });
  });

  test('so does one that is longer than patience, instead of a shorter wait', async () => {
    const { policy: made, call } = setup({ retryOn: 'http', patience: '10s' });
    const response = new Response(null, { status: 429, headers: { 'retry-after': '30' } });
    const ending = await made.try(call(response));
    expect(ending).toMatchObject({
      thrown: false,
      value: response,
      story: { stop: 'patience_too_short', tookMs: 0, log: [{ retryAfterMs: 30_000 }] },
    });
  });

  test('nobody comes back before the hint, and not everybody at the same instant', async () => {
    const clock = virtualClock();
    const backAt: number[] = [];
    for (let client = 0; client < 100; client++) {
      const made = policy({ patience: '1m' }, { clock, random: seededRandom('client', client) });
      void made.run(({ attempt }) => {
        if (attempt === 1) throw retryAfter(new Error('busy'), '10s');
        backAt.push(clock.now());
      });
    }
    await clock.advance('1m');
    expect(backAt.length).toBe(100);
    expect(Math.min(...backAt)).toBeGreaterThanOrEqual(10_000);
    expect(Math.max(...backAt)).toBeGreaterThan(14_000);
    expect(new Set(backAt.map((at) => Math.floor(at / 100))).size).toBeGreaterThan(30);
  });
});

describe('load', () => {
  test('in a total outage stays near 1 + ratio, and the breaker spares most of it', async () => {
    const outage = async (breaker: boolean) => {
      const { clock, policy: made, fail } = setup({ attempts: 4, breaker });
      const tick = async (operation: () => unknown) => {
        void made.try(operation as () => Promise<never>);
        await clock.advance('10ms');
      };
      for (let n = 0; n < 2000; n++) await tick(() => n);
      const before = { ...made.counters };
      for (let n = 0; n < 6000; n++) await tick(fail);
      return (made.counters.attempts - before.attempts) / (made.counters.operations - before.operations);
    };
    expect(await outage(false)).toBeLessThanOrEqual(1.05);
    expect(await outage(true)).toBeLessThan(0.05);
  });

  test('under a throttle does not grow with what is offered', async () => {
    /** A target that takes 100 calls a second, and what it is sent when more is offered. */
    const sentPerSecond = async (offered: number) => {
      const { clock, policy: made } = setup(
        { throttle: true, breaker: false, budget: false, attempts: 1 },
        offered,
      );
      let taken = 0;
      let sent = 0;
      for (let n = 0; n < 40 * offered; n++) {
        if (n % (offered / 10) === 0) taken = 0;
        if (n === 20 * offered) sent = made.counters.attempts;
        void made.try(async () => {
          if (++taken > 10) throw new Error('full');
        });
        if (n % 10 === 9) await clock.advance((10 * 1000) / offered);
      }
      return (made.counters.attempts - sent) / 20;
    };
    const [some, much] = [await sentPerSecond(400), await sentPerSecond(1600)];
    expect(some).toBeGreaterThan(170);
    expect(some).toBeLessThan(230);
    expect(much).toBeLessThan(230);
  });

  test('an exhausted budget ends the work before any sleep, with the real error', async () => {
    const { clock, policy: made, fail } = setup({ attempts: 2, backoff: { base: '1s', jitter: 'none' } });
    void made.try(fail);
    await clock.advance('5s');
    const error = new Error('the real one');
    const ending = await made.try(() => Promise.reject(error));
    expect(ending).toMatchObject({ error, story: { stop: 'budget_exhausted', tookMs: 0 } });
    expect(storyOf(error)?.stop).toBe('budget_exhausted');
  });
});

describe('breakers', () => {
  const touchy = {
    attempts: 1,
    attemptTimeout: 'none',
    breaker: { consecutive: 1, openFor: '10s', probes: 1 },
  } satisfies PolicySpec;

  test('a late success does not close one that is open', async () => {
    const { clock, policy: made, call, fail } = setup(touchy);
    const late = made.try(call(after('1s', 'late')));
    await made.try(fail);
    await clock.advance('1s');
    expect(await late).toMatchObject({ ok: true });
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });

  test('a late failure does not open one that has closed since', async () => {
    const { clock, policy: made, call, fail } = setup({ ...touchy, patience: '1m' });
    void made.try(call(after('30s', down)));
    await made.try(fail);
    await clock.advance('10s');
    await expect(made.run(() => 'probe')).resolves.toBe('probe');
    await clock.advance('30s');
    await expect(made.run(() => 'well')).resolves.toBe('well');
  });

  test('a jump of the wall clock moves none', async () => {
    const clock = virtualClock();
    let jumpMs = 0;
    const made = policy(
      { retryOn: 'any', ...touchy },
      { clock: { ...clock, epochMs: () => clock.epochMs() + jumpMs }, random: () => 0.999 },
    );
    const refused = async () => !(await made.try(() => 1)).ok;
    await made.try(() => Promise.reject(down));
    jumpMs = 86_400_000;
    expect(await refused()).toBe(true);
    jumpMs = -86_400_000;
    await clock.advance('9s');
    expect(await refused()).toBe(true);
    await clock.advance('1s');
    expect(await refused()).toBe(false);
  });

  test('failures from before an idle hour are forgotten', async () => {
    const {
      clock,
      policy: made,
      fail,
    } = setup({
      attempts: 1,
      budget: false,
      breaker: { consecutive: 0, minimum: 10, failureRatio: 0.5, window: '30s' },
    });
    for (let n = 0; n < 9; n++) await made.try(fail);
    await clock.advance('1h');
    await made.try(fail);
    for (let n = 0; n < 8; n++) await made.run(() => n);
    await made.try(fail);
    await expect(made.run(() => 'open to all')).resolves.toBe('open to all');
  });

  test('a probe that hangs does not keep one half-open', async () => {
    const { clock, policy: made, call, fail } = setup({ ...touchy, attemptTimeout: '1s' });
    await made.try(fail);
    await clock.advance('10s');
    void made.try(call('hang'));
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
    await clock.advance('11s');
    await expect(made.run(() => 'well')).resolves.toBe('well');
  });

  test('nor does one without any limit, whose caller has the patience of a saint', async () => {
    const { clock, policy: made, call, fail } = setup({ ...touchy, patience: 'unlimited' });
    await made.try(fail);
    await clock.advance('10s');
    void made.try(call('hang'));
    await clock.advance('71s');
    await expect(made.run(() => 'well')).resolves.toBe('well');
  });
});

describe('bulkheads', () => {
  test('who was let into the queue is served, in order, and never too many at once', async () => {
    const { clock, policy: made } = setup({
      bulkhead: { concurrent: 2, queue: 10 },
      attempts: 1,
      budget: false,
    });
    const began: number[] = [];
    let inFlight = 0;
    let most = 0;
    const endings = Array.from({ length: 12 }, (_, n) =>
      made.try(async () => {
        began.push(n);
        most = Math.max(most, ++inFlight);
        await scripted(clock, after('100ms', 1))();
        inFlight--;
        if (n % 3 === 0) throw new Error('down');
      }),
    );
    // A latecomer is refused; nobody who waits is put out for it.
    expect(await made.try(() => 1)).toMatchObject({ error: { code: 'HOLDFAST_BULKHEAD_FULL' } });
    await clock.advance('1s');
    const stops = (await Promise.all(endings)).map(({ story: { stop } }) => stop);
    expect(stops.filter((stop) => stop === 'bulkhead_full')).toEqual([]);
    expect(began).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(most).toBe(2);
  });

  test('an abort in the queue is noticed at once', async () => {
    const { clock, policy: made, call } = setup({ bulkhead: { concurrent: 1, queue: 1 } });
    void made.try(call('hang'));
    const caller = new AbortController();
    const waiting = made.try(call('never'), { signal: caller.signal });
    await clock.advance('5ms');
    caller.abort('left');
    expect(await waiting).toMatchObject({ error: 'left', story: { tookMs: 5, attempts: 0 } });
    const next = made.try(call('never'));
    await clock.advance('1ms');
    expect(made.counters.stops).toEqual({ cancelled: 1 });
    void next;
  });
});

describe('timeouts', () => {
  test('a caller’s abort is not reported as one, and one of them aborts no healthy call', async () => {
    const { clock, policy: made, call } = setup({ attemptTimeout: '1s', attempts: 1 });
    const caller = new AbortController();
    const healthy = call(heeding(after('900ms', 'fine')));
    const left = made.try(call(heeding('hang')), { signal: caller.signal });
    const hung = made.try(call(heeding('hang')));
    await clock.advance('500ms');
    const fine = made.try(healthy);
    caller.abort('left');
    expect(await left).toMatchObject({ error: 'left', story: { stop: 'cancelled' } });
    await clock.advance('500ms');
    expect(await hung).toMatchObject({ error: { code: 'HOLDFAST_ATTEMPT_TIMEOUT' } });
    await clock.advance('1s');
    expect(await fine).toMatchObject({ value: 'fine' });
    expect([healthy.calls[0]!.aborted, made.counters.timeouts]).toEqual([false, 1]);
  });
});

describe('a fast 429', () => {
  test('is no success: it draws no traffic and shortens no timeout', async () => {
    const { clock, policy: made } = setup({
      retryOn: 'http',
      attempts: 3,
      breaker: false,
      choice: { consecutive: 1000 },
    });
    const targets = ['a', 'b', 'c', 'd'];
    const calls: Record<string, number> = { a: 0, b: 0, c: 0, d: 0 };
    for (let n = 0; n < 2000; n++) {
      void made.try(
        async ({ target = '' }) => {
          calls[target]!++;
          if (target === 'a') return new Response(null, { status: 429 });
          await scripted(clock, after('50ms', 1))();
          return new Response(null, { status: 200 });
        },
        { targets },
      );
      await clock.advance('5ms');
    }
    await clock.advance('1m');
    const shares = Object.values(calls).map((count) => count / made.counters.attempts);
    expect(shares[0]).toBeLessThan(0.1);
    expect(made.plan.targets!.get('a', clock.now()).latency!.samples).toBe(0);
  });
});

describe('one dead host of ten', () => {
  test('gets next to no traffic, and with a retry nobody notices', async () => {
    const clock = virtualClock();
    const random = seededRandom('hosts');
    const made = policy(
      { retryOn: 'any', attempts: 3, attemptTimeout: '1s' },
      { clock, random: seededRandom('balance') },
    );
    const hosts = Array.from({ length: 10 }, (_, n) => `host-${n}`);
    const [died, ends] = [5_000, 40_000];
    let deadCalls = 0;
    let calls = 0;
    let asked = 0;
    let answered = 0;
    const arrivals = new (class extends Alarm {
      ring(now: number) {
        if (now < ends) clock.set(this, now - Math.log(1 - random()) / 1.2);
        const isDead = now >= died;
        if (isDead) asked++;
        void made
          .try(
            ({ target }) => {
              if (clock.now() >= died) calls++;
              if (target === 'host-0' && clock.now() >= died) {
                deadCalls++;
                return Promise.reject(new Error('down'));
              }
              return scripted(clock, after(-50 * Math.log(1 - random()), 'fine'))();
            },
            { targets: hosts },
          )
          .then(({ ok }) => {
            if (isDead && ok) answered++;
          });
      }
    })();
    clock.set(arrivals, 0);
    await clock.advance('1m');
    expect(asked).toBeGreaterThan(35_000);
    expect(deadCalls / calls).toBeLessThan(0.01);
    expect(answered / asked).toBeGreaterThanOrEqual(0.9999);
  });
});

describe('reloading', () => {
  test('one bad document does not stop it for good, and none loses what a breaker knows', async () => {
    const { policy: made, fail } = setup({ attempts: 1, breaker: { consecutive: 1 } });
    await made.try(fail);
    expect(() => made.update({ attempts: -1 })).toThrow('attempts');
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
    made.update({ retryOn: 'any', attempts: 3, breaker: { consecutive: 1 } });
    expect(made.plan.attempts).toBe(3);
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });
});
