import { expect, test } from 'vitest';
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
