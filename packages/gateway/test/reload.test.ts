import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { closing, type Server, serve } from '../../http/test/servers.ts';
import { type ReloadResult, startGateway } from '../src/index.ts';
import { ask, eventually, send } from './gateways.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-gateway-'));
let count = 0;

/** A gateway from a file that the test can change. */
async function fromFile(yaml: string, watch = false, onReload?: (result: ReloadResult) => void) {
  const file = path.join(folder, `gateway-${++count}.yaml`);
  const whole = (rest: string) => `
listen: 127.0.0.1:0
admin: { port: 0, token: a-token }
shutdown: { drain: 5s }
${rest}`;
  writeFileSync(file, whole(yaml));
  const gateway = closing(await startGateway(file, { watch, onReload, prefix: `reload-${count}/` }));
  return {
    ...gateway,
    gateway,
    file,
    url: `http://127.0.0.1:${gateway.address.port}`,
    write: (rest: string) => writeFileSync(file, whole(rest)),
  };
}

const yamlFor = (upstream: Server, more = '') => `
upstreams:
  api:
    instances: ["${upstream.url}"]
    ${more}
routes: [{ upstream: api }]
`;

describe('a reload', () => {
  test('brings new routes and upstreams', async () => {
    const old = await serve({ body: 'old' });
    const next = await serve({ body: 'next' });
    const { url, write, reload } = await fromFile(yamlFor(old));
    expect(await send(url)).toMatchObject({ body: 'old' });
    write(yamlFor(next));
    expect(await reload()).toMatchObject({ ok: true });
    expect(await send(url)).toMatchObject({ body: 'next' });
  });

  test('reads the file of policies, too, and shows the place of its mistakes', async () => {
    const upstream = await serve(503, 503, 200);
    const shared = path.join(folder, `shared-${count + 1}.yaml`);
    const policies = (rest: string) =>
      `policies:\n  pay: { patience: 5s, backoff: { base: 1ms }, ${rest} }\n`;
    writeFileSync(shared, policies('attempts: 1'));
    const withPolicy = `policyFile: ${path.basename(shared)}\n${yamlFor(upstream, 'retry: pay')}`;
    const results: ReloadResult[] = [];
    const { url, gateway, file } = await fromFile(withPolicy, true, (result) => results.push(result));
    expect(await send(url)).toMatchObject({ status: 503 });

    writeFileSync(shared, policies('attempst: 3'));
    expect(await eventually(() => results[0])).toMatchObject({
      ok: false,
      problems: [
        { file: shared, line: 2, column: 48, message: expect.stringContaining('did you mean attempts?') },
      ],
    });
    expect(await send(url)).toMatchObject({ status: 503 });

    writeFileSync(shared, policies('attempts: 3'));
    expect(await eventually(() => results[1])).toMatchObject({ ok: true, files: [file, shared] });
    expect(gateway.config.upstreams[0]!.attempts.policy.attempts).toBe(3);
    expect(await ask(gateway, '/reload', { method: 'POST' })).toMatchObject({
      body: { ok: true, files: [file, shared], isChanged: false },
    });
  });

  test('watches a new file that was refused, and a file with an absolute name', async () => {
    const upstream = await serve({ body: 'x' });
    const shared = path.join(folder, `absolute-${count + 1}.yaml`);
    writeFileSync(shared, 'policies: { pay: { attempst: 3 } }');
    const results: ReloadResult[] = [];
    const { write, file } = await fromFile(yamlFor(upstream), true, (result) => results.push(result));
    write(`policyFile: ${shared}\n${yamlFor(upstream, 'retry: pay')}`);
    expect(await eventually(() => results[0])).toMatchObject({ ok: false, problems: [{ file: shared }] });
    writeFileSync(shared, 'policies: { pay: { attempts: 3 } }');
    expect(await eventually(() => results[1])).toMatchObject({ ok: true, files: [file, shared] });
  });

  test('and a start are refused with a finding that is an error', async () => {
    const upstream = await serve({ body: 'x' });
    const { write, reload, url, file } = await fromFile(yamlFor(upstream));
    write('policies: { pay: { attempts: 3 } }');
    const refused = `${file}:1:1: no-routes (gateway): there is no route. Add one under routes.`;
    expect(await reload()).toMatchObject({ ok: false, error: refused, problems: [{ file, line: 1 }] });
    expect(await send(url)).toMatchObject({ body: 'x' });
    await expect(startGateway(file)).rejects.toThrow(refused);
    write(yamlFor(upstream, 'idempotency: { scope: client }'));
    await expect(startGateway(file, { workers: 2 })).rejects.toThrow('keys-not-shared (route /*)');
  });

  test('says where a setting stands that needs a restart', async () => {
    const upstream = await serve({ body: 'x' });
    const { file, reload, write } = await fromFile(yamlFor(upstream));
    write(`workers: 3\n${yamlFor(upstream)}`);
    writeFileSync(file, readFileSync(file, 'utf8').replace('127.0.0.1:0', '127.0.0.1:8081'));
    expect(await reload()).toMatchObject({
      ok: false,
      problems: [
        {
          file,
          line: 2,
          column: 9,
          message: 'listen: the change from 127.0.0.1:0 to 127.0.0.1:8081 takes effect only with a restart',
        },
        {
          file,
          line: 5,
          column: 10,
          message: 'workers: the change from 1 to 3 takes effect only with a restart',
        },
      ],
    });
    write(yamlFor(upstream));
    writeFileSync(file, readFileSync(file, 'utf8').replace('a-token', 'another'));
    const { error } = await reload();
    expect(error).toBe(`${file}:3:8: admin: the change takes effect only with a restart`);
  });

  test('of a file with a mistake changes nothing, and shows the place; a later one works', async () => {
    const upstream = await serve({ body: 'still' });
    const { url, write, gateway } = await fromFile(yamlFor(upstream));
    write(yamlFor(upstream, 'circuitBraeker: {}'));
    expect(await ask(gateway, '/reload', { method: 'POST' })).toMatchObject({
      status: 422,
      body: {
        ok: false,
        problems: [{ line: 9, column: 5, message: expect.stringContaining('did you mean circuitBreaker?') }],
      },
    });
    expect(await send(url)).toMatchObject({ body: 'still' });
    expect((await ask(gateway, '/state')).body).toMatchObject({ lastReload: { ok: false } });
    write(yamlFor(upstream, 'circuitBreaker: {}'));
    expect(await ask(gateway, '/reload', { method: 'POST' })).toMatchObject({
      status: 200,
      body: { ok: true },
    });
  });

  test('does not change what belongs to the process', async () => {
    const upstream = await serve(200);
    const { reload, config } = await fromFile(yamlFor(upstream));
    const changed = { ...config, listen: { ...config.listen, port: 1 } };
    expect(await reload(changed)).toMatchObject({ ok: false, error: expect.stringContaining('restart') });
  });

  test('keeps breakers, budgets, limits and connections', async () => {
    const upstream = await serve(500, 500, 200);
    const breaker = 'circuitBreaker: { failureThreshold: 2, timeout: 1h }';
    const limited = 'rateLimiting: { requestsPerSecond: 0.001, burstSize: 4 }';
    const { url, write, reload } = await fromFile(yamlFor(upstream, `${breaker}\n    ${limited}`));
    for (let each = 0; each < 2; each++) await send(url);
    expect(await send(url)).toMatchObject({ status: 503 });
    write(yamlFor(upstream, `${breaker}\n    ${limited}\n    timeouts: { request: 7s }`));
    expect(await reload()).toMatchObject({ ok: true });
    expect(await send(url)).toMatchObject({ status: 503 });
    expect(await send(url)).toMatchObject({ status: 429 });
    expect(upstream.seen.length).toBe(2);
    expect(upstream.connections()).toBe(1);
  });

  test('leaves requests in flight alone', async () => {
    let answer: (() => void) | undefined;
    const old = await serve((_request, response) => {
      answer = () => response.end('old');
    });
    const next = await serve({ body: 'next' });
    const { url, write, reload } = await fromFile(yamlFor(old));
    const running = send(url);
    await eventually(() => answer);
    write(yamlFor(next));
    await reload();
    expect(await send(url)).toMatchObject({ body: 'next' });
    answer!();
    expect(await running).toMatchObject({ status: 200, body: 'old' });
  });

  test('happens by itself when the file changes', async () => {
    const old = await serve({ body: 'old' });
    const next = await serve({ body: 'next' });
    const { url, write } = await fromFile(yamlFor(old), true);
    write(`# changed\n${yamlFor(next)}`);
    await eventually(async () => (await send(url)).body === 'next');
  });

  test('again and again under load fails no request', async () => {
    const one = await serve({ body: 'x' });
    const two = await serve({ body: 'x' });
    const { url, write, reload } = await fromFile(yamlFor(one, 'retry: { attempts: 2 }'));
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    let isOver = false;
    const statuses = new Map<number | string, number>();
    const client = async () => {
      while (!isOver) {
        const status = await new Promise<number | string>((resolve) => {
          const request = httpRequest(url, { agent }, (response) => {
            response.resume().on('end', () => resolve(response.statusCode!));
          });
          request.on('error', (error) => resolve(error.message));
          request.end();
        });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: 8 }, client);
    for (let turn = 0; turn < 20; turn++) {
      write(yamlFor(turn % 2 ? one : two, `retry: { attempts: ${2 + (turn % 2)} }\n    bulkhead: {}`));
      expect(await reload()).toMatchObject({ ok: true });
      const sum = () => [...statuses.values()].reduce((all, each) => all + each, 0);
      const before = sum();
      await eventually(() => sum() > before + 20);
    }
    isOver = true;
    await Promise.all(clients);
    agent.destroy();
    expect([...statuses.keys()]).toEqual([200]);
  });
});

describe('a drain', () => {
  test('ends what is in flight, refuses new connections, and says so on the way', async () => {
    let answer: (() => void) | undefined;
    const upstream = await serve((_request, response) => {
      answer = () => response.end('in time');
    });
    const { url, gateway } = await fromFile(yamlFor(upstream));
    const running = send(url);
    await eventually(() => answer);
    const drained = gateway.drain();
    await eventually(async () => (await ask(gateway, '/readyz', { token: '' })).status === 503);
    answer!();
    expect(await running).toMatchObject({ status: 200, body: 'in time', headers: { connection: 'close' } });
    expect(await drained).toBe(0);
    await expect(send(url)).rejects.toThrow(/ECONNREFUSED/);
  });
});
