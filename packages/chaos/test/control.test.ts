import { once } from 'node:events';
import http from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chaosControl } from '../src/control.ts';
import { chaosProxy } from '../src/proxy.ts';
import { connect, readAll, tcpServer } from './loopback.ts';

async function setup(token?: string) {
  const { port } = await tcpServer((socket) => socket.pipe(socket));
  const proxy = await chaosProxy({ upstream: port });
  const control = await chaosControl(proxy, { token });
  onTestFinished(async () => {
    await control.close();
    await proxy.close();
  });
  const ask = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://${control.address}${path}`, { method, body: body ?? null, headers });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  return { proxy, control, ask };
}

async function said(port: number, text: string) {
  const client = connect(port);
  client.write(text);
  return client;
}

test('tells its state', async () => {
  const { proxy, ask } = await setup();
  const { status, headers, body } = await ask('GET', '/state?x=1');
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(body).toEqual(JSON.parse(JSON.stringify(proxy.state())));
});

test('takes a document, heals, cuts and resets its counters', async () => {
  const { proxy, ask } = await setup();
  const spec = { seed: 1, faults: [{ kind: 'hang' }] };
  expect(await ask('PUT', '/spec', JSON.stringify(spec))).toMatchObject({ status: 200, body: { spec } });
  const hung = await said(proxy.port, 'x');
  await once(hung, 'connect');
  expect((await ask('POST', '/heal')).body.spec).toEqual({ faults: [] });
  expect((await readAll(hung)).code).toBe('ECONNRESET');

  const client = await said(proxy.port, 'x');
  await once(client, 'data');
  expect((await ask('POST', '/cut')).status).toBe(200);
  expect((await readAll(client)).code).toBe('ECONNRESET');

  expect((await ask('POST', '/reset')).body).toMatchObject({ connections: { accepted: 0 }, exchanges: 0 });
});

describe('refuses with one sentence', () => {
  test.each([
    ['PUT', '/spec', '{', 400, /^The document is not JSON: .+\.$/],
    ['PUT', '/spec', 'null', 400, /^spec: expected an object with faults, got null\.$/],
    ['PUT', '/spec', '{"faults":[{"kind":"odd"}]}', 400, /^faults\[0\]\.kind: expected .+, got "odd"\.$/],
    ['PUT', '/spec', ' '.repeat(300_000), 413, /^The document is larger than 262144 bytes\.$/],
    ['GET', '/nowhere', undefined, 404, /^There is no \/nowhere; there are \/state, /],
    ['GET', '/toString', undefined, 404, /^There is no \/toString/],
    ['POST', '/state', undefined, 405, /^\/state takes GET, not POST\.$/],
  ])('%s %s', async (method, path, body, status, sentence) => {
    const { proxy, ask } = await setup();
    const before = proxy.state();
    const answer = await ask(method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toMatch(sentence);
    expect(proxy.state()).toEqual(before);
  });

  test('who has no token, or a wrong one', async () => {
    const { ask } = await setup('secret');
    expect((await ask('GET', '/state')).status).toBe(401);
    expect((await ask('GET', '/state', undefined, { authorization: 'Bearer secrets' })).status).toBe(401);
    expect((await ask('GET', '/state', undefined, { authorization: 'Basic secret' })).status).toBe(401);
    expect((await ask('GET', '/state', undefined, { authorization: 'Bearer secret' })).status).toBe(200);
  });

  test('web pages, and names that someone pointed here', async () => {
    const { ask, control } = await setup();
    expect((await ask('POST', '/cut', undefined, { origin: 'http://evil.example' })).status).toBe(403);
    const [host, port] = control.address.split(':');
    const status = (name: string) =>
      new Promise((resolve) => {
        http.get({ host, port, path: '/state', headers: { host: name } }, (response) => {
          resolve(response.resume().statusCode);
        });
      });
    expect(await status('evil.example')).toBe(403);
    expect(await status(`localhost:${port}`)).toBe(200);
    expect(await status(`[::1]:${port}`)).toBe(200);
  });
});

test.each([
  [{ listen: '0.0.0.0:0' }, 'control: expected an address of loopback, or a token, got "0.0.0.0:0"'],
  [{ tokn: 'secret' } as never, 'tokn: not an option; did you mean token?'],
  [{ token: '' }, 'token: expected a text that is not empty, got ""'],
  [{ listen: 'x' }, 'control: expected an address such as "127.0.0.1:5432", got "x"'],
])('does not start with %j', async (options, sentence) => {
  const { proxy } = await setup();
  await expect(chaosControl(proxy, options)).rejects.toThrow(sentence);
});
