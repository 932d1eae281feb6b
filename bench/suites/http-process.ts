import { timeCases } from '../harness.ts';
import { serve } from '../worker.ts';
import { httpCases } from './http/clients.ts';
import type { HttpAnswer, HttpJob } from './http.ts';

/** Some thousand requests a round: collecting the garbage is then a part of each. */
const ROUND_MS = 250;

serve<HttpJob, HttpAnswer>(async ({ names = [], rounds, origin }) => {
  const cases = httpCases(origin);
  const chosen = cases.filter((each) => names.includes(each.case));
  return { cases: cases.map((each) => each.case), results: await timeCases(chosen, rounds, ROUND_MS) };
});
