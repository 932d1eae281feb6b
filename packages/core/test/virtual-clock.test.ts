import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type VirtualClock, virtualClock } from '../src/testing.ts';
import { Alarm } from '../src/time/clock.ts';

class Bell extends Alarm {
  readonly ring: (now: number) => void;
  constructor(ring: (now: number) => void = () => {}) {
    super();
    this.ring = ring;
  }
}

function sleep(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.set(new Bell(() => resolve()), clock.now() + ms));
}

function setup() {
  const clock = virtualClock();
  const seen: string[] = [];
  const note = (name: string) => seen.push(`${name}@${clock.now()}`);
  return { clock, seen, note, bell: (name: string) => new Bell(() => note(name)) };
}

describe('time', () => {
  test('stands still until it is moved, and then moves by just that much', async () => {
    const clock = virtualClock();
    expect(clock.now()).toBe(0);
    await clock.advance('1.5s');
    expect(clock.now()).toBe(1_500);
    await clock.advance(0);
    expect(clock.now()).toBe(1_500);
  });

  test('starts where it is told to, and the epoch moves along', async () => {
    const clock = virtualClock({ now: 50, epochMs: Date.UTC(2030, 5, 1) });
    await clock.advance('1d');
    expect(clock.now()).toBe(50 + 86_400_000);
    expect(clock.epochMs()).toBe(Date.UTC(2030, 5, 2));
  });

  test('small steps meet an alarm set to their sum', async () => {
    for (const step of [0.1, 0.7, 1.1]) {
      const { clock, seen, bell } = setup();
      clock.set(bell('sum'), step * 10);
      for (let count = 0; count < 10; count++) await clock.advance(step);
      expect(seen.length).toBe(1);
    }
  });

  test('refuses to go back or nowhere', () => {
    const clock = virtualClock();
    for (const wrong of [-1, Number.NaN, Infinity])
      expect(() => clock.advance(wrong)).toThrow('duration: expected');
  });
});

describe('alarms', () => {
  test('ring by time and then in the order of setting, each at its own time', async () => {
    const { clock, seen, bell } = setup();
    clock.set(bell('c'), 20);
    clock.set(bell('a'), 10);
    clock.set(bell('d'), 20);
    clock.set(bell('b'), 10.5);
    clock.set(bell('late'), 31);
    await clock.advance(30);
    expect(seen).toEqual(['a@10', 'b@10.5', 'c@20', 'd@20']);
    expect(clock.now()).toBe(30);
    expect(clock.pendingTimers).toBe(1);
  });

  test('that are moved or cleared keep to it, and are counted once', async () => {
    const { clock, seen, bell } = setup();
    const moved = bell('moved');
    const cleared = bell('cleared');
    clock.set(moved, 10);
    clock.set(cleared, 10);
    clock.set(moved, 20);
    expect(clock.pendingTimers).toBe(2);
    clock.clear(cleared);
    clock.clear(cleared);
    expect(clock.pendingTimers).toBe(1);
    expect(cleared.index).toBe(-1);
    await clock.advance(100);
    expect(seen).toEqual(['moved@20']);
    expect(moved.index).toBe(-1);
  });

  test('in the past or at no time at all ring now, and never before time is moved', async () => {
    const { clock, seen, bell } = setup();
    await clock.advance(100);
    clock.set(bell('past'), 5);
    clock.set(bell('nan'), Number.NaN);
    expect(seen).toEqual([]);
    await clock.advance(0);
    expect(seen).toEqual(['past@100', 'nan@100']);
  });

  test('that throw do not keep others from ringing', async () => {
    const { clock, seen, bell } = setup();
    const fail = () => {
      throw new Error('mine');
    };
    clock.set(new Bell(fail), 1);
    clock.set(bell('other'), 2);
    await expect(clock.advance(10)).rejects.toThrow('mine');
    expect(seen).toEqual(['other@2']);
    expect(clock.now()).toBe(10);

    clock.set(new Bell(fail), 11);
    clock.set(new Bell(fail), 12);
    await expect(clock.advance(10)).rejects.toThrow(AggregateError);
    await clock.advance(1);
    expect(clock.now()).toBe(21);
  });

  test('that set themselves to the past are found out', async () => {
    const clock = virtualClock();
    const again: Bell = new Bell(() => clock.set(again, 0));
    clock.set(again, 0);
    await expect(clock.advance(1)).rejects.toThrow('alarms rang at 0 ms');
  });
});

describe('promises', () => {
  test('have settled before the next alarm rings, however long their chain, also between ties', async () => {
    const { clock, seen, note } = setup();
    const chained = async (name: string, hops: number) => {
      await sleep(clock, 10);
      for (let hop = 0; hop < hops; hop++) await null;
      note(name);
    };
    const all = [chained('long', 5_000), chained('short', 0), chained('middle', 70)];
    await clock.advance(10);
    expect(seen).toEqual(['long@10', 'short@10', 'middle@10']);
    await Promise.all(all);
  });

  test('can set alarms that ring in the same move', async () => {
    const { clock, seen, note } = setup();
    void (async () => {
      for (let round = 0; round < 4; round++) {
        await sleep(clock, 10);
        note(String(round));
      }
    })();
    await clock.advance(35);
    expect(seen).toEqual(['0@10', '1@20', '2@30']);
  });

  test('begun before a move run before it', async () => {
    const { clock, seen, note } = setup();
    void (async () => {
      for (let hop = 0; hop < 100; hop++) await null;
      await sleep(clock, 5);
      note('slept');
    })();
    await clock.advance(5);
    expect(seen).toEqual(['slept@5']);
  });

  test('settle without Node as well', async () => {
    const { clock, seen, note } = setup();
    const { process } = globalThis;
    // @ts-expect-error a browser has none
    globalThis.process = undefined;
    try {
      void (async () => {
        await sleep(clock, 10);
        for (let hop = 0; hop < 500; hop++) await null;
        note('long');
      })();
      void sleep(clock, 10).then(() => note('short'));
      await clock.advance(10);
    } finally {
      globalThis.process = process;
    }
    expect(seen).toEqual(['long@10', 'short@10']);
  });
});

describe('moves', () => {
  test('asked for at once happen one after the other', async () => {
    const { clock, seen, bell } = setup();
    clock.set(bell('a'), 10);
    clock.set(bell('b'), 25);
    await Promise.all([clock.advance(20), clock.advance(10)]);
    expect(clock.now()).toBe(30);
    expect(seen).toEqual(['a@10', 'b@25']);
  });

  test('to the end ring everything, what is set on the way included', async () => {
    const { clock, seen, note } = setup();
    const chain = (left: number): Bell =>
      new Bell(() => {
        note(String(left));
        if (left > 0) clock.set(chain(left - 1), clock.now() + 86_400_000);
      });
    clock.set(chain(2), 1);
    const never = new Bell();
    clock.set(never, Infinity);
    await clock.runAll();
    expect(seen).toEqual(['2@1', '1@86400001', '0@172800001']);
    expect(clock.now()).toBe(172_800_001);
    expect(clock.pendingTimers).toBe(1);
  });
});

test('many waits at once always ring in the same order: by time, then by setting', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(20), fc.option(fc.nat(30), { nil: undefined })), { maxLength: 60 }),
      async (plan) => {
        const clock = virtualClock();
        const rung: number[] = [];
        const alarms = plan.map((_, index) => new Bell(() => rung.push(index)));
        const wanted = new Map<number, number>();
        for (const [index, [at, clears]] of plan.entries()) {
          clock.set(alarms[index]!, at);
          wanted.set(index, at);
          if (clears !== undefined && clears <= index) {
            clock.clear(alarms[clears]!);
            wanted.delete(clears);
          }
        }
        expect(clock.pendingTimers).toBe(wanted.size);
        await clock.runAll();
        const expected = [...wanted].sort(([a, at], [b, bt]) => at - bt || a - b).map(([index]) => index);
        expect(rung).toEqual(expected);
        expect(clock.pendingTimers).toBe(0);
      },
    ),
    { numRuns: 200 },
  );
});
