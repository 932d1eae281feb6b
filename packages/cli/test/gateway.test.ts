import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { envoyProgram } from '../../gateway/test/conformance/data-planes.ts';
import { ask, command } from './run-holdfast.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-cli-gateway-'));
const envoy = await envoyProgram();
let count = 0;

function fileOf(yaml: string): string {
  const file = path.join(folder, `gateway-${++count}.yaml`);
  writeFileSync(file, yaml);
  return file;
}

const orders = `
upstreams:
  orders:
    instances: [http://127.0.0.1:3000, http://127.0.0.1:3001]
    circuitBreaker: true
    healthCheck: true
    retry: { attempts: 3 }
routes:
  - match: /orders
    upstream: orders
    idempotency: { scope: client }
`;

/** A server whose responses have these statuses, the last one for ever. */
async function upstream(...statuses: number[]): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(statuses.length > 1 ? statuses.shift()! : statuses[0]!).end('hello');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Runs `holdfast gateway` as a process, until the test is over. */
async function running(yaml: string, ...flags: string[]) {
  const file = fileOf(`listen: 127.0.0.1:0\nadmin: { port: 0, token: a-token }\n${yaml}`);
  const [node, ...before] = command;
  const child = spawn(node, [...before, 'gateway', file, '--json', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let err = '';
  child.stderr.on('data', (text) => {
    err += text;
  });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  const lines = createInterface(child.stdout);
  const [first] = await Promise.race([
    once(lines, 'line'),
    ended.then(() => {
      throw new Error(err);
    }),
  ]);
  const { url, admin } = JSON.parse(first) as { url: string; admin: string };
  return {
    file,
    url,
    child,
    ended,
    lines,
    err: () => err,
    ask: (...args: string[]) =>
      ask(['gateway', ...args], { HOLDFAST_GATEWAY: admin, HOLDFAST_GATEWAY_TOKEN: 'a-token' }),
  };
}

const api = (url: string, more = '') => `
upstreams: { api: { instances: ["${url}"], circuitBreaker: true, retry: { backoff: { base: 1ms } } } }
routes: [{ match: /${more}, upstream: api }]
`;

describe('holdfast gateway check', () => {
  test('says what each route does', async () => {
    const { code, out } = await ask(['gateway', 'check', fileOf(orders)]);
    expect(code).toBe(0);
    expect(out).toContain('Route /orders/*');
    expect(out).toContain('At worst');
  });

  test('gives routes, findings and losses as JSON', async () => {
    const { code, json } = await ask(['gateway', 'check', fileOf(orders), '--json', '--data-plane', 'envoy']);
    expect(code).toBe(0);
    const [report] = json();
    expect(report).toMatchObject({ ok: true, dataPlane: 'envoy', routes: [{ name: '/orders/*' }] });
    expect(report.losses).toContainEqual(
      expect.objectContaining({ feature: 'idempotency', kind: 'missing', where: ['route /orders/*'] }),
    );
    expect(report.losses).toContainEqual(
      expect.objectContaining({ feature: 'retryBudget', kind: 'approximated' }),
    );
    expect(report.losses.map(({ feature }: { feature: string }) => feature)).not.toContain('shedding');
  });

  test('fails with --strict where Envoy misses something', async () => {
    const file = fileOf(orders);
    expect(await ask(['gateway', 'check', file, '--data-plane', 'envoy'])).toMatchObject({ code: 0 });
    const { code, out } = await ask(['gateway', 'check', file, '--data-plane', 'envoy', '--strict']);
    expect(code).toBe(1);
    expect(out).toContain('missing idempotency (route /orders/*)');
  });

  test('tells mistakes with their places, and a file that is not there', async () => {
    const file = fileOf('routes:\n  - match: /orders\n    upsteam: orders\n');
    const { code, out } = await ask(['gateway', 'check', file]);
    expect(code).toBe(1);
    expect(out).toContain(`${file}:3:5: `);
    for (const words of [['check'], [], ['export', '--out', folder]]) {
      const missing = await ask(['gateway', ...words.slice(0, 1), '/no/such.yaml', ...words.slice(1)]);
      expect(missing).toMatchObject({
        code: 3,
        err: expect.stringContaining('there is no file /no/such.yaml.'),
      });
    }
    expect(await ask(['gateway', file])).toMatchObject({ code: 2 });
    expect(await ask(['gateway', 'check'])).toMatchObject({ code: 2 });
    expect(await ask(['gateway', 'check', file, '--data-plane', 'nginx'])).toMatchObject({ code: 2 });
  });
});

describe('holdfast gateway export', () => {
  test('writes the files of Envoy, and says what is lost', async () => {
    const out = path.join(folder, 'exported');
    const args = ['gateway', 'export', fileOf(orders), '--to', 'envoy', '--out', out];
    const answer = await ask(args);
    expect(answer).toMatchObject({ code: 0 });
    expect(answer.out).toContain('missing idempotency');
    const { resources } = JSON.parse(readFileSync(path.join(out, 'clusters.json'), 'utf8'));
    expect(resources.map(({ name }: { name: string }) => name)).toEqual(['orders']);
    expect(await ask(['gateway', 'export', fileOf(orders)])).toMatchObject({ code: 2 });
    expect(await ask([...args, '--to', 'nginx'])).toMatchObject({ code: 2 });
  });
});

describe('holdfast gateway', () => {
  test('runs a file, and is asked and steered by the others', async () => {
    const server = await upstream(503, 200);
    const gateway = await running(api(server));
    const response = await fetch(`${gateway.url}/it`);
    expect(response.status).toBe(200);

    const ls = await gateway.ask('ls');
    expect(ls).toMatchObject({ code: 0 });
    expect(ls.out).toContain(server);
    expect((await gateway.ask('ls', '--json')).json()).toMatchObject([
      { upstream: 'api', name: server, isHealthy: true, breaker: 'closed' },
    ]);

    const id = response.headers.get('x-request-id')!;
    const story = await gateway.ask('request', id);
    expect(story).toMatchObject({ code: 0 });
    expect(story.out).toContain('attempt 2 succeeded');
    expect(await gateway.ask('request', 'nobody')).toMatchObject({ code: 1 });

    expect(await gateway.ask('force', 'gateway/api', 'open', '--why', 'a test')).toMatchObject({ code: 0 });
    expect((await fetch(`${gateway.url}/it`)).status).toBe(503);
    expect((await gateway.ask('ls')).code).toBe(1);
    expect(await gateway.ask('force', 'api', 'auto')).toMatchObject({ code: 0 });
    expect((await fetch(`${gateway.url}/it`)).status).toBe(200);
    expect(await gateway.ask('force', 'apii', 'open')).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no upstream or policy apii; did you mean "api"?'),
    });
    expect(await gateway.ask('force', 'gateway/api', 'ajar')).toMatchObject({ code: 2 });

    expect(await gateway.ask('drain', 'api', server)).toMatchObject({
      code: 0,
      out: expect.stringContaining('It was the last one: api answers with 503 now.'),
    });
    expect((await fetch(`${gateway.url}/it`)).status).toBe(503);
    expect((await gateway.ask('ls', '--json')).json()).toMatchObject([{ isDraining: true }]);
    expect(await gateway.ask('drain', 'api', server, '--resume')).toMatchObject({ code: 0 });
    expect(await gateway.ask('drain', 'api', 'http://other')).toMatchObject({ code: 1 });

    const before = readFileSync(gateway.file, 'utf8');
    writeFileSync(gateway.file, `${before}\nnonsense: 1\n`);
    const refused = await gateway.ask('reload');
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toContain('nonsense');
    writeFileSync(gateway.file, before);
    expect(await gateway.ask('reload')).toMatchObject({ code: 0 });
  });

  test('logs with the time what happens: a start, a save with a signal, and a worker that is lost', async () => {
    const yaml = api(await upstream(200));
    const gateway = await running(yaml, '--workers', '2');
    const events: { event: string; time: string }[] = [];
    gateway.lines.on('line', (line) => events.push(JSON.parse(line)));
    const next = async (count: number) => {
      while (events.length < count) await once(gateway.lines, 'line');
      return events[count - 1];
    };
    writeFileSync(gateway.file, readFileSync(gateway.file, 'utf8').replace('base: 1ms', 'base: 2ms'));
    expect(await next(1)).toMatchObject({ event: 'reload', ok: true, isChanged: true });
    gateway.child.kill('SIGHUP');
    expect(await next(2)).toMatchObject({ event: 'reload', ok: true, isChanged: false });
    const [row] = (await gateway.ask('ls', '--json')).json();
    process.kill(row.pid, 'SIGKILL');
    expect(await next(3)).toMatchObject({
      event: 'worker-lost',
      pid: row.pid,
      code: null,
      signal: 'SIGKILL',
    });
    for (const { time } of events) expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('logs sentences for people, and after the start each has its time', async () => {
    const file = fileOf(`listen: 127.0.0.1:0\nadmin: { port: 0 }\n${api(await upstream(200))}`);
    const [node, ...before] = command;
    const child = spawn(node, [...before, 'gateway', file, '--workers', '2'], { stdio: 'pipe' });
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
    const says = async (pattern: RegExp) => {
      while (!pattern.test(said))
        await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data')]);
      return pattern.exec(said)!;
    };
    const time = '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z';
    await says(/^The gateway listens on http:\/\/127.0.0.1:\d+\.$/m);
    const [, admin, token] = await says(/^The admin API is on (\S+), with the token (\S+)\.$/m);
    child.kill('SIGHUP');
    await says(new RegExp(`^${time} Nothing to reload: the files say the same as before\\.$`, 'm'));
    const rows = (await ask(['gateway', 'ls', '--json', '--admin', admin!, '--token', token!])).json();
    process.kill(rows[0].pid, 'SIGKILL');
    await says(
      new RegExp(
        `^${time} A worker \\(process ${rows[0].pid}\\) ended with SIGKILL; another one replaces it\\.$`,
        'm',
      ),
    );
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test('refuses a file that serves nothing, with the words of check', async () => {
    const file = fileOf('policies: { pay: { attempts: 3 } }');
    expect(await ask(['gateway', 'check', file])).toMatchObject({
      code: 1,
      out: expect.stringContaining('error no-routes (gateway): there is no route.'),
    });
    expect(await ask(['gateway', file])).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        `${file}:1:1: no-routes (gateway): there is no route. Add one under routes.`,
      ),
    });
  });

  test('ends with 0 when it is told to', async () => {
    const gateway = await running(api(await upstream(200)));
    gateway.child.kill('SIGTERM');
    expect(await gateway.ended).toEqual([0, null]);
  });

  test('that cannot be asked is an error of its own', async () => {
    const { child: _, ...gateway } = await running(api(await upstream(200)));
    expect(await gateway.ask('ls', '--token', 'wrong')).toMatchObject({ code: 3 });
    const { code, err } = await gateway.ask('ls', '--admin', 'http://127.0.0.1:1');
    expect(code).toBe(3);
    expect(err).toContain('http://127.0.0.1:1');
  });

  test.skipIf('missing' in envoy)('runs the same file on Envoy, and says what is lost', async () => {
    const server = await upstream(200);
    const program = 'path' in envoy ? envoy.path : '';
    const gateway = await running(api(server), '--data-plane', 'envoy', '--envoy', program);
    expect((await fetch(`${gateway.url}/it`)).status).toBe(200);
    expect(gateway.err()).toContain('missing stories (gateway)');
    expect((await gateway.ask('ls', '--json')).json()).toMatchObject([{ upstream: 'api', name: server }]);
    const { code, err } = await gateway.ask('force', 'api', 'open');
    expect(code).toBe(3);
    expect(err).toContain('Envoy has no breaker that could be forced');
  });
});
