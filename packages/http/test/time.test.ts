import { setTimeout as pause } from 'node:timers/promises';
import { ExpiredError, storyOf } from 'holdfast';
import { Agent, fetch as undiciFetch } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { createFetch, type FetchOptions } from '../src/index.ts';
import { closing, serve, serveRaw } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false } as const;
const setup = (options: FetchOptions = {}) => closing(createFetch({ policy: quick, ...options }));
const hang = () => {};

/** Both kinds of sender must keep the same promises. */
const senders: [string, FetchOptions][] = [
  ['on our connections', {}],
  ['with undici.fetch', { fetch: undiciFetch as unknown as typeof fetch }],
  ['with a fetch of the caller', { fetch: (input, init) => fetch(input, init) }],
];

describe.each(senders)('the attempt timeout, %s', (_name, options) => {
  const policy = { ...quick, attemptTimeout: '60ms', attempts: 2 } as const;

  test('covers the wait for headers, and the next attempt is made', async () => {
    const gone = vi.fn();
    const server = await serve((_request, response) => response.on('close', gone), 200);
    await expect(setup({ ...options, policy })(server.url)).resolves.toMatchObject({ status: 200 });
    // Whoever works for nobody is told.
    await vi.waitFor(() => expect(gone).toHaveBeenCalled());
  });

  test('covers redirects', async () => {
    const server = await serve({ status: 302, headers: { location: '/slow' } }, hang, 200);
    const response = await setup({ ...options, policy })(server.url);
    expect(response.status).toBe(200);
    expect(server.seen.map(({ url }) => url)).toEqual(['/', '/slow', '/']);
  });

  test('covers an upload that does not come to an end', async () => {
    const server = await serve(hang, 200);
    const body = () => new ReadableStream({ pull: () => pause(1_000_000, undefined, { ref: false }) });
    const error = await setup({ ...options, policy })(server.url, { method: 'PUT', body }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ExpiredError);
    expect(storyOf(error)?.attempts).toBe(2);
  });

  test('leaves the body of a good response alone', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200);
      response.write('slow ');
      pause(150).then(() => response.end('but sure'));
    });
    const response = await setup({ ...options, policy })(server.url);
    await expect(response.text()).resolves.toBe('slow but sure');
  });
});

describe.each(senders)('a caller that aborts, %s', (_name, options) => {
  test('while it waits: nothing more is sent', async () => {
    const server = await serve(503);
    const caller = new AbortController();
    const fetch = setup({ ...options, policy: { ...quick, backoff: () => 60_000, patience: '10m' } });
    const onWait = () => caller.abort(new Error('left'));
    await expect(fetch(server.url, { signal: caller.signal, holdfast: { onWait } })).rejects.toThrow('left');
    expect(server.seen).toHaveLength(1);
  });

  test('while it is sent: the very reason is thrown', async () => {
    const server = await serve(hang);
    const caller = new AbortController();
    const running = setup(options)(server.url, { signal: caller.signal });
    await vi.waitFor(() => expect(server.seen).toHaveLength(1));
    const reason = new Error('left');
    caller.abort(reason);
    await expect(running).rejects.toBe(reason);
  });

  test('while it reads: the body ends', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200);
      response.write('some');
    });
    const caller = new AbortController();
    const response = await setup(options)(server.url, { signal: caller.signal });
    caller.abort(new Error('left'));
    await expect(response.text()).rejects.toThrow('left');
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });
});

test('the signal of a Request is not heard where the call takes it away', async () => {
  const caller = new AbortController();
  const server = await serve((_request, response) => {
    caller.abort(new Error('left'));
    response.end('hello');
  });
  const request = new Request(server.url, { signal: caller.signal });
  const response = await setup()(request, { signal: null });
  await expect(response.text()).resolves.toBe('hello');
});

test('connecting has a limit of its own, and proves that nothing was sent', async () => {
  const fetch = setup({ connectTimeout: '80ms', policy: { ...quick, attempts: 2 } });
  // An address that swallows packets (RFC 5737); where a network refuses it at once, that is proof just as well.
  const error = await fetch('http://192.0.2.1:81', { method: 'POST', body: 'pay' }).catch(
    (thrown: unknown) => thrown,
  );
  expect(storyOf(error)).toMatchObject({ attempts: 2, stop: 'attempts_exhausted' });
  expect((error as Error).cause).toMatchObject({
    code: expect.stringMatching(/UND_ERR_CONNECT_TIMEOUT|ENETUNREACH|EHOSTUNREACH|ECONNREFUSED/),
  });
});

test('a body that stands still ends after the idle timeout', async () => {
  const server = await serve((_request, response) => {
    response.writeHead(200);
    response.write('some');
  });
  const response = await setup({ idleTimeout: '100ms' })(server.url);
  const error = await response.text().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ cause: { code: 'UND_ERR_BODY_TIMEOUT' } });
});

test.each(['connectTimeout', 'idleTimeout'])(
  '%s is refused where somebody else holds the connections',
  (name) => {
    expect(() => createFetch({ [name]: '1s', fetch: async () => new Response() })).toThrow(name);
  },
);

test('after a reset the next attempt has a fresh connection, even where others are idle', async () => {
  const used: number[] = [];
  const server = await serveRaw((socket, connection) => {
    socket.on('data', (data) => {
      if (!String(data).includes('GET')) return;
      used.push(connection);
      // All old connections are dead, as after a restart behind a balancer.
      if (connection <= 2 && used.length > 2) socket.resetAndDestroy();
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  });
  const fetch = setup({ policy: { ...quick, attempts: 2 } });
  await Promise.all([fetch(server.url), fetch(server.url)]);
  await expect(fetch(server.url)).resolves.toMatchObject({ status: 200 });
  expect(used.slice(0, 2).sort()).toEqual([1, 2]);
  expect(used.at(-1)).toBe(3);
});

test('a request that was given up while it waited for a connection is never sent', async () => {
  const server = await serve(
    (_request, response) => void pause(150).then(() => response.end('slow')),
    { body: 'again' },
    { body: 'last' },
  );
  const dispatcher = closing(new Agent({ connections: 1, pipelining: 1 }));
  const sender = { fetch: undiciFetch as unknown as typeof fetch, dispatcher };
  const patient = setup({ ...sender, policy: { ...quick, attemptTimeout: '5s' } });
  const hasty = setup({ ...sender, policy: { ...quick, attemptTimeout: '40ms', attempts: 1 } });
  const first = patient(`${server.url}/first`);
  await expect(hasty(`${server.url}/hasty`)).rejects.toBeInstanceOf(ExpiredError);
  await (await first).text();
  await (await patient(`${server.url}/after`)).text();
  expect(server.seen.map(({ url }) => url)).toEqual(['/first', '/after']);
});

test('`onWait` gets the reason of a backoff and the patience that is left', async () => {
  const server = await serve(503, 200);
  const onWait = vi.fn();
  await setup({ onWait })(server.url);
  expect(onWait.mock.calls).toEqual([
    [{ attempt: 1, delayMs: 2, because: 'transient', patienceLeft: expect.closeTo(10_000, -3) }],
  ]);
});

test('a hedge is sent when the first attempt is slow, and the slow one is ended', async () => {
  const gone = vi.fn();
  const server = await serve((_request, response) => response.on('close', gone), 200);
  const policy = { ...quick, hedge: { after: '20ms', extraLoad: 1 } } as const;
  const response = await setup({ policy })(server.url);
  await expect(response.text()).resolves.toBe('hello');
  expect(server.seen).toHaveLength(2);
  await vi.waitFor(() => expect(gone).toHaveBeenCalled());
});

test('a POST is not hedged', async () => {
  const server = await serve((_request, response) => void pause(60).then(() => response.end('paid')));
  const policy = { ...quick, hedge: { after: '20ms', extraLoad: 1 } } as const;
  await setup({ policy })(server.url, { method: 'POST' });
  expect(server.seen).toHaveLength(1);
});
