import { virtualClock } from 'holdfast/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { FaultSpec } from '../src/fault-spec.ts';
import { chaosHandler } from '../src/handler.ts';

interface Event {
  readonly id: number;
  readonly topic?: string;
}

function setup(...faults: FaultSpec[]) {
  const clock = virtualClock();
  const handled: number[] = [];
  const handle = chaosHandler(
    { faults },
    async (event: Event, _context: { signal?: AbortSignal }) => {
      handled.push(event.id);
      return `done ${event.id}`;
    },
    { clock, subject: ({ topic }) => ({ target: topic }) },
  );
  return { clock, handled, handle };
}

const caught = (promise: Promise<unknown>) => promise.catch((error) => error);

test('keeps the type of the handler', async () => {
  const handle = chaosHandler({ faults: [] }, (left: number, right: string) => `${left}${right}`);
  expectTypeOf(handle).parameters.toEqualTypeOf<[left: number, right: string]>();
  expectTypeOf(handle).returns.toEqualTypeOf<Promise<string>>();
  expect(await handle(1, 'x')).toBe('1x');
});

test('throws before the work, or after it', async () => {
  const before = setup({ kind: 'error', code: 'E_ODD', message: 'odd' });
  expect(await caught(before.handle({ id: 1 }, {}))).toMatchObject({ message: 'odd', code: 'E_ODD' });
  expect(before.handled).toEqual([]);

  const after = setup({ kind: 'error', direction: 'response' });
  expect(await caught(after.handle({ id: 1 }, {}))).toMatchObject({ code: 'ECONNRESET', syscall: 'read' });
  expect(after.handled).toEqual([1]);
});

test('a handler that throws at once is as one that rejects', async () => {
  const handle = chaosHandler({ faults: [] }, () => {
    throw new Error('own');
  });
  expect(await caught(handle())).toEqual(new Error('own'));
});

test('waits', async () => {
  const { handle, handled, clock } = setup({ kind: 'latency', delay: '20ms', direction: 'request' });
  const running = handle({ id: 1 }, {});
  await clock.advance(19);
  expect(handled).toEqual([]);
  await clock.advance(1);
  expect(await running).toBe('done 1');
});

test.each<[FaultSpec, number[]]>([
  [{ kind: 'hang' }, []],
  [{ kind: 'hang', direction: 'response' }, [1]],
  [{ kind: 'latency', delay: '1h' }, [1]],
  [{ kind: 'reorder', within: '1h' }, []],
])('%j ends the moment the caller leaves', async (fault, expected) => {
  const { handle, handled, clock } = setup(fault);
  const caller = new AbortController();
  const running = caught(handle({ id: 1 }, { signal: caller.signal }));
  await clock.advance('10m');
  caller.abort(new Error('left'));
  expect(await running).toEqual(new Error('left'));
  expect([handled, clock.pendingTimers]).toEqual([expected, 0]);
});

describe('duplicates', () => {
  test('come one after the other', async () => {
    const { handle, handled } = setup({ kind: 'duplicate', first: 1 });
    expect([await handle({ id: 1 }, {}), await handle({ id: 2 }, {})]).toEqual(['done 1', 'done 2']);
    expect(handled).toEqual([1, 1, 2]);
  });

  test('do not come after a failure', async () => {
    let calls = 0;
    const handle = chaosHandler({ faults: [{ kind: 'duplicate' }] }, async () => {
      calls++;
      throw new Error('first');
    });
    expect(await caught(handle())).toEqual(new Error('first'));
    expect(calls).toBe(1);
  });

  test('come together, and the first error is thrown when both have ended', async () => {
    const ends: (() => void)[] = [];
    const handle = chaosHandler({ faults: [{ kind: 'duplicate', together: true }] }, async () => {
      const call = ends.length;
      await new Promise<void>((resolve) => ends.push(resolve));
      if (call === 1) throw new Error('the second');
      return 'the first';
    });
    const running = caught(handle());
    await virtualClock().advance(0);
    expect(ends).toHaveLength(2);
    for (const end of ends.reverse()) end();
    expect(await running).toEqual(new Error('the second'));
  });
});

describe('reordering', () => {
  test('lets later events pass', async () => {
    const { handle, handled, clock } = setup({
      kind: 'reorder',
      by: 2,
      within: '1h',
      match: { target: 'late' },
    });
    const all = [
      handle({ id: 1, topic: 'late' }, {}),
      handle({ id: 2 }, {}),
      handle({ id: 3 }, {}),
      handle({ id: 4 }, {}),
    ];
    await Promise.all(all);
    expect(handled.toSorted()).toEqual([1, 2, 3, 4]);
    expect(handled.indexOf(1)).toBeGreaterThanOrEqual(2);
    expect(clock.pendingTimers).toBe(0);
  });

  test('waits no longer than its window where nothing follows', async () => {
    const { handle, handled, clock } = setup({ kind: 'reorder', within: '50ms' });
    const running = handle({ id: 1 }, {});
    await clock.advance(49);
    expect(handled).toEqual([]);
    await clock.advance(1);
    expect(await running).toBe('done 1');
  });

  test('is not ended by events that came before', async () => {
    const { handle, handled, clock } = setup(
      { kind: 'latency', delay: '10ms', direction: 'request', match: { target: 'slow' } },
      { kind: 'reorder', within: '50ms', match: { target: 'late' } },
    );
    const slow = handle({ id: 1, topic: 'slow' }, {});
    const late = handle({ id: 2, topic: 'late' }, {});
    await clock.advance(20);
    expect(handled).toEqual([1]);
    await clock.advance(30);
    await Promise.all([slow, late]);
    expect(handled).toEqual([1, 2]);
  });
});

test('an option that is not known is refused', () => {
  expect(() => chaosHandler({ faults: [] }, () => {}, { seed: 7 } as never)).toThrow(
    'seed: not an option; there are subject, clock, random',
  );
});
