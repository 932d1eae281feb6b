import path from 'node:path';
import { allocationFlags } from '../allocation.ts';
import type { CaseResult, Unit } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';

/** What the process that measures is asked: which cases there are, or to measure some. */
export type CoreJob = { readonly names?: readonly string[]; readonly rounds: number };
export type CoreAnswer = {
  readonly cases: readonly { case: string; unit: Unit }[];
  readonly results: CaseResult[];
};

const ROUNDS = 21;
const WEIGHINGS_MAX = 5;
const workerFile = path.join(import.meta.dirname, 'core-process.ts');

/** What a call costs. Time and bytes are measured in processes of their own: the flags for one distort the other. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains, together }) {
    const { cases } = await ask([], { rounds });
    const chosen = cases.filter((each) => each.case.includes(caseContains));
    const timed = chosen.filter(({ unit }) => unit === 'ns').map((each) => each.case);
    const weighed = chosen.filter(({ unit }) => unit === 'bytes').map((each) => each.case);

    const results: CaseResult[] = [];
    for (const names of together ? [timed] : timed.map((name) => [name])) {
      results.push(...(await ask([], { names, rounds })).results);
    }
    const weighings = Math.min(rounds, WEIGHINGS_MAX);
    results.push(...(await ask(allocationFlags, { names: weighed, rounds: weighings })).results);
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
  if (job.names?.length === 0) return { cases: [], results: [] };
  return inProcess<CoreJob, CoreAnswer>(workerFile, flags, job);
}
