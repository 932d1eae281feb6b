import { describe, expect, test } from 'vitest';
import { holds, parseAssertion } from '../src/index.ts';

describe('an assertion', () => {
  test.each([
    ['recovery < 30s', { relation: '<', limit: 30, metric: 'recovery' }],
    ['p99 <= 250ms', { relation: '<=', limit: 0.25, metric: 'p99' }],
    ['success ≥ 99.5%', { relation: '>=', limit: 0.995, metric: 'success' }],
    ['multiplication<1.25', { relation: '<', limit: 1.25, metric: 'multiplication' }],
    ['metastable = 0', { relation: '=', limit: 0, metric: 'metastable' }],
  ])('reads %s', (text, { relation, limit, metric }) => {
    expect(parseAssertion(text)).toMatchObject({ text, relation, limit, bound: { metric } });
  });

  test('may be about a part of a run', () => {
    const { bound } = parseAssertion('multiplication of web at db from 60s until 2m <= 1.2');
    expect(bound).toMatchObject({ clients: 'web', service: 'db', from: 60_000, until: 120_000 });
  });

  test('may be about a share of failures', () => {
    expect(parseAssertion('success >= 99% at 5% failures')).toMatchObject({ limit: 0.99, failing: 0.05 });
  });

  test.each([
    ['fast', 'assertion: expected a metric, a relation and a number'],
    ['speed > 3', 'assertion: the metric: expected one of goodput'],
    ['goodput > 3s', 'assertion: the value: expected a number, for goodput, got "3s"'],
    ['p99 < 3 weeks', 'assertion: the value: expected a duration'],
    [
      'success > 9% at 500% failures',
      'assertion: the share of failures: expected between 0% and 100%, got "500%"',
    ],
    [
      'success > 99',
      'assertion: the value: expected a share from 0 to 1, or from 0% to 100%, got 99; did you mean success > 99%?',
    ],
    [
      'success of web from 60s ≥ 99.5 at 5% failures',
      'did you mean success of web from 60s ≥ 99.5% at 5% failures?',
    ],
    ['wasted < 101%', 'assertion: the value: expected a share from 0 to 1, or from 0% to 100%, got 101'],
    ['success from soon > 9%', 'assertion: from: expected a duration'],
  ])('names the part of "%s" that is wrong', (text, sentence) => {
    expect(() => parseAssertion(text)).toThrow(sentence);
  });

  test('does not hold of what never happened', () => {
    expect(holds(parseAssertion('recovery < 30s'), Infinity)).toBe(false);
    expect(holds(parseAssertion('p99 < 30s'), Number.NaN)).toBe(false);
    expect(holds(parseAssertion('recovery < 30s'), 29)).toBe(true);
    expect(holds(parseAssertion('recovery < 30s'), 30)).toBe(false);
  });
});
