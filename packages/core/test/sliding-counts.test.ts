import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SlidingCounts } from '../src/machines/sliding-counts.ts';

function count(counts: SlidingCounts, now: number, column = 0): void {
  counts.turn(now);
  counts.add(column);
}

test('forgets a row at a time as the window moves on', () => {
  const counts = new SlidingCounts(1, 1000);
  for (let now = 0; now < 1000; now += 100) count(counts, now);
  expect(counts.total(0)).toBe(10);
  counts.turn(1099);
  expect(counts.total(0)).toBe(9);
  counts.turn(1500);
  expect(counts.total(0)).toBe(4);
});

test('a window does not go stale after idling', () => {
  const counts = new SlidingCounts(1, 1000);
  count(counts, 50);
  counts.turn(3_600_050);
  expect(counts.total(0)).toBe(0);
});

test('a clock that steps back counts into the newest row', () => {
  const counts = new SlidingCounts(1, 1000);
  count(counts, 5000);
  count(counts, 10);
  expect(counts.total(0)).toBe(2);
  counts.turn(5999);
  expect(counts.total(0)).toBe(2);
  counts.turn(6000);
  expect(counts.total(0)).toBe(0);
});

test('a window of calls holds exactly the last ones', () => {
  const counts = new SlidingCounts(2, 0, 3);
  for (const failed of [1, 1, 0, 0]) {
    count(counts, 0);
    if (failed) counts.add(1);
  }
  expect([counts.total(0), counts.total(1)]).toEqual([3, 1]);
  count(counts, 1e9);
  expect([counts.total(0), counts.total(1)]).toEqual([3, 0]);
});

test('rows from a longer window give up their oldest, and from a shorter one leave room', () => {
  const long = new SlidingCounts(1, 0, 4);
  const short = new SlidingCounts(1, 0, 2);
  for (let i = 0; i < 4; i++) count(long, 0);
  short.restore(long.save(0), 0);
  expect(short.total(0)).toBe(2);
  long.restore(short.save(0), 0);
  expect(long.save(0)).toEqual([0, 0, 1, 1]);
});

const steps = fc.array(fc.tuple(fc.nat(400), fc.nat(1)), { maxLength: 60 });

test('agrees at every step with a list of all that was counted', () => {
  fc.assert(
    fc.property(steps, (events) => {
      const counts = new SlidingCounts(2, 1000);
      const seen: { row: number; column: number }[] = [];
      let now = 0;
      for (const [wait, column] of events) {
        now += wait;
        count(counts, now, column);
        const row = Math.floor(now / 100);
        seen.push({ row, column });
        for (const each of [0, 1]) {
          const expected = seen.filter((event) => event.column === each && event.row > row - 10).length;
          expect(counts.total(each)).toBe(expected);
        }
      }
    }),
  );
});

test('goes on after save and restore as if nothing had happened', () => {
  fc.assert(
    fc.property(steps, fc.constantFrom(0, 5), (events, calls) => {
      const whole = new SlidingCounts(2, 1000, calls);
      let moved = new SlidingCounts(2, 1000, calls);
      let now = 0;
      for (const [wait, column] of events) {
        now += wait;
        for (const counts of [whole, moved]) count(counts, now, column);
        const next = new SlidingCounts(2, 1000, calls);
        next.restore(JSON.parse(JSON.stringify(moved.save(now))), now);
        moved = next;
        expect([moved.total(0), moved.total(1)]).toEqual([whole.total(0), whole.total(1)]);
        expect(moved.save(now)).toEqual(whole.save(now));
      }
    }),
  );
});
