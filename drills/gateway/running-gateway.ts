import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { request } from 'undici';

const main = path.resolve(import.meta.dirname, '../../packages/cli/src/main.ts');
const token = 'drill';

/** The state of a worker, as far as drills read it. */
export interface WorkerCounts {
  readonly pid: number;
  readonly upstreams: readonly {
    readonly policies: readonly { readonly operations: number; readonly attempts: number }[];
  }[];
}

/** `holdfast gateway` as a process. */
export interface RunningGateway extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** Writes the file anew, and reloads it. */
  reload(yaml: string): Promise<boolean>;
  workers(): Promise<readonly WorkerCounts[]>;
}

export async function runGateway(yaml: string, workers = 1): Promise<RunningGateway> {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-drill-'));
  const file = path.join(folder, 'gateway.yaml');
  const write = (rest: string) =>
    writeFileSync(file, `listen: 127.0.0.1:0\nadmin: { port: 0, token: ${token} }\n${rest}`);
  write(yaml);
  const child = spawn(
    process.execPath,
    [
      ...['--conditions=holdfast-source', '--no-warnings', main],
      ...['gateway', file, '--json', '--workers', String(workers)],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit');
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(([code]) => {
      throw new Error(`holdfast gateway ended with ${code}.`);
    }),
  ]);
  const { url, admin } = JSON.parse(line as string) as { url: string; admin: string };
  const ask = async (where: string, method: 'GET' | 'POST') => {
    const { statusCode, body } = await request(admin + where, {
      method,
      headers: { authorization: `Bearer ${token}` },
    });
    return { status: statusCode, body: await body.json() };
  };
  return {
    url,
    pid: child.pid!,
    async reload(rest) {
      write(rest);
      return (await ask('/reload', 'POST')).status === 200;
    },
    async workers() {
      const { body } = await ask('/state', 'GET');
      return (body as { workers: WorkerCounts[] }).workers;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
