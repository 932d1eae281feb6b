import os from 'node:os';
import { Worker } from 'node:worker_threads';
import type { RunAnswer, RunRequest } from './run.ts';

type Reply = { readonly answer: RunAnswer } | { readonly error: string };

interface Job {
  readonly request: RunRequest;
  settle(reply: Reply): void;
}

/**
 * A pool of worker threads for simulation runs. Each thread starts when it is needed; `close` ends all
 * threads.
 */
export class RunPool {
  readonly #size: number;
  readonly #signal: AbortSignal | undefined;
  readonly #waiting: Job[] = [];
  readonly #all = new Set<Worker>();
  readonly #idle: Worker[] = [];
  readonly #fails = new Set<(error: Error) => void>();

  /** When `signal` aborts, all threads are terminated and their runs fail. */
  constructor(threads: number = os.availableParallelism(), signal?: AbortSignal) {
    this.#size = Math.max(1, threads);
    this.#signal = signal;
    signal?.addEventListener('abort', () => this.#abandon(signal.reason), { once: true });
  }

  /** Resolves with the results in the order of the requests. `onAnswer` gets the number of results so far. */
  async run(requests: readonly RunRequest[], onAnswer?: (done: number) => void): Promise<RunAnswer[]> {
    this.#signal?.throwIfAborted();
    let done = 0;
    const each = (request: RunRequest) =>
      new Promise<RunAnswer>((resolve, reject) => {
        const settle = (reply: Reply) => {
          if ('error' in reply) return reject(new Error(`${request.scenario.id}: ${reply.error}`));
          onAnswer?.(++done);
          resolve(reply.answer);
        };
        this.#waiting.push({ request, settle });
        this.#next();
      });
    return Promise.all(requests.map(each));
  }

  async close(): Promise<void> {
    const ended = [...this.#all].map((worker) => worker.terminate());
    this.#all.clear();
    this.#idle.length = 0;
    await Promise.all(ended);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    const worker = this.#idle.pop() ?? (this.#all.size < this.#size ? this.#hire() : undefined);
    if (!worker) return;
    const { request, settle } = this.#waiting.shift()!;
    const finish = (reply: Reply) => {
      worker.off('message', finish);
      worker.off('error', fail);
      this.#fails.delete(fail);
      if (this.#all.has(worker)) this.#idle.push(worker);
      settle(reply);
      this.#next();
    };
    const fail = (error: Error) => {
      this.#all.delete(worker);
      finish({ error: error.message });
    };
    worker.on('message', finish);
    worker.on('error', fail);
    this.#fails.add(fail);
    worker.postMessage(request);
  }

  #abandon(reason: Error): void {
    // Call `close` first, because it ends only the threads in `#all`. A failed run removes its thread from
    // `#all`.
    void this.close();
    for (const { settle } of this.#waiting.splice(0)) settle({ error: reason.message });
    for (const fail of this.#fails) fail(reason);
  }

  #hire(): Worker {
    const isSource = import.meta.url.endsWith('.ts');
    const source = new URL('./run-worker.ts', import.meta.url);
    const built = new URL('./run-worker.js', import.meta.url);
    const worker = new Worker(isSource ? source : built, {
      execArgv: isSource ? ['--conditions=holdfast-source', '--no-warnings'] : [],
    });
    this.#all.add(worker);
    return worker;
  }
}
