import { describe, expect, test, vi } from 'vitest';
import {
  type Context,
  type Notice,
  type PolicySpec,
  policy,
  type RunOptions,
  storyOf,
  subscribe,
  traceRefusals,
} from '../src/index.ts';
import { after, heeding, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = Object.assign(new Error('down'), { code: 'ECONNRESET' });

/** Nothing but what a test asks for. */
const bare: PolicySpec = {
  attemptTimeout: 'none',
  budget: false,
  breaker: false,
  backoff: { base: '100ms', jitter: 'none' },
};

function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const made = policy({ ...bare, ...spec }, { clock, random: seededRandom('guards', 7) });
  const call = (...beats: unknown[]) => scripted(clock, ...beats);
  /** How a run ends, as soon as it has. */
  const ending = (operation: ReturnType<typeof scripted>, options?: RunOptions) => {
    const told: { is?: unknown; at?: number; stop?: string | undefined } = {};
    void made.try(operation, options).then((end) => {
      told.is = end.ok ? end.value : end.error;
      told.stop = end.story.stop;
      told.at = clock.now();
    });
    return told;
  };
  return { clock, policy: made, call, ending };
}

describe('attempt timeout', () => {
  test('gives the attempt up, aborts its signal, and tries again', async () => {
    const { clock, call, ending, policy } = setup({ attemptTimeout: '1s' });
    const operation = call(heeding('hang'), 'quick');
    const end = ending(operation);
    await clock.advance('2s');
    expect(end).toMatchObject({ is: 'quick', at: 1100 });
    expect(operation.calls[0]!.aborted).toBe(true);
    expect(policy.counters.timeouts).toBe(1);
    expect(clock.pendingTimers).toBe(0);
  });

  test('ends a run inside, which has not given up: the attempt is tried again', async () => {
    const { clock, call, policy } = setup({ attemptTimeout: '1s' });
    const inner = policy.with({ attemptTimeout: 'none' });
    const operation = call(heeding('hang'), 'quick');
    const running = policy.run(({ signal }) => inner.run(operation, { signal }));
    await clock.advance('2s');
    await expect(running).resolves.toBe('quick');
    expect(operation.calls).toHaveLength(2);
  });

  test.each<[string, RunOptions]>([
    ['by the short way', {}],
    ['by the long way', { patience: '9s' }],
  ])('is followed by a wait that the caller is told of, once, %s', async (_way, options) => {
    const spec = { attemptTimeout: '1s', limiter: { rate: '1/s', burst: 1, wait: '5s' } } as const;
    const { clock, call, policy } = setup(options.patience ? spec : { attemptTimeout: '1s' });
    const onWait = vi.fn();
    const running = policy.run(call('hang', 'quick'), { ...options, onWait });
    await clock.advance('3s');
    await expect(running).resolves.toBe('quick');
    expect(onWait.mock.calls).toMatchObject([[{ attempt: 1, delayMs: 100, because: 'transient' }]]);
  });

  test('that ends the work says so in an error of ours, with the last real error as its cause', async () => {
    const { clock, call, ending } = setup({ attemptTimeout: '1s', attempts: 2 });
    const end = ending(call(down, 'hang'));
    await clock.advance('5s');
    expect(end).toMatchObject({ stop: 'attempts_exhausted', at: 1100 });
    expect(end.is).toMatchObject({ code: 'HOLDFAST_ATTEMPT_TIMEOUT', limitMs: 1000, cause: down });
  });

  test('never lasts longer than patience, which has an error of its own', async () => {
    const { clock, call, ending } = setup({ patience: '3s' });
    const end = ending(call(after('500ms', down), 'hang'));
    await clock.advance('5s');
    expect(end).toMatchObject({ at: 3000, stop: 'patience_too_short' });
    expect(end.is).toMatchObject({ code: 'HOLDFAST_PATIENCE_SPENT', limitMs: 3000, cause: down });
    expect(clock.pendingTimers).toBe(0);
  });

  test('ignores what a given-up attempt says later', async () => {
    const { clock, call, ending, policy } = setup({ attemptTimeout: '1s', attempts: 2 });
    const operation = call(after('1200ms', 'late'), after('500ms', 'second'));
    const end = ending(operation);
    await clock.advance('5s');
    expect(end).toMatchObject({ is: 'second', at: 1600 });
    expect(policy.counters).toMatchObject({ attempts: 2, succeededAfterRetry: 1, succeeded: 0 });
  });

  test('`split` shares what is left among the attempts that are left', async () => {
    const { clock, call, ending } = setup({
      attemptTimeout: 'split',
      patience: '8s',
      attempts: 4,
      backoff: false,
    });
    const operation = call('hang');
    ending(operation);
    await clock.advance('10s');
    expect(operation.calls.map(({ at }) => at)).toEqual([0, 2000, 4000, 6000]);
  });

  test.each(['auto', 'split'] as const)(
    '`%s` lets unlimited attempts come to an end',
    async (attemptTimeout) => {
      const { clock, policy, call, ending } = setup({
        attemptTimeout,
        patience: '1s',
        attempts: 'unlimited',
        backoff: false,
      });
      const end = ending(call('hang'));
      await clock.advance('1s');
      expect(end).toMatchObject({ is: { code: 'HOLDFAST_PATIENCE_SPENT' }, at: 1000 });
      expect(policy.counters.attempts).toBeLessThan(100);
    },
  );

  test('a signal that is read for the first time after the timeout is serial aborted', async () => {
    const { clock, policy } = setup({ attemptTimeout: '1s', attempts: 1 });
    let seen: Context | undefined;
    const running = policy.try((context) => {
      seen = context;
      return new Promise(() => {});
    });
    await clock.advance('1s');
    expect(await running).toMatchObject({ error: { code: 'HOLDFAST_ATTEMPT_TIMEOUT' } });
    expect(seen!.signal.aborted).toBe(true);
    expect(seen!.signal.reason).toMatchObject({ code: 'HOLDFAST_ATTEMPT_TIMEOUT' });
  });

  test('the signal of an attempt that succeeded never aborts: its body may still be read', async () => {
    const { clock, policy } = setup({ attemptTimeout: '1s' });
    const context = await policy.run((given) => given);
    await clock.advance('5s');
    expect(context.signal.aborted).toBe(false);
  });
});

describe('a caller who leaves', () => {
  test('is never reported as a timeout, and says nothing about the target', async () => {
    const { clock, call, policy } = setup({ attemptTimeout: '1s', breaker: { consecutive: 1 } });
    const caller = new AbortController();
    const running = policy.try(call(heeding('hang')), { signal: caller.signal });
    await clock.advance('999ms');
    caller.abort('gone');
    expect(await running).toMatchObject({ ok: false, error: 'gone', story: { stop: 'cancelled' } });
    expect(policy.counters).toMatchObject({ timeouts: 0, stops: { cancelled: 1 } });
    await expect(policy.run(call('fine'))).resolves.toBe('fine');
  });

  test('does not abort the calls of others', async () => {
    const { clock, call, ending, policy } = setup({ attemptTimeout: '5s' });
    const caller = new AbortController();
    const other = ending(call(heeding(after('2s', 'fine'))));
    void policy.try(call(heeding('hang')), { signal: caller.signal });
    await clock.advance('1s');
    caller.abort();
    await clock.advance('1s');
    expect(other).toMatchObject({ is: 'fine', at: 2000 });
  });
});

describe('breaker', () => {
  const tripped = { breaker: { consecutive: 2, openFor: '10s' }, attempts: 1 } satisfies PolicySpec;

  async function trip({ policy, call }: ReturnType<typeof setup>) {
    await policy.try(call(down));
    await policy.try(call(down));
  }

  test('open, it refuses without a call, with an error of ours and no stack', async () => {
    const made = setup(tripped);
    await trip(made);
    const operation = made.call('never');
    const end = await made.policy.try(operation);
    expect(operation.calls).toEqual([]);
    expect(end.story.stop).toBe('breaker_open');
    const error = end.ok ? undefined : (end.error as Error & { retryAfterMs: number });
    expect(error).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN', reason: 'breaker_open' });
    expect(error!.retryAfterMs).toBeGreaterThanOrEqual(5000);
    expect(error!.stack?.split('\n').length).toBe(1);
    await expect(made.policy.run(operation)).rejects.toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN' });
    expect(Error.stackTraceLimit).toBeGreaterThan(0);
  });

  test('opening ends the retries at once, and the real error comes through', async () => {
    const { clock, call, ending } = setup({ breaker: { consecutive: 2 }, attempts: 10 });
    const operation = call(down);
    const end = ending(operation);
    await clock.advance('1m');
    expect(end).toMatchObject({ is: down, stop: 'breaker_open', at: 100 });
    expect(operation.calls.length).toBe(2);
  });

  test('that opened during the backoff refuses the next attempt, and the real error comes through', async () => {
    const { clock, call, ending } = setup({
      breaker: { consecutive: 3 },
      attempts: 3,
      backoff: { base: '1s', jitter: 'none' },
    });
    const end = ending(call(down));
    await clock.advance('500ms');
    ending(call(down));
    ending(call(down));
    await clock.advance('1s');
    expect(end).toMatchObject({ is: down, stop: 'breaker_open', at: 1000 });
  });

  test('with `whenOpen: wait` is waited for when patience allows', async () => {
    const made = setup({ breaker: { consecutive: 2, openFor: '4s', whenOpen: 'wait' }, attempts: 1 });
    await trip(made);
    const end = made.ending(made.call('fine'));
    await made.clock.advance('1s');
    expect(end.is).toBe(undefined);
    await made.clock.advance('4s');
    expect(end.is).toBe('fine');
    const hasty = setup({
      breaker: { consecutive: 2, openFor: '4s', whenOpen: 'wait' },
      attempts: 1,
      patience: '1s',
    });
    await trip(hasty);
    const refused = hasty.ending(hasty.call('never'));
    await hasty.clock.advance('1ms');
    expect(refused.stop).toBe('breaker_open');
  });

  test('does not end work that goes on until its patience ends, unless that is asked for', async () => {
    const breaker = { consecutive: 2, openFor: '4s' } as const;
    const made = setup({ breaker, attempts: 'unlimited', patience: '1m' });
    const end = made.ending(made.call(down, down, 'fine'));
    await made.clock.advance('10s');
    expect(end.is).toBe('fine');
    const stopping = setup({
      breaker: { ...breaker, whenOpen: 'stop' },
      attempts: 'unlimited',
      patience: '1m',
    });
    const refused = stopping.ending(stopping.call(down, down, 'never'));
    await stopping.clock.advance('10s');
    expect(refused.stop).toBe('breaker_open');
  });

  test('is kept for each target: one dead shard does not close the door on the others', async () => {
    const { policy, call } = setup(tripped);
    for (let n = 0; n < 3; n++) await policy.try(call(down), { target: 'shard-1' });
    expect((await policy.try(call('x'), { target: 'shard-1' })).story.stop).toBe('breaker_open');
    expect(await policy.run(call('x'), { target: 'shard-2' })).toBe('x');
    expect(await policy.run(call('x'))).toBe('x');
  });

  test('a 429 and a 503 are failures, a 404 is an answer', async () => {
    const { policy } = setup({ breaker: { consecutive: 2 }, attempts: 1 });
    const answer = (status: number) => policy.try(async () => new Response(null, { status }));
    for (let n = 0; n < 5; n++) await answer(404);
    expect((await answer(429)).story.stop).toBe('attempts_exhausted');
    await answer(503);
    expect((await answer(200)).story.stop).toBe('breaker_open');
  });

  describe('looks at the clock', () => {
    /** A policy whose looks at the clock are counted, and how often it looks for so many successes in a row. */
    function counted(spec: PolicySpec) {
      const clock = virtualClock();
      const now = vi.spyOn(clock, 'now');
      const made = policy({ ...bare, patience: 'unlimited', ...spec }, { clock });
      const looks = async (times: number) => {
        now.mockClear();
        for (let i = 0; i < times; i++) await made.run(() => 1);
        return now.mock.calls.length;
      };
      return { clock, policy: made, looks };
    }

    test('for one of eight successes where nothing depends on how long they took, and counts all', async () => {
      const { clock, policy: made, looks } = counted({ breaker: { slow: false, minimum: 4 } });
      expect(await looks(80)).toBe(10);
      const { counts } = made.plan.targetOf!(undefined, 0).breaker!.save(clock.now());
      expect(counts.reduce((sum, each) => sum + each)).toBe(80);
    });

    test('for every failure, which is counted among the successes before it', async () => {
      const { policy: made, looks } = counted({ breaker: { slow: false, minimum: 4 }, attempts: 1 });
      await looks(7);
      for (let i = 0; i < 4; i++) await made.try(() => Promise.reject(down));
      await looks(1);
      // Five of thirteen failed, and never five in a row.
      await made.try(() => Promise.reject(down));
      expect(await made.try(() => 1)).toMatchObject({ ok: true });
    });

    test.each<[string, PolicySpec, number]>([
      ['where it watches for slow calls', { breaker: { slow: { over: '2s' } } }, 16],
      [
        'where a call is given up before it is slow, for the beginning alone',
        { attemptTimeout: '2s', breaker: { slow: { over: '2s' } } },
        9,
      ],
      [
        'where it may be slow before it is given up',
        { attemptTimeout: '2001ms', breaker: { slow: { over: '2s' } } },
        16,
      ],
      ['where nothing learns what is usual, and none is slow', { attemptTimeout: '2s', breaker: {} }, 9],
      [
        'where the limit learns from what calls take',
        { attemptTimeout: 'auto', breaker: { slow: false } },
        16,
      ],
    ])('%s', async (_when, spec, looks) => {
      expect(await counted(spec).looks(8)).toBe(looks);
    });

    test('for a success that lets somebody in who waits', async () => {
      const { clock, policy: made } = counted({ bulkhead: { concurrent: 1, queue: 1 } });
      const first = Promise.withResolvers<number>();
      const running = made.run(() => first.promise);
      const waiting = made.try(() => 2, { patience: '1s' });
      await clock.advance('500ms');
      first.resolve(1);
      await expect(running).resolves.toBe(1);
      await expect(waiting).resolves.toMatchObject({ ok: true, value: 2 });
    });
  });

  test('a refusal by the bulkhead is no failure of the target', async () => {
    const { policy, call, clock } = setup({
      breaker: { consecutive: 1 },
      bulkhead: { concurrent: 1, queue: 0 },
      attempts: 1,
    });
    const first = policy.try(call(after('1s', 'fine')));
    expect((await policy.try(call('x'))).story.stop).toBe('bulkhead_full');
    await clock.advance('1s');
    expect(await first).toMatchObject({ ok: true });
    expect(await policy.run(call('x'))).toBe('x');
  });
});

describe('bulkhead', () => {
  test('lets so many run and so many wait, in order', async () => {
    const { clock, call, ending } = setup({ bulkhead: { concurrent: 2, queue: 2 } });
    const ends = ['a', 'b', 'c', 'd', 'e'].map((name) => ending(call(after('1s', name))));
    await clock.advance('1ms');
    expect(ends[4]).toMatchObject({ stop: 'bulkhead_full', is: { code: 'HOLDFAST_BULKHEAD_FULL' } });
    await clock.advance('3s');
    expect(ends.map(({ at }) => at)).toEqual([1000, 1000, 2000, 2000, 0]);
  });

  test('the more important goes first, and may take the place of the less important', async () => {
    const { clock, call, ending } = setup({ bulkhead: { concurrent: 1, queue: 1 } });
    ending(call(after('1s', 'running')));
    const sheddable = ending(call('x'), { priority: 'sheddable' });
    const critical = ending(call('y'), { priority: 'critical' });
    await clock.advance('2s');
    expect([sheddable.stop, critical.is]).toEqual(['bulkhead_full', 'y']);
  });

  test('a permit is not held while backing off', async () => {
    const { clock, call, ending } = setup({
      bulkhead: { concurrent: 1, queue: 0 },
      backoff: { base: '1s', jitter: 'none' },
    });
    const slow = ending(call(down, 'at last'));
    await clock.advance('500ms');
    const other = ending(call('at once'));
    await clock.advance('5s');
    expect([other.at, slow.is]).toEqual([500, 'at last']);
  });

  test('who leaves the queue is gone at once, and patience ends there too', async () => {
    const { clock, call, ending, policy } = setup({ bulkhead: { concurrent: 1, queue: 5 }, patience: '2s' });
    const blocker = call('hang');
    ending(blocker, { patience: '1m' });
    const caller = new AbortController();
    const leaver = policy.try(call('never'), { signal: caller.signal });
    const waiter = call('never');
    const end = ending(waiter);
    await clock.advance('1s');
    caller.abort('left');
    expect(await leaver).toMatchObject({ error: 'left', story: { stop: 'cancelled', tookMs: 1000 } });
    await clock.advance('2s');
    expect(end).toMatchObject({
      stop: 'patience_too_short',
      at: 2000,
      is: { code: 'HOLDFAST_PATIENCE_SPENT' },
    });
    expect(waiter.calls).toEqual([]);
  });

  test('a call that never settles gives its permit back when its lease ends, and is counted', async () => {
    const { clock, call, ending, policy } = setup({
      bulkhead: { concurrent: 1, queue: 0 },
      attemptTimeout: '1s',
      attempts: 1,
    });
    ending(call('hang'));
    await clock.advance('30s');
    expect(ending(call('x'))).toEqual({});
    await clock.advance('1s');
    expect(policy.counters.zombies).toBe(1);
    await expect(policy.run(call('x'))).resolves.toBe('x');
    expect(clock.pendingTimers).toBe(0);
  });

  test('a late call gives its permit back when it settles', async () => {
    const { clock, call, ending, policy } = setup({
      bulkhead: { concurrent: 1, queue: 0 },
      attemptTimeout: '1s',
      attempts: 1,
    });
    ending(call(after('5s', 'late')));
    await clock.advance('4s');
    expect((await policy.try(call('x'))).story.stop).toBe('bulkhead_full');
    await clock.advance('1s');
    await expect(policy.run(call('x'))).resolves.toBe('x');
    expect([policy.counters.zombies, clock.pendingTimers]).toEqual([0, 0]);
  });
});

describe('limiter', () => {
  test('refuses what comes too early', async () => {
    const { policy, call } = setup({ limiter: { rate: '10/s', burst: 2 } });
    await policy.run(call(1));
    await policy.run(call(1));
    expect(await policy.try(call(1))).toMatchObject({
      error: { code: 'HOLDFAST_RATE_LIMITED', retryAfterMs: 100 },
    });
  });

  test('or lets it wait its turn', async () => {
    const { clock, call, ending } = setup({ limiter: { rate: '10/s', burst: 1, wait: '1s' } });
    const ends = [1, 2, 3].map((n) => ending(call(n)));
    await clock.advance('1s');
    expect(ends.map(({ at }) => at)).toEqual([0, 100, 200]);
  });
});

describe('throttle', () => {
  test('sends less to a target that accepts nothing', async () => {
    const { policy, call } = setup({ throttle: true, attempts: 1, breaker: false });
    for (let n = 0; n < 500; n++) await policy.try(call(down));
    expect(policy.counters.attempts).toBeLessThan(100);
    expect(policy.counters.stops.throttled).toBeGreaterThan(400);
  });
});

describe('hedge', () => {
  const hedged = { hedge: { after: '100ms', extraLoad: 1 }, attempts: 2 } satisfies PolicySpec;
  /** Successes that earn the tokens for a hedge. */
  async function earn({ policy, call }: ReturnType<typeof setup>) {
    for (let n = 0; n < 20; n++) await policy.run(call(n));
  }

  test('a slow first attempt gets a hedgeTwin; the faster answer counts and the other is cancelled', async () => {
    const made = setup(hedged);
    await earn(made);
    const operation = made.call(heeding(after('1s', 'slow')), after('10ms', 'fast'));
    const end = made.ending(operation);
    await made.clock.advance('200ms');
    expect(end).toMatchObject({ is: 'fast', at: 110 });
    expect(operation.calls.map(({ at, aborted }) => [at, aborted])).toEqual([
      [0, true],
      [100, false],
    ]);
    expect(made.policy.counters.hedges).toBe(1);
    expect(made.clock.pendingTimers).toBe(0);
  });

  test('one that fails leaves the other in the race', async () => {
    const made = setup(hedged);
    await earn(made);
    const end = made.ending(made.call(after('300ms', 'slow but sure'), after('10ms', down)));
    await made.clock.advance('1s');
    expect(end).toMatchObject({ is: 'slow but sure', at: 300 });
  });

  test('is never done for work that must not be repeated', async () => {
    const made = setup(hedged);
    await earn(made);
    const operation = made.call(after('1s', 'slow'));
    made.ending(operation, { idempotent: false });
    await made.clock.advance('2s');
    expect(operation.calls.length).toBe(1);
  });

  test('that would have to wait for a permit is not sent, and nothing is called after the work is done', async () => {
    const made = setup({ ...hedged, bulkhead: { concurrent: 2, queue: 2 } });
    await earn(made);
    const first = made.call(after('700ms', 'first'));
    const second = made.call(after('1s', 'second'));
    const ends = [made.ending(first), made.ending(second)];
    await made.clock.advance('5s');
    expect(ends).toMatchObject([
      { is: 'first', at: 700 },
      { is: 'second', at: 1000 },
    ]);
    expect([first.calls.length, second.calls.length]).toEqual([1, 1]);
    expect(made.policy.counters.hedges).toBe(0);
    expect(made.clock.pendingTimers).toBe(0);
  });

  test('has a budget of its own', async () => {
    const made = setup({ hedge: { after: '100ms', extraLoad: 0.1 }, attempts: 2 });
    for (let n = 0; n < 200; n++) {
      made.ending(made.call(after('150ms', n)));
      await made.clock.advance('200ms');
    }
    expect(made.policy.counters.hedges).toBeGreaterThan(10);
    expect(made.policy.counters.hedges).toBeLessThanOrEqual(25);
  });

  test('by percentile waits until enough is known', async () => {
    const made = setup({ hedge: { percentile: 0.9, extraLoad: 1 }, attempts: 2 });
    for (let n = 0; n < 100; n++) {
      made.ending(made.call(after('10ms', n)));
      await made.clock.advance('10ms');
    }
    expect(made.policy.counters.hedges).toBe(0);
    const end = made.ending(made.call(after('1s', 'slow'), after('1ms', 'fast')));
    await made.clock.advance('2s');
    expect(end.is).toBe('fast');
    expect(end.at! - 1000).toBeLessThan(15);
  });
});

describe('budget', () => {
  test('exhausted, it ends the retries at once with the real error', async () => {
    const { policy, call } = setup({ budget: { ratio: 0.1 }, backoff: false, attempts: 3 });
    await policy.try(call(down));
    const operation = call(down);
    const end = await policy.try(operation);
    expect(end).toMatchObject({ error: down, story: { stop: 'budget_exhausted', tookMs: 0 } });
    expect(operation.calls.length).toBe(1);
    expect(storyOf(down)?.stop).toBe('budget_exhausted');
  });

  test('gets its token back when the wait is left before the retry', async () => {
    const { policy, call, clock } = setup({ budget: true, attempts: 2 });
    for (let n = 0; n < 5; n++) {
      const caller = new AbortController();
      const running = policy.try(call(down), { signal: caller.signal });
      await clock.advance('1ms');
      caller.abort();
      await running;
    }
    const end = policy.try(call(down, 'retried'));
    await clock.advance('1s');
    expect(await end).toMatchObject({ ok: true, value: 'retried' });
  });

  test('lets a lone caller whose first call fails twice succeed on the third attempt', async () => {
    const clock = virtualClock();
    const lone = policy({}, { clock, random: seededRandom('lone') });
    const running = lone.run(scripted(clock, down, down, 'third'));
    await clock.advance('10s');
    await expect(running).resolves.toBe('third');
  });
});

describe('notices', () => {
  test('tell the whole story as it happens', async () => {
    const { policy, call, clock } = setup({ name: 'told', breaker: { consecutive: 2 }, attempts: 3 });
    const heard: Notice[] = [];
    const stop = subscribe((notice) => heard.push(notice));
    const running = policy.try(call(down, 'up'), { target: 'a' });
    await clock.advance('1s');
    await running;
    stop();
    await policy.run(call('unheard'));
    const work = heard[0] && 'work' in heard[0] ? heard[0].work : 0;
    const from = { policy: 'told', target: 'a', work };
    expect(heard).toEqual([
      { ...from, at: 0, type: 'start' },
      {
        ...from,
        at: 0,
        type: 'attempt',
        attempt: 1,
        class: 'transient',
        tookMs: 0,
        outcome: down,
        last: false,
      },
      { ...from, at: 0, type: 'retry', attempt: 1, because: 'transient', delayMs: 100, outcome: down },
      { ...from, at: 100, type: 'attempt', attempt: 2, class: 'ok', tookMs: 0, outcome: 'up', last: true },
      { ...from, at: 100, type: 'done', attempts: 2, tookMs: 100 },
    ]);
  });

  test('the start of work is told in the tick of the call, before anything is refused', async () => {
    const { policy, call } = setup({ breaker: { consecutive: 1 }, attempts: 1 });
    await policy.try(call(down));
    const heard: string[] = [];
    const stop = subscribe((notice) => heard.push(notice.type));
    const running = policy.try(call('never'));
    expect(heard).toEqual(['start', 'refused', 'gave_up']);
    await running;
    stop();
  });

  test('a listener that throws does not harm the work', async () => {
    const { policy, call } = setup();
    const later = vi.spyOn(globalThis, 'queueMicrotask').mockImplementation(() => {});
    const stop = subscribe(() => {
      throw new Error('bad listener');
    });
    await expect(policy.run(call(1))).resolves.toBe(1);
    stop();
    expect(() => later.mock.calls[0]![0]()).toThrow('bad listener');
    later.mockRestore();
  });
});

describe('the stack of a refusal', () => {
  async function callsWhileOpen() {
    const { policy: made } = setup({ breaker: { consecutive: 1 }, attempts: 1 });
    await made.try(() => Promise.reject(down));
    return made.run(() => 1).catch((error: Error) => error.stack);
  }

  test('is empty, unless refusals are traced: then it names the caller', async () => {
    expect(await callsWhileOpen()).not.toContain('callsWhileOpen');
    traceRefusals();
    try {
      expect(await callsWhileOpen()).toContain('callsWhileOpen');
    } finally {
      traceRefusals(false);
    }
  });
});
