import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export interface ServiceOrder {
  /** What it can do from now on. */
  readonly perSecond: number;
}

export interface Service extends AsyncDisposable {
  readonly port: number;
  /** Changes its capacity without any notice. */
  change(perSecond: number): void;
}

/** A service in a process of its own, with or without protection. */
export async function startService(perSecond: number, isProtected: boolean): Promise<Service> {
  const file = path.join(import.meta.dirname, 'service-process.ts');
  const child = fork(file, [String(perSecond), isProtected ? 'protected' : 'bare'], {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
  });
  const [port] = (await once(child, 'message')) as [number];
  return {
    port,
    change: (to) => child.send({ perSecond: to } satisfies ServiceOrder),
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
