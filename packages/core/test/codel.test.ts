import { describe, expect, test } from 'vitest';
import { Bulkhead, FULL, QUEUED, type Waiter } from '../src/machines/bulkhead.ts';
import { Codel } from '../src/machines/codel.ts';

function setup() {
  return new Codel({ targetMs: 5, intervalMs: 100 });
}

describe('a queue stands', () => {
  test('when the longest wait was above the target for a whole interval', () => {
    const codel = setup();
    for (let now = 0; now < 100; now += 10) {
      codel.observe(now, 6);
      expect(codel.overloaded).toBe(false);
    }
    codel.observe(100, 6);
    expect(codel.overloaded).toBe(true);
  });

  test('not when it was short once, however long it was otherwise', () => {
    const codel = setup();
    for (let now = 0; now <= 1_000; now += 10) {
      codel.observe(now, now % 90 === 0 ? 5 : 500);
      expect(codel.overloaded).toBe(false);
    }
  });

  test('until it was short once', () => {
    const codel = setup();
    for (let now = 0; now <= 150; now += 10) codel.observe(now, 50);
    codel.observe(160, 0);
    codel.observe(199, 50);
    expect(codel.overloaded).toBe(true);
    codel.observe(200, 50);
    expect(codel.overloaded).toBe(false);
  });

  test('not after a rest: what was is over', () => {
    const codel = setup();
    for (let now = 0; now <= 150; now += 10) codel.observe(now, 50);
    codel.observe(300, 50);
    expect(codel.overloaded).toBe(false);
    codel.observe(399, 50);
    codel.observe(400, 50);
    expect(codel.overloaded).toBe(true);
  });
});

test('drops who has waited more than twice the target, and only while the queue stands', () => {
  const codel = setup();
  expect(codel.drops(1_000)).toBe(false);
  for (let now = 0; now <= 100; now += 10) codel.observe(now, 50);
  expect(codel.drops(10)).toBe(false);
  expect(codel.drops(10.1)).toBe(true);
});

class Request implements Waiter {
  readonly priority = 1;
  readonly expiresAt = Infinity;
  readonly arrivedAt: number;
  readonly start: (request: Request, now: number) => void;
  ahead: Waiter | undefined = undefined;
  behind: Waiter | undefined = undefined;

  constructor(arrivedAt: number, start: (request: Request, now: number) => void) {
    this.arrivedAt = arrivedAt;
    this.start = start;
  }

  admitted(now: number): void {
    this.start(this, now);
  }

  expired(): void {}

  displaced(): void {}
}

/**
 * Ten workers of 5 ms at 80 % load stand still for a second, and users leave after 100 ms without being noticed. Gives the
 * share of users that were served in time before, and in each second after.
 */
function stall(codel: Codel | undefined): { before: number; after: number[] } {
  let seed = 7_919;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const bulkhead = new Bulkhead({ concurrent: 10, queueMax: 100_000 });
  const ends: { at: number; request: Request }[] = [];
  const arrived = Array(10).fill(0);
  const served = Array(10).fill(0);

  const start = (request: Request, now: number) => {
    const stalled = now >= 2_000 && now < 3_000;
    ends.push({ at: (stalled ? 3_000 : now) - Math.log(1 - random()) * 5, request });
  };
  const look = (now: number) => {
    if (!codel) return;
    const oldest = bulkhead.oldest(1) as Request | undefined;
    codel.observe(now, oldest ? now - oldest.arrivedAt : 0);
    bulkhead.newestFirst = codel.overloaded;
    for (let each = oldest; each && codel.drops(now - each.arrivedAt); each = bulkhead.oldest(1) as Request) {
      bulkhead.abandon(each);
    }
  };

  let nextArrival = 0;
  for (;;) {
    const end = ends.reduce((first, each) => (each.at < first.at ? each : first), {
      at: Infinity,
    } as (typeof ends)[0]);
    const now = Math.min(nextArrival, end.at);
    if (now >= 10_000) break;
    if (now === nextArrival) {
      nextArrival -= Math.log(1 - random()) / 1.6;
      arrived[Math.floor(now / 1_000)]++;
      const request = new Request(now, start);
      const entered = bulkhead.enter(now, request);
      expect(entered).not.toBe(FULL);
      look(now);
      if (entered !== QUEUED) start(request, now);
    } else {
      ends.splice(ends.indexOf(end), 1);
      const { arrivedAt } = end.request;
      if (now - arrivedAt <= 100) served[Math.floor(arrivedAt / 1_000)]++;
      look(now);
      bulkhead.leave(now);
    }
  }
  const share = (second: number) => served[second] / arrived[second];
  return { before: share(1), after: [3, 4, 5].map(share) };
}

test('after a stall the next second is served well, where first come first served takes long to recover', () => {
  const good = stall(setup());
  expect(good.before).toBeGreaterThan(0.99);
  expect(good.after[0]).toBeGreaterThan(0.7);
  expect(good.after[1]).toBeGreaterThan(0.99);
  const naive = stall(undefined);
  expect(naive.before).toBeGreaterThan(0.99);
  expect(naive.after[0]).toBe(0);
  expect(naive.after[1]).toBe(0);
});
