import { describe, expect, test } from 'vitest';
import { tryPolicy } from '../src/index.ts';
import { library, storms } from './setup.ts';

/** What the default policy does not meet, and why: docs/storms.md. */
const lost: Record<string, readonly string[]> = {
  's12-bounded.yaml': ['failures'],
  's12-codel.yaml': ['failures'],
};

/** Not those of thousands of clients, which take a minute: `npm run storm` has all. */
const heavy = ['s02.yaml', 's02b.yaml', 's08.yaml', 's08-shared.yaml', 's01.yaml'];

describe('the suite', () => {
  test('has eighteen scenarios', () => {
    expect(new Set([...storms.values()].map(({ id }) => id)).size).toBe(18);
  });

  const cases = [...storms].filter(([file]) => !heavy.includes(file));
  test.each(cases)(
    '%s: the default policy keeps the bounds, and no others are lost',
    (file, scenario) => {
      if (!scenario.compare.includes('holdfast')) return;
      const { findings } = tryPolicy(scenario, 'holdfast', {
        policies: library,
        seeds: scenario.seeds.slice(0, 5),
      });
      const missed = findings.filter(({ met }) => !met).map(({ metric }) => metric);
      expect(missed).toEqual(lost[file] ?? []);
    },
    120_000,
  );
});
