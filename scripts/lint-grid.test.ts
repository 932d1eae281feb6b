import { RunPool } from '@holdfast/simulator';
import { expect, test } from 'vitest';
import { judge, policyGrid } from './lint-grid.ts';

/** A sample of the grid: all of it is in docs/lint-and-storms.md. */
const STRIDE = 61;

test('what the linter lets pass does no harm in storms, and what does harm is warned of', async () => {
  const grid = policyGrid();
  expect(grid.length).toBeGreaterThanOrEqual(1000);
  await using pool = new RunPool(2);
  const judged = await judge(
    grid.filter((_, index) => index % STRIDE === 0),
    pool,
  );
  expect(judged.filter(({ rules, harms }) => rules.length === 0 && harms.length > 0)).toEqual([]);
  expect(judged.some(({ rules, harms }) => rules.length > 0 && harms.length > 0)).toBe(true);
  expect(judged.some(({ rules, harms }) => rules.length === 0 && harms.length === 0)).toBe(true);
}, 60_000);
