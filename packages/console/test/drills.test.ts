import { describe, expect, test } from 'vitest';
import { drill as live } from '../../../drills/console-live.ts';
import { drill as million } from '../../../drills/console-million.ts';
import { isBrowserMissing, skipped } from './open-browser.ts';

describe.skipIf(isBrowserMissing)(`the console under load${skipped}`, { timeout: 120_000 }, () => {
  test('a minute of live updates leaves the heap and the nodes of the page as they were', async () => {
    const { cases } = await live({ times: 1 });
    expect(cases.filter(({ pass }) => !pass)).toEqual([]);
    expect(cases.length).toBeGreaterThan(3);
  });

  test('20,000 parked events are in groups, and page 400 of them is listed', async () => {
    const figures = await million({ times: 20_000 });
    expect(figures).toMatchObject({ parked: 20_000, inGroups: 20_000 });
  });
});
