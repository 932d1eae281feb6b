import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Breaker, type BreakerSettings } from '../src/machines/breaker.ts';

const LEASE = 5_000;

const defaults: BreakerSettings = {
  windowMs: 30_000,
  windowCalls: 0,
  minimum: 20,
  failureRatio: 0.5,
  consecutive: 5,
  slowOverMs: 2_000,
  slowRatio: 0.8,
  openForMs: [1_000, 30_000],
  probes: 3,
};

/** `roll` of 0 gives the shortest open times: 500 ms at first. */
function setup(settings: Partial<BreakerSettings> = {}, roll = 0) {
  const breaker = new Breaker({ ...defaults, ...settings }, () => roll);
  const changes: string[] = [];
  breaker.onChange = (from, to, because, at) => changes.push(`${from} > ${to}: ${because} at ${at}`);
  const call = (now: number, failed: boolean, durationMs = 1, full = false) => {
    const ticket = breaker.admit(now, LEASE);
    breaker.settle(now, ticket, failed, durationMs, full);
    return ticket;
  };
  /** `.` succeeds, `x` fails, `f` fails because the target is full; `S` and `X` are slow. */
  const calls = (now: number, pattern: string) => {
    for (const each of pattern)
      call(now, 'xXf'.includes(each), each === 'S' || each === 'X' ? 2_001 : 2_000, each === 'f');
  };
  /** Opens it at `now`; with roll 0 it reopens 500 ms later. */
  const trip = (now: number) => calls(now, 'xxxxx');
  return { breaker, changes, call, calls, trip };
}

function copy<T>(json: T): T {
  return JSON.parse(JSON.stringify(json));
}

describe('what it has counted', () => {
  test('calls while closed and probes while half-open, each once; late ones not at all', () => {
    const { breaker, calls, trip } = setup();
    calls(0, '..x');
    const late = breaker.admit(0, LEASE);
    expect([breaker.succeeded, breaker.failed]).toEqual([2, 1]);
    trip(0);
    breaker.settle(1, late, false, 1);
    expect([breaker.succeeded, breaker.failed]).toEqual([2, 5]);
    calls(500, '.x');
    expect([breaker.succeeded, breaker.failed]).toEqual([3, 6]);
  });

  test('a probe that never settles has failed', () => {
    const { breaker, trip } = setup();
    trip(0);
    breaker.admit(500, LEASE);
    expect(breaker.refuses(500 + LEASE)).toBe(true);
    expect([breaker.succeeded, breaker.failed]).toEqual([0, 6]);
  });
});

describe('closed', () => {
  test('opens when half of the calls in the window have failed', () => {
    const { breaker, calls, changes } = setup();
    calls(0, 'x.x.x.x.x.x.x.x.x.');
    expect(breaker.state(0)).toBe('closed');
    calls(7, '.x');
    expect(changes).toEqual(['closed > open: failure_ratio at 7']);
  });

  test('stays closed below the ratio, however many the calls', () => {
    const { breaker, calls } = setup();
    for (let i = 0; i < 1_000; i++) calls(i, 'x..');
    expect(breaker.state(1_000)).toBe('closed');
  });

  test('a few failures do not open it before the minimum of calls', () => {
    const { breaker, calls } = setup();
    calls(0, 'xxxx.xxxx.xxxx.xxx');
    expect(breaker.state(0)).toBe('closed');
  });

  test('a success never opens it, not even the one that reaches the minimum', () => {
    const { breaker, calls, changes } = setup();
    calls(0, 'xxxx.xxxx.xxxx.xxx..');
    expect(breaker.state(0)).toBe('closed');
    calls(1, 'x');
    expect(changes).toEqual(['closed > open: failure_ratio at 1']);
  });

  test('opens after five failures in a row, however far apart', () => {
    const { calls, changes } = setup();
    calls(0, 'xxxx.');
    for (let i = 1; i <= 4; i++) calls(i * 3_600_000, 'x');
    expect(changes).toEqual([]);
    calls(18_000_000, 'x');
    expect(changes).toEqual(['closed > open: consecutive_failures at 18000000']);
  });

  test('in heavy traffic five failures in a row are chance, and twenty are not', () => {
    const { calls, changes } = setup();
    for (let second = 0; second < 30; second++) calls(second * 1_000, `${'.'.repeat(95)}xxxxx`);
    calls(30_000, '.');
    expect(changes).toEqual([]);
    calls(30_000, 'x'.repeat(19));
    expect(changes).toEqual([]);
    calls(30_000, 'x');
    expect(changes).toEqual(['closed > open: consecutive_failures at 30000']);
  });

  test('a target that is full and serves the rest is not cut off, however much it refuses', () => {
    const { breaker, calls } = setup();
    for (let i = 0; i < 1_000; i++) calls(i, 'ffff.');
    expect(breaker.state(1_000)).toBe('closed');
  });

  test('a target that is full and serves nothing is', () => {
    const { calls, changes } = setup();
    calls(0, 'fffff');
    expect(changes).toEqual(['closed > open: consecutive_failures at 0']);
  });

  test('refusals of the full do not hide that the rest fails', () => {
    const { calls, changes } = setup({ consecutive: 0 });
    for (let i = 0; i < 6; i++) calls(i, 'xxf.');
    expect(changes).toEqual(['closed > open: failure_ratio at 5']);
  });

  test('where most calls fail a long row is no news', () => {
    const { calls, changes } = setup({ failureRatio: 0.95 });
    for (let i = 0; i < 200; i++) calls(i, 'xxx.');
    for (let i = 200; i < 500; i++) calls(i, 'xxxxxxxxx.');
    calls(500, 'x'.repeat(60));
    expect(changes).toEqual([]);
    calls(500, 'x'.repeat(60));
    expect(changes).toEqual(['closed > open: consecutive_failures at 500']);
  });

  test('a row of failures means nothing where it is switched off', () => {
    const { breaker, calls } = setup({ consecutive: 0 });
    calls(0, 'xxxxxxxxxxxxxxxxxxx');
    expect(breaker.state(0)).toBe('closed');
    calls(0, 'x');
    expect(breaker.state(0)).toBe('open');
  });

  test('opens when most calls are slow, although they succeed', () => {
    const { calls, changes } = setup();
    calls(0, `${'S'.repeat(15)}....`);
    expect(changes).toEqual([]);
    calls(3, 'S');
    expect(changes).toEqual(['closed > open: slow_ratio at 3']);
  });

  test('a call as long as the limit is not slow yet', () => {
    const { breaker, calls } = setup();
    calls(0, '.'.repeat(40));
    expect(breaker.state(0)).toBe('closed');
  });

  test('a slow failure counts as both', () => {
    const { calls, changes } = setup({ failureRatio: 0.9, slowRatio: 0.5, consecutive: 0 });
    calls(0, 'X.X.X.X.X.X.X.X.X..X');
    expect(changes).toEqual(['closed > open: slow_ratio at 0']);
  });

  test('a slow success opens it by slow calls only', () => {
    const { breaker, calls } = setup({ minimum: 4 });
    calls(0, 'xx.S');
    expect(breaker.state(0)).toBe('closed');
  });

  test('a failure in time opens it by failures only', () => {
    const { breaker, calls } = setup({ minimum: 4, failureRatio: 0.9 });
    calls(0, 'SSSx');
    expect(breaker.state(0)).toBe('closed');
  });

  test('a window of calls counts the last ones, however old', () => {
    const { breaker, calls, changes } = setup({ windowCalls: 4, minimum: 4, consecutive: 0 });
    calls(0, 'x');
    calls(1e9, '...');
    calls(2e9, '.x');
    expect(breaker.state(2e9)).toBe('closed');
    calls(3e9, 'x');
    expect(changes).toEqual(['closed > open: failure_ratio at 3000000000']);
  });

  test('a window of fewer calls than the minimum is enough when it is full', () => {
    const { breaker, calls } = setup({ windowCalls: 3, consecutive: 0 });
    calls(0, 'xx');
    expect(breaker.state(0)).toBe('closed');
    calls(0, 'x');
    expect(breaker.state(0)).toBe('open');
  });

  test('a window does not go stale after idling', () => {
    const { breaker, calls } = setup();
    calls(0, 'x.'.repeat(9));
    calls(3_600_000, '.x');
    expect(breaker.state(3_600_000)).toBe('closed');
  });

  test('forgets calls as the window moves over them', () => {
    const { breaker, calls } = setup({ consecutive: 0, minimum: 4 });
    calls(0, 'xxx');
    calls(30_000, '...x');
    expect(breaker.state(30_000)).toBe('closed');
    calls(30_001, 'xx');
    expect(breaker.state(30_001)).toBe('open');
  });

  test('a call that is never settled, or not sent, counts for nothing', () => {
    const { breaker, calls } = setup();
    for (let i = 0; i < 100; i++) breaker.admit(0, LEASE);
    for (let i = 0; i < 100; i++) breaker.cancel(0, breaker.admit(0, LEASE));
    calls(0, 'x.x.x.x.x.x.x.x.x.');
    expect(breaker.state(0)).toBe('closed');
    expect(breaker.refuses(0)).toBe(false);
    expect(breaker.reopensAt(12)).toBe(12);
  });
});

describe('open', () => {
  test('refuses everything until its time has passed', () => {
    const { breaker, trip } = setup();
    trip(100);
    for (const now of [100, 300, 599.9]) {
      expect(breaker.admit(now, LEASE)).toBe(-1);
      expect(breaker.refuses(now)).toBe(true);
      expect(breaker.state(now)).toBe('open');
      expect(breaker.reopensAt(now)).toBe(600);
    }
    expect(breaker.refuses(600)).toBe(false);
    expect(breaker.reopensAt(600)).toBe(600);
    expect(breaker.reopensAt(777)).toBe(777);
    expect(breaker.state(600)).toBe('half-open');
    expect(breaker.admit(600, LEASE)).toBeGreaterThanOrEqual(0);
  });

  test('asking whether it refuses admits nothing', () => {
    const { breaker, trip, changes } = setup();
    trip(0);
    for (let i = 0; i < 10; i++) expect(breaker.refuses(500)).toBe(false);
    expect(changes.length).toBe(1);
    const tickets = [1, 2, 3, 4].map(() => breaker.admit(500, LEASE));
    expect(tickets.map((ticket) => ticket >= 0)).toEqual([true, true, true, false]);
  });

  test('a late success cannot close an open breaker', () => {
    const { breaker, trip } = setup();
    const early = [1, 2, 3, 4].map(() => breaker.admit(0, LEASE));
    trip(1);
    for (const ticket of early) breaker.settle(2, ticket, false, 2);
    expect(breaker.state(2)).toBe('open');
    breaker.admit(501, LEASE);
    for (const ticket of early) breaker.settle(502, ticket, false, 502);
    expect(breaker.state(502)).toBe('half-open');
  });

  test('stays open for a quarter of the time that it has been failing, within its limits', () => {
    const { breaker, trip } = setup();
    trip(0);
    const openFor: number[] = [];
    let now = 0;
    for (let i = 0; i < 60; i++) {
      const reopensAt = breaker.reopensAt(now);
      openFor.push((reopensAt - now) * 2);
      now = reopensAt;
      breaker.settle(now, breaker.admit(now, LEASE), true, 1);
    }
    expect(openFor.slice(0, 9)).toEqual(Array(9).fill(1_000));
    expect(openFor[9]).toBe(4_500 / 4);
    expect(openFor[59]).toBe(30_000);
    for (let i = 1; i < 60; i++) expect(openFor[i]).toBeGreaterThan(openFor[i - 1]! - 1e-6);
  });

  test('starts again with a short time after it was closed', () => {
    const { breaker, trip, call } = setup();
    trip(0);
    call(60_000, true);
    expect(breaker.reopensAt(60_000)).toBe(67_500);
    for (let i = 0; i < 3; i++) call(70_000, false);
    trip(80_000);
    expect(breaker.reopensAt(80_000)).toBe(80_500);
  });

  test('chance takes at most half of the open time, and never adds to it', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.nat(300_000),
        (roll, age) => {
          const { breaker, trip, call } = setup({}, roll);
          trip(0);
          const now = 1_000 + age;
          call(now, true);
          const full = Math.min(30_000, Math.max(1_000, now / 4));
          const openFor = breaker.reopensAt(now) - now;
          expect(openFor).toBeCloseTo(full * (0.5 + roll / 2), 6);
          expect(openFor).toBeGreaterThanOrEqual(full / 2);
          expect(openFor).toBeLessThanOrEqual(full);
        },
      ),
    );
  });

  test('serves most of what a server gives that is up and down in turn', () => {
    for (const periodMs of [2_000, 5_000, 20_000, 60_000]) {
      let seed = 7919;
      const breaker = new Breaker(defaults, () => {
        seed = (seed * 48_271) % 2_147_483_647;
        return seed / 2_147_483_647;
      });
      let served = 0;
      const calls = 400_000;
      for (let i = 0; i < calls; i++) {
        const now = i * 10;
        const up = Math.floor(now / periodMs) % 2 === 0;
        const ticket = breaker.admit(now, LEASE);
        breaker.settle(now, ticket, !up, 1);
        if (up && ticket >= 0) served++;
      }
      expect(served / calls).toBeGreaterThan(periodMs === 2_000 ? 0.37 : 0.42);
    }
  });
});

describe('half-open', () => {
  test('has at most three probes in flight', () => {
    const { breaker, trip } = setup();
    trip(0);
    const tickets = [1, 2, 3, 4].map(() => breaker.admit(500, LEASE));
    expect(tickets[3]).toBe(-1);
    expect(new Set(tickets).size).toBe(4);
    expect(breaker.refuses(500)).toBe(true);
    breaker.settle(510, tickets[0]!, false, 10);
    expect(breaker.refuses(510)).toBe(false);
    expect(breaker.admit(510, LEASE)).toBeGreaterThanOrEqual(0);
    expect(breaker.admit(510, LEASE)).toBe(-1);
  });

  test('a hundred calls turned away allow for a look after the least open time', () => {
    const { breaker, trip, call } = setup();
    trip(0);
    // Failing for a minute, it stays open for 7.5 s.
    for (let now = 500; now < 60_000; now = breaker.reopensAt(now)) call(now, true);
    call(breaker.reopensAt(60_000), true);
    const openedAt = breaker.reopensAt(60_000) - 7_500;
    const reopensAt = breaker.reopensAt(60_000);
    for (let i = 0; i < 99; i++) breaker.turnAway();
    expect(breaker.reopensAt(60_000)).toBe(reopensAt);
    breaker.turnAway();
    expect(breaker.reopensAt(openedAt)).toBeLessThan(reopensAt - 5_000);
  });

  test('no number of calls turned away allows for one before it', () => {
    const { breaker, trip } = setup();
    trip(0);
    for (let i = 0; i < 1_000; i++) breaker.turnAway();
    expect(breaker.refuses(499)).toBe(true);
    expect(breaker.refuses(500)).toBe(false);
  });

  test('says how many more it would admit, and admits exactly those', () => {
    const { breaker, trip } = setup();
    expect(breaker.room(0)).toBe(Infinity);
    trip(0);
    expect(breaker.room(499)).toBe(0);
    expect(breaker.room(500)).toBe(3);
    const ticket = breaker.admit(500, LEASE);
    expect(breaker.room(500)).toBe(2);
    breaker.admit(500, LEASE);
    breaker.admit(500, LEASE);
    expect([breaker.room(500), breaker.admit(500, LEASE)]).toEqual([0, -1]);
    breaker.cancel(500, ticket);
    expect(breaker.room(500)).toBe(1);
    breaker.force('open', 500);
    expect(breaker.room(1e9)).toBe(0);
  });

  test('closes after three successes in a row, and starts a clean window', () => {
    const { breaker, trip, call, calls, changes } = setup({ minimum: 4 });
    calls(0, 'x.');
    trip(0);
    call(500, false);
    call(501, false);
    expect(breaker.state(501)).toBe('half-open');
    call(502, false);
    expect(changes).toEqual([
      'closed > open: failure_ratio at 0',
      'open > half-open: open_time_passed at 500',
      'half-open > closed: probes_succeeded at 502',
    ]);
    calls(503, 'xxx');
    expect(breaker.state(503)).toBe('closed');
    calls(503, 'x');
    expect(breaker.state(503)).toBe('open');
  });

  test('a failure reopens it, and the successes before it are forgotten', () => {
    const { breaker, trip, call, changes } = setup();
    trip(0);
    call(500, false);
    call(500, false);
    call(500, true);
    expect(changes.at(-1)).toBe('half-open > open: probe_failed at 500');
    expect(breaker.reopensAt(500)).toBe(1_000);
    call(1_000, false);
    call(1_000, false);
    expect(breaker.state(1_000)).toBe('half-open');
    call(1_000, false);
    expect(breaker.state(1_000)).toBe('closed');
  });

  test('a slow probe is no sign of health', () => {
    const { breaker, trip } = setup();
    trip(0);
    breaker.settle(3_000, breaker.admit(500, LEASE), false, 2_500);
    expect(breaker.state(3_000)).toBe('open');
  });

  test('a late failure cannot reopen a newer breaker', () => {
    const { breaker, trip, call, calls, changes } = setup({ consecutive: 2, minimum: 2 });
    const early = breaker.admit(0, LEASE);
    trip(0);
    breaker.settle(1, early, true, 1);
    call(500, false);
    breaker.settle(501, early, true, 501);
    const probe = breaker.admit(502, LEASE);
    for (let i = 0; i < 2; i++) call(502, false);
    expect(breaker.state(502)).toBe('closed');
    for (let i = 0; i < 9; i++) breaker.settle(503, early, true, 503);
    for (let i = 0; i < 9; i++) breaker.settle(503, probe, true, 503);
    calls(504, 'x');
    expect(breaker.state(504)).toBe('closed');
    expect(changes.length).toBe(3);
  });

  test('a probe of an earlier time says nothing about a later one', () => {
    const { breaker, trip, call } = setup();
    trip(0);
    const old = breaker.admit(500, LEASE);
    call(500, true);
    breaker.admit(1_000, LEASE);
    breaker.settle(1_001, old, true, 501);
    expect(breaker.state(1_001)).toBe('half-open');
    for (let i = 0; i < 3; i++) breaker.settle(1_001, old, false, 501);
    expect(breaker.state(1_001)).toBe('half-open');
  });

  test('settling a probe twice counts once', () => {
    const { breaker, trip } = setup();
    trip(0);
    const ticket = breaker.admit(500, LEASE);
    for (let i = 0; i < 3; i++) breaker.settle(501, ticket, false, 1);
    expect(breaker.state(501)).toBe('half-open');
  });

  test('a probe that was not sent gives its place back', () => {
    const { breaker, trip } = setup({ probes: 1 });
    trip(0);
    const ticket = breaker.admit(500, LEASE);
    expect(breaker.refuses(501)).toBe(true);
    breaker.cancel(501, ticket);
    breaker.cancel(501, ticket);
    expect(breaker.state(501)).toBe('half-open');
    const next = breaker.admit(501, LEASE);
    expect(next).toBeGreaterThanOrEqual(0);
    expect(breaker.admit(501, LEASE)).toBe(-1);
    breaker.settle(502, next, false, 1);
    expect(breaker.state(502)).toBe('closed');
  });

  test('a hung probe does not stick half-open: it has failed when its lease ends', () => {
    const { breaker, trip, changes } = setup({ probes: 2 });
    trip(0);
    breaker.admit(500, LEASE + 100);
    const hung = breaker.admit(500, LEASE);
    expect(breaker.reopensAt(600)).toBe(5_500);
    expect(breaker.state(5_499)).toBe('half-open');
    expect(breaker.state(5_500)).toBe('open');
    expect(breaker.reopensAt(5_500)).toBe(5_500 + 5_500 / 8);
    expect(changes.at(-1)).toBe('half-open > open: probe_expired at 5500');
    breaker.settle(5_501, hung, false, 5_001);
    expect(breaker.state(5_501)).toBe('open');
  });

  test('an expired probe is judged by when it expired, not by when somebody looked', () => {
    const { breaker, trip } = setup();
    trip(0);
    breaker.admit(500, LEASE);
    expect(breaker.refuses(5_500 + 5_500 / 8)).toBe(false);
    expect(breaker.admit(60_000, LEASE)).toBeGreaterThanOrEqual(0);
  });

  test.each(['settle', 'cancel'] as const)('%s comes too late for a probe whose lease has ended', (way) => {
    const { breaker, trip, changes } = setup({ probes: 1 });
    trip(0);
    const ticket = breaker.admit(500, LEASE);
    if (way === 'settle') breaker.settle(5_500, ticket, false, 5_000);
    else breaker.cancel(5_500, ticket);
    expect(changes.at(-1)).toBe('half-open > open: probe_expired at 5500');
  });

  test('a probe without a time limit is held to ten minutes', () => {
    const { breaker, trip } = setup();
    trip(0);
    breaker.admit(500, Infinity);
    expect(breaker.state(600_499)).toBe('half-open');
    expect(breaker.state(600_500)).toBe('open');
    expect(breaker.refuses(600_500 + 15_000)).toBe(false);
  });

  test('a refusal that was overruled counts for nothing in any state', () => {
    const { breaker, trip, call } = setup({ consecutive: 5 });
    for (let i = 0; i < 9; i++) breaker.settle(0, -1, true, 1);
    expect(breaker.state(0)).toBe('closed');
    trip(0);
    for (let i = 0; i < 9; i++) breaker.settle(1, -1, false, 1);
    expect(breaker.state(1)).toBe('open');
    call(500, false);
    for (let i = 0; i < 9; i++) breaker.settle(501, -1, i % 2 === 0, 1);
    expect(breaker.state(501)).toBe('half-open');
  });
});

describe('a clock that jumps does not break the window', () => {
  test('forward: old calls are gone and an open breaker probes', () => {
    const { breaker, calls, trip } = setup();
    calls(0, 'x.'.repeat(9));
    calls(1e12, '.x');
    expect(breaker.state(1e12)).toBe('closed');
    trip(1e12);
    expect(breaker.refuses(2e12)).toBe(false);
  });

  test('back: it still opens, and reopens on the new time', () => {
    const { breaker, calls } = setup({ consecutive: 0 });
    calls(1e9, 'x.'.repeat(9));
    calls(0, '.x');
    expect(breaker.state(0)).toBe('open');
    expect(breaker.reopensAt(0)).toBe(500);
    expect(breaker.refuses(-1e9)).toBe(true);
    expect(breaker.reopensAt(-1e9)).toBe(500 - 1e9);
    expect(breaker.refuses(500 - 1e9)).toBe(false);
  });

  test('back: probes of another time are given up, and others admitted on the new time', () => {
    const { breaker, trip, changes } = setup();
    trip(1e9);
    breaker.admit(1e9 + 500, LEASE);
    expect(breaker.state(1e9)).toBe('half-open');
    expect(breaker.state(0)).toBe('open');
    expect(changes.at(-1)).toBe('half-open > open: probe_expired at 0');
    expect(breaker.reopensAt(0)).toBe(500);
  });
});

describe('forced', () => {
  test('open: refuses without end, and probes when let go', () => {
    const { breaker, changes, call } = setup();
    const early = breaker.admit(0, LEASE);
    breaker.force('open', 5);
    breaker.settle(6, early, false, 6);
    expect(breaker.forced).toBe('open');
    expect(breaker.admit(1e9, LEASE)).toBe(-1);
    expect(breaker.refuses(1e9)).toBe(true);
    expect(breaker.state(1e9)).toBe('open');
    expect(breaker.reopensAt(1e9)).toBe(Infinity);
    breaker.force(undefined, 1e9);
    expect(breaker.forced).toBe(undefined);
    expect(breaker.state(1e9)).toBe('half-open');
    expect(breaker.reopensAt(1e9)).toBe(1e9);
    for (let i = 0; i < 3; i++) call(1e9, false);
    expect(changes).toEqual([
      'closed > open: forced at 5',
      'open > half-open: open_time_passed at 1000000000',
      'half-open > closed: probes_succeeded at 1000000000',
    ]);
  });

  test('open: let go in the same moment, it probes at once', () => {
    const { breaker } = setup();
    breaker.force('open', 5);
    breaker.force(undefined, 5);
    expect(breaker.refuses(5)).toBe(false);
  });

  test('open: probes in flight no longer matter', () => {
    const { breaker, trip } = setup({ probes: 1 });
    trip(0);
    const probe = breaker.admit(500, LEASE);
    breaker.force('open', 501);
    breaker.settle(502, probe, false, 2);
    expect(breaker.state(502)).toBe('open');
    breaker.force(undefined, 503);
    expect(breaker.refuses(503)).toBe(false);
  });

  test('closed: admits whatever happens, counts, and may open when let go', () => {
    const { breaker, calls, trip, changes } = setup();
    trip(0);
    breaker.force('closed', 3);
    calls(4, 'x'.repeat(50));
    expect(breaker.state(4)).toBe('closed');
    expect(breaker.refuses(4)).toBe(false);
    breaker.force(undefined, 5);
    calls(6, 'x');
    expect(changes).toEqual([
      'closed > open: consecutive_failures at 0',
      'open > closed: forced at 3',
      'closed > open: consecutive_failures at 6',
    ]);
  });

  test('says nothing when it is in that state already', () => {
    const { breaker, changes } = setup();
    breaker.force('closed', 0);
    breaker.force(undefined, 0);
    expect(changes).toEqual([]);
  });
});

describe('save and restore', () => {
  test('an open breaker takes its time along, on another clock', () => {
    const { breaker, trip } = setup();
    trip(1_000);
    const { breaker: other, changes } = setup();
    other.restore(copy(breaker.save(1_200)), 77);
    expect(other.reopensAt(77)).toBe(77 + 300);
    expect(changes).toEqual([]);
  });

  test('time that passed in between can be accounted for', () => {
    const { breaker, trip } = setup();
    trip(1_000);
    const { breaker: other } = setup();
    other.restore(copy(breaker.save(1_000)), 5_000 - 499);
    expect(other.refuses(5_000)).toBe(true);
    expect(other.refuses(5_001)).toBe(false);
  });

  test('a shorter open time of a new policy holds at once', () => {
    const { breaker, trip, call } = setup();
    trip(0);
    call(200_000, true);
    const { breaker: other } = setup({ openForMs: [100, 2_000] });
    other.restore(copy(breaker.save(200_000)), 0);
    expect(other.reopensAt(0)).toBe(2_000);
    expect(other.reopensAt(-50)).toBe(1_950);
  });

  test('a half-open breaker probes anew, and the probes of before no longer count', () => {
    const { breaker, trip } = setup({ probes: 1 });
    trip(0);
    const before = breaker.admit(500, LEASE);
    const { breaker: other } = setup({ probes: 1 });
    other.restore(copy(breaker.save(600)), 600);
    expect(other.state(600)).toBe('half-open');
    const after = other.admit(600, LEASE);
    other.settle(601, before, false, 101);
    expect(other.state(601)).toBe('half-open');
    other.settle(602, after, false, 2);
    expect(other.state(602)).toBe('closed');
  });

  test('nor do those of a breaker that takes a snapshot over while it probes', () => {
    const { breaker, trip } = setup({ probes: 1 });
    const well = copy(breaker.save(0));
    trip(0);
    const ill = copy(breaker.save(0));
    const before = breaker.admit(500, LEASE);
    breaker.restore(ill, 600);
    breaker.settle(601, before, false, 101);
    expect(breaker.state(601)).toBe('open');
    breaker.admit(1_100, LEASE);
    breaker.restore(well, 1_200);
    expect(breaker.state(1_200 + LEASE)).toBe('closed');
  });

  test('calls in flight count on where they were admitted in the same closed time', () => {
    const { breaker, trip } = setup();
    trip(0);
    for (let i = 0; i < 3; i++) breaker.settle(500, breaker.admit(500, LEASE), false, 1);
    const inFlight = breaker.admit(501, LEASE);
    const { breaker: other } = setup();
    other.restore(copy(breaker.save(502)), 502);
    for (let i = 0; i < 5; i++) other.settle(503, inFlight, true, 2);
    expect(other.state(503)).toBe('open');
  });

  test('a forced breaker stays forced', () => {
    const { breaker } = setup();
    breaker.force('open', 0);
    const { breaker: other } = setup();
    other.restore(copy(breaker.save(0)), 0);
    expect(other.reopensAt(9)).toBe(Infinity);
  });

  test('a probe that has expired by then is judged before saving', () => {
    const { breaker, trip } = setup();
    trip(0);
    breaker.admit(500, LEASE);
    expect(breaker.save(5_500).reopensInMs).toBe(5_500 / 8);
  });
});
