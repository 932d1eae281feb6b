import { openPostgres } from '@holdfast/postgres';
import { catalog } from '../../../scripts/services/catalog.ts';
import { type OwnServer, startOwn } from '../../../scripts/services/start-service.ts';
import { bullmq } from './bullmq.ts';
import type { EngineCases } from './engines.ts';
import type { Contestant, EventCase } from './event-case.ts';
import { graphileWorker, graphileWorkerLatency } from './graphile-worker.ts';
import { idleLatency } from './idle-latency.ts';
import { pgBoss, pgBossLatency } from './pg-boss.ts';
import { bareLatency, bareQueue } from './postgres-floor.ts';
import { type Load, throughConsumer } from './through-consumer.ts';

const plain: Load = { events: 20_000, batch: 500 };
const byKey: Load = { ...plain, ordering: 'key', key: (index) => `customer ${index % 5000}` };
const delayed = 1_000_000;

const rate = { unit: 'events/s', better: 'higher' } as const;
const atLeast = [{ toFloorMin: 0.6 }];

/** A server for one case: other load on it would falsify the figures. */
export function postgresCases(): EngineCases {
  const { missing } = catalog.postgres.find();
  return { cases: missing === undefined ? cases : [], missing };
}

const cases: readonly EventCase[] = [
  {
    ...rate,
    case: 'postgres process',
    bars: [...atLeast, { aheadOf: 'pg-boss', times: 1.3 }, { aheadOf: 'graphile-worker', times: 1.3 }],
    contestants: async () => {
      const { url } = await postgres();
      const redis = await startOwn('redis');
      return {
        floor: await bareQueue(url, 'floor', plain),
        ours: await ours(url, plain),
        'pg-boss': await pgBoss(url, plain),
        'graphile-worker': await graphileWorker(url, plain),
        ...(redis.missing === undefined && { 'BullMQ on Redis': await bullmq(redis.url, plain) }),
      };
    },
  },
  {
    ...rate,
    case: 'postgres process, by key',
    bars: atLeast,
    contestants: async () => {
      const { url } = await postgres();
      return { floor: await bareQueue(url, 'floor', byKey), ours: await ours(url, byKey) };
    },
  },
  {
    ...rate,
    case: 'postgres process, 1M delayed',
    bars: [{ toFloorMin: 0.85 }],
    contestants: async () => {
      const { url } = await postgres();
      return { floor: await ours(url, plain), ours: await ours(url, plain, delayed) };
    },
  },
  ...([0.5, 0.99] as const).map(
    (share): EventCase => ({
      case: `postgres latency p${share * 100}, power`,
      unit: 'ms',
      better: 'lower',
      bars: share === 0.99 ? [{ oursMax: 15 }] : [],
      contestants: async () => {
        const { url } = await postgres();
        const engine = await openPostgres({ url });
        return {
          floor: await bareLatency(url, 'floor', share),
          ours: idleLatency(engine, share),
          'pg-boss': await pgBossLatency(url, share),
          'graphile-worker': await graphileWorkerLatency(url, share),
        };
      },
    }),
  ),
];

/** It ends with the process that measures. */
async function postgres(): Promise<OwnServer> {
  const server = await startOwn('postgres', { settings: { max_wal_size: '4GB' } });
  if (server.missing !== undefined) throw new Error(server.missing);
  return server;
}

let schemas = 0;

async function ours(url: string, load: Load, waiting = 0): Promise<Contestant> {
  const engine = await openPostgres({ url, schema: `ours_${++schemas}` });
  await engine.broker.declare('bench', { ordering: load.ordering ?? 'none' });
  for (let at = 0; at < waiting; at += 5000) {
    const batch = Array.from({ length: 5000 }, () => ({ payload: 'x'.repeat(200), delayMs: 1e9 }));
    await engine.broker.publish('bench', batch);
  }
  return throughConsumer(engine, load);
}
