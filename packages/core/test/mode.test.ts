import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { policies } from '../src/policy/registry.ts';
import { type Notice, subscribe } from '../src/report/notices.ts';
import type { Context } from '../src/run/run-options.ts';
import { after, type Beat, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');

function setup(spec: PolicySpec = {}, seed = 1) {
  const clock = virtualClock();
  const made = policy(
    { retryOn: 'any', backoff: { base: '100ms', jitter: 'none' }, mode: 'observe', ...spec },
    { clock, random: seededRandom('mode', seed) },
  );
  return { clock, policy: made, call: (...beats: Beat[]) => scripted(clock, ...beats) };
}

describe('observe', () => {
  test('calls once and throws what was thrown, at that moment', async () => {
    const { clock, policy: made, call } = setup();
    const operation = call(after('1s', down), 'never');
    const caught = made.run(operation).catch((error: unknown) => [error, clock.now()]);
    await clock.advance('1m');
    expect(await caught).toEqual([down, 1000]);
    expect(operation.calls.length).toBe(1);
  });

  test('has no timeout, no breaker, no bulkhead, no limit, no cache and no fallback', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      attemptTimeout: '10ms',
      patience: '20ms',
      breaker: { consecutive: 1 },
      bulkhead: { concurrent: 1, queue: 0 },
      limiter: { rate: '1/s', burst: 1 },
      throttle: true,
      cache: true,
      fallback: { to: 'instead' },
    });
    const operation = call(after('1s', down), after('1s', down), after('1s', 'up'));
    const ends = [1, 2, 3].map(() => made.try(operation, { cacheKey: 'a' }));
    await clock.advance('1s');
    expect(await Promise.all(ends)).toMatchObject([
      { ok: false, error: down, story: { attempts: 1, tookMs: 1000 } },
      { ok: false, error: down },
      { ok: true, value: 'up' },
    ]);
    expect(operation.calls.length).toBe(3);
    expect(made.counters.fallbacks).toBe(0);
  });

  test('gives the caller’s own signal to the operation, and it alone aborts that', async () => {
    const { clock, policy: made } = setup({ attemptTimeout: '10ms', patience: '20ms' });
    const caller = new AbortController();
    let context: Context | undefined;
    const running = made.try(
      async (given) => {
        context = given;
        await scripted(clock, after('5s', 1))();
        given.signal.throwIfAborted();
      },
      { signal: caller.signal },
    );
    await clock.advance('1s');
    expect([context?.signal.aborted, context?.patienceLeft]).toEqual([false, Infinity]);
    caller.abort('left');
    await clock.advance('4s');
    expect(await running).toMatchObject({ ok: false, error: 'left' });
    expect(made.counters.would).toEqual({ patience_too_short: 1 });
    await expect(made.run((given) => given.signal.aborted)).resolves.toBe(false);
  });

  test('names a target for the operation, also when all of them would be refused', async () => {
    const { policy: made } = setup({ breaker: { consecutive: 1 }, attempts: 1 });
    const seen = new Set<string | undefined>();
    for (let n = 0; n < 5; n++) {
      await made.try(
        ({ target }) => {
          seen.add(target);
          throw down;
        },
        { targets: ['a', 'b'] },
      );
    }
    expect([...seen].sort()).toEqual(['a', 'b']);
    expect(made.counters.would).toMatchObject({ breaker_open: 3 });
  });

  test('a value that would be a failure is returned', async () => {
    const { policy: made } = setup({ retryOn: 'http' });
    const response = new Response(null, { status: 503 });
    expect(await made.try(() => response)).toMatchObject({ ok: true, value: response });
  });

  test('counts what it would have done', async () => {
    const { clock, policy: made, call } = setup({ attempts: 3, breaker: false });
    void made.try(call(down));
    void made.try(call('fine'));
    await clock.advance('1s');
    expect(made.counters.would).toEqual({ retry: 2, attempts_exhausted: 1 });
    await clock.advance('1m');
    expect(clock.pendingTimers).toBe(0);
  });

  test('tells nobody of waits that are not, and marks what it tells as observed', async () => {
    const { clock, policy: made, call } = setup({ attempts: 2 });
    const onWait = vi.fn();
    const heard: Notice[] = [];
    const stop = subscribe((notice) => heard.push(notice));
    void made.try(call(down), { onWait });
    await clock.advance('1s');
    stop();
    expect(onWait).not.toHaveBeenCalled();
    const would = heard.filter((notice) => 'observed' in notice);
    expect(would.map(({ type }) => type)).toEqual(['start', 'attempt', 'retry', 'attempt', 'gave_up']);
    const real = heard.filter((notice) => !('observed' in notice));
    expect(real.map(({ type }) => type)).toEqual(['start', 'attempt', 'gave_up']);
    expect(real.at(-1)).toMatchObject({ because: 'observed', attempts: 1, outcome: down });
  });

  test('its counters are of the calls that were made, and only `would` of what the policy would have done', async () => {
    const { clock, policy: made, call } = setup({ attempts: 3, breaker: { consecutive: 2 } });
    for (const answer of [down, down, 'fine', 'fine']) void made.try(call(answer));
    await clock.advance('1m');
    for (let n = 0; n < 3; n++) void made.try(call(after('1h', 'slow')));
    const { would, ...counters } = made.counters;
    expect(counters).toMatchObject({ operations: 7, attempts: 7, succeeded: 2, failed: 2, timeouts: 0 });
    expect(counters).toMatchObject({ succeededAfterRetry: 0, failedAfterRetry: 0, stops: { observed: 2 } });
    expect(made.counters.loadMultiplication).toBe(1);
    expect(would).toMatchObject({ breaker_open: 2 });
  });

  test('the state of a policy says that it only observes, and a notice of its breaker that nothing is refused', async () => {
    const heard: Notice[] = [];
    const stop = subscribe((notice) => heard.push(notice));
    const { policy: made } = setup({ name: 'only observes', breaker: { consecutive: 1 }, attempts: 1 });
    await made.try(() => Promise.reject(down));
    await vi.waitFor(() => expect(heard).toContainEqual(expect.objectContaining({ type: 'breaker' })));
    stop();
    expect(heard.find(({ type }) => type === 'breaker')).toMatchObject({ to: 'open', observed: true });
    expect(policies().find(({ name }) => name === 'only observes')).toMatchObject({ enforcedShare: 0 });
  });

  test('an outer run may retry what an observing one has not', async () => {
    const { policy: observing } = setup();
    const { policy: outer, clock } = setup({ mode: 'enforce' });
    const operation = scripted(clock, new Error('fresh'), 'up');
    const running = outer.run(() => observing.run(operation));
    await clock.advance('1s');
    await expect(running).resolves.toBe('up');
  });
});

/** Times are sums of fractions, added up in another order. */
function rounded(snapshot: object): unknown {
  const round = (_key: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value;
  return JSON.parse(JSON.stringify(snapshot, round));
}

describe('what is observed equals what is enforced on the same trace', () => {
  /** Calls at random times, each of which does the same whenever it is repeated. */
  const trace = fc.record({
    seed: fc.integer(),
    spec: fc.record({
      attempts: fc.integer({ min: 1, max: 4 }),
      attemptTimeout: fc.constantFrom('auto', '300ms', 'none'),
      bulkhead: fc.constantFrom(false, { concurrent: 1, queue: 2 }, { concurrent: 3, queue: 0 }),
      limiter: fc.constantFrom(false, { rate: '5/s', burst: 2, wait: '500ms' }),
      breaker: fc.constantFrom(true, { consecutive: 2, openFor: '400ms' }),
      budget: fc.constantFrom(true, false),
    }),
    calls: fc.array(
      fc.record({
        waitMs: fc.integer({ min: 0, max: 400 }),
        tookMs: fc.integer({ min: 0, max: 600 }),
        fails: fc.boolean(),
      }),
      { minLength: 1, maxLength: 30 },
    ),
  });

  test('stops, breaker and budget alike', async () => {
    await fc.assert(
      fc.asyncProperty(trace, async ({ seed, spec, calls }) => {
        const states = await Promise.all(
          (['enforce', 'observe'] as const).map(async (mode) => {
            const {
              clock,
              policy: made,
              call,
            } = setup({ ...(spec as PolicySpec), mode, patience: '2s' }, seed);
            for (const [index, { waitMs, tookMs, fails }] of calls.entries()) {
              // No two things at the same moment: which of them comes first is nobody's promise.
              await clock.advance(waitMs + 0.013);
              const ms = tookMs + (index + 1) * 0.000_71;
              // A new error each time: one object that several runs give up on would tell them of each other.
              void made.try(call(after(ms, fails ? () => Promise.reject(new Error('down')) : 'up')));
            }
            await clock.advance('1m');
            const { would, stops } = made.counters;
            const { retry: _, ...wouldStop } = would;
            const target = made.plan.targetOf!(undefined, clock.now());
            const now = clock.now();
            return {
              stops: mode === 'enforce' ? stops : wouldStop,
              inFlight: [target.inFlight, target.bulkhead?.inFlight, target.bulkhead?.queued],
              breaker: rounded(target.breaker!.save(now)),
              budget: target.budget && rounded(target.budget.save(now)),
              pending: clock.pendingTimers,
            };
          }),
        );
        expect(states[1]).toEqual(states[0]);
      }),
    );
  });
});

describe('a share', () => {
  test('is enforced, and the rest observed', async () => {
    const { policy: made } = setup({
      mode: { enforce: 0.3 },
      backoff: false,
      attempts: 2,
      budget: false,
      breaker: false,
    });
    let calls = 0;
    for (let n = 0; n < 1000; n++) {
      await made.try(() => {
        calls++;
        throw new Error('down');
      });
    }
    expect(calls / 1000).toBeGreaterThan(1.25);
    expect(calls / 1000).toBeLessThan(1.35);
  });

  test('of all or nothing rolls no dice', async () => {
    for (const mode of ['enforce', 'observe', { enforce: 1 }, { enforce: 0 }] as const) {
      const random = vi.fn(() => 0.5);
      await policy({ mode }, { clock: virtualClock(), random }).run(() => 1);
      expect(random).not.toHaveBeenCalled();
    }
  });
});

describe('the kill switch', () => {
  test('leaves one attempt for each piece of work, until it is lifted', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({ mode: 'enforce', attempts: 3, budget: false, breaker: false });
    const operation = call(() => Promise.reject(new Error('down')));
    made.kill();
    expect(await made.try(operation)).toMatchObject({
      ok: false,
      story: { stop: 'kill_switch', attempts: 1 },
    });
    made.kill(false);
    const running = made.try(operation);
    await clock.advance('1m');
    expect(await running).toMatchObject({ story: { stop: 'attempts_exhausted', attempts: 3 } });
  });

  test('stops retries that are already on their way', async () => {
    const { clock, policy: made, call } = setup({ mode: 'enforce', attempts: 3 });
    const operation = call(down);
    const running = made.try(operation);
    await clock.advance('50ms');
    made.kill();
    await clock.advance('1m');
    expect(await running).toMatchObject({ story: { stop: 'kill_switch' } });
    expect(operation.calls.length).toBeLessThanOrEqual(2);
  });

  test('starts no hedges', async () => {
    const { clock, policy: made, call } = setup({ mode: 'enforce', hedge: { after: '10ms', extraLoad: 1 } });
    for (let n = 0; n < 20; n++) await made.run(() => n);
    made.kill();
    const operation = call(after('1s', 'slow'));
    void made.run(operation);
    await clock.advance('2s');
    expect(operation.calls.length).toBe(1);
  });
});

test('a failure that was only observed says so, and not that retries are switched off', async () => {
  const failing = () => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' }));
  const { story } = await policy({ mode: 'observe' }).try(failing);
  expect(story).toMatchObject({ stop: 'observed', attempts: 1 });
});
