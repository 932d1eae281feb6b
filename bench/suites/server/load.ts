import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export interface Burst {
  readonly port: number;
  readonly kind: 'get' | 'post';
  readonly times: number;
}

/** Sends requests, and is done when all are answered with a success. */
export interface Load extends Disposable {
  send(burst: Burst): Promise<void>;
}

export async function startLoad(): Promise<Load> {
  const child = fork(path.join(import.meta.dirname, '..', 'server-load-process.ts'), {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
  });
  await once(child, 'message');
  return {
    async send(burst) {
      child.send(burst);
      const [failure] = (await once(child, 'message')) as [string | null];
      if (failure !== null) throw new Error(failure);
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}
