import { describe, expect, test } from 'vitest';
import { weatherCases, weatherRuns, weatherVerdict } from '../src/index.ts';
import { perform } from '../src/run.ts';

/** A tenth of the time of `npm run storm`, with two of its seeds. */
const seeds = [7919, 23757];

describe('ordinary weather', () => {
  test.each(weatherCases(0.1).map((each) => [each.id, each] as const))(
    '%s: the default policy keeps the bounds, and does not lose to a bare call',
    async (_id, each) => {
      const answers = await Promise.all(weatherRuns(each, seeds).map(perform));
      const { findings } = weatherVerdict(each, answers);
      expect(findings.filter(({ met }) => !met)).toEqual([]);
    },
    60_000,
  );

  test('a policy that loses to a bare call is found out', async () => {
    const [first] = weatherCases(0.1).filter(({ id }) => id === 'latency 3 s at 1/s');
    const { scenario } = first!;
    const hasty = {
      ...scenario,
      policies: { ...scenario.policies, holdfast: { attemptTimeout: '2s' as const } },
    };
    const worse = { ...first!, scenario: hasty };
    const answers = await Promise.all(weatherRuns(worse, seeds).map(perform));
    const { pass, findings } = weatherVerdict(worse, answers);
    expect(pass).toBe(false);
    expect(findings[0]).toMatchObject({ met: false, atLeast: 1 });
  });
});
