import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerReader, readHint } from '../src/decide/retry-after.ts';

const now = Date.UTC(2026, 10, 6, 8, 49, 30);
const epochMs = () => now;
const read = (headers: unknown, throttled = false) => {
  const { retryAfterMs, unreadable } = readHint(headers, epochMs, throttled);
  return unreadable === undefined ? retryAfterMs : { retryAfterMs, unreadable };
};

describe('Retry-After', () => {
  test.each([
    ['120', 120_000],
    ['0', 0],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['Fri, 06 Nov 2026 08:49:37 GMT', 7_000],
    ['Friday, 06-Nov-26 08:49:37 GMT', 7_000],
    ['Fri Nov  6 08:49:37 2026', 7_000],
    ['Fri Nov 13 08:49:30 2026', 7 * 86_400_000],
  ])('%j is %d ms', (value, ms) => {
    expect(read({ 'Retry-After': value })).toBe(ms);
  });

  test('a date that has passed means now', () => {
    expect(read({ 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' })).toBe(0);
  });

  test('two digits are the year within 50 of this one', () => {
    expect(read({ 'retry-after': 'Sunday, 06-Nov-94 08:49:37 GMT' })).toBe(0);
    expect(read({ 'retry-after': 'Friday, 06-Nov-27 08:49:30 GMT' })).toBe(365 * 86_400_000);
    const years = (year: number, digits: string) => {
      const at = Date.UTC(year, 5, 1);
      const hint = readHint({ 'retry-after': `Monday, 01-Jun-${digits} 00:00:00 GMT` }, () => at);
      return Math.round((hint.retryAfterMs ?? NaN) / (365.25 * 86_400_000));
    };
    expect(years(2026, '75')).toBe(49);
    expect(years(2026, '77')).toBe(0);
    expect(years(2099, '02')).toBe(3);
  });

  test('of several lines the longest counts, as it is a floor', () => {
    expect(read({ 'retry-after': '5, 10,7' })).toBe(10_000);
    expect(
      read(
        new Headers([
          ['retry-after', '1'],
          ['Retry-After', '3'],
        ]),
      ),
    ).toBe(3000);
    expect(read({ 'retry-after': ['4', '2'] })).toBe(4000);
  });

  test('seconds are seconds, however many', () => {
    expect(read({ 'retry-after': '1800000000' })).toBe(1.8e12);
    expect(read({ 'retry-after': '9'.repeat(200) })).toBeGreaterThan(1e200);
  });

  test.each([
    'soon',
    '-1',
    '1e5',
    '0x10',
    '5 minutes',
    '5, soon',
    ',',
    'NaN',
    '1.2.3',
    'Infinity',
    '2026-11-06',
    'Fri, 06 Nov 2026',
    'Fri, 06 Nov 2026 25:00:00 GMT',
    'Fri, 06 Foo 2026 08:49:37 GMT',
    'Fri, 06 Nov 2026 08:49:37 PST',
    '9'.repeat(1_000),
  ])('%j is reported and not followed', (value) => {
    expect(read({ 'retry-after': value })).toEqual({
      retryAfterMs: undefined,
      unreadable: `retry-after: ${value.slice(0, 256)}`,
    });
  });

  test('an empty one says nothing', () => {
    expect(read({ 'retry-after': '' })).toBeUndefined();
    expect(read({ 'retry-after': null })).toBeUndefined();
    expect(read({})).toBeUndefined();
  });
});

describe('milliseconds', () => {
  test('are more precise and win over Retry-After', () => {
    expect(read({ 'retry-after-ms': '250', 'retry-after': '1' })).toBe(250);
    expect(read({ 'x-ms-retry-after-ms': '30.5', 'retry-after': '1' })).toBe(30.5);
    expect(read({ 'x-ms-retry-after-ms': 40 })).toBe(40);
  });

  test('that cannot be read are reported, and the next hint counts', () => {
    expect(read({ 'retry-after-ms': 'x', 'retry-after': '1' })).toEqual({
      retryAfterMs: 1_000,
      unreadable: 'retry-after-ms: x',
    });
  });
});

describe('rate limits', () => {
  test.each([
    ['"default";r=0;t=12', 12_000, 12_000],
    ['"default";t=12;r=0', 12_000, 12_000],
    ['"default";r=50;t=12', undefined, 12_000],
    ['limit=100, remaining=0, reset=5', 5_000, 5_000],
    ['limit=100, remaining=3, reset=5', undefined, 5_000],
    ['"second";r=0;t=1, "hour";r=0;t=90, "day";r=7;t=5000', 90_000, 90_000],
    ['"hour";r=7;t=5000, "second";r=3;t=1', undefined, 1_000],
  ])('RateLimit %j counts when nothing remains, or on a 429', (value, otherwise, on429) => {
    expect(read({ ratelimit: value })).toBe(otherwise);
    expect(read({ RateLimit: value }, true)).toBe(on429);
  });

  test.each(['rubbish', '"default"', '"default";r=x;t=1', '"default";r=0;t=-5'])(
    '%j is reported',
    (value) => {
      expect(read({ ratelimit: value }, true)).toEqual({ unreadable: `ratelimit: ${value}` });
    },
  );

  test.each([
    ['12', 12_000],
    ['0', 0],
    [String(now / 1000 + 30), 30_000],
    [String(now + 2_500), 2_500],
    [String(now / 1000 - 30), 0],
    ['Fri, 06 Nov 2026 08:49:37 GMT', 7_000],
  ])('a reset of %j is %d ms away, in seconds, epoch seconds, epoch ms or a date', (value, ms) => {
    for (const prefix of ['RateLimit-', 'X-RateLimit-']) {
      expect(read({ [`${prefix}Reset`]: value })).toBeUndefined();
      expect(read({ [`${prefix}Reset`]: value, [`${prefix}Remaining`]: '4' })).toBeUndefined();
      expect(read({ [`${prefix}Reset`]: value, [`${prefix}Remaining`]: '0' })).toBe(ms);
      expect(read({ [`${prefix}Reset`]: value, [`${prefix}Remaining`]: '4' }, true)).toBe(ms);
    }
  });

  test('Retry-After wins over all of them', () => {
    expect(read({ 'x-ratelimit-reset': '90', ratelimit: '"a";r=0;t=80', 'retry-after': '1' }, true)).toBe(
      1_000,
    );
  });
});

describe('headers', () => {
  test.each([
    ['Headers', new Headers({ 'Retry-After': '3' })],
    ['an object', { 'RETRY-AFTER': '3' }],
    ['an object of lists', { 'retry-after': ['3'] }],
    [
      'pairs',
      [
        ['Date', 'x'],
        ['Retry-After', '3'],
      ],
    ],
    ['names and values in turn', ['Date', 'Retry-After', 'Retry-After', '3']],
    ['buffers in turn', [Buffer.from('Retry-After'), Buffer.from('3')]],
    ['a map', new Map([['retry-after', '3']])],
    ['a get', { get: (name: string) => (name === 'retry-after' ? ['3'] : []) }],
  ])('are read from %s', (_, headers) => {
    expect(read(headers)).toBe(3_000);
  });

  test.each([undefined, null, 5, 'retry-after: 3', [], [[]], () => {}, Symbol('x')])(
    '%s have no hint',
    (headers) => {
      expect(readHint(headers, epochMs, true)).toEqual({});
    },
  );

  test('are found by name only, never by value', () => {
    expect(headerReader(['via', 'retry-after', 'x', '3'])('retry-after')).toBeUndefined();
  });
});

describe('hostile input', () => {
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('hostile');
      },
      ownKeys() {
        throw new Error('hostile');
      },
    },
  );
  const names = [
    'retry-after',
    'retry-after-ms',
    'x-ms-retry-after-ms',
    'ratelimit',
    'ratelimit-reset',
    'ratelimit-remaining',
    'x-ratelimit-reset',
    'x-ratelimit-remaining',
  ];
  const pieces = fc.constantFrom(
    ...[
      '0',
      '1',
      '99999999999',
      '-',
      '.',
      ',',
      ';',
      'r=',
      't=',
      'reset=',
      'remaining=',
      '"',
      ' ',
      'Fri',
      'Nov',
      'GMT',
    ],
    ...['08:49:37', '2026', '06-Nov-94', 'Fri, 06 Nov 2026 08:49:37 GMT', '\u0000', 'e9', '٣'],
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(pieces, { maxLength: 12 }).map((all) => all.join('')),
  );
  const anyHeaders = fc.dictionary(fc.constantFrom(...names), fc.oneof(text, fc.anything()));

  test('never throws, and a hint is always finite and never negative', () => {
    fc.assert(
      fc.property(
        fc.oneof(anyHeaders, fc.anything()),
        fc.boolean(),
        fc.integer(),
        (headers, throttled, skew) => {
          const { retryAfterMs, unreadable } = readHint(headers, () => now + skew, throttled);
          if (retryAfterMs !== undefined) {
            expect(retryAfterMs).toBeGreaterThanOrEqual(0);
            expect(retryAfterMs).toBeLessThan(Infinity);
          }
          if (unreadable !== undefined) expect(unreadable.length).toBeLessThan(300);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  test('a proxy that throws has no hint', () => {
    expect(readHint(hostile, epochMs)).toEqual({});
    expect(readHint({ get: hostile }, epochMs)).toEqual({});
    expect(readHint({ 'retry-after': hostile }, epochMs)).toEqual({});
  });

  test('a long value is not looked at, whatever it is made of', () => {
    for (const piece of ['9', ' ', 'a', 'Fri, ', 'r=', '"x";r=0;t=1,', '0-']) {
      const value = piece.repeat(1_000_000 / piece.length);
      for (const name of names)
        expect(readHint({ [name]: value }, epochMs, true).retryAfterMs).toBeUndefined();
    }
  });

  test('every whole number of seconds is read back', () => {
    fc.assert(
      fc.property(fc.nat(), (seconds) => {
        expect(read({ 'retry-after': String(seconds) })).toBe(seconds * 1000);
      }),
    );
  });

  test('every date in the three forms is read back', () => {
    const day = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 * 365 * 86_400 }), (seconds) => {
        const at = new Date(now + seconds * 1000);
        const [weekday, date, month, year, time] = at.toUTCString().replace(',', '').split(' ') as string[];
        const forms = [
          at.toUTCString(),
          `${day[at.getUTCDay()]}, ${date}-${month}-${year!.slice(2)} ${time} GMT`,
          `${weekday} ${month} ${String(at.getUTCDate()).padStart(2)} ${time} ${year}`,
        ];
        for (const form of forms) expect(read({ 'retry-after': form })).toBe(seconds * 1000);
      }),
    );
  });
});
