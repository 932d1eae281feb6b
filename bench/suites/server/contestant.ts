import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ServerJob } from '../server-process.ts';

/** A server in a process of its own, so that it has its own compiled code and its own garbage, as in production. */
export interface Contestant extends Disposable {
  readonly name: string;
  readonly port: number;
  /** Processor time of the whole process so far, compiling and collecting included. */
  cpuNs(): Promise<number>;
}

export async function startContestant(job: ServerJob): Promise<Contestant> {
  const child = fork(path.join(import.meta.dirname, '..', 'server-process.ts'), {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
  });
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(
      `The server of ${job.contestant} in "${job.case}" ended with ${signal ?? `code ${code}`}.`,
    );
  });
  // Who does not ask any more need not hear of it.
  ended.catch(() => {});
  const ask = async (question: ServerJob | 'cpu') => {
    const answer = once(child, 'message') as Promise<[number]>;
    child.send(question);
    const [figure] = await Promise.race([answer, ended]);
    return figure;
  };
  const port = await ask(job);
  return {
    name: job.contestant,
    port,
    cpuNs: () => ask('cpu'),
    [Symbol.dispose]: () => void child.kill(),
  };
}
