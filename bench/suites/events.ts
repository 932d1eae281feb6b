import path from 'node:path';
import type { CaseResult } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';
import { engines } from './events/engines.ts';

/** What the process that measures is asked: which cases an engine has, or to measure some. */
export interface EventsJob {
  readonly engine: string;
  readonly names: readonly string[];
  readonly rounds: number;
}

export interface EventsAnswer {
  readonly cases: readonly string[];
  /** Why the engine cannot be measured here. */
  readonly missing: string | undefined;
  readonly results: CaseResult[];
}

const ROUNDS = 7;
const workerFile = path.join(import.meta.dirname, 'events-process.ts');

/** How many events a second; each case in a process of its own, in which its contestants take turns. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const results: CaseResult[] = [];
    for (const engine of Object.keys(engines)) {
      const ask = (names: readonly string[]) =>
        inProcess<EventsJob, EventsAnswer>(workerFile, [], { engine, names, rounds });
      const { cases, missing } = await ask([]);
      if (missing !== undefined) console.error(`Without the cases of ${engine}: ${missing}.`);
      for (const name of cases.filter((each) => each.includes(caseContains))) {
        results.push(...(await ask([name])).results);
      }
    }
    return results;
  },
  notes: [
    'events/s: published in batches of 500, leased, handed to a handler that does nothing, settled. On SQLite by',
    'processor time, because all of it is done in one process (wall: the clock on the wall); elsewhere by the clock on the wall.',
    'ours: a producer and a consumer of @holdfast/events, each event marked in the ledger of what was processed (effects: once).',
    'floor: a bare script on the same driver and with the same durability: batched insert, claim, processed row and delete;',
    'by key it keeps order by key, retry-heavy it puts back as many. 1M delayed: the floor is the same without them.',
    'ms: from the call of publish to the handler, when nothing else happens; its floor is the same with bare statements.',
    'sqlite: durability process (WAL, synchronous NORMAL), and power (FULL) where it says so. plainjob is given node:sqlite',
    'through the few methods of better-sqlite3 that it uses, with its own pragmas (synchronous NORMAL); it keeps no ledger.',
    'postgres: a server of its own on loopback, as initdb sets it up (fsync, full_page_writes and synchronous_commit on, 128 MB of',
    'shared_buffers), with max_wal_size 4 GB, for everyone. pg-boss: fetch of 1,000, two at once; in ms, woken by its NOTIFY.',
    'graphile-worker: localQueue of 500, 24 jobs at once, completed together. BullMQ: Redis with appendonly, fsync every second, 100 jobs at once.',
  ],
};
