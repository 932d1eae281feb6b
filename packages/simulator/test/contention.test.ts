import { describe, expect, test } from 'vitest';
import { simulate } from '../src/index.ts';
import { awsTable, cellOf, contention, strategies } from './published.ts';

describe('AWS: exponential backoff and jitter', () => {
  // A thousand trials are within 1 and 3 % (npm run drill -- published); fewer are further off.
  const TRIALS = 20;
  const cells = awsTable
    .filter(([clients]) => clients <= 20)
    .flatMap(([clients, ...row]) =>
      row.map(([calls, ms], index) => [clients, strategies[index]!, calls, ms] as const),
    );

  test.each(cells)('%i clients, %s', (clients, policy, calls, ms) => {
    const scenario = contention(clients);
    const runs = Array.from({ length: TRIALS }, (_, index) => {
      const results = simulate(scenario, { policy, seed: 31 * index + clients });
      return { calls: results.figure('attempts'), ms: 1000 * results.figure('finish') };
    });
    const callsCell = cellOf(
      runs.map((each) => each.calls),
      calls,
    );
    const msCell = cellOf(
      runs.map((each) => each.ms),
      ms,
    );
    expect(callsCell.off).toBeLessThanOrEqual(Math.max(0.01, 4 * callsCell.noise));
    // Figures were published to the ms.
    expect(msCell.off).toBeLessThanOrEqual(Math.max(0.03, 4 * msCell.noise));
  });
});
