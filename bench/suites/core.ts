import path from 'node:path';
import { allocationFlags } from '../allocation.ts';
import type { CaseResult } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';
import { timed, weighed } from './core/cases.ts';

/** What the process that measures is asked. */
export type CoreJob = { readonly names: readonly string[]; readonly rounds: number };
export type CoreAnswer = CaseResult[];

const ROUNDS = 21;
const WEIGHINGS_MAX = 5;
const workerFile = path.join(import.meta.dirname, 'core-process.ts');

/** What a call costs. Time and bytes are measured in processes of their own: the flags for one distort the other. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains, together }) {
    const chosen = (cases: object) => Object.keys(cases).filter((name) => name.includes(caseContains));
    const names = chosen(timed);
    const results: CaseResult[] = [];
    for (const some of together ? [names] : names.map((name) => [name])) {
      results.push(...(await ask([], { names: some, rounds })));
    }
    const weighings = Math.min(rounds, WEIGHINGS_MAX);
    results.push(...(await ask(allocationFlags, { names: chosen(weighed), rounds: weighings })));
    return results;
  },
  notes: [
    'Each case has a process of its own, in which its contestants take turns; --together puts all cases into one.',
    'ns: processor time a call, all threads of the process; wall: time on the clock. Ratios are taken within a round, where',
    'contestants run side by side; shown are their median and the middle eight tenths.',
    'bytes: allocated on the heap by a call, in a process of its own; the floor is part of it, not taken off.',
  ],
};

async function ask(flags: readonly string[], job: CoreJob): Promise<CoreAnswer> {
  return job.names.length === 0 ? [] : inProcess<CoreJob, CoreAnswer>(workerFile, flags, job);
}
