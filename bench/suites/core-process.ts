import { weighCases } from '../allocation.ts';
import { type Case, timeCases } from '../harness.ts';
import { serve } from '../worker.ts';
import { breakerCases } from './core/breaker.ts';
import { pipelineCases } from './core/pipeline.ts';
import { retryCases } from './core/retry.ts';
import type { CoreAnswer, CoreJob } from './core.ts';

const cases: readonly Case[] = [...retryCases, ...breakerCases, ...pipelineCases];

serve<CoreJob, CoreAnswer>(async ({ names = [], rounds }) => {
  const chosen = cases.filter((each) => names.includes(each.case));
  const measure = chosen.some(({ unit }) => unit === 'bytes') ? weighCases : timeCases;
  return {
    cases: cases.map(({ case: name, unit }) => ({ case: name, unit })),
    results: await measure(chosen, rounds),
  };
});
