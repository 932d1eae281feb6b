import { mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openPostgres } from '@holdfast/postgres';
import { openSqlite } from '@holdfast/sqlite';
import { catalog } from '../../../scripts/services/catalog.ts';
import { type OwnServer, startOwn } from '../../../scripts/services/start-service.ts';
import type { EngineCases } from '../events/engines.ts';
import type { Contestant, EventCase } from '../events/event-case.ts';
import { dbosTransact } from './dbos.ts';
import { barePostgres, bareSqlite } from './floors.ts';
import type { Load } from './load.ts';
import { openWorkflow } from './open-workflow.ts';
import { ours } from './ours.ts';

const rate = { unit: 'steps/s', better: 'higher' } as const;
const asleep = 100_000;

/** A slow one has fewer in a round, so that a round takes about a second for everyone. */
const many: Load = { assemblies: 4000, atOnce: 100 };
const fewer: Load = { assemblies: 300, atOnce: 100 };
const alone: Load = { assemblies: 300, atOnce: 1 };
const aloneAndSlow: Load = { assemblies: 40, atOnce: 1 };
/** It waits for its next poll after each run. */
const aloneAndPolling: Load = { assemblies: 10, atOnce: 1 };

export function assemblyCases(): EngineCases {
  const { missing } = catalog.postgres.find();
  return { cases: [...(missing === undefined ? onPostgres : []), ...onSqlite], missing };
}

const ahead = (dbos: number) => [
  { aheadOf: 'DBOS Transact', times: dbos },
  { aheadOf: 'OpenWorkflow', times: 1 },
];

const onPostgres: readonly EventCase[] = [
  {
    ...rate,
    case: 'postgres steps',
    bars: [{ toFloorMin: 3 }, ...ahead(20)],
    contestants: () => postgresField(many, fewer, fewer),
  },
  {
    ...rate,
    case: 'postgres steps, one at a time',
    bars: [{ toFloorMin: 0.7 }, ...ahead(3)],
    contestants: () => postgresField(alone, aloneAndSlow, aloneAndPolling),
  },
  {
    ...rate,
    case: 'postgres steps, 100,000 asleep',
    bars: [{ toFloorMin: 0.95 }],
    contestants: async () => {
      const { url } = await postgres();
      return {
        floor: await ours(await openPostgres({ url, schema: 'awake' }), many),
        ours: await ours(await openPostgres({ url, schema: 'asleep' }), many, asleep),
      };
    },
  },
];

const onSqlite: readonly EventCase[] = [
  {
    ...rate,
    by: 'processor',
    case: 'sqlite steps',
    bars: [{ toFloorMin: 1 }, { aheadOf: 'OpenWorkflow', times: 1 }],
    contestants: () => sqliteField({ assemblies: 20_000, atOnce: 100 }, { assemblies: 300, atOnce: 100 }),
  },
  {
    ...rate,
    by: 'processor',
    case: 'sqlite steps, one at a time',
    bars: [{ toFloorMin: 0.5 }, { aheadOf: 'OpenWorkflow', times: 1 }],
    contestants: () => sqliteField({ assemblies: 5000, atOnce: 1 }, aloneAndPolling),
  },
  {
    ...rate,
    by: 'processor',
    case: 'sqlite steps, 100,000 asleep',
    bars: [{ toFloorMin: 0.95 }],
    contestants: async () => {
      const load: Load = { assemblies: 20_000, atOnce: 100 };
      return {
        floor: await ours(await openSqlite({ file: newFile() }), load),
        ours: await ours(await openSqlite({ file: newFile() }), load, asleep),
      };
    },
  },
];

async function postgresField(fast: Load, dbos: Load, open: Load): Promise<Record<string, Contestant>> {
  const { url } = await postgres();
  const { BackendPostgres } = await import('openworkflow/postgres');
  return {
    floor: await barePostgres(url, fast),
    ours: await ours(await openPostgres({ url }), fast),
    'DBOS Transact': await dbosTransact(url, dbos),
    OpenWorkflow: await openWorkflow(await BackendPostgres.connect(url), open),
  };
}

async function sqliteField(fast: Load, open: Load): Promise<Record<string, Contestant>> {
  const { BackendSqlite } = await import('openworkflow/sqlite');
  return {
    floor: await bareSqlite(newFile(), fast),
    ours: await ours(await openSqlite({ file: newFile() }), fast),
    OpenWorkflow: await openWorkflow(BackendSqlite.connect(newFile()), open),
  };
}

/** It ends with the process that measures. */
async function postgres(): Promise<OwnServer> {
  const server = await startOwn('postgres', { settings: { max_wal_size: '4GB' } });
  if (server.missing !== undefined) throw new Error(server.missing);
  return server;
}

function newFile(): string {
  return path.join(mkdtempSync(path.join(os.tmpdir(), 'holdfast-bench-')), 'bench.db');
}
