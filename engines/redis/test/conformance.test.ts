import { setTimeout as pause } from 'node:timers/promises';
import { conformance, type Harness } from '@holdfast/contracts/conformance';
import { systemClock } from 'holdfast';
import { describe, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { openRedis, redisFeatures } from '../src/index.ts';

const redis = await service('redis');
let number = 0;

async function harness(): Promise<Harness<never>> {
  const url = redis.missing === undefined ? redis.url : '';
  const prefix = `conformance-${process.pid}-${number++}:`;
  const engines = [openRedis({ url, prefix })];
  return {
    engine: engines[0]!,
    clock: systemClock,
    unitMs: 25,
    passTime: (ms) => pause(ms),
    async reopen() {
      const engine = openRedis({ url, prefix });
      engines.push(engine);
      return engine;
    },
    async dispose() {
      const [{ client }] = engines as [(typeof engines)[0]];
      for (const key of await client.keys(`${prefix}*`)) await client.unlink(key);
      await Promise.all(engines.map((engine) => engine.close()));
    },
  };
}

describe.skipIf(redis.missing)(titled('Redis', redis), () => {
  conformance({
    name: 'redis',
    contracts: ['ledger', 'rateLimits'],
    features: redisFeatures,
    means: ['reopen'],
    create: harness,
    describe,
    test,
  });
});
