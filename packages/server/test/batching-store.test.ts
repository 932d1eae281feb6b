import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { BatchingStore } from '../src/batching-store.ts';

interface Call {
  readonly asks: readonly string[];
  resolve(answers: readonly string[]): void;
  reject(error: Error): void;
}

function setup({ callsMax = 1, batchMax = 10 } = {}) {
  const clock = virtualClock();
  const calls: Call[] = [];
  const late: string[] = [];
  const store = new BatchingStore<string, string>(
    (asks) => new Promise((resolve, reject) => calls.push({ asks, resolve, reject })),
    { timeoutMs: 25, callsMax, batchMax },
    clock,
    (answer) => late.push(answer),
  );
  const settled: Record<string, string | undefined> = {};
  const ask = (name: string) =>
    store.submit(name).then((answer) => {
      settled[name] = answer;
    });
  return { clock, calls, late, store, settled, ask };
}

/** What was asked in this turn of the loop is sent at its end. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a batching store', () => {
  test('sends items together that were submitted in one turn, or during a pending call', async () => {
    const { calls, ask, settled, clock } = setup({ batchMax: 2 });
    const all = ['a', 'b'].map(ask);
    await turn();
    expect(calls.map(({ asks }) => asks)).toEqual([['a', 'b']]);
    all.push(ask('c'));
    await turn();
    all.push(ask('d'), ask('e'));
    await turn();
    expect(calls).toHaveLength(1);
    calls[0]!.resolve(['A', 'B']);
    await clock.advance(1);
    expect(calls[1]!.asks).toEqual(['c', 'd']);
    calls[1]!.resolve(['C', 'D']);
    await clock.advance(1);
    calls[2]!.resolve(['E']);
    await Promise.all(all);
    expect(settled).toEqual({ a: 'A', b: 'B', c: 'C', d: 'D', e: 'E' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('lets no item wait longer than the timeout, and does not send one that timed out', async () => {
    const { calls, ask, settled, clock, store } = setup();
    const all = [ask('a')];
    await turn();
    all.push(ask('b'));
    await turn();
    await clock.advance(24);
    expect(settled).toEqual({});
    await clock.advance(1);
    await Promise.all(all);
    expect(settled).toEqual({ a: undefined, b: undefined });
    calls[0]!.resolve(['A']);
    await clock.advance(1);
    expect(calls).toHaveLength(1);
    expect(store.missed).toBe(2);
  });

  test('fails items at once while a call is overdue, and passes its late result on', async () => {
    const { calls, late, ask, settled, clock } = setup();
    const first = ask('a');
    await turn();
    await clock.advance(25);
    await first;
    await ask('b');
    expect(settled).toEqual({ a: undefined, b: undefined });
    calls[0]!.resolve(['A']);
    await clock.advance(1);
    expect(late).toEqual(['A']);
    const next = ask('c');
    await turn();
    calls[1]!.resolve(['C']);
    await next;
    expect(settled.c).toBe('C');
  });

  test('finds out with one call whether a store that never answered is back', async () => {
    const { calls, ask, clock } = setup();
    const first = ask('a');
    await turn();
    await clock.advance(25);
    await first;
    await clock.advance(1000);
    const second = ask('b');
    await turn();
    expect(calls).toHaveLength(2);
    calls[1]!.resolve(['B']);
    await second;
  });

  test('counts a store as unavailable for 100 ms after an error, and keeps the error', async () => {
    const { calls, ask, settled, clock, store } = setup();
    const all = [ask('a'), ask('b')];
    await turn();
    calls[0]!.reject(new Error('ECONNREFUSED'));
    await Promise.all(all);
    await ask('c');
    expect([settled, calls.length]).toEqual([{ a: undefined, b: undefined, c: undefined }, 1]);
    expect(store.lastError).toMatchObject({ message: 'ECONNREFUSED' });
    await clock.advance(100);
    const again = ask('d');
    await turn();
    expect(calls).toHaveLength(2);
    calls[1]!.resolve(['D']);
    await again;
    expect(settled.d).toBe('D');
  });
});
