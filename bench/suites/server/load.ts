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
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`Who sends the requests ended with ${signal ?? `code ${code}`}.`);
  });
  ended.catch(() => {});
  await Promise.race([once(child, 'message'), ended]);
  return {
    async send(burst) {
      const answer = once(child, 'message') as Promise<[string | null]>;
      child.send(burst);
      const [failure] = await Promise.race([answer, ended]);
      if (failure !== null) throw new Error(failure);
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}
