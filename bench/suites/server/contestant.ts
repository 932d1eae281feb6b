import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ServerJob, ServerPorts } from '../server-process.ts';

/**
 * A server and its floor in a process of their own. Two processes of the same program differ by up to a fifth for as long as
 * they live, by where their memory and their compiled code happen to lie: so each contestant is compared with a floor that
 * has the same luck, and meets no other contestant, whose ways its framework would have to learn as well.
 */
export interface Contestant extends Disposable {
  readonly name: string;
  readonly ports: ServerPorts;
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
  // A closed connection needs no answer.
  ended.catch(() => {});
  const ask = async <T>(question: ServerJob | 'cpu') => {
    const answer = once(child, 'message') as Promise<[T]>;
    child.send(question);
    const [told] = await Promise.race([answer, ended]);
    return told;
  };
  const ports = await ask<ServerPorts>(job);
  return {
    name: job.contestant,
    ports,
    cpuNs: () => ask<number>('cpu'),
    [Symbol.dispose]: () => void child.kill(),
  };
}
