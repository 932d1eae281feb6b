import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Loop } from '../../harness.ts';

export interface Burst {
  readonly port: number;
  readonly kind: 'get' | 'post';
  readonly times: number;
}

/** Sends `times` requests to a port, and is done when all are answered with a success. */
export type Load = (port: number, kind: Burst['kind']) => Loop;

export async function startLoad(): Promise<Load> {
  const child = fork(path.join(import.meta.dirname, '..', 'server-load-process.ts'), {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
  });
  await once(child, 'message');
  return (port, kind) => async (times) => {
    child.send({ port, kind, times } satisfies Burst);
    const [failure] = (await once(child, 'message')) as [string | null];
    if (failure !== null) throw new Error(failure);
  };
}
