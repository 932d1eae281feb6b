import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSqlite } from '@holdfast/sqlite';
import type { Contestant, EventCase } from './event-case.ts';
import { idleLatency } from './idle-latency.ts';
import { plainjob } from './plainjob.ts';
import { bareLanes, bareLatency, bareQueue } from './sqlite-floor.ts';
import { type Load, throughConsumer } from './through-consumer.ts';

const plain: Load = { events: 20_000, batch: 500 };
const byKey: Load = { ...plain, ordering: 'key', key: (index) => `customer ${index % 5000}` };
const oneKey: Load = { ...plain, ordering: 'key', key: () => 'the only one' };
/** Three in ten fail twice. */
const failing: Load = { ...plain, fails: (index, attempt) => index % 10 < 3 && attempt < 3 };
const delayed = 1_000_000;

const rate = { unit: 'events/s', better: 'higher', by: 'processor' } as const;
const atLeast = [{ toFloorMin: 0.6 }];

export const sqliteCases: readonly EventCase[] = [
  {
    ...rate,
    case: 'sqlite process',
    bars: [...atLeast, { aheadOf: 'plainjob', times: 5 }],
    contestants: async () => ({
      floor: within((file) => bareQueue(file, plain)),
      ours: await ours(plain),
      plainjob: within((file) => plainjob(file, plain)),
    }),
  },
  {
    ...rate,
    case: 'sqlite process, by key',
    bars: atLeast,
    contestants: async () => ({ floor: within((file) => bareLanes(file, byKey)), ours: await ours(byKey) }),
  },
  {
    ...rate,
    case: 'sqlite one hot key',
    bars: atLeast,
    contestants: async () => ({ floor: within((file) => bareQueue(file, plain)), ours: await ours(oneKey) }),
  },
  {
    ...rate,
    case: 'sqlite process, 1M delayed',
    bars: [{ toFloorMin: 0.85 }],
    contestants: async () => ({ floor: await ours(plain), ours: await ours(plain, delayed) }),
  },
  {
    ...rate,
    case: 'sqlite retry-heavy',
    bars: atLeast,
    contestants: async () => ({
      floor: within((file) => bareQueue(file, failing)),
      ours: await ours(failing),
    }),
  },
  ...(['process', 'power'] as const).flatMap((durability) =>
    ([0.5, 0.99] as const).map((share): EventCase => {
      const mostMs = { process: 2, power: 8 }[durability];
      return {
        case: `sqlite latency p${share * 100}, ${durability}`,
        unit: 'ms',
        better: 'lower',
        bars: share === 0.99 ? [{ oursMax: mostMs }] : [],
        contestants: async () => {
          const { file, discard } = newFile();
          const engine = await openSqlite({ file, durability });
          return {
            floor: within((bare) => bareLatency(bare, durability, share)),
            ours: closing(idleLatency(engine, share), discard),
          };
        },
      };
    }),
  ),
];

async function ours(load: Load, waiting = 0): Promise<Contestant> {
  const { file, discard } = newFile();
  const engine = await openSqlite({ file });
  await engine.broker.declare('bench', { ordering: load.ordering ?? 'none' });
  for (let at = 0; at < waiting; at += 1000) {
    const batch = Array.from({ length: 1000 }, () => ({ payload: 'x'.repeat(200), delayMs: 1e9 }));
    await engine.broker.publish('bench', batch);
  }
  return closing(throughConsumer(engine, load), discard);
}

function within(make: (file: string) => Contestant): Contestant {
  const { file, discard } = newFile();
  return closing(make(file), discard);
}

function closing({ round, close }: Contestant, discard: () => Promise<void>): Contestant {
  return { round, close: () => close().then(discard) };
}

function newFile(): { file: string; discard: () => Promise<void> } {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-bench-'));
  return { file: path.join(folder, 'events.db'), discard: () => rm(folder, { recursive: true }) };
}
