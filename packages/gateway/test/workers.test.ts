import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { closing, serve } from '../../http/test/servers.ts';
import type { WorkerState } from '../src/admin/worker-state.ts';
import type { LostWorker } from '../src/index.ts';
import { eventually, RawClient, send } from './gateways.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-gateway-'));
let count = 0;

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
  /** The workers that ended unexpectedly. */
  readonly lost: readonly LostWorker[];
  readonly write: (yaml: string) => void;
  ask(path: string, method?: string, body?: unknown): Promise<unknown>;
  workers(): Promise<readonly WorkerState[]>;
}

/** Starts a gateway with several workers as a process of its own. */
async function run(yaml: string, workers: number): Promise<Running> {
  const file = path.join(folder, `workers-${++count}.yaml`);
  const write = (rest: string) =>
    writeFileSync(file, `listen: 127.0.0.1:0\nadmin: { port: 0, token: a-token }\n${rest}`);
  write(yaml);
  const program = new URL('gateway-process.ts', import.meta.url).pathname;
  const child = spawn(
    process.execPath,
    ['--conditions=holdfast-source', '--no-warnings', program, file, String(workers)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  closing({
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  });
  const lines = createInterface(child.stdout!);
  const [line] = await once(lines, 'line');
  const lost: LostWorker[] = [];
  lines.on('line', (each: string) => lost.push(JSON.parse(each)));
  const { port, admin } = JSON.parse(line) as { port: number; admin: number };
  const ask = async (where: string, method = 'GET', body?: unknown) => {
    const answer = await send(`http://127.0.0.1:${admin}`, where, {
      method,
      headers: { authorization: 'Bearer a-token' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return answer.body.startsWith('{') ? JSON.parse(answer.body) : answer.body;
  };
  return {
    child,
    lost,
    url: `http://127.0.0.1:${port}`,
    write,
    ask,
    workers: async () => ((await ask('/state')) as { workers: WorkerState[] }).workers,
  };
}

/** Clients that send one request after another, each on connections of its own. */
function load(url: string, clients: number) {
  const statuses = new Map<number | string, number>();
  let isOver = false;
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isOver) {
      const status = await new Promise<number | string>((resolve) => {
        const request = httpRequest(url, { agent }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode!));
        });
        request.on('error', ({ message }) => resolve(message));
        request.end();
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    agent.destroy();
  };
  const all = Array.from({ length: clients }, client);
  const sum = () => [...statuses.values()].reduce((total, each) => total + each, 0);
  return {
    statuses,
    /** Resolves when so many more requests have ended. */
    more: async (requests: number) => {
      const before = sum();
      await eventually(() => sum() >= before + requests);
    },
    stop: async () => {
      isOver = true;
      await Promise.all(all);
    },
  };
}

const yamlFor = (url: string, more = '') => `
upstreams:
  api:
    instances: ["${url}"]
    ${more}
routes: [{ name: everything, upstream: api }]
`;

describe('workers', () => {
  test('share the requests, and the admin API tells of all of them', async () => {
    const upstream = await serve({ body: 'x' });
    const gateway = await run(yamlFor(upstream.url, 'circuitBreaker: {}'), 2);
    const { more, stop, statuses } = load(gateway.url, 8);
    await more(200);
    await stop();
    const workers = await gateway.workers();
    expect(workers.length).toBe(2);
    expect(new Set(workers.map(({ pid }) => pid)).size).toBe(2);
    expect([...statuses.keys()]).toEqual([200]);
    expect(workers.every(({ routes }) => routes[0]!.requests > 0)).toBe(true);
    const total = workers.reduce((sum, { routes }) => sum + routes[0]!.requests, 0);
    expect(await gateway.ask('/metrics')).toContain(
      `holdfast_gateway_requests_total{route="everything",upstream="api",status="2xx"} ${total}`,
    );
    expect(
      await gateway.ask('/breakers', 'POST', { policy: 'gateway/api', target: upstream.url, state: 'open' }),
    ).toEqual({ breakers: 2 });
    expect((await send(gateway.url)).status).toBe(503);
  });

  test('that are new know what was forced by the name of the upstream, and what was taken back', async () => {
    const upstream = await serve({ body: 'x' });
    const other = await serve({ body: 'y' });
    const gateway = await run(
      `
upstreams:
  api: { instances: ["${upstream.url}"], circuitBreaker: {} }
  other: { instances: ["${other.url}"], circuitBreaker: {} }
routes: [{ match: /a, upstream: api }, { match: /o, upstream: other }]
`,
      2,
    );
    const force = (policy: string, state: string) => gateway.ask('/breakers', 'POST', { policy, state });
    expect(await force('api', 'open')).toEqual({ breakers: 2 });
    expect(await force('other', 'open')).toEqual({ breakers: 2 });
    expect(await force('gateway/api', 'auto')).toEqual({ breakers: 2 });
    await gateway.ask('/restart', 'POST');
    expect((await send(gateway.url, '/a')).status).toBe(200);
    expect((await send(gateway.url, '/o')).status).toBe(503);
  });

  test('that are killed are replaced, and only their own requests are affected', async () => {
    const upstream = await serve({ body: 'x' });
    const gateway = await run(yamlFor(upstream.url), 2);
    const clients = 8;
    const { more, stop, statuses } = load(gateway.url, clients);
    await more(100);
    const before = await gateway.workers();
    process.kill(before[0]!.pid, 'SIGKILL');
    await more(100);
    const after = await eventually(async () => {
      const workers = await gateway.workers();
      return workers.length === 2 && workers.every(({ pid }) => pid !== before[0]!.pid) && workers;
    });
    await more(100);
    await stop();
    expect(after.map(({ pid }) => pid)).toContain(before[1]!.pid);
    const failed = [...statuses]
      .filter(([status]) => status !== 200)
      .reduce((sum, [, each]) => sum + each, 0);
    // A client has one request in flight at most.
    expect(failed).toBeLessThanOrEqual(clients);
    expect(gateway.lost).toEqual([{ pid: before[0]!.pid, code: null, signal: 'SIGKILL' }]);
    expect(await gateway.ask('/state')).toMatchObject({ workersLost: 1 });
    expect(await gateway.ask('/metrics')).toContain('\nholdfast_gateway_lost_workers_total 1\n');
  });

  test('that die before they take a connection leave it to the others', async () => {
    const upstream = await serve({ body: 'x' });
    const gateway = await run(yamlFor(upstream.url), 2);
    const [stopped] = await gateway.workers();
    process.kill(stopped!.pid, 'SIGSTOP');
    // Workers get connections in turn: every second request stays unanswered while the worker is stopped.
    const answers = Array.from({ length: 8 }, () => send(gateway.url, '/'));
    let answered = 0;
    for (const each of answers) void each.then(() => answered++);
    await eventually(async () => answered === 4);
    process.kill(stopped!.pid, 'SIGKILL');
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(8).fill(200));
  });

  test('are replaced one by one without a failed request, and know what was forced and drained', async () => {
    const upstream = await serve({ body: 'x' });
    const spare = await serve({ body: 'spare' });
    const gateway = await run(
      `
upstreams:
  api: { instances: ["${upstream.url}", "${spare.url}"], loadBalancing: roundRobin }
routes: [{ name: everything, upstream: api }]
`,
      2,
    );
    await gateway.ask(`/upstreams/api/instances/${encodeURIComponent(spare.url)}/drain`, 'POST');
    const { more, stop, statuses } = load(gateway.url, 4);
    await more(50);
    const before = (await gateway.workers()).map(({ pid }) => pid);
    expect(await gateway.ask('/restart', 'POST')).toEqual({ restarted: true });
    await more(50);
    await stop();
    const after = await gateway.workers();
    expect(after.length).toBe(2);
    expect(after.some(({ pid }) => before.includes(pid))).toBe(false);
    expect([...statuses.keys()]).toEqual([200]);
    expect(spare.seen).toEqual([]);
  });

  test('reload all or nothing', async () => {
    const old = await serve({ body: 'old' });
    const next = await serve({ body: 'next' });
    const gateway = await run(yamlFor(old.url), 2);
    gateway.write(yamlFor(next.url, 'bulkheat: {}'));
    expect(await gateway.ask('/reload', 'POST')).toMatchObject({ ok: false });
    expect(await send(gateway.url)).toMatchObject({ body: 'old' });
    gateway.write(yamlFor(next.url));
    gateway.child.kill('SIGHUP');
    await eventually(async () => {
      const bodies = await Promise.all(Array.from({ length: 6 }, () => send(gateway.url)));
      return bodies.every(({ body }) => body === 'next');
    });
  });

  test('end without a failed request when the gateway is told to end', async () => {
    let isSlow = false;
    const answers: (() => void)[] = [];
    const upstream = await serve((_request, response) => {
      if (isSlow) answers.push(() => response.end('slow'));
      else response.end('x');
    });
    const gateway = await run(yamlFor(upstream.url), 2);
    await send(gateway.url);
    isSlow = true;
    const running = [send(gateway.url), send(gateway.url), send(gateway.url)];
    await eventually(() => answers.length === 3);
    gateway.child.kill('SIGTERM');
    const port = Number(new URL(gateway.url).port);
    await eventually(async () => {
      const client = await RawClient.connect(port).catch(() => undefined);
      client?.end();
      return client === undefined;
    });
    for (const answer of answers) answer();
    expect((await Promise.all(running)).map(({ body }) => body)).toEqual(['slow', 'slow', 'slow']);
    if (gateway.child.exitCode === null) await once(gateway.child, 'exit');
    expect(gateway.child.exitCode).toBe(0);
  });

  test('divide a rate limit among them', async () => {
    const upstream = await serve({ body: 'x' });
    const gateway = await run(
      yamlFor(upstream.url, 'rateLimiting: { requestsPerSecond: 0.002, burstSize: 20 }'),
      2,
    );
    const statuses = [];
    for (let each = 0; each < 40; each++) statuses.push((await send(gateway.url)).status);
    const passed = statuses.filter((status) => status === 200).length;
    expect(passed).toBeGreaterThanOrEqual(10);
    expect(passed).toBeLessThanOrEqual(20);
  });
});
