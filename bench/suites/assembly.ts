import path from 'node:path';
import type { CaseResult } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';

/** What the process that measures is asked: which cases there are, or to measure some. */
export interface AssemblyJob {
  readonly names: readonly string[];
  readonly rounds: number;
}

export interface AssemblyAnswer {
  readonly cases: readonly string[];
  /** Why PostgreSQL cannot be measured here. */
  readonly missing: string | undefined;
  readonly results: CaseResult[];
}

const ROUNDS = 7;
const workerFile = path.join(import.meta.dirname, 'assembly-process.ts');

/** How many steps a second; each case in a process of its own, in which its contestants take turns. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const ask = (names: readonly string[]) =>
      inProcess<AssemblyJob, AssemblyAnswer>(workerFile, [], { names, rounds });
    const { cases, missing } = await ask([]);
    if (missing !== undefined) console.error(`Without the cases of postgres: ${missing}.`);
    const results: CaseResult[] = [];
    for (const name of cases.filter((each) => each.includes(caseContains)))
      results.push(...(await ask([name])).results);
    return results;
  },
  notes: [
    'steps/s: an assembly has five steps that do next to nothing; it is started, and waited for until its end is stored. 100 at once,',
    'or one at a time. On SQLite by processor time, because all of it is done in one process (wall: the clock on the wall).',
    'floor: a bare script on the same driver and with the same durability: a row for the run, and for each step a transaction with an',
    'insert and an update. asleep: the floor is ours without those that sleep.',
    'postgres: a server of its own on loopback, as initdb sets it up (fsync and synchronous_commit on), with max_wal_size 4 GB, and ten',
    'connections for everyone. DBOS Transact: registered workflow, `runStep`. OpenWorkflow: one worker with a slot for each run; its end',
    'is counted where the program ends, because callers poll for it. sqlite: WAL, synchronous NORMAL for the floor and ours.',
  ],
};
