import { conformance } from '@holdfast/contracts/conformance';
import { postgresFeatures } from '@holdfast/postgres';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { newGround, postgresHarness } from './postgres-harness.ts';

/** The shortest time in which a few round trips are surely done, on a busy machine too. */
const unitMs = 150;

const postgres = await service('postgres');

describe.skipIf(postgres.missing)(titled('conformance', postgres), () => {
  const ground = newGround(postgres.missing === undefined ? postgres.url : '');

  beforeAll(async () => {
    const engine = await ground.open({ pool: ground.pool });
    await engine.broker.declare('warm');
    await engine.broker.publish('warm', [{ payload: '' }]);
    const { deliveries } = await engine.broker.lease('warm', { owner: 'w', limit: 1, leaseMs: 10_000 });
    await engine.broker.settle(deliveries.map(({ lease }) => ({ lease, kind: 'discard', because: 'warm' })));
  });
  afterAll(() => ground.clear());

  conformance({
    name: 'postgres',
    contracts: ['broker', 'ledger', 'triage', 'rateLimits', 'journal', 'controls', 'audit', 'presence'],
    features: postgresFeatures,
    means: ['reopen', 'dieAfterWrites', 'effect', 'publishBehind'],
    create: () => postgresHarness(ground, unitMs),
    describe,
    test,
  });
});
