import type { TopicCounts } from '@holdfast/contracts';
import { virtualClock } from 'holdfast/testing';
import { expect, test } from 'vitest';
import { RecentCounts } from '../src/recent-counts.ts';

test.each([
  ['a slow count of a large topic is used again for 20 times as long', 20_000, 100, [1, 1, 2]],
  ['a fast count is made each time', 20_000, 10, [1, 2, 3]],
  ['a small topic is counted each time', 50, 100, [1, 2, 3]],
])('%s', async (_, ready, tookMs, counted) => {
  const clock = virtualClock();
  const recent = new RecentCounts(clock);
  let asOf = 0;
  const ask = () =>
    recent.of('t', async () => {
      await clock.advance(tookMs);
      return { ...none, ready, asOf: ++asOf };
    });
  const seen = [(await ask()).asOf];
  await clock.advance(1999);
  seen.push((await ask()).asOf);
  await clock.advance(1);
  seen.push((await ask()).asOf);
  expect(seen).toEqual(counted);
});

const none: TopicCounts = {
  ...{ ready: 0, delayed: 0, behind: 0, held: 0, leased: 0, suspect: 0, blocking: 0 },
  ...{ oldestReadyMs: 0, nextDueInMs: undefined, asOf: 0 },
};
