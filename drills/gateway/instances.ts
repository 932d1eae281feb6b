import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ChaosSpec } from '@holdfast/chaos';

/** Messages to the process of the instances. */
export type Order =
  | { readonly do: 'spec'; readonly instances: readonly number[]; readonly spec: ChaosSpec }
  | { readonly do: 'count' };

/** What was executed there. */
export interface Executed {
  readonly requests: number;
  readonly plainPosts: number;
  /** POSTs without an idempotency key that were executed more than once. */
  readonly repeatedPlainPosts: number;
  readonly keyedPosts: number;
  readonly repeatedKeyedPosts: number;
}

export interface Instances extends AsyncDisposable {
  readonly urls: readonly string[];
  /** Other faults for these instances from now on. */
  set(instances: readonly number[], spec: ChaosSpec): Promise<void>;
  executed(): Promise<Executed>;
}

/** Instances of a service, in a process of their own: behind chaos, or each `faultEvery`-th request fails. */
export async function startInstances(count: number, faultEvery = 0): Promise<Instances> {
  const child = fork(
    path.join(import.meta.dirname, 'instances-process.ts'),
    [String(count), String(faultEvery)],
    {
      execArgv: ['--conditions=holdfast-source', '--no-warnings'],
    },
  );
  const [ports] = (await once(child, 'message')) as [number[]];
  const ask = async <T>(order: Order): Promise<T> => {
    child.send(order);
    const [answer] = (await once(child, 'message')) as [T];
    return answer;
  };
  return {
    urls: ports.map((port) => `http://127.0.0.1:${port}`),
    async set(instances, spec) {
      await ask({ do: 'spec', instances, spec });
    },
    executed: () => ask<Executed>({ do: 'count' }),
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    },
  };
}
