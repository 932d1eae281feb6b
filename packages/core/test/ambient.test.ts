import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from 'vitest';
import '../src/ambient.ts';
import { any } from '../src/classify/any.ts';
import { breaker } from '../src/parts/breaker.ts';
import { retry } from '../src/parts/retry.ts';
import { timeout } from '../src/parts/timeout.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy } from '../src/policy/policy.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import {
  type AmbientContext,
  ambientContext,
  withAmbient,
  withoutAmbient,
} from '../src/run/ambient-context.ts';
import type { Context } from '../src/run/run-options.ts';
import { after, type Beat, heeding, scripted, seededRandom, virtualClock } from '../src/testing.ts';

function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const made = policy(
    { retryOn: 'any', backoff: { base: '100ms', jitter: 'none' }, budget: false, ...spec },
    { clock, random: seededRandom('ambient') },
  );
  const failing = () => Promise.reject(new Error('down'));
  return { clock, policy: made, failing, call: (...beats: Beat[]) => scripted(clock, ...beats) };
}

describe('ambientContext', () => {
  test('reach through asynchronous calls, and end with them', async () => {
    const seen = await withAmbient({ attempt: 2 }, async () => {
      await Promise.resolve();
      return ambientContext();
    });
    expect(seen).toEqual({ attempt: 2 });
    expect(ambientContext()).toBe(undefined);
  });

  test('an edge makes its signal when it is asked for, also from further inside', () => {
    let made = 0;
    class Edge implements AmbientContext {
      readonly attempt = 2;
      get signal() {
        made += 1;
        return AbortSignal.abort('gone');
      }
    }
    withAmbient(new Edge(), () => {
      expect(ambientContext()).toMatchObject({ attempt: 2 });
      expect(made).toBe(0);
      withAmbient({ priority: 'critical' }, () => expect(ambientContext()?.signal?.reason).toBe('gone'));
    });
  });

  test('shrink through nesting, and keep what is not said anew', () => {
    const signal = new AbortController().signal;
    withAmbient({ patienceEndsAt: 100, ownedUpstream: true, signal }, () => {
      withAmbient({ patienceEndsAt: 500, attempt: 3 }, () => {
        expect(ambientContext()).toEqual({ patienceEndsAt: 100, ownedUpstream: true, signal, attempt: 3 });
      });
      withAmbient({ patienceEndsAt: 50 }, () => expect(ambientContext()?.patienceEndsAt).toBe(50));
      expect(ambientContext()?.patienceEndsAt).toBe(100);
    });
  });

  test('can be left', () => {
    withAmbient({ attempt: 2 }, () => {
      expect(withoutAmbient(ambientContext)).toBe(undefined);
      expect(ambientContext()).toMatchObject({ attempt: 2 });
    });
    expect(withoutAmbient(() => 1)).toBe(1);
  });
});

describe('a run inside them', () => {
  test('has no more patience than they have', async () => {
    const { clock, policy: made, call } = setup({ attemptTimeout: 'none' });
    const ending = withAmbient({ patienceEndsAt: 1000 }, () => made.try(call('hang'), { patience: '1h' }));
    await clock.advance('1s');
    expect(await ending).toMatchObject({
      error: { code: 'HOLDFAST_PATIENCE_SPENT' },
      story: { tookMs: 1000 },
    });
    const left = await withAmbient({ patienceEndsAt: 5000 }, () =>
      made.run(({ patienceLeft }) => patienceLeft),
    );
    expect(left).toBe(4000);
  });

  test('calls nothing when their patience has ended', async () => {
    const { policy: made, call, clock } = setup();
    await clock.advance('1s');
    const operation = call('never');
    const ending = await withAmbient({ patienceEndsAt: 900 }, () => made.try(operation));
    expect(ending).toMatchObject({ ok: false, story: { stop: 'patience_too_short' } });
    expect(operation.calls).toEqual([]);
  });

  test.each([
    ['whole', policy],
    ['plain', definePolicy([retry, any])],
  ])('is attempted once where an owner upstream retries (%s)', async (_kind, define) => {
    const clock = virtualClock();
    const made = define({ retryOn: 'any', backoff: false }, { clock });
    const operation = scripted(clock, () => Promise.reject(new Error('down')));
    const caught = withAmbient({ ownedUpstream: true }, () => made.try(operation));
    expect(await caught).toMatchObject({ ok: false, story: { stop: 'not_owner', attempts: 1 } });
    const ran = withAmbient({ ownedUpstream: true }, () => made.run(operation));
    await expect(ran).rejects.toThrow('down');
    expect(operation.calls.length).toBe(2);
  });

  test('ends when the customer leaves', async () => {
    const { clock, policy: made, call } = setup();
    const customer = new AbortController();
    const ending = withAmbient({ signal: customer.signal }, () => made.try(call('hang')));
    await clock.advance('10ms');
    customer.abort('gone');
    expect(await ending).toMatchObject({ error: 'gone', story: { stop: 'cancelled' } });
  });

  test('waits with their priority, also for its second attempt, unless it has its own', async () => {
    const { clock, policy: made, call } = setup({ bulkhead: { concurrent: 1, queue: 5 }, attempts: 2 });
    const order: string[] = [];
    const named = (name: string) => () => {
      order.push(name);
    };
    const critical: AmbientContext = { priority: 'critical' };
    withAmbient(
      critical,
      () => void made.run(call(() => Promise.reject(new Error('down')), named('retried'))),
    );
    await clock.advance('50ms');
    void made.run(call(after('100ms', 'holds the permit')));
    void made.run(named('default'));
    await clock.advance('10ms');
    withAmbient(critical, () => {
      void made.run(named('critical'));
      void made.run(named('sheddable'), { priority: 'sheddable' });
    });
    await clock.advance('1s');
    expect(order).toEqual(['critical', 'retried', 'default', 'sheddable']);
  });
});

describe('run with `ambient: true`', () => {
  test('is what surrounds the runs inside it', async () => {
    const { clock, policy: made } = setup({ attempts: 2, attemptTimeout: 'none' });
    const seen: (AmbientContext | undefined)[] = [];
    const running = made.run(
      async ({ attempt }) => {
        await Promise.resolve();
        seen.push(ambientContext());
        if (attempt === 1) throw new Error('down');
      },
      { ambient: true, patience: '3s', priority: 'sheddable' },
    );
    await clock.advance('1s');
    await running;
    const inner = { patienceEndsAt: 3000, priority: 'sheddable', signal: expect.any(AbortSignal) };
    expect(seen).toMatchObject([
      { ...inner, attempt: 1 },
      { ...inner, attempt: 2 },
    ]);
    expect(ambientContext()).toBe(undefined);
  });

  test('shrinks what surrounds itself, and passes on who owns the retries', async () => {
    const { policy: made } = setup();
    const inside = () => made.run(ambientContext, { ambient: true, patience: '1h' });
    const seen = await withAmbient(
      { patienceEndsAt: 700, ownedUpstream: true, priority: 'critical', idempotencyKey: 'k' },
      inside,
    );
    expect(seen).toMatchObject({
      patienceEndsAt: 700,
      ownedUpstream: true,
      priority: 'critical',
      idempotencyKey: 'k',
    });
  });

  test('ends the runs inside with the attempt that they are part of', async () => {
    const { clock, policy: outer, call } = setup({ attemptTimeout: '1s', attempts: 1 });
    const inner = outer.with({ attemptTimeout: 'none', patience: '1h' });
    const endings: unknown[] = [];
    void outer.try(
      async () => {
        endings.push(await inner.try(call(heeding('hang'))));
      },
      { ambient: true },
    );
    await clock.advance('1s');
    expect(endings).toMatchObject([
      { ok: false, story: { stop: 'cancelled' }, error: { code: 'HOLDFAST_ATTEMPT_TIMEOUT' } },
    ]);
  });

  test('without it a run is not seen by those inside', async () => {
    const { policy: made } = setup();
    await expect(made.run(ambientContext)).resolves.toBe(undefined);
  });

  test('of a policy that only observes surrounds nothing with its own limits', async () => {
    const { policy: made } = setup({ mode: 'observe', patience: '1s' });
    await expect(made.run(ambientContext, { ambient: true })).resolves.toBe(undefined);
  });
});

describe('whatever the user keeps in an async context', () => {
  const user = new AsyncLocalStorage<string>();

  /** Runs three callers at once, each in its own context, and tells in which one each attempt was made. */
  async function trace(
    spec: PolicySpec | undefined,
    operation: (context: Context, clock: ReturnType<typeof virtualClock>) => unknown,
    made?: { run: <T>(operation: (context: Context) => T) => Promise<T> },
    given?: ReturnType<typeof virtualClock>,
  ) {
    const { clock, policy: whole } = setup({ breaker: false, ...spec });
    const used = given ?? clock;
    const attempts: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      user.run(name, () => {
        void (made ?? whole)
          .run((context) => {
            attempts.push(`${name}${context.attempt} ${user.getStore() ?? 'nobody'}`);
            return operation(context, used);
          })
          .catch(() => {});
      });
    }
    await user.run('the one who moves time', () => used.advance('1m'));
    return attempts;
  }

  const failsTwice = async ({ attempt }: Context) => {
    if (attempt < 3) throw new Error('down');
  };
  const own = (names: string[]) => names.map((name) => `${name} ${name[0]}`);

  test('is there again after a wait', async () => {
    expect(await trace({}, failsTwice)).toEqual(own(['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3']));
  });

  test.each([
    ['retry', [retry, any]],
    ['breaker', [retry, any, breaker]],
    ['timeout', [retry, any, timeout]],
  ] as const)('by the short way too (%s)', async (_name, parts) => {
    const clock = virtualClock();
    const made = definePolicy([...parts])({ retryOn: 'any', backoff: { jitter: 'none' } } as never, {
      clock,
    });
    const failsOnce = ({ attempt }: Context) => (attempt < 2 ? Promise.reject(new Error('down')) : 1);
    const attempts = await trace(undefined, failsOnce, made, clock);
    expect(attempts).toEqual(own(['a1', 'b1', 'c1', 'a2', 'b2', 'c2']));
  });

  test('in the queue of a bulkhead, where another’s end begins the next', async () => {
    const attempts = await trace({ bulkhead: { concurrent: 1, queue: 5 } }, (_, clock) =>
      scripted(clock, after('10ms', 1))(),
    );
    expect(attempts).toEqual(own(['a1', 'b1', 'c1']));
  });

  test('in the line of a rate limit', async () => {
    const attempts = await trace({ limiter: { rate: '1/s', burst: 1, wait: '1m' } }, () => 1);
    expect(attempts).toEqual(own(['a1', 'b1', 'c1']));
  });

  test('after a timeout that the operation heeds', async () => {
    const attempts = await trace({ attemptTimeout: '1s', attempts: 2 }, (context, clock) =>
      scripted(clock, heeding('hang'))(context),
    );
    expect(attempts).toEqual(own(['a1', 'b1', 'c1', 'a2', 'b2', 'c2']));
  });

  test('for a hedge', async () => {
    const clock = virtualClock();
    const made = policy({ hedge: { after: '100ms', extraLoad: 1 }, budget: false }, { clock });
    for (let n = 0; n < 20; n++) await made.run(() => n);
    const attempts = await trace(
      undefined,
      ({ attempt }) => scripted(clock, after(attempt === 1 ? '1s' : '1ms', 1))(),
      made,
      clock,
    );
    expect(attempts).toEqual(own(['a1', 'b1', 'c1', 'a2', 'b2', 'c2']));
  });

  test('is nobody’s where it cannot be known, and never somebody else’s', async () => {
    const attempts = await trace({ attemptTimeout: '1s', attempts: 2 }, () => new Promise(() => {}));
    expect(attempts).toEqual([...own(['a1', 'b1', 'c1']), 'a2 nobody', 'b2 nobody', 'c2 nobody']);
  });
});
