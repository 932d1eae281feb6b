import { expect, test } from 'vitest';
import { drill as operationsKill } from '../../../drills/operations-kill.ts';
import { drill } from '../../../drills/parked-million.ts';

test('many parked events: listed, grouped, searched, and replayed by a process that is killed half-way', {
  timeout: 60_000,
}, async () => {
  expect(await drill({ times: 20_000 })).toMatchObject({
    parked: 20_000,
    replayed: 2000,
    repeated: 0,
    lost: 0,
  });
});

test('operations of every kind, in processes that are killed: nothing lost, nothing done twice', {
  timeout: 120_000,
}, async () => {
  const counts = await operationsKill({ times: 6 });
  expect(counts).toMatchObject({ lost: 0, repeated: 0 });
  expect(counts.kills).toBeGreaterThanOrEqual(6);
});
