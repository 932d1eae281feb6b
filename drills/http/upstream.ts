import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ChaosSpec } from '@holdfast/chaos';

/** Messages to the process of the server. */
export type Order = { readonly do: 'spec'; readonly spec: ChaosSpec } | { readonly do: 'count' };

/** What was executed there. */
export interface Executed {
  readonly requests: number;
  readonly posts: number;
  /** Posts that were executed again. */
  readonly repeatedPosts: number;
}

export interface Upstream extends AsyncDisposable {
  readonly origin: string;
  /** Other faults from now on; resolves when they are in force. */
  set(spec: ChaosSpec): Promise<void>;
  executed(): Promise<Executed>;
}

/** A server behind the chaos proxy, in a process of their own: what is counted here is the client's. */
export async function startUpstream(): Promise<Upstream> {
  const child = fork(path.join(import.meta.dirname, 'upstream-process.ts'), {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
  });
  const [port] = (await once(child, 'message')) as [number];
  return {
    origin: `http://127.0.0.1:${port}`,
    async set(spec) {
      await ask(child, { do: 'spec', spec });
    },
    executed: () => ask<Executed>(child, { do: 'count' }),
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    },
  };
}

async function ask<T>(child: ChildProcess, order: Order): Promise<T> {
  child.send(order);
  const [answer] = (await once(child, 'message')) as [T];
  return answer;
}
