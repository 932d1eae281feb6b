import { expect, test } from 'vitest';
import { kills } from '../../../drills/assembly-kill.ts';
import { service, titled } from '../../../scripts/services/service.ts';

const postgres = await service('postgres');

test('three workers that are killed on SQLite: each assembly ends once, and no finished step runs again', {
  timeout: 120_000,
}, async () => {
  const counts = await kills('sqlite', 9);
  expect(counts).toMatchObject({ kills: 9, lost: 0, repeated: 0 });
  expect(counts.assemblies).toBeGreaterThan(0);
});

test.skipIf(postgres.missing)(titled('the same on PostgreSQL', postgres), { timeout: 120_000 }, async () => {
  const counts = await kills('postgres', 6);
  expect(counts).toMatchObject({ kills: 6, lost: 0, repeated: 0 });
  expect(counts.assemblies).toBeGreaterThan(0);
});
