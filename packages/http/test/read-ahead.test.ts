import { expect, test } from 'vitest';
import { ReadAhead } from '../src/read-ahead.ts';

/** Reads in pieces of 16 KiB for as long as it may, and says how many KiB that were. */
function readAll(ahead: ReadAhead): number {
  let pieces = 0;
  for (; ahead.mayContinue && pieces < 100; pieces++) ahead.add(16_384);
  return pieces * 16;
}

test('a response is read ahead up to 256 KiB, and the piece in which that is passed', () => {
  const ahead = new ReadAhead();
  expect(readAll(ahead)).toBe(272);
  ahead.release();
});

test('all together keep 16 MiB: beyond that, each keeps 64 KiB', () => {
  const all = Array.from({ length: 70 }, () => new ReadAhead());
  const read = all.map(readAll);
  expect(read.slice(0, 60)).toEqual(Array(60).fill(272));
  expect(read.slice(61)).toEqual(Array(9).fill(80));
  for (const each of all) {
    each.release();
    each.release();
  }
  const next = new ReadAhead();
  expect(readAll(next)).toBe(272);
  next.release();
});

test('once it is not kept, a response is read up to 64 KiB', () => {
  const ahead = new ReadAhead();
  ahead.release();
  expect(readAll(ahead)).toBe(80);
});
