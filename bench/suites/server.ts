import path from 'node:path';
import { service } from '../../scripts/services/service.ts';
import type { CaseResult } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';

/** What the process with the servers is asked: which cases there are, or to measure some. */
export interface ServerJob {
  readonly names: readonly string[];
  readonly rounds: number;
  readonly redisUrl: string | undefined;
}
export interface ServerAnswer {
  readonly cases: readonly string[];
  readonly results: CaseResult[];
}

/** Many, because sockets are noisier than functions. */
const ROUNDS = 61;
const workerFile = path.join(import.meta.dirname, 'server-process.ts');

/** What a request costs its server. Those who send have a process of their own, so that only the server's time is counted. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains, together }) {
    const redis = await service('redis');
    if (redis.missing !== undefined) console.error(`Without the cases of Redis: ${redis.missing}.`);
    const redisUrl = redis.missing === undefined ? redis.url : undefined;
    const ask = (names: readonly string[]) =>
      inProcess<ServerJob, ServerAnswer>(workerFile, [], { names, rounds, redisUrl });
    const { cases } = await ask([]);
    const chosen = cases.filter((each) => each.includes(caseContains));
    const results: CaseResult[] = [];
    for (const names of together ? [chosen] : chosen.map((name) => [name])) {
      results.push(...(await ask(names)).results);
    }
    return results;
  },
  notes: [
    'ns: processor time of the server for a request, from 32 connections over loopback; who sends is another process.',
    'floor: the framework with the same route and nothing before it. Limits are never reached; every key is new.',
  ],
};
