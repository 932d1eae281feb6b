import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { CaseResult } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';

/** What the process that measures is asked: which cases there are, or to measure some against a server. */
export type HttpJob = {
  readonly names?: readonly string[];
  readonly rounds: number;
  readonly origin: string;
};
export type HttpAnswer = { readonly cases: readonly string[]; readonly results: CaseResult[] };

/** Many, because sockets are noisier than functions. */
const ROUNDS = 201;
const workerFile = path.join(import.meta.dirname, 'http-process.ts');
const serverFile = path.join(import.meta.dirname, 'http-server-process.ts');

/** What a request costs its client. The server has a process of its own, so that only the client's time is counted. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains, together }) {
    const server = fork(serverFile, { execArgv: ['--no-warnings'] });
    try {
      const [port] = (await once(server, 'message')) as [number];
      const origin = `http://127.0.0.1:${port}`;
      const ask = (names: readonly string[]) =>
        inProcess<HttpJob, HttpAnswer>(workerFile, [], { names, rounds, origin });
      const { cases } = await ask([]);
      const chosen = cases.filter((each) => each.includes(caseContains));
      const results: CaseResult[] = [];
      for (const names of together ? [chosen] : chosen.map((name) => [name])) {
        results.push(...(await ask(names)).results);
      }
      return results;
    } finally {
      server.kill();
    }
  },
  notes: [
    'ns: processor time of the client for a request, 64 of them at a time over loopback; the server is another process.',
    'floor: plain undici.request, and plain undici.fetch. Every client reads the body; all have their retries switched on.',
  ],
};
