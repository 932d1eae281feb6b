import { type PolicyState, policies, policy } from 'holdfast';
import { expect, test } from 'vitest';
import { countsOf } from '../src/watch/work-counts.ts';

test('a call that succeeded after a retry is not taken from those that succeeded at once', async () => {
  const bumpy = policy({ name: 'bumpy', retryOn: 'any', attempts: 2, backoff: false, budget: false });
  const run = (failures: number) =>
    bumpy.try(({ attempt }) => (attempt > failures ? 'ok' : Promise.reject(new Error('down'))));
  for (const failures of [0, 1, 1, 2]) await run(failures);
  const state = policies().find(({ name }) => name === 'bumpy') as PolicyState;
  expect(countsOf([state], [])).toMatchObject({ work: 4, okAtOnce: 1, okAfterRetry: 2, attempts: 7 });
});
