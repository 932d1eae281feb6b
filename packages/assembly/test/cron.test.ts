import { expect, test } from 'vitest';
import { Cron } from '../src/cron.ts';

function next(expression: string, from: string, count: number, timeZone?: string): string[] {
  const cron = new Cron(expression, timeZone);
  const found: string[] = [];
  let at = Date.parse(from);
  for (let number = 0; number < count; number++) {
    const occurrence = cron.after(at);
    if (!occurrence) break;
    found.push(occurrence.local);
    at = occurrence.at;
  }
  return found;
}

test.each([
  ['*/20 * * * *', '2026-01-01T00:00:00Z', ['2026-01-01T00:20', '2026-01-01T00:40', '2026-01-01T01:00']],
  ['0 3 * * mon-fri', '2026-01-02T04:00:00Z', ['2026-01-05T03:00', '2026-01-06T03:00']],
  ['30 12 1,15 * *', '2026-01-01T12:30:00Z', ['2026-01-15T12:30', '2026-02-01T12:30']],
  ['0 0 29 feb *', '2026-01-01T00:00:00Z', ['2028-02-29T00:00']],
  ['0 0 13 * fri', '2026-01-10T00:00:00Z', ['2026-01-13T00:00', '2026-01-16T00:00', '2026-01-23T00:00']],
  ['5 4 * * 7', '2026-01-01T00:00:00Z', ['2026-01-04T04:05']],
])('%s', (expression, from, expected) => {
  expect(next(expression, from, expected.length)).toEqual(expected);
});

test('follows the clocks of a time zone: an hour that is skipped is skipped, one that comes twice has one name', () => {
  expect(next('30 2 * * *', '2026-03-28T00:00:00Z', 2, 'Europe/Berlin')).toEqual([
    '2026-03-28T02:30',
    '2026-03-30T02:30',
  ]);
  const [first, second] = next('30 2 * * *', '2026-10-24T22:00:00Z', 2, 'Europe/Berlin');
  expect([first, second]).toEqual(['2026-10-25T02:30', '2026-10-25T02:30']);
});

test('has no occurrence on a day that never comes', () => {
  expect(next('0 0 30 feb *', '2026-01-01T00:00:00Z', 1)).toEqual([]);
});

test.each(['* * * *', '61 * * * *', '* * * foo *', '*-5 * * * *', '5-1 * * * *', '*/0 * * * *'])(
  'refuses %s with a sentence',
  (expression) => {
    expect(() => new Cron(expression)).toThrow('cron: expected');
  },
);

test('refuses a time zone that does not exist', () => {
  expect(() => new Cron('* * * * *', 'Mars/Olympus')).toThrow('timeZone');
});
