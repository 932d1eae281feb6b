import { setTimeout as pause } from 'node:timers/promises';
import {
  type Contract,
  conformance,
  conformanceChecks,
  type Harness,
  runCheck,
  whySkipped,
} from '@holdfast/contracts/conformance';
import { openSqlite } from '@holdfast/sqlite';
import { systemClock } from 'holdfast';
import { describe, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { openRedis, redisFeatures } from '../src/index.ts';

const redis = await service('redis');
let number = 0;

async function harness(hasStore: boolean): Promise<Harness<never>> {
  const url = redis.missing === undefined ? redis.url : '';
  const prefix = `conformance-${process.pid}-${number++}:`;
  const store = hasStore ? await openSqlite({ file: ':memory:' }) : undefined;
  const open = () => openRedis({ url, prefix, store });
  const engines = [open()];
  return {
    engine: engines[0]!,
    clock: systemClock,
    unitMs: 250,
    passTime: (ms) => pause(ms),
    async reopen() {
      const engine = open();
      engines.push(engine);
      return engine;
    },
    async dispose() {
      const [{ client }] = engines as [(typeof engines)[0]];
      for (const key of await client.keys(`${prefix}*`)) await client.unlink(key);
      await Promise.all(engines.map((engine) => engine.close()));
      await store?.close();
    },
  };
}

// Checks wait most of the time, so several run at once, each with a prefix of its own.
describe.skipIf(redis.missing).concurrent(titled('Redis', redis), () => {
  conformance({
    name: 'redis',
    contracts: ['broker', 'ledger', 'rateLimits', 'controls'],
    features: redisFeatures(),
    means: ['reopen'],
    create: () => harness(false),
    describe,
    test,
  });

  const withStore = {
    contracts: ['broker', 'ledger', 'triage', 'controls', 'audit'],
    features: redisFeatures({ hasStore: true }),
    means: ['reopen'],
  } as const;
  // What is the store's alone is tested with the store.
  const own: readonly Contract[] = ['broker', 'controls'];
  describe('redis with SQLite', () => {
    for (const check of conformanceChecks) {
      if (!check.contracts.some((contract) => own.includes(contract))) continue;
      const why = whySkipped(check, withStore);
      if (why === undefined) test(check.name, () => runCheck(check, () => harness(true)));
      else test.skip(`${check.name} (skipped: ${why})`, () => {});
    }
  });
});
