import {
  assertControl,
  assertFilter,
  assertOperation,
  assertReport,
  beginEntry,
  type Control,
  controlId,
  controlSubjects,
  defaultReplay,
  earlierParkings,
  filterIsCounted,
  isEmptyFilter,
  newOperation,
  type ParkedFilter,
  type ProcessReport,
} from '@holdfast/contracts';
import { describe, expect, test } from 'vitest';

const act = { who: 'ada', why: 'a test' };

describe('a wrong control is refused in a sentence with field and value', () => {
  test.each([
    [{ kind: 'breaker', policy: 'pay', state: 'ajar' }, 'state', '"ajar"', 'open or closed'],
    [{ kind: 'retries', policy: '', state: 'off' }, 'policy', '""', 'a text that is not empty'],
    [{ kind: 'pause', topic: 'orders', only: 'mornings' }, 'only', '"mornings"', 'retries, or nothing'],
    [{ kind: 'concurrency', topic: 'orders', concurrencyMax: 0.5 }, 'concurrencyMax', '0.5', 'whole number'],
    [{ kind: 'mode', policy: 'pay', mode: 'observe', topic: 'a' }, 'mode', '"topic"', 'one of policy, mode'],
    [{ kind: 'quarantine', topic: 'orders' }, 'quarantine', 'orders', 'either a tenant or a key'],
    [{ kind: 'dance' }, 'kind', '"dance"', 'one of pause, quarantine'],
  ])('%j', (control, field, value, wanted) => {
    const refused = () => assertControl(control as unknown as Control, act, undefined);
    for (const part of [field, value, wanted]) expect(refused).toThrow(part);
  });
});

describe('the id of a control', () => {
  test.each<[Control, string]>([
    [{ kind: 'pause', topic: 'orders' }, 'pause:orders'],
    [{ kind: 'pause', topic: 'orders', only: 'retries' }, 'pause:orders:retries'],
    [{ kind: 'quarantine', topic: 'orders', tenant: 'a:b' }, 'quarantine:orders:tenant:a%3Ab'],
    [{ kind: 'breaker', policy: '*', state: 'open' }, 'breaker:*'],
    [{ kind: 'breaker', policy: 'pay', target: 'eu', state: 'open' }, 'breaker:pay:eu'],
    [{ kind: 'mode', policy: 'pay\ud800', mode: 'observe' }, 'mode:pay%EF%BF%BD'],
  ])('of %j', (control, id) => {
    expect(controlId(control)).toBe(id);
    expect(controlSubjects(control)[0]).toBe(`control:${id}`);
  });
});

describe('a filter', () => {
  test.each<[ParkedFilter, boolean]>([
    [{}, true],
    [{ topic: 'a', status: ['parked'], fingerprint: undefined as unknown as string }, true],
    [{ topic: ['a', 'b'], fingerprint: ['f'] }, true],
    [{ topic: 'a', not: { fingerprint: 'f' } }, false],
    [{ topic: 'a', tenant: 't' }, false],
  ])('%j is answered from kept counts: %s', (filter, isCounted) => {
    expect(filterIsCounted(filter)).toBe(isCounted);
  });

  test.each<[ParkedFilter, boolean]>([
    [{ not: { topic: 'a' } }, true],
    [{ headers: {}, status: 'parked', isFree: true, text: '' }, true],
    [{ headers: { region: 'eu' } }, false],
    [{ replayedBy: 'x' }, false],
    [{ ids: [] }, false],
  ])('%j names nothing: %s', (filter, isEmpty) => {
    expect(isEmptyFilter(filter)).toBe(isEmpty);
  });

  test('is refused in a sentence that names the field, also inside not', () => {
    const wrong = { topic: 'a', not: { topic: 5 } } as unknown as ParkedFilter;
    expect(() => assertFilter(wrong)).toThrow('filter.not.topic');
  });
});

test('an operation is refused in a sentence with field and value', () => {
  const filter = { topic: 'orders' };
  expect(() => assertOperation({ ...defaultReplay, filter, rate: 0 }, act, undefined)).toThrow('rate');
  expect(() => assertOperation({ kind: 'keep', filter, keepMs: -5 }, act, undefined)).toThrow('-5');
  expect(() => assertOperation({ kind: 'discard', filter }, act, 'x'.repeat(201))).toThrow('200');
});

test('an audit entry of an operation names its events if they fit', () => {
  const entryOf = (count: number) => {
    const ids = Array.from({ length: count }, (_, index) => `e${index}`);
    return beginEntry(newOperation('op', { kind: 'discard', filter: { ids } }, act, 1));
  };
  expect(entryOf(2)).toEqual({
    ...act,
    what: 'discard',
    subjects: ['operation:op', 'event:e0', 'event:e1'],
    count: 2,
  });
  expect(entryOf(99).subjects).toHaveLength(100);
  expect(entryOf(100)).toMatchObject({ subjects: ['operation:op'], count: 100 });
});

test('a report is refused in a sentence with field and value', () => {
  const report = { id: 'a', service: 's', host: 'h', version: '1', pid: '4711' } as unknown;
  expect(() => assertReport(report as ProcessReport)).toThrow('pid');
});

test('of many parkings the first and the three latest are kept', () => {
  type Parking = Parameters<typeof earlierParkings>[0];
  const diagnosis = {} as Parking['diagnosis'];
  let earlier: Parking['earlier'] = [];
  for (let parkedAt = 1; parkedAt <= 9; parkedAt++)
    earlier = earlierParkings({ earlier, diagnosis, parkedAt, replay: undefined });
  expect(earlier.map(({ parkedAt }) => parkedAt)).toEqual([1, 7, 8, 9]);
});
