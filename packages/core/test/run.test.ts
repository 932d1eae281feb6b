import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { any } from '../src/classify/any.ts';
import { permanent, retryAfter, transient } from '../src/classify/marks.ts';
import { retry } from '../src/parts/retry.ts';
import { definePolicy } from '../src/policy/policy.ts';
import { storyOf } from '../src/report/story.ts';
import { after, heeding, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const plain = definePolicy([retry, any]);

function setup(spec: Parameters<typeof plain>[0] = {}, ...beats: unknown[]) {
  const clock = virtualClock();
  const caller = new AbortController();
  const policy = plain({ retryOn: 'any', ...spec }, { clock, random: seededRandom('jitter', 1) });
  const operation = scripted(clock, ...beats);
  return { clock, caller, policy, operation, run: policy.run };
}

const down = new Error('down');
const stillDown = new Error('still down');

describe('run', () => {
  test('passes a success through and calls once', async () => {
    const { run, operation, policy, clock } = setup({}, 42);
    await expect(run(operation)).resolves.toBe(42);
    expect(operation.attempts).toEqual([1]);
    expect(policy.counters).toMatchObject({
      operations: 1,
      attempts: 1,
      succeeded: 1,
      loadMultiplication: 1,
    });
    expect(clock.pendingTimers).toBe(0);
  });

  test('tries again after the backoff, and tells the attempt its number', async () => {
    const { run, operation, clock, policy } = setup(
      { backoff: { base: '1s', jitter: 'none' } },
      down,
      down,
      'up',
    );
    const running = run(operation);
    await clock.advance('10s');
    await expect(running).resolves.toBe('up');
    expect(operation.calls).toMatchObject([{ at: 0 }, { at: 1000 }, { at: 3000 }]);
    expect(operation.attempts).toEqual([1, 2, 3]);
    expect(policy.counters).toMatchObject({ attempts: 3, succeeded: 0, succeededAfterRetry: 1 });
  });

  test('throws the last error itself, with the story of how it came to that', async () => {
    const { run, operation, clock, policy } = setup(
      { attempts: 2, backoff: { base: '1s', jitter: 'none' } },
      down,
      stillDown,
    );
    const running = run(operation);
    const caught = running.catch((error: unknown) => error);
    await clock.advance('1s');
    expect(await caught).toBe(stillDown);
    expect(storyOf(stillDown)).toEqual({
      policy: undefined,
      attempts: 2,
      tookMs: 1000,
      stop: 'attempts_exhausted',
      inner: undefined,
      log: [
        {
          attempt: 1,
          target: undefined,
          endedAtMs: 0,
          class: 'transient',
          outcome: down,
          verdict: { kind: 'retry', at: 1000, delayMs: 1000, because: 'transient', costs: 1 },
        },
        {
          attempt: 2,
          target: undefined,
          endedAtMs: 1000,
          class: 'transient',
          outcome: stillDown,
          verdict: { kind: 'give_up', because: 'attempts_exhausted' },
        },
      ],
    });
    expect(policy.counters).toMatchObject({ failedAfterRetry: 1, stops: { attempts_exhausted: 1 } });
  });

  test('does not retry what it does not know', async () => {
    const { run, operation } = setup({ retryOn: [] }, down);
    await expect(run(operation)).rejects.toBe(down);
    expect(operation.attempts).toEqual([1]);
    expect(storyOf(down)?.stop).toBe('not_retryable');
  });

  test('believes what was said of an error by hand', async () => {
    const { run, clock, policy } = setup({ retryOn: [] });
    const marked = scripted(clock, transient(new Error('blip')), 'fine');
    const running = run(marked);
    await clock.advance('1s');
    await expect(running).resolves.toBe('fine');

    const final = scripted(clock, permanent(new Error('no')));
    await expect(policy.with({ retryOn: 'any' }).run(final)).rejects.toThrow('no');
    expect(final.attempts).toEqual([1]);
  });

  test('never tries again before the time the target asked for', async () => {
    const { run, clock } = setup({ patience: '1m' });
    const operation = scripted(
      clock,
      () => {
        throw retryAfter(new Error('busy'), '7s');
      },
      'free',
    );
    const running = run(operation);
    await clock.advance('1m');
    await expect(running).resolves.toBe('free');
    expect(operation.calls[1]!.at).toBeGreaterThanOrEqual(7000);
    expect(operation.calls[1]!.at).toBeLessThanOrEqual(10_500);
  });

  test('retries at once, with no timer, when there is no delay', async () => {
    const { run, operation, clock } = setup({ backoff: { base: 0, jitter: 'none' } }, down, down, 'up');
    const set = vi.spyOn(clock, 'set');
    await expect(run(operation)).resolves.toBe('up');
    expect(set).not.toHaveBeenCalled();
  });

  test('a synchronous throw and a plain value are outcomes like any other', async () => {
    const { run, clock } = setup({ backoff: false });
    let calls = 0;
    const value = await run(() => {
      calls++;
      if (calls < 3) throw down;
      return 'plain';
    });
    expect([value, calls]).toEqual(['plain', 3]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('is one frame in the stack of what an operation throws, at any attempt, and its caller comes next at the first', async () => {
    const { run } = setup({ backoff: false });
    const stacks: string[][] = [];
    async function theCaller() {
      await run(async () => {
        const [, ...frames] = new Error('down').stack!.split('\n');
        stacks.push(frames);
        if (stacks.length < 4) throw down;
      });
    }
    await theCaller();
    const ours = stacks.map((frames) => frames.filter((frame) => frame.includes('/core/src/')).length);
    expect(ours).toEqual([1, 1, 1, 1]);
    expect(stacks[0]![2]).toContain('theCaller');
  });

  test('a primitive can be thrown and comes out untouched', async () => {
    const { run } = setup({ retryOn: [] });
    await expect(run(() => Promise.reject('just a text'))).rejects.toBe('just a text');
    await expect(run(() => Promise.reject(undefined))).rejects.toBe(undefined);
  });

  test('keeps the types of what it runs', async () => {
    const { policy } = setup();
    expectTypeOf(policy.run(async () => 42)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(policy.run(() => 'text')).toEqualTypeOf<Promise<string>>();
    const wrapped = policy.wrap(async (id: number, name: string) => `${id}${name}`);
    expectTypeOf(wrapped).toEqualTypeOf<(id: number, name: string) => Promise<string>>();
    await expect(wrapped(1, 'a')).resolves.toBe('1a');
  });
});

describe('patience', () => {
  test('no wait goes past it: the work ends at once with the real error', async () => {
    const { run, operation, clock } = setup(
      { patience: '5s', backoff: { base: '5s', jitter: 'none' } },
      after('1s', down),
    );
    const caught = run(operation).catch((error: unknown) => error);
    await clock.advance('1s');
    expect(await caught).toBe(down);
    expect(storyOf(down)).toMatchObject({ stop: 'patience_too_short', tookMs: 1000 });
    expect(clock.pendingTimers).toBe(0);
  });

  test('a run can have its own', async () => {
    const { run, operation, clock } = setup({ backoff: { base: '1s', jitter: 'none' } }, down);
    const caught = run(operation, { patience: '500ms' }).catch((error: unknown) => error);
    await clock.advance('1ms');
    expect(await caught).toBe(down);
    expect(operation.attempts).toEqual([1]);
    await expect(run(operation, { patience: 'soon' as '1s' })).rejects.toThrow(
      'patience: expected a duration',
    );
  });

  test('the attempt is told what is left of it', async () => {
    const { policy, clock } = setup({ patience: '10s', backoff: { base: '4s', jitter: 'none' } });
    const left: number[] = [];
    const running = policy.run(({ patienceLeft, attempt }) => {
      left.push(patienceLeft);
      return attempt < 2 ? Promise.reject(down) : 'ok';
    });
    await clock.advance('4s');
    await running;
    expect(left).toEqual([10_000, 6000]);
  });

  test('without a limit it is endless', async () => {
    const { policy } = setup({ patience: 'unlimited' });
    await expect(policy.run(({ patienceLeft }) => patienceLeft)).resolves.toBe(Infinity);
  });
});

describe('the caller leaves', () => {
  test('during backoff: the wait ends that moment and nothing is called any more', async () => {
    const { run, operation, clock, caller } = setup(
      { backoff: { base: '1h', cap: '1h', jitter: 'none' }, patience: '1d' },
      down,
    );
    const caught = run(operation, { signal: caller.signal }).catch((error: unknown) => error);
    await clock.advance('10ms');
    const left = new Error('left');
    caller.abort(left);
    expect(await caught).toBe(left);
    expect(storyOf(left)).toMatchObject({ stop: 'cancelled', tookMs: 10 });
    expect(clock.pendingTimers).toBe(0);
    await clock.advance('2h');
    expect(operation.attempts).toEqual([1]);
  });

  test('during an attempt: its signal aborts with the same reason, and nobody waits for it', async () => {
    const { run, operation, clock, caller } = setup({}, heeding('hang'));
    const caught = run(operation, { signal: caller.signal }).catch((error: unknown) => error);
    await clock.advance('10ms');
    caller.abort('gone');
    expect(await caught).toBe('gone');
    expect(operation.calls[0]!.aborted).toBe(true);
  });

  test('during an attempt that does not listen: the caller is free all the same, and no ghost retries', async () => {
    const { run, operation, clock, caller } = setup({}, after('5s', down));
    const caught = run(operation, { signal: caller.signal }).catch((error: unknown) => error);
    await clock.advance('10ms');
    caller.abort('gone');
    expect(await caught).toBe('gone');
    await clock.advance('1m');
    expect(operation.attempts).toEqual([1]);
  });

  test('before the start: nothing is called', async () => {
    const { run, operation } = setup({}, 1);
    await expect(run(operation, { signal: AbortSignal.abort('early') })).rejects.toBe('early');
    expect(operation.attempts).toEqual([]);
  });

  test('from inside the operation itself', async () => {
    const { run, caller, clock } = setup();
    const running = run(
      () => {
        caller.abort('inside');
        return Promise.reject(down);
      },
      { signal: caller.signal },
    );
    await expect(running).rejects.toBe('inside');
    expect(clock.pendingTimers).toBe(0);
  });

  test('no listener stays on a signal that outlives the call', async () => {
    const { run, clock, caller } = setup({ backoff: { base: '10ms' } });
    const added = vi.spyOn(caller.signal, 'addEventListener');
    const removed = vi.spyOn(caller.signal, 'removeEventListener');
    const running = run(scripted(clock, down, 1), { signal: caller.signal });
    await clock.advance('1s');
    await running;
    await run(scripted(clock, 1), { signal: caller.signal });
    expect(added).toHaveBeenCalledTimes(2);
    expect(removed).toHaveBeenCalledTimes(2);
  });

  test('many calls with one signal share one listener', async () => {
    const { run, clock, caller } = setup();
    const added = vi.spyOn(caller.signal, 'addEventListener');
    const removed = vi.spyOn(caller.signal, 'removeEventListener');
    const running = [1, 2, 3].map((ms) => run(scripted(clock, after(ms, ms)), { signal: caller.signal }));
    await clock.advance('2ms');
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 0]);
    await clock.advance('1ms');
    await Promise.all(running);
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('onWait', () => {
  test('is told before each wait', async () => {
    const { run, operation, clock } = setup({ backoff: { base: '1s', jitter: 'none' } }, down, 'up');
    const onWait = vi.fn();
    const running = run(operation, { onWait });
    await clock.advance('1s');
    await running;
    expect(onWait.mock.calls).toEqual([
      [{ attempt: 1, delayMs: 1000, because: 'transient', patienceLeft: 10_000 }],
    ]);
  });

  test('gives whole milliseconds', async () => {
    const { run, operation, clock } = setup({ backoff: { base: 10.4, jitter: 'none' } }, down, 'up');
    const waits: { delayMs: number; patienceLeft: number }[] = [];
    const running = run(operation, { onWait: (wait) => waits.push(wait), patience: 100.7 });
    await clock.advance('1s');
    await running;
    expect(waits).toMatchObject([{ delayMs: 10, patienceLeft: 101 }]);
  });

  test('ends the work when it throws', async () => {
    const { run, operation, clock } = setup({}, down);
    const fault = new Error('in the callback');
    const onWait = () => {
      throw fault;
    };
    await expect(run(operation, { onWait })).rejects.toBe(fault);
    expect(clock.pendingTimers).toBe(0);
  });

  test('may make the caller leave', async () => {
    const { run, operation, clock, caller } = setup({}, down);
    const onWait = () => caller.abort('enough');
    await expect(run(operation, { onWait, signal: caller.signal })).rejects.toBe('enough');
    expect(clock.pendingTimers).toBe(0);
    expect(operation.attempts).toEqual([1]);
  });
});

describe('work that must not be repeated', () => {
  test('is not, unless it was provably not processed', async () => {
    const { run, clock } = setup();
    const unsafe = scripted(clock, down);
    await expect(run(unsafe, { idempotent: false })).rejects.toBe(down);
    expect(unsafe.attempts).toEqual([1]);
    expect(storyOf(down)?.stop).toBe('not_idempotent');

    const refused = scripted(clock, transient(new Error('refused'), { unprocessed: true }), 'sent');
    const running = run(refused, { idempotent: false });
    await clock.advance('1s');
    await expect(running).resolves.toBe('sent');
  });
});

test('what forbids a repetition is asked when it matters', async () => {
  const { run, clock } = setup();
  let read = false;
  const once = scripted(clock, () => {
    read = true;
    throw down;
  });
  await expect(run(once, { retryVeto: () => (read ? 'not_replayable' : undefined) })).rejects.toBe(down);
  expect(storyOf(down)?.stop).toBe('not_replayable');
});

test('a run may judge its own outcomes before the policy does', async () => {
  const { run, clock } = setup({ backoff: false });
  const busy = scripted(clock, 'busy', down, 'done');
  const classify = vi.fn((outcome) => (outcome.value === 'busy' ? 'transient' : undefined));
  await expect(run(busy, { classify })).resolves.toBe('done');
  expect(busy.attempts).toEqual([1, 2, 3]);
  expect(classify).toHaveBeenCalledTimes(3);
});

test('an option that cannot be used is a rejection, not a throw: also of `try`', async () => {
  const { policy } = setup();
  const options = { patience: 'soon' as never };
  await expect(policy.run(() => 1, options)).rejects.toThrow('patience: expected');
  await expect(policy.try(() => 1, options)).rejects.toThrow('patience: expected');
});

describe('runs inside runs', () => {
  test('the outer one does not retry what the inner one has given up on', async () => {
    const { policy, clock, operation } = setup({ attempts: 3, backoff: false }, down);
    const outer = policy.with({ attempts: 5 });
    await expect(outer.run(() => policy.run(operation))).rejects.toBe(down);
    expect(operation.attempts).toEqual([1, 2, 3]);
    const story = storyOf(down);
    expect(story).toMatchObject({
      stop: 'not_owner',
      attempts: 1,
      inner: { stop: 'attempts_exhausted', attempts: 3 },
    });
    expect(clock.pendingTimers).toBe(0);
  });

  test('runs that share one failing promise are beside each other, and each retries', async () => {
    const { policy } = setup({ attempts: 3, backoff: false });
    const shared = Promise.reject(down);
    const once = policy.with({ attempts: 1 });
    const calls = { first: 0, second: 0 };
    const [, second] = await Promise.all([
      once.try(() => {
        calls.first++;
        return shared;
      }),
      policy.try(() => {
        calls.second++;
        return shared;
      }),
    ]);
    expect(second).toMatchObject({ story: { stop: 'attempts_exhausted', inner: undefined } });
    expect(calls).toEqual({ first: 1, second: 3 });
  });

  test('nor when the error was wrapped on the way out', async () => {
    const { policy, operation } = setup({ attempts: 2, backoff: false }, down);
    const wrapped = async () => {
      try {
        return await policy.run(operation);
      } catch (cause) {
        throw new Error('while loading', { cause });
      }
    };
    await expect(policy.run(wrapped)).rejects.toThrow('while loading');
    expect(operation.attempts).toEqual([1, 2]);
  });

  test.each(['run', 'try'] as const)('nor a value that it returned as a failure (%s)', async (how) => {
    const busy = { status: 'busy' };
    const retryOn = ({ ok }: { ok: boolean }) => (ok ? 'transient' : undefined);
    const { policy, operation } = setup({ retryOn, attempts: 3, backoff: false }, busy);
    const inner = async () => {
      const ending = how === 'run' ? { value: await policy.run(operation) } : await policy.try(operation);
      return ending.value;
    };
    await expect(policy.run(inner)).resolves.toBe(busy);
    expect(operation.attempts).toEqual([1, 2, 3]);
    expect(storyOf(busy)).toMatchObject({ stop: 'not_owner', inner: { stop: 'attempts_exhausted' } });
  });

  test('an error object that an earlier run threw can be retried by a later one', async () => {
    const { policy, clock } = setup({ attempts: 2, backoff: false });
    await policy.run(scripted(clock, down)).catch(() => {});
    const later = scripted(clock, down, 'fine');
    await expect(policy.run(later)).resolves.toBe('fine');
  });
});

describe('try', () => {
  test('tells of a success', async () => {
    const { policy, operation } = setup({ name: 'orders' }, 42);
    const ending = await policy.try(operation);
    expect(ending).toMatchObject({
      ok: true,
      value: 42,
      story: { policy: 'orders', attempts: 1, stop: undefined },
    });
  });

  test('tells of a failure without throwing', async () => {
    const { policy, operation } = setup({ attempts: 2, backoff: false }, down);
    const ending = await policy.try(operation);
    expect(ending.ok).toBe(false);
    expect(ending.ok || [ending.thrown, ending.error]).toEqual([true, down]);
    expect(ending.story).toMatchObject({ attempts: 2, stop: 'attempts_exhausted' });
  });

  test('has the exact story of a primitive, which no error object could carry', async () => {
    const { policy } = setup({ retryOn: [] });
    const ending = await policy.try(() => Promise.reject('text'));
    expect(ending).toMatchObject({ ok: false, error: 'text', story: { stop: 'not_retryable' } });
    expect(storyOf('text')).toBe(undefined);
  });
});

describe('values', () => {
  const busy = { status: 'busy' };
  const judge = (outcome: { ok: boolean; value?: unknown }) =>
    outcome.ok && outcome.value === busy ? 'transient' : undefined;

  test('can be judged failures, and the last one is returned', async () => {
    const { policy, operation } = setup({ retryOn: judge, attempts: 3, backoff: false }, busy);
    await expect(policy.run(operation)).resolves.toBe(busy);
    expect(operation.attempts).toEqual([1, 2, 3]);
    expect(storyOf(busy)?.stop).toBe('attempts_exhausted');
    const ending = await policy.try(operation);
    expect(ending).toMatchObject({ ok: false, thrown: false, value: busy, error: undefined });
  });

  test('may come good', async () => {
    const { policy, operation } = setup({ retryOn: judge, backoff: false }, busy, 'free');
    await expect(policy.run(operation)).resolves.toBe('free');
  });
});

describe('the kill switch', () => {
  test('lets each piece of work be attempted once, until it is switched off', async () => {
    const { policy, clock } = setup({ backoff: false });
    policy.kill();
    const once = scripted(clock, down, 1);
    await expect(policy.run(once)).rejects.toBe(down);
    expect(storyOf(down)?.stop).toBe('kill_switch');
    policy.kill(false);
    await expect(policy.run(scripted(clock, down, 1))).resolves.toBe(1);
  });
});

describe('a hundred thousand waits', () => {
  test('end together with their caller, and leave nothing behind', async () => {
    const { policy, clock, caller } = setup({
      patience: '1h',
      backoff: { base: '10m', cap: '10m', jitter: 'equal' },
    });
    const operation = scripted(clock, down);
    const running = Array.from({ length: 10_000 }, () => policy.try(operation, { signal: caller.signal }));
    await clock.advance('1s');
    expect(clock.pendingTimers).toBe(10_000);
    caller.abort();
    const endings = await Promise.all(running);
    expect(endings.every(({ story }) => story.stop === 'cancelled')).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });
});
