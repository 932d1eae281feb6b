import { timeCases } from '../harness.ts';
import { serve } from '../worker.ts';
import { httpCases } from './http/clients.ts';
import type { HttpAnswer, HttpJob } from './http.ts';

/** A few hundred requests a round: collecting the garbage is then a part of most, and there is time for many rounds. */
const ROUND_MS = 60;

serve<HttpJob, HttpAnswer>(async ({ names = [], rounds, origin }) => {
  const cases = httpCases(origin);
  const chosen = cases.filter((each) => names.includes(each.case));
  return { cases: cases.map((each) => each.case), results: await timeCases(chosen, rounds, ROUND_MS) };
});
