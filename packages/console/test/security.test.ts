import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { memoryEngine } from '@holdfast/contracts/memory';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../src/api/routes.ts';
import { openConsole } from '../src/index.ts';
import { securityHeaders } from '../src/server/request-checks.ts';
import { openTestConsole, operateToken, parkedEvent, viewToken } from './open-test-console.ts';

const named = Object.entries(routes).map(([name, { role }]) => ({ name, role, path: pathOf(name) }));
const acts = named.filter(({ role }) => role === 'operate');
const reads = named.filter(
  ({ name, role }) => name.startsWith('GET ') && role !== 'none' && name !== 'GET /live',
);

/** The largest body that is read. */
const bodyBytesMax = 1.25 * 1024 * 1024;

/** The path of a route with its parts filled in. */
function pathOf(name: string): string {
  return `/api/v1${name.split(' ')[1]!.replace(/:\w+/g, 'x')}`;
}

/** Sends a request with any headers and any path, as `fetch` would not. */
function send(
  port: number,
  {
    method = 'GET',
    path = '/',
    headers = {},
    body = '',
  }: {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string | Buffer;
  },
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const json = { 'content-type': 'application/json' };
const operate = { authorization: `Bearer ${operateToken}` };

describe('who may', () => {
  test('every route but signing in asks for a session first', async () => {
    const { port } = await openTestConsole();
    for (const { name, path } of named.filter(({ role }) => role !== 'none')) {
      const [method = ''] = name.split(' ');
      const body = ['POST', 'PUT', 'PATCH'].includes(method) ? '{}' : '';
      const { status, text } = await send(port, { method, path, headers: body === '' ? {} : json, body });
      expect(status, name).toBe(401);
      expect(JSON.parse(text), name).toMatchObject({ type: '/problems/sign-in', status: 401 });
    }
  });

  test('every act is refused to those who may only look, and changes nothing', async () => {
    const { ask, engine } = await openTestConsole();
    await engine.triage.put([parkedEvent('x')]);
    expect(acts.length).toBeGreaterThan(20);
    for (const { name } of acts) {
      const { status, json: problem } = await ask(name.replace(/:\w+/g, 'x') as never, '{"why":"a test"}', {
        authorization: `Bearer ${viewToken}`,
      });
      expect(status, name).toBe(403);
      expect(problem.type, name).toBe('/problems/role');
    }
    await expect
      .poll(async () => (await engine.audit.list({}, { limit: 200 })).items.map(({ what }) => what))
      .toEqual(acts.map(() => 'refused'));
    expect((await engine.triage.get('x'))?.version).toBe(1);
    expect((await engine.controls.active()).controls).toEqual([]);
    expect((await engine.triage.operations.list({}, { limit: 5 })).items).toEqual([]);
  });

  test('every route that does not only read needs the right to operate', () => {
    const unsafe = named.filter(({ name, role }) => !name.startsWith('GET ') && role !== 'operate');
    expect(unsafe.map(({ name }) => name)).toEqual(['POST /session', 'DELETE /session']);
    expect(named.filter(({ name, role }) => name.startsWith('GET ') && role === 'operate')).toEqual([]);
  });

  test('no question changes anything', async () => {
    const { ask, engine } = await openTestConsole();
    await engine.triage.put([parkedEvent('x')]);
    const before = await engine.triage.get('x');
    for (const { name } of reads) await ask(name.replace(/:\w+/g, 'x') as never);
    expect((await engine.audit.list({}, { limit: 10 })).items).toEqual([]);
    expect(await engine.triage.get('x')).toEqual(before);
  });

  test('an act by GET is no act', async () => {
    const { ask, engine } = await openTestConsole();
    for (const { name } of acts) {
      const { status } = await ask(`GET ${name.split(' ')[1]!.replace(/:\w+/g, 'x')}?why=a+test`);
      expect(status, name).not.toBe(202);
    }
    expect((await engine.audit.list({}, { limit: 10 })).items).toEqual([]);
  });
});

describe('signing in', () => {
  test('gives a cookie that scripts and other pages do not get, and that ends with the session', async () => {
    const { url } = await openTestConsole();
    const response = await fetch(`${url}api/v1/session`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ token: operateToken, who: 'mara' }),
    });
    const cookie = response.headers.get('set-cookie')!;
    expect(cookie).toMatch(/^holdfast-console=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
    const headers = { cookie: cookie.split(';')[0]! };
    expect((await fetch(`${url}api/v1/session`, { headers })).status).toBe(200);
    await fetch(`${url}api/v1/session`, { method: 'DELETE', headers });
    expect((await fetch(`${url}api/v1/session`, { headers })).status).toBe(401);
  });

  test('over TLS the cookie is of this host alone', async () => {
    const { url } = await openTestConsole({ secure: true });
    const response = await fetch(`${url}api/v1/session`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ token: viewToken, who: 'mara' }),
    });
    expect(response.headers.get('set-cookie')).toMatch(/^__Host-holdfast-console=.+; Path=\/; .+; Secure$/);
  });

  test('a wrong token is refused, and after five of them every token for a minute', async () => {
    const { ask } = await openTestConsole();
    const wrong = { authorization: `Bearer ${'w'.repeat(32)}` };
    for (let tries = 0; tries < 5; tries++)
      expect((await ask('GET /overview', undefined, wrong)).status).toBe(401);
    const { status, headers, json: problem } = await ask('GET /overview');
    expect(status).toBe(429);
    expect(problem.type).toBe('/problems/slow-down');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('tokens are in no answer, no error and no log', async () => {
    const { ask, engine, errors } = await openTestConsole();
    await ask('POST /session', { token: operateToken, who: 'mara' });
    await ask('POST /session', { token: `${viewToken}!`, who: 'mara' });
    let all = '';
    for (const { name } of reads) {
      const { text, headers } = await ask(name.replace(/:\w+/g, 'x') as never);
      all += text + JSON.stringify([...headers]);
    }
    all += JSON.stringify([(await engine.audit.list({}, { limit: 50 })).items, errors.map(String)]);
    for (const token of [operateToken, viewToken]) expect(all).not.toContain(token);
  });

  test('short tokens are refused without being shown', async () => {
    const opened = openConsole({ engine: memoryEngine(), token: 'too-short' });
    await expect(opened).rejects.toThrow('at least 32 characters');
    await expect(opened).rejects.not.toThrow('too-short');
  });

  test('a port that is used is told in one sentence', async () => {
    const [first, second] = [
      await openConsole({ engine: memoryEngine() }),
      await openConsole({ engine: memoryEngine() }),
    ];
    const { port } = await first.listen({ port: 0 });
    await expect(second.listen({ port })).rejects.toThrow(
      `port: expected a port that no other program uses on 127.0.0.1, or 0 for any that is free, got ${port}`,
    );
    await first.close();
    await second.close();
  });

  test('without a token of your own it listens on loopback only', async () => {
    const opened = await openConsole({ engine: memoryEngine() });
    await expect(opened.listen({ port: 0, host: '0.0.0.0' })).rejects.toThrow('loopback');
    await opened.close();
  });
});

describe('requests from elsewhere', () => {
  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('with %j do not act', async (from) => {
    const { port, engine } = await openTestConsole();
    const control = { control: { kind: 'pause', topic: 'orders' }, why: 'a forged request' };
    const { status, text } = await send(port, {
      method: 'PUT',
      path: '/api/v1/controls',
      headers: { ...json, ...operate, ...from },
      body: JSON.stringify(control),
    });
    expect(status).toBe(403);
    expect(JSON.parse(text).type).toBe('/problems/origin');
    expect((await engine.controls.active()).controls).toEqual([]);
  });

  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:7070'])(
    'to the host %s are not served',
    async (host) => {
      const { port } = await openTestConsole();
      for (const path of ['/', '/api/v1/overview', '/icon.svg']) {
        const { status, text } = await send(port, { path, headers: { host, ...operate } });
        expect(status).toBe(421);
        expect(JSON.parse(text).type).toBe('/problems/host');
      }
    },
  );

  test.each(['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x', ''])(
    'that a form can send (%s) do not act',
    async (type) => {
      const { ask, engine } = await openTestConsole();
      const { status } = await ask('POST /discards', '{"filter":{"topic":["orders"]},"why":"x"}', {
        'content-type': type,
      });
      expect(status).toBe(415);
      expect((await engine.triage.operations.list({}, { limit: 5 })).items).toEqual([]);
    },
  );
});

describe('sizes, times and paths', () => {
  test('a large body is not read', async () => {
    const { port } = await openTestConsole();
    const { status, text } = await send(port, {
      method: 'POST',
      path: '/api/v1/discards',
      headers: { ...json, ...operate, 'content-length': String(bodyBytesMax + 1) },
      body: Buffer.alloc(bodyBytesMax + 1, 'x'),
    });
    expect(status).toBe(413);
    expect(JSON.parse(text).type).toBe('/problems/too-large');
  });

  test('a large body that hides its size is not read to its end', async () => {
    const { port } = await openTestConsole();
    const { status } = await send(port, {
      method: 'POST',
      path: '/api/v1/discards',
      headers: { ...json, ...operate, 'transfer-encoding': 'chunked' },
      body: Buffer.alloc(bodyBytesMax * 2, 'x'),
    });
    expect(status).toBe(413);
  });

  test.each([
    '/../../package.json',
    '/..%2f..%2f..%2fpackage.json',
    '/%2e%2e/%2e%2e/package.json',
    '/assets/..%5c..%5cpackage.json',
    '//etc/passwd',
    '/index.html%00.js',
    '/api/v1/parked/..%2f..%2f..%2fetc%2fpasswd/payload',
  ])('%s leads to no file', async (path) => {
    const { port } = await openTestConsole();
    const { status, text } = await send(port, { path, headers: operate });
    expect([200, 400, 404]).toContain(status);
    expect(text).not.toContain('"devDependencies"');
    expect(text).not.toContain('root:');
    // What is not a file is the page, which has no data.
    if (status === 200) expect(text).toContain('<div id="app">');
  });

  describe('a body that never ends', () => {
    const closes: (() => void)[] = [];
    let answered: Promise<string>;
    beforeAll(async () => {
      const opened = await openConsole({ engine: memoryEngine(), token: operateToken });
      const { port } = await opened.listen({ port: 0 });
      answered = new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => {
          const head = `POST /api/v1/discards HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${operateToken}`;
          socket.write(`${head}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`);
        });
        let text = '';
        socket.on('data', (part) => {
          text += part;
        });
        socket.on('close', () => resolve(text));
        socket.on('error', reject);
        closes.push(() => socket.destroy());
      });
      closes.push(() => void opened.close());
    });
    afterAll(() => {
      for (const close of closes) close();
    });
    test('is given up by the server', { timeout: 60_000 }, async () => {
      expect(await answered).toMatch(/^HTTP\/1.1 408 /);
    });
  });
});

describe('answers', () => {
  test('have the security headers, whatever they are', async () => {
    const { port } = await openTestConsole();
    const asked = [
      { path: '/' },
      { path: '/parked/anything' },
      { path: '/icon.svg' },
      { path: '/nothing.js' },
      { path: '/api/v1/openapi.json' },
      { path: '/api/v1/overview', headers: operate },
      { path: '/api/v1/overview' },
      { path: '/api/v1/nothing', headers: operate },
      { path: '/api/v1/overview', method: 'PUT', headers: operate },
      { path: '/', headers: { host: 'evil.example' } },
      { path: '/', method: 'POST' },
    ];
    for (const each of asked) {
      const { headers } = await send(port, each);
      expect(headers, JSON.stringify(each)).toMatchObject(securityHeaders);
      if (each.path.startsWith('/api/')) expect(headers['cache-control']).toBe('no-store');
    }
    const csp = securityHeaders['content-security-policy'];
    expect(csp).toContain("default-src 'none'");
    expect(csp).not.toContain('unsafe');
  });

  test('that are errors are problem details in one sentence', async () => {
    const { ask } = await openTestConsole();
    const asked: [string, unknown, number][] = [
      ['GET /parked?limit=0', undefined, 400],
      ['GET /parked/nothing', undefined, 404],
      ['GET /nothing', undefined, 404],
      ['PUT /overview', {}, 405],
      ['POST /discards', '{', 400],
      ['POST /discards', { filter: {}, why: 'x' }, 422],
      ['PUT /controls', { control: { kind: 'pause', topic: 'orders' } }, 422],
      ['GET /gateway', undefined, 501],
    ];
    for (const [route, body, status] of asked) {
      const { headers, json: problem } = await ask(route as never, body);
      expect(problem, route).toMatchObject({
        status,
        type: expect.stringMatching(/^\/problems\/[a-z-]+$/),
        title: expect.stringMatching(/\.$/),
        detail: expect.stringMatching(/^[A-Z"“].*[.!?]$/),
      });
      expect(headers.get('content-type')).toBe('application/problem+json');
      expect(JSON.stringify(problem)).not.toMatch(/node_modules|\.ts:|at \w+ \(/);
    }
  });

  test('of errors that nobody expects tell nothing of the inside', async () => {
    const { ask, engine, errors } = await openTestConsole();
    engine.triage.get = () => Promise.reject(new Error('secret path /var/lib/x'));
    const { status, text } = await ask('GET /parked/e0');
    expect(status).toBe(500);
    expect(text).not.toContain('secret path');
    expect(errors.map(String)).toEqual(['Error: secret path /var/lib/x']);
  });
});
