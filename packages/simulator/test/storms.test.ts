import { describe, expect, test } from 'vitest';
import { tryPolicy } from '../src/index.ts';
import { library, storms } from './setup.ts';

/** What the default policy does not meet, and why: docs/storms.md. */
const lost: Record<string, readonly string[]> = {
  's01b.yaml': ['p99'],
  's06.yaml': ['recovery'],
  's07-0.01.yaml': ['success'],
  's07-0.05.yaml': ['success'],
  's12-bounded.yaml': ['failures'],
  's12-codel.yaml': ['failures'],
  's12-dropExpired.yaml': ['failures'],
  's12-lifo.yaml': ['failures'],
};

/** Not those of thousands of clients, and of most one seed: `npm run storm` takes five seeds of all. */
const heavy = ['s02.yaml', 's02b.yaml', 's08.yaml', 's08-shared.yaml', 's01.yaml'];

describe('the suite', () => {
  test('has eighteen scenarios', () => {
    expect(new Set([...storms.values()].map(({ id }) => id)).size).toBe(18);
  });

  const cases = [...storms].filter(([file]) => !heavy.includes(file));
  test.each(cases)('%s: the default policy keeps the bounds, and no others are lost', (file, scenario) => {
    if (!scenario.compare.includes('holdfast')) return;
    const { findings } = tryPolicy(scenario, 'holdfast', {
      policies: library,
      seeds: scenario.seeds.slice(0, 1),
    });
    const missed = findings.filter(({ met }) => !met).map(({ metric }) => metric);
    expect(missed).toEqual(lost[file] ?? []);
  });
});
