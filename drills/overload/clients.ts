import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export interface Phase {
  readonly seconds: number;
  /** Requests that are begun in a second; those that are repeated come on top. */
  readonly perSecond: number;
}

export interface ClientsOrder {
  readonly port: number;
  readonly phases: readonly Phase[];
  readonly timeoutMs: number;
  /** A failed request is sent once more. */
  readonly retrying: boolean;
}

/** What became of the requests that were begun in a tenth of a second. */
export interface Slice {
  begun: number;
  /** Answered with a success, in time. */
  served: number;
  criticalBegun: number;
  criticalServed: number;
  refused: number;
  timedOut: number;
  /** Latencies of served attempts. */
  readonly latenciesMs: number[];
}

export const SLICE_MS = 100;

/** Sends requests from a process of its own, whether they are answered or not, and tells what became of them. */
export async function sendFrom(order: ClientsOrder): Promise<Slice[]> {
  const child = fork(path.join(import.meta.dirname, 'clients-process.ts'), {
    execArgv: ['--conditions=holdfast-source', '--no-warnings'],
    serialization: 'advanced',
  });
  child.send(order);
  const [slices] = (await once(child, 'message')) as [Slice[]];
  child.kill('SIGKILL');
  return slices;
}
