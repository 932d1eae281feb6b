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
  const answered = async () => {
    const [answer] = (await once(child, 'message')) as [number];
    return answer;
  };
  child.send(job);
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The server of ${job.contestant} in "${job.case}" ended with code ${code}.`);
  });
  const port = await Promise.race([answered(), ended]);
  ended.catch(() => {});
  return {
    name: job.contestant,
    port,
    cpuNs() {
      const answer = answered();
      child.send('cpu');
      return answer;
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}
