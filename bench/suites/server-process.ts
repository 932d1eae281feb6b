import { timeCases } from '../harness.ts';
import { serve } from '../worker.ts';
import { serverCases } from './server/cases.ts';
import { startLoad } from './server/load.ts';
import type { ServerAnswer, ServerJob } from './server.ts';

/** Longer than usual: a request takes as long as a thousand calls of the other suites. */
const ROUND_MS = 100;
const WARM_UP_REQUESTS = 20_000;

serve<ServerJob, ServerAnswer>(async ({ names, rounds, redisUrl }) => {
  const cases = serverCases(redisUrl);
  if (names.length === 0) return { cases: cases.map(({ name }) => name), results: [] };
  const load = await startLoad();
  const chosen = [];
  for (const each of cases) if (names.includes(each.name)) chosen.push(await each.open(load));
  // A framework is more code than a function: the compiler is not done with it after a few rounds.
  for (const { floor, ours, peers } of chosen) {
    for (const loop of [floor, ours, ...Object.values(peers)]) await loop(WARM_UP_REQUESTS);
  }
  return { cases: [], results: await timeCases(chosen, rounds, ROUND_MS) };
});
