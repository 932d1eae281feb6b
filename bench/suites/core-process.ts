import { weighCases } from '../allocation.ts';
import { timeCases } from '../harness.ts';
import { serve } from '../worker.ts';
import { timed, weighed } from './core/cases.ts';
import type { CoreAnswer, CoreJob } from './core.ts';

serve<CoreJob, CoreAnswer>(async ({ names, rounds }) => {
  const load = { ...timed, ...weighed };
  const cases = await Promise.all(names.map((name) => load[name]!()));
  const measure = names.some((name) => name in weighed) ? weighCases : timeCases;
  return measure(cases, rounds);
});
