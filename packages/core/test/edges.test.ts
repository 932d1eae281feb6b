import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { any } from '../src/classify/any.ts';
import { retryAfter } from '../src/classify/marks.ts';
import { breaker } from '../src/parts/breaker.ts';
import { bulkhead } from '../src/parts/bulkhead.ts';
import { retry } from '../src/parts/retry.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy } from '../src/policy/policy.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { type Notice, subscribe } from '../src/report/notices.ts';
import { storyOf } from '../src/report/story.ts';
import type { Context, RunOptions } from '../src/run/run-options.ts';
import { after, type Beat, heeding, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = new Error('down');

function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const base: PolicySpec = { retryOn: 'any', backoff: { base: '100ms', jitter: 'none' }, budget: false };
  const made = policy({ ...base, ...spec }, { clock, random: seededRandom('edges') });
  const call = (...beats: Beat[]) => scripted(clock, ...beats);
  const home = () => made.plan.targetOf!(undefined, clock.now());
  /** An operation that fails with a new error each time: one object would be recognised from run to run. */
  const failing = () => call(() => Promise.reject(new Error('down')));
  return { clock, policy: made, call, failing, home };
}

describe('a hedge never waits, as an attempt is in flight already', () => {
  const hedged = { hedge: { after: '100ms', extraLoad: 1 }, attempts: 3 } satisfies PolicySpec;
  async function earn({ policy: made }: ReturnType<typeof setup>) {
    for (let n = 0; n < 20; n++) await made.run(() => n);
  }

  test('in the queue of a bulkhead', async () => {
    const all = setup({ ...hedged, bulkhead: { concurrent: 1, queue: 5 } });
    await earn(all);
    const operation = all.call(after('300ms', 'first'));
    const running = all.policy.run(operation);
    await all.clock.advance('1m');
    await expect(running).resolves.toBe('first');
    expect(operation.calls.length).toBe(1);
    expect(all.policy.counters).toMatchObject({ attempts: 21, hedges: 0 });
    expect([all.home().bulkhead!.inFlight, all.clock.pendingTimers]).toEqual([0, 0]);
  });

  test('nor does one end the work when the attempt before it times out', async () => {
    const all = setup({
      ...hedged,
      bulkhead: { concurrent: 1, queue: 5 },
      attemptTimeout: '1s',
      patience: '20s',
    });
    await earn(all);
    const operation = all.call(heeding('hang'), 'second');
    const running = all.policy.run(operation);
    await all.clock.advance('10s');
    await expect(running).resolves.toBe('second');
  });

  test('for the rate limit', async () => {
    const all = setup({ ...hedged, limiter: { rate: '1/s', burst: 21, wait: '10s' } });
    await earn(all);
    const operation = all.call(after('300ms', 'first'));
    void all.policy.run(operation);
    await all.clock.advance('1m');
    expect(operation.calls.length).toBe(1);
    expect(all.clock.pendingTimers).toBe(0);
  });

  test('and costs nothing when it is not sent', async () => {
    const all = setup({ ...hedged, budget: true, bulkhead: { concurrent: 1, queue: 5 } });
    await earn(all);
    const tokens = () =>
      [all.home().budget!, all.home().hedgeBudget!].map((each) => each.tokens(all.clock.now()));
    const before = tokens();
    void all.policy.run(all.call(after('300ms', 'first')));
    await all.clock.advance('200ms');
    expect(tokens()).toEqual(before);
  });
});

describe('nothing is sent when there is no time left for an answer', () => {
  test('not at the very end of patience', async () => {
    const { clock, policy: made, call } = setup({ attemptTimeout: 'none', patience: '1s', backoff: false });
    const operation = call('hang');
    const running = made.try(operation);
    await clock.advance('1s');
    expect(await running).toMatchObject({
      error: { code: 'HOLDFAST_PATIENCE_SPENT' },
      story: { attempts: 1 },
    });
    expect(operation.calls.length).toBe(1);
  });

  test('not by a run that has none to begin with', async () => {
    const { policy: made, call } = setup();
    const operation = call('never');
    expect(await made.try(operation, { patience: 0 })).toMatchObject({
      ok: false,
      error: { code: 'HOLDFAST_PATIENCE_SPENT' },
      story: { stop: 'patience_too_short', attempts: 0 },
    });
    expect(operation.calls).toEqual([]);
  });

  test('not when its turn in the rate limit is that moment', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({ limiter: { rate: '1/s', burst: 1, wait: '1s' }, patience: '1s' });
    await made.run(() => 1);
    const operation = call('never');
    const running = made.try(operation);
    await clock.advance('1s');
    expect(await running).toMatchObject({ ok: false, story: { stop: 'patience_too_short' } });
    expect(operation.calls).toEqual([]);
  });

  test.each([
    ['plain', definePolicy([retry, any])],
    ['guarded', definePolicy([retry, any, breaker])],
  ])('not when the timer of a wait comes too late (%s)', async (_kind, define) => {
    const clock = virtualClock();
    let lateMs = 0;
    const busy = { ...clock, now: () => clock.now() + lateMs };
    const made = define(
      { retryOn: 'any', patience: '1s', backoff: { base: '500ms', jitter: 'none' } },
      {
        clock: {
          ...busy,
          set: (alarm, at) => clock.set({ ...alarm, ring: () => alarm.ring(busy.now()) } as never, at),
        },
      },
    );
    const operation = scripted(clock, down);
    const running = made.try(operation);
    await clock.advance('100ms');
    lateMs = 1000;
    await clock.advance('1s');
    expect(await running).toMatchObject({ error: down, story: { stop: 'patience_too_short' } });
    expect(operation.calls.length).toBe(1);
  });
});

describe('a token goes back when its retry is not sent', () => {
  test.each<[string, PolicySpec]>([
    ['full bulkhead', { bulkhead: { concurrent: 1, queue: 0 } }],
    ['queue that is left', { bulkhead: { concurrent: 1, queue: 1 } }],
    ['rate limit', { limiter: { rate: '1/m', burst: 2, wait: '1s' } }],
  ])('because of a %s', async (_guard, spec) => {
    const { clock, policy: made, call, home } = setup({ ...spec, budget: true, attempts: 2, patience: '5s' });
    const running = made.try(call(down));
    await clock.advance('50ms');
    const before = home().budget!.tokens(clock.now());
    void made.try(call('hang'), { patience: '1m' });
    await clock.advance('6s');
    expect(await running).toMatchObject({ error: down, story: { attempts: 1 } });
    expect(home().budget!.tokens(clock.now())).toBe(before + 1);
  });
});

describe('a refusal', () => {
  test('is one error, however often it is looked at', async () => {
    const { policy: made, failing } = setup({ breaker: { consecutive: 1 }, attempts: 1 });
    await made.try(failing());
    const ending = await made.try(failing());
    if (ending.ok) throw ending;
    expect(ending.error).toBe(ending.error);
    expect(storyOf(ending.error)).toMatchObject({ stop: 'breaker_open' });
  });

  test('that is looked at late moves no breaker', async () => {
    const {
      clock,
      policy: made,
      failing,
      home,
    } = setup({
      breaker: { consecutive: 1, openFor: '10s' },
      attempts: 1,
    });
    await made.try(failing());
    const old = await made.try(failing());
    await clock.advance('10s');
    await made.try(failing());
    const reopensAt = home().breaker!.reopensAt(clock.now());
    expect(old.ok || old.error).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN' });
    expect(home().breaker!.reopensAt(clock.now())).toBe(reopensAt);
  });

  test('says when it may be different, of several targets the earliest', async () => {
    const {
      clock,
      policy: made,
      failing,
    } = setup({ breaker: { consecutive: 1, openFor: '10s' }, attempts: 1 });
    await clock.advance('5s');
    const targets = ['a', 'b'];
    await made.try(failing(), { targets });
    await clock.advance('2s');
    await made.try(failing(), { targets });
    const earliest = Math.min(
      ...targets.map((name) => made.plan.targets!.get(name, 0).breaker!.reopensAt(clock.now())),
    );
    expect(await made.try(failing(), { targets })).toMatchObject({
      error: { code: 'HOLDFAST_BREAKER_OPEN', retryAfterMs: Math.ceil(earliest - clock.now()) },
    });
  });

  test('by a breaker that is held open does not say when', async () => {
    const { clock, policy: made, home } = setup();
    home().breaker!.force('open', clock.now());
    expect(await made.try(() => 1)).toMatchObject({ error: { retryAfterMs: undefined } });
  });

  test('by one of several targets is not what a caller who leaves later gets', async () => {
    const { clock, policy: made, call } = setup({ bulkhead: { concurrent: 1, queue: 1 } });
    const targets = ['a', 'b'];
    for (const target of targets) void made.run(call('hang'), { target });
    void made.try(call('x'), { target: 'a' });
    await clock.advance('1ms');
    const caller = new AbortController();
    const waiting = [1, 2, 3].map(() => made.try(call('x'), { targets, signal: caller.signal }));
    await clock.advance('1ms');
    caller.abort('left');
    const errors = (await Promise.all(waiting)).map((ending) => !ending.ok && ending.error);
    expect(errors).toContain('left');
    for (const error of errors) {
      if (error !== 'left') expect(error).toMatchObject({ code: 'HOLDFAST_BULKHEAD_FULL' });
    }
  });

  test('after a wait for one of several targets lets another be tried', async () => {
    const { clock, policy: made, call } = setup({ bulkhead: { concurrent: 1, queue: 1 }, attempts: 1 });
    void made.try(call(after('5s', 1)), { target: 'a' });
    void made.try(call(after('1s', 1)), { target: 'b' });
    // Both are taken: it queues at one of them.
    const sheddable = made.try(({ target }) => target, { targets: ['a', 'b'], priority: 'sheddable' });
    await clock.advance('2s');
    // If that was `a`, the place goes to someone more important, while `b` is free.
    void made.try(call(1), { target: 'a', priority: 'critical' });
    expect(await sheddable).toMatchObject({ ok: true, value: 'b' });
  });

  test('after a wait at one of several targets lets it wait at another', async () => {
    const { clock, policy: made, call } = setup({ bulkhead: { concurrent: 1, queue: 1 }, attempts: 1 });
    for (const target of ['a', 'b']) void made.try(call(after('1s', 1)), { target });
    const sheddable = made.try(({ target }) => target, { targets: ['a', 'b'], priority: 'sheddable' });
    await clock.advance('10ms');
    const first = made.plan.targets!.get('a', 0).bulkhead!.queued ? 'a' : 'b';
    void made.try(call(1), { target: first, priority: 'critical' });
    await clock.advance('1s');
    expect(await sheddable).toMatchObject({ ok: true, value: first === 'a' ? 'b' : 'a' });
  });

  test('names the latest reason', async () => {
    const {
      clock,
      policy: made,
      call,
      failing,
    } = setup({
      bulkhead: { concurrent: 1, queue: 0 },
      breaker: { consecutive: 1 },
      attempts: 3,
    });
    const targets = ['a', 'b'];
    void made.run(call(after('50ms', 1)), { target: 'a' });
    const running = made.try(failing(), { targets });
    await clock.advance('60ms');
    made.plan.targets!.get('a', 0).breaker!.force('open', clock.now());
    await clock.advance('1s');
    expect(await running).toMatchObject({ story: { stop: 'breaker_open' } });
  });
});

describe('attempts without a limit', () => {
  test('leave a story of limited length, with its beginning and its end', async () => {
    const {
      clock,
      policy: made,
      failing,
    } = setup({
      attempts: 'unlimited',
      patience: '1h',
      breaker: false,
      backoff: { strategy: 'constant', base: '1s', jitter: 'none' },
    });
    const ending = made.try(failing());
    await clock.advance('1h');
    const { attempts, log, stop } = (await ending).story;
    expect([attempts, stop, log.length]).toEqual([3600, 'patience_too_short', 100]);
    expect(log.map(({ attempt }) => attempt)).toEqual([1, ...Array.from({ length: 99 }, (_, n) => 3502 + n)]);
  });

  test('and of timeouts no chain of causes: only the last real error', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      attempts: 5,
      attemptTimeout: '1s',
      breaker: false,
      patience: '1m',
    });
    const ending = made.try(call(down, heeding('hang')));
    await clock.advance('1m');
    expect(await ending).toMatchObject({
      error: { code: 'HOLDFAST_ATTEMPT_TIMEOUT', cause: down },
      story: { attempts: 5 },
    });
  });
});

describe('an alarm', () => {
  test.each([
    ['plain', definePolicy([retry, any])],
    ['guarded', definePolicy([retry, any, breaker])],
  ])('rings once: an attempt that takes its time gets no hedgeTwin (%s)', async (_kind, define) => {
    const clock = virtualClock();
    const operation = scripted(clock, down, after('1s', 'slow'));
    const running = define({ retryOn: 'any' }, { clock }).run(operation);
    await clock.advance('5s');
    await expect(running).resolves.toBe('slow');
    expect([operation.calls.length, clock.pendingTimers]).toEqual([2, 0]);
  });
});

describe('waits for a turn after a timeout', () => {
  test('end when the turn comes', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      attemptTimeout: '100ms',
      backoff: false,
      limiter: { rate: '1/s', burst: 1, wait: '5s' },
    });
    const running = made.run(call('hang', 'second'));
    await clock.advance('10s');
    await expect(running).resolves.toBe('second');
  });
});

describe('a probe whose caller leaves', () => {
  test('says nothing, and makes room for the next at once', async () => {
    const {
      clock,
      policy: made,
      call,
      failing,
    } = setup({
      breaker: { consecutive: 1, openFor: '1s', probes: 1 },
      attempts: 1,
    });
    await made.try(failing());
    await clock.advance('1s');
    const caller = new AbortController();
    const probe = made.try(call('hang'), { signal: caller.signal });
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
    caller.abort();
    await probe;
    expect(await made.try(() => 1)).toMatchObject({ ok: true });
  });
});

describe('who waits for a breaker', () => {
  test('goes on soon after the probes have succeeded, not when their leases end', async () => {
    const {
      clock,
      policy: made,
      failing,
      call,
    } = setup({
      breaker: { consecutive: 1, openFor: '1s', probes: 1, whenOpen: 'wait' },
      attemptTimeout: '5s',
      attempts: 1,
    });
    await made.try(failing());
    const waiting = [1, 2, 3].map((n) => made.try(call(after('20ms', n))));
    await clock.advance('1500ms');
    const endings = await Promise.all(waiting);
    for (const ending of endings) {
      expect(ending.ok).toBe(true);
      expect(ending.story.tookMs).toBeLessThan(1250);
    }
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('who comes with hardly any patience', () => {
  test('does not open the breaker for the others', async () => {
    const { clock, policy: made, call } = setup({ breaker: { consecutive: 3 }, attempts: 1 });
    for (let n = 0; n < 20; n++) void made.try(call(after('100ms', 'well')), { patience: '5ms' });
    await clock.advance('1s');
    expect(made.counters.timeouts).toBe(20);
    await expect(made.run(() => 'open')).resolves.toBe('open');
  });

  test('while calls that hang do, whoever’s patience ends', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      breaker: { consecutive: 3 },
      attempts: 1,
      attemptTimeout: 'none',
    });
    for (let n = 0; n < 3; n++) void made.try(call('hang'), { patience: '200ms' });
    await clock.advance('250ms');
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });

  test('and a limit of one’s own is a limit, however short', async () => {
    const {
      clock,
      policy: made,
      call,
    } = setup({
      breaker: { consecutive: 3 },
      attempts: 1,
      attemptTimeout: '10ms',
    });
    for (let n = 0; n < 3; n++) void made.try(call('hang'));
    await clock.advance('250ms');
    expect(await made.try(() => 1)).toMatchObject({ story: { stop: 'breaker_open' } });
  });
});

describe('a caller who left before the start', () => {
  test('is counted like any other', async () => {
    const { policy: made } = setup();
    await made.try(() => 1, { signal: AbortSignal.abort() });
    const { operations, succeeded, succeededAfterRetry, failed, failedAfterRetry } = made.counters;
    expect([operations, succeeded + succeededAfterRetry + failed + failedAfterRetry]).toEqual([1, 1]);
  });

  test('is told of from beginning to end', async () => {
    const { policy: made } = setup();
    const heard: Notice['type'][] = [];
    const stop = subscribe(({ type }) => heard.push(type));
    await made.try(() => 1, { signal: AbortSignal.abort() });
    stop();
    expect(heard).toEqual(['start', 'gave_up']);
  });
});

describe('the signal of an attempt', () => {
  test.each([
    ['plain', definePolicy([retry, any])],
    ['guarded', definePolicy([retry, any, bulkhead])],
  ])('that is first read after the caller has left is aborted (%s)', async (_kind, define) => {
    const clock = virtualClock();
    const caller = new AbortController();
    let context: Context | undefined;
    const running = define({}, { clock }).try(
      (given) => {
        context = given;
        return scripted(clock, 'hang')();
      },
      { signal: caller.signal },
    );
    await clock.advance('1ms');
    caller.abort('left');
    await running;
    expect([context!.signal.aborted, context!.signal.reason]).toEqual([true, 'left']);
  });
});

describe('functions of the user', () => {
  test('a classifier that calls an error ok does not turn it into a value', async () => {
    const { policy: made, call } = setup({ retryOn: () => 'ok' });
    await expect(made.run(call(down))).rejects.toBe(down);
    const judged = setup({ retryOn: () => ({ class: 'ok' }) });
    expect(await judged.policy.try(judged.call(down))).toMatchObject({
      ok: false,
      story: { stop: 'not_retryable' },
    });
  });

  test.each(['maybe', {}, Promise.resolve('ok')])(
    'a classifier that says %o repeats nothing',
    async (says) => {
      const { policy: made, call } = setup({ retryOn: () => says as never });
      const [good, bad] = [call('fine'), call(down)];
      expect(await made.try(good)).toMatchObject({ ok: true, value: 'fine' });
      expect(await made.try(bad)).toMatchObject({ error: down, story: { stop: 'not_retryable' } });
      expect([good.attempts, bad.attempts]).toEqual([[1], [1]]);
    },
  );

  test('a backoff that throws ends the work with the real error, and surfaces on its own', async () => {
    const later = vi.spyOn(globalThis, 'queueMicrotask').mockImplementation(() => {});
    const { policy: made, call } = setup({
      backoff: () => {
        throw new Error('bad backoff');
      },
    });
    await expect(made.run(call(down))).rejects.toBe(down);
    expect(() => later.mock.calls[0]![0]()).toThrow('bad backoff');
    later.mockRestore();
  });
});

describe('the kill switch', () => {
  test('ends the work that waits to be tried again', async () => {
    const { clock, policy: made, call } = setup();
    const operation = call(down);
    const running = made.try(operation);
    await clock.advance('50ms');
    made.kill();
    await clock.advance('1s');
    expect(await running).toMatchObject({ error: down, story: { stop: 'kill_switch', attempts: 1 } });
  });
});

describe('more targets than are kept apart', () => {
  test('each attempt is told the name it was asked for', async () => {
    const { policy: made, call, clock } = setup();
    for (let n = 0; n < 1000; n++) void made.run(call('hang'), { target: `shard-${n}` });
    await clock.advance('1ms');
    const name = ({ target }: Context) => target;
    await expect(made.run(name, { target: 'shard-1000' })).resolves.toBe('shard-1000');
    await expect(made.run(name, { targets: ['shard-1001', 'shard-1002'] })).resolves.toMatch(
      /^shard-100[12]$/,
    );
  });

  test('no target is forgotten while its budget remembers something', async () => {
    const { policy: made, clock } = setup({ budget: true, attempts: 4, breaker: false, backoff: false });
    const fail = () => Promise.reject(new Error('down'));
    const all = Array.from({ length: 3000 }, (_, n) => `customer-${n}`);
    for (let round = 0; round < 3; round++) {
      for (const target of all) await made.try(fail, { target });
      await clock.advance('5s');
    }
    // Credit for the first thousand and for those that share, and no more.
    expect(made.counters.attempts).toBeLessThanOrEqual(9000 + 1001 * 3);
  });
});

describe('a hint', () => {
  test('leaves time for an answer where there is some', async () => {
    for (let seed = 0; seed < 50; seed++) {
      const clock = virtualClock();
      const made = policy(
        { retryOn: 'any', attemptTimeout: 'none' },
        { clock, random: seededRandom('hint', seed) },
      );
      const busy = () => Promise.reject(retryAfter(new Error('busy'), '8s'));
      const operation = scripted(clock, busy, after('900ms', 'free'));
      const running = made.try(operation);
      await clock.advance('10s');
      expect(await running).toMatchObject({ ok: true, value: 'free' });
      expect(operation.calls[1]!.at).toBeGreaterThanOrEqual(8000);
    }
  });
});

describe('a hint of a classifier that is no number', () => {
  test('leaves the next attempt to the backoff, and a hint of its hedgeTwin as it is', async () => {
    const hints = [5000, Number.NaN];
    const {
      clock,
      policy: made,
      call,
    } = setup({
      hedge: { after: '10ms', extraLoad: 1 },
      retryOn: () => ({ class: 'throttled', retryAfterMs: hints.shift() }),
      attempts: 4,
    });
    const operation = call(after('20ms', down), after('20ms', down), after('20ms', down));
    for (let n = 0; n < 20; n++) await made.run(() => n, { classify: () => 'ok' });
    const running = made.try(operation, { patience: '1m' });
    await clock.advance('1m');
    expect(await running).toMatchObject({ ok: false, error: down });
    expect(operation.calls[2]!.at).toBeGreaterThanOrEqual(5000);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a caller who leaves while it is decided how to go on', () => {
  type Leave = () => undefined;
  const hear = (type: Notice['type'], leave: Leave) => subscribe((notice) => notice.type === type && leave());

  test.each<
    [where: string, (leave: Leave) => { spec?: PolicySpec; options?: RunOptions; stop?: () => void }]
  >([
    ['a classifier', (classify) => ({ options: { classify } })],
    ['what bars a repetition', (retryVeto) => ({ options: { retryVeto } })],
    ['a backoff', (leave) => ({ spec: { backoff: () => leave() ?? 100 } })],
    ['a backoff without a delay', (leave) => ({ spec: { backoff: () => leave() ?? 0 } })],
    ['the notice of an attempt', (leave) => ({ stop: hear('attempt', leave) })],
    ['the notice of a retry', (leave) => ({ stop: hear('retry', leave) })],
  ])('in %s has no further attempt made', async (_where, way) => {
    const caller = new AbortController();
    const { spec, options, stop } = way(() => caller.abort('left') as undefined);
    const all = setup({ bulkhead: { concurrent: 1, queue: 0 }, ...spec });
    const operation = all.failing();
    const running = all.policy.try(operation, { signal: caller.signal, ...options });
    await all.clock.advance('1h');
    stop?.();
    expect(await running).toMatchObject({ ok: false, error: 'left', story: { stop: 'cancelled' } });
    expect(operation.calls.length).toBe(1);
    expect(all.policy.counters).toMatchObject({ failed: 1, failedAfterRetry: 0, stops: { cancelled: 1 } });
    expect([all.home().inFlight, all.home().bulkhead!.inFlight, all.clock.pendingTimers]).toEqual([0, 0, 0]);
  });

  test.each<['done' | 'gave_up', ok: boolean]>([
    ['done', true],
    ['gave_up', false],
  ])('comes too late with the notice that it is %s', async (type, ok) => {
    const { policy: made, call } = setup({ attempts: 1 });
    const caller = new AbortController();
    const stop = hear(type, () => caller.abort('left') as undefined);
    const ending = await made.try(call(ok ? 1 : down), { signal: caller.signal });
    stop();
    expect(ending).toMatchObject(ok ? { value: 1 } : { error: down, story: { stop: 'attempts_exhausted' } });
    expect(made.counters).toMatchObject({ succeeded: ok ? 1 : 0, failed: ok ? 0 : 1 });
  });
});

describe('a caller who leaves because of', () => {
  /** Makes the caller leave at a notice, until the test is over. */
  function leaving(at: (notice: Notice) => boolean) {
    const caller = new AbortController();
    const leave = () => caller.abort('left');
    onTestFinished(subscribe((notice) => at(notice) && leave()));
    return { signal: caller.signal, leave };
  }
  const never = () => false;
  const endings = ({ policy: made }: ReturnType<typeof setup>) => {
    const { operations, succeeded, succeededAfterRetry, failed, failedAfterRetry } = made.counters;
    return { operations, ended: succeeded + succeededAfterRetry + failed + failedAfterRetry };
  };
  async function hedging() {
    const all = setup({ hedge: { after: '100ms', extraLoad: 1 }, bulkhead: { concurrent: 2 } });
    for (let n = 0; n < 20; n++) await all.policy.run(() => n);
    return all;
  }

  test('the end of an attempt’s time leaves the permit to the call, which goes on', async () => {
    const all = setup({ attemptTimeout: '100ms', bulkhead: { concurrent: 1, queue: 0 } });
    const { signal, leave } = leaving(never);
    const running = all.policy.try(
      (context) => {
        context.signal.addEventListener('abort', leave);
        return all.call('hang')();
      },
      { signal },
    );
    await all.clock.advance('100ms');
    expect(await running).toMatchObject({ error: 'left', story: { stop: 'cancelled' } });
    expect([all.home().inFlight, all.home().bulkhead!.inFlight]).toEqual([0, 1]);
  });

  test('the end of the slower of two attempts has the answer of the faster', async () => {
    const all = await hedging();
    const { signal, leave } = leaving(never);
    const running = all.policy.try(
      (context) => {
        if (context.attempt > 1) return 'fast';
        context.signal.addEventListener('abort', leave);
        return all.call('hang')();
      },
      { signal },
    );
    await all.clock.advance('100ms');
    expect(await running).toMatchObject({ ok: true, value: 'fast' });
    expect(endings(all)).toEqual({ operations: 21, ended: 21 });
  });

  test('the notice of a second attempt does not have it made', async () => {
    const all = await hedging();
    const { signal } = leaving(({ type }) => type === 'hedge');
    const operation = all.call('hang');
    const running = all.policy.try(operation, { signal });
    await all.clock.advance('100ms');
    expect(await running).toMatchObject({ error: 'left' });
    expect(operation.calls.length).toBe(1);
    expect([all.home().inFlight, all.home().bulkhead!.inFlight]).toEqual([0, 1]);
  });

  test('the notice of a refusal is not sent elsewhere, and ends once', async () => {
    const all = setup({ bulkhead: { concurrent: 1, queue: 1 } });
    void all.policy.try(all.call('hang'), { target: 'a' });
    const { signal } = leaving(({ type }) => type === 'refused');
    const operation = all.call('answer');
    const waiting = all.policy.try(operation, { targets: ['a'], priority: 'sheddable', signal });
    void all.policy.try(all.call('hang'), { target: 'a', priority: 'critical' });
    expect(await waiting).toMatchObject({ error: 'left', story: { stop: 'cancelled' } });
    expect(operation.calls).toEqual([]);
    await all.clock.advance('10m');
    expect(endings(all)).toEqual({ operations: 3, ended: 3 });
  });

  test.each(['half-open', 'closed'])(
    'the notice that a breaker is %s is free, and counted once',
    async (to) => {
      const all = setup({ attempts: 1, breaker: { consecutive: 1, probes: 1, openFor: '1s' } });
      await all.policy.try(all.failing());
      await all.clock.advance('1s');
      const { signal } = leaving((notice) => notice.type === 'breaker' && notice.to === to);
      const running = all.policy.try(all.call(to === 'closed' ? 'answer' : 'hang'), { signal });
      expect(await running).toMatchObject({ error: 'left', story: { stop: 'cancelled' } });
      expect(endings(all)).toEqual({ operations: 2, ended: 2 });
    },
  );
});

describe('what cannot be looked at', () => {
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  };
  const whole: PolicySpec = { attempts: 2, attemptTimeout: '1s', breaker: true, bulkhead: { concurrent: 1 } };

  test.each(['run', 'try'] as const)(
    'comes through %s as any other error, and gives its permit back',
    async (how) => {
      const { policy: made, home } = setup({ ...whole, retryOn: 'network' });
      const thrown = revoked();
      const isSame = await made[how](() => Promise.reject(thrown)).then(
        (ended) => (ended as { error: unknown }).error === thrown,
        (error) => error === thrown,
      );
      expect(isSame).toBe(true);
      expect([home().bulkhead!.inFlight, made.counters.attempts]).toEqual([0, 1]);
    },
  );

  test('may be thrown by a classifier', async () => {
    const classify = () => {
      throw revoked();
    };
    const { policy: made, home } = setup({ ...whole, retryOn: classify });
    await expect(made.run(() => Promise.reject(down))).rejects.toBe(down);
    expect(home().bulkhead!.inFlight).toBe(0);
  });
});

describe('an error whose cause cannot be read', () => {
  test('comes through as any other', async () => {
    const { clock, policy: made, failing } = setup({ attempts: 1 });
    const hostile = Object.defineProperty(new Error('hostile'), 'cause', {
      get() {
        throw new Error('unreadable');
      },
    });
    const running = made.try(async () => {
      await made.run(failing()).catch(() => {});
      throw hostile;
    });
    await clock.advance('1m');
    expect(await running).toMatchObject({ ok: false, error: hostile });
  });
});
