import { type Case, timeCases } from '../harness.ts';
import { serve } from '../worker.ts';
import type { HttpAnswer, HttpJob } from './http.ts';

/** A few hundred requests a round: collecting the garbage is then a part of most, and there is time for many rounds. */
const ROUND_MS = 60;

/** Each loads its own peers: with all of them in one heap, collecting the garbage took a third of everybody's time. */
const cases: Readonly<Record<string, (origin: string) => Promise<Case>>> = {
  interceptor: async (origin) => (await import('./http/interceptor.ts')).interceptorCase(origin),
  fetch: async (origin) => (await import('./http/fetch.ts')).fetchCase(origin),
};

serve<HttpJob, HttpAnswer>(async ({ names = [], rounds, origin }) => {
  const chosen = await Promise.all(names.map((name) => cases[name]!(origin)));
  return { cases: Object.keys(cases), results: await timeCases(chosen, rounds, ROUND_MS) };
});
