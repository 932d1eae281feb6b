import { serve } from '../worker.ts';
import { assemblyCases } from './assembly/cases.ts';
import type { AssemblyAnswer, AssemblyJob } from './assembly.ts';
import { measure } from './events/event-case.ts';

serve<AssemblyJob, AssemblyAnswer>(async ({ names, rounds }) => {
  const { cases, missing } = assemblyCases();
  const results = [];
  for (const each of cases.filter(({ case: name }) => names.includes(name)))
    results.push(await measure(each, rounds));
  return { cases: cases.map(({ case: name }) => name), missing, results };
});
