import { expect, test } from 'vitest';
import { gatewayDrill } from '../../../drills/gateway.ts';
import { fleetDrill } from '../../../drills/gateway-fleet.ts';
import { drill as soak } from '../../../drills/gateway-soak.ts';

const short = { faultSeconds: 4, outageSeconds: 4, reloadSeconds: 3, killSeconds: 2 };

test('an instance that fails is hardly seen, and no POST is sent twice', { timeout: 60_000 }, async () => {
  // In a few seconds a handful of failures is a larger share than in a minute.
  const cases = await gatewayDrill({ ...short, errorShareMax: 0.02 }, 'one-dies');
  expect(cases).toMatchObject([{ id: 'one-dies', pass: true, repeatedPosts: 0 }]);
});

test('reloads fail no request', { timeout: 60_000 }, async () => {
  const cases = await gatewayDrill({ ...short, errorShareMax: 0 }, 'reload');
  expect(cases).toMatchObject([{ pass: true, failed: 0, refusedReloads: 0 }]);
});

test('a worker that is killed takes only its own requests with it', { timeout: 120_000 }, async () => {
  const cases = await gatewayDrill({ ...short, errorShareMax: 0 }, 'worker-killed');
  expect(cases).toMatchObject([{ pass: true, workersAfter: 2 }]);
});

test('several workers multiply no outage, and share a rate', { timeout: 60_000 }, async () => {
  const cases = await fleetDrill({ seconds: 1 });
  expect(cases).toMatchObject([
    { id: 'outage', pass: true },
    { id: 'rate-limit', singleAdmittedPerSecond: expect.any(Number) },
  ]);
});

test('memory and descriptors stay flat with faults', { timeout: 300_000 }, async () => {
  const counts = await soak({ times: 100_000 });
  expect(counts).toMatchObject({ repeatedPosts: 0 });
});
