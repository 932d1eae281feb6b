import { AsyncLocalStorage } from 'node:async_hooks';
import diagnosticsChannel from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { policy, storyOf, subscribe, systemClock, withAmbient } from 'holdfast';
import 'holdfast/ambient';
import { readRequest } from 'holdfast/wire';
import { Agent, Client, type Dispatcher, fetch, interceptors, request, stream } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createFetch, type InterceptorOptions, retryInterceptor } from '../src/index.ts';
import { closing, downWith, freePort, serve, serveRaw } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false } as const;

function setup(spec: object = {}, options: InterceptorOptions = {}) {
  const agent = closing(new Agent({ connections: 4 }));
  const made = policy({ ...quick, ...spec });
  const dispatcher: Dispatcher = agent.compose(retryInterceptor(made, options));
  const get = async (url: string, more: Partial<Dispatcher.RequestOptions> = {}) => {
    const { statusCode, body } = await request(url, { dispatcher, ...more } as never);
    return [statusCode, await body.text()];
  };
  return { get, dispatcher, policy: made };
}

test.each(['undici.request', 'fetch'])('%s is sent inside of what is put around an attempt', async (by) => {
  const server = await serve(503, 200);
  const spans = new AsyncLocalStorage<number>();
  onTestFinished(
    subscribe(
      () => {},
      ({ attempt }, call) => spans.run(attempt, call),
    ),
  );
  const created: unknown[] = [];
  const onCreate = () => created.push(spans.getStore());
  diagnosticsChannel.subscribe('undici:request:create', onCreate);
  onTestFinished(() => void diagnosticsChannel.unsubscribe('undici:request:create', onCreate));
  if (by === 'fetch') await closing(createFetch({ policy: quick, fetch: fetch as never }))(server.url);
  else await setup().get(server.url);
  expect(created).toEqual([1, 2]);
});

describe('undici.request', () => {
  test('gets the response it asked for, once', async () => {
    const server = await serve({ headers: { 'x-told': 'yes' }, body: 'hello' });
    const {
      dispatcher,
      policy: { counters },
    } = setup();
    const { statusCode, headers, body } = await request(server.url, { dispatcher });
    expect([statusCode, headers['x-told'], await body.text()]).toEqual([200, 'yes', 'hello']);
    expect(counters).toMatchObject({ operations: 1, attempts: 1, succeeded: 1 });
  });

  test('asks again after a status, on the same connection', async () => {
    const server = await serve({ status: 503, body: 'down' }, { status: 429, body: 'busy' }, 200);
    const {
      get,
      policy: { counters },
    } = setup();
    await expect(get(server.url)).resolves.toEqual([200, 'hello']);
    expect(server.seen.map(({ connection }) => connection)).toEqual([1, 1, 1]);
    expect(counters).toMatchObject({ operations: 1, attempts: 3, succeededAfterRetry: 1 });
  });

  test('says that it waits, after a status and after an attempt that took too long', async () => {
    const server = await serve(() => {}, 503, 200);
    const onWait = vi.fn();
    await setup({ attemptTimeout: '60ms' }, { onWait }).get(server.url);
    expect(onWait.mock.calls).toMatchObject([[{ attempt: 1, delayMs: 2 }], [{ attempt: 2, delayMs: 2 }]]);
  });

  test('asks again at once where there is no wait', async () => {
    const server = await serve(503, 503, 200);
    await expect(setup({ backoff: false }).get(server.url)).resolves.toEqual([200, 'hello']);
  });

  test('gets the last response, whole, when retries end', async () => {
    const server = await serve({ status: 503, body: 'x'.repeat(200_000) });
    const [status, body] = await setup({ attempts: 2 }).get(server.url);
    expect([status, (body as string).length]).toEqual([503, 200_000]);
    expect(server.seen).toHaveLength(2);
  });

  test('gets it whole when the breaker opens while it was to be repeated', async () => {
    const server = await serve({ status: 503, body: 'still whole' });
    const { get } = setup({ attempts: 3, breaker: { consecutive: 2 }, backoff: () => 40 });
    const answers = await Promise.all([get(server.url), get(server.url)]);
    expect(answers).toEqual([
      [503, 'still whole'],
      [503, 'still whole'],
    ]);
    expect(server.seen.length).toBeLessThan(4);
  });

  test('gets it whole also when the server has closed the connection meanwhile', async () => {
    const server = await serveRaw((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 503 Down\r\nConnection: close\r\n\r\nstill whole')),
    );
    const { get } = setup({ attempts: 3, breaker: { consecutive: 2 }, backoff: () => 40 });
    const answers = await Promise.all([get(server.url), get(server.url)]);
    expect(answers).toEqual([
      [503, 'still whole'],
      [503, 'still whole'],
    ]);
  });

  test.each([
    ['5 bytes', 5, true],
    ['250 KiB with its length', 256_000, true],
    ['250 KiB in chunks', 256_000, false],
  ])(
    'a wait after %s does not hold its connection: others use it meanwhile',
    async (_name, bytes, hasLength) => {
      const server = await serve(downWith(bytes, hasLength), 200);
      const agent = closing(new Agent({ connections: 1 }));
      const waiting = Promise.withResolvers<void>();
      const dispatcher = agent.compose(
        retryInterceptor(
          { ...quick, backoff: () => 60_000, patience: '1h' },
          { onWait: () => waiting.resolve() },
        ),
      );
      const caller = new AbortController();
      const first = request(server.url, { dispatcher, signal: caller.signal }).catch(
        (error: unknown) => error,
      );
      await waiting.promise;
      const { body } = await request(server.url, { dispatcher });
      await expect(body.text()).resolves.toBe('hello');
      expect([server.seen.length, server.connections()]).toEqual([2, 1]);
      caller.abort();
      await first;
    },
  );

  test('gets it whole where it is 250 KiB long and the breaker opens meanwhile', async () => {
    const server = await serve(downWith(256_000, false));
    const { get } = setup({ attempts: 3, breaker: { consecutive: 2 }, backoff: () => 40 });
    const answers = await Promise.all([get(server.url), get(server.url)]);
    expect(answers.map(([status, body]) => [status, (body as string).length])).toEqual([
      [503, 256_000],
      [503, 256_000],
    ]);
    expect(server.seen.length).toBeLessThan(4);
  });

  test('gets the very error, with its story', async () => {
    const error = await setup()
      .get(`http://127.0.0.1:${await freePort()}`)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(storyOf(error)).toMatchObject({ attempts: 4, stop: 'attempts_exhausted' });
  });

  test('a long response that is repeated costs a connection, not its length', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(503, { 'content-length': 10_000_000 });
      response.write('x'.repeat(1000));
    }, 200);
    await expect(setup().get(server.url)).resolves.toEqual([200, 'hello']);
  });

  test.each([() => 2, false as const])(
    'a short response that never ends does not keep the only connection, backoff %s',
    async (backoff) => {
      const server = await serve((_request, response) => {
        response.writeHead(503);
        response.write('to be continued');
      }, 200);
      const client = closing(new Client(server.url));
      const dispatcher = client.compose(retryInterceptor({ ...quick, backoff, attempts: 2 }));
      const { statusCode, body } = await dispatcher.request({ path: '/', method: 'GET' });
      await body.text();
      expect(statusCode).toBe(200);
    },
  );

  test('a body that breaks off has been committed: it is not asked for again', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('some', () => response.destroy());
    }, 200);
    const {
      get,
      policy: { counters },
    } = setup();
    const error = await get(server.url).catch((thrown: unknown) => thrown);
    expect(storyOf(error)).toMatchObject({ stop: 'committed', attempts: 1 });
    expect(counters.stops.committed).toBe(1);
    expect(server.seen).toHaveLength(1);
  });

  test('a wrong request is said as undici says it', async () => {
    const server = await serve(200);
    await expect(setup().get(server.url, { headers: { 'bad header': 'x' } })).rejects.toThrow(
      'invalid header key',
    );
    expect(server.seen).toHaveLength(0);
  });
});

describe('methods and bodies', () => {
  test.each(['POST', 'PATCH'])('%s is not repeated', async (method) => {
    const server = await serve(503, 200);
    const {
      get,
      policy: { counters },
    } = setup();
    await expect(get(server.url, { method, body: 'pay' })).resolves.toEqual([503, 'hello']);
    expect(counters.stops.not_idempotent).toBe(1);
  });

  test('POST with a key is, and one can be made', async () => {
    const server = await serve(503, 200, 503, 200);
    await expect(
      setup().get(server.url, { method: 'POST', body: 'pay', headers: { 'idempotency-key': 'mine' } }),
    ).resolves.toEqual([200, 'hello']);
    await setup({}, { idempotency: 'auto' }).get(server.url, {
      method: 'POST',
      body: 'pay',
      headers: ['x-told', 'yes'],
    });
    const keys = server.seen.map(({ headers }) => headers['idempotency-key']);
    expect(keys.slice(0, 2)).toEqual(['mine', 'mine']);
    expect(keys[2]).toMatch(/^[\da-f-]{36}$/);
    expect(keys[3]).toBe(keys[2]);
    expect(server.seen.map(({ body }) => body)).toEqual(Array(4).fill('pay'));
    expect(server.seen[3]?.headers['x-told']).toBe('yes');
  });

  test('a stream is sent once', async () => {
    const server = await serve(503, 200);
    const {
      get,
      policy: { counters },
    } = setup();
    await expect(get(server.url, { method: 'PUT', body: Readable.from(['kelp']) })).resolves.toEqual([
      503,
      'hello',
    ]);
    expect(counters.stops.not_replayable).toBe(1);
    expect(server.seen.map(({ body }) => body)).toEqual(['kelp']);
  });

  const streams: [string, () => unknown][] = [
    ['a stream of Node', () => Readable.from(['kelp'])],
    ['a web stream', () => new Blob(['kelp']).stream()],
    ['a generator', () => [Buffer.from('kelp')].values()],
  ];

  test.each(streams)('%s that a factory gives twice is not sent as nothing', async (_name, make) => {
    const server = await serve(503, 200);
    const same = make();
    const running = setup().get(server.url, { method: 'PUT', body: (() => same) as never });
    await expect(running).rejects.toThrow('a new body');
    expect(server.seen.map(({ body }) => body)).toEqual(['kelp']);
  });

  test('a list that a factory gives twice is sent twice', async () => {
    const server = await serve(503, 200);
    const same = [Buffer.from('ke'), Buffer.from('lp')];
    await setup().get(server.url, { method: 'PUT', body: (() => same) as never });
    expect(server.seen.map(({ body }) => body)).toEqual(['kelp', 'kelp']);
  });

  test('a factory makes one for each attempt', async () => {
    const server = await serve(503, 200);
    const body = (() => Readable.from(['kelp'])) as never;
    await expect(setup().get(server.url, { method: 'PUT', body })).resolves.toEqual([200, 'hello']);
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp', 'kelp']);
  });
});

describe('headers of every kind that undici takes', () => {
  const kinds: [string, () => unknown][] = [
    ['an object', () => ({ 'x-told': 'yes' })],
    ['a flat list', () => ['x-told', 'yes']],
    ['Headers', () => new Headers({ 'x-told': 'yes' })],
    ['a Map', () => new Map([['x-told', 'yes']])],
    ['an iterator, which can be read once', () => new Map([['x-told', 'yes']]).entries()],
  ];

  test.each(kinds)('%s: go out with each attempt, beside ours', async (_name, make) => {
    const server = await serve(503, 200, 503, 200);
    const headers = make as () => never;
    await setup({}, { idempotency: 'auto', announce: true }).get(server.url, {
      method: 'POST',
      headers: headers(),
    });
    await setup().get(server.url, { headers: headers() });
    expect(server.seen.map((seen) => seen.headers['x-told'])).toEqual(Array(4).fill('yes'));
    expect(server.seen[1]?.headers['idempotency-key']).toMatch(/^[\da-f-]{36}$/);
  });
});

describe('judgement', () => {
  test('statuses, classify and 409', async () => {
    const server = await serve(418, 200);
    await expect(setup({}, { statuses: [418] }).get(server.url)).resolves.toEqual([200, 'hello']);
    const odd = await serve({ headers: { 'x-busy': 'yes' } }, 200);
    const classify: InterceptorOptions['classify'] = ({ headers }) =>
      (headers as Record<string, string>)['x-busy'] ? 'transient' : undefined;
    await setup({}, { classify }).get(odd.url);
    expect(odd.seen).toHaveLength(2);
    const running = await serve({ status: 409, headers: { 'retry-after': '0' } }, 200);
    const headers = { 'idempotency-key': 'mine' };
    await expect(setup().get(running.url, { method: 'POST', headers })).resolves.toEqual([200, 'hello']);
  });

  test('the word of the server', async () => {
    const never = await serve({ status: 503, headers: { holdfast: 'retry=never' } }, 200);
    await expect(setup().get(never.url)).resolves.toEqual([503, 'hello']);
    const safe = await serve({ status: 503, headers: { holdfast: 'retry=safe' } }, 200);
    await expect(setup().get(safe.url, { method: 'POST' })).resolves.toEqual([200, 'hello']);
    const day = await serve({ status: 503, headers: { 'retry-after': '86400' } }, 200);
    await expect(setup().get(day.url)).resolves.toEqual([503, 'hello']);
  });

  test('a policy that has no place here is refused', () => {
    expect(() => retryInterceptor({ fallback: { to: 1 } })).toThrow('fallback');
    expect(() => retryInterceptor({ mode: 'observe' })).toThrow('mode');
  });
});

describe('time', () => {
  test('an attempt that hangs is ended and repeated', async () => {
    const gone = vi.fn();
    const server = await serve((_request, response) => response.on('close', gone), 200);
    await expect(setup({ attemptTimeout: '50ms' }).get(server.url)).resolves.toEqual([200, 'hello']);
    await vi.waitFor(() => expect(gone).toHaveBeenCalled());
  });

  test('patience ends it all', async () => {
    const server = await serve(() => {});
    const error = await setup({ patience: '80ms', attemptTimeout: 'none' })
      .get(server.url)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'HOLDFAST_PATIENCE_SPENT' });
  });

  test('a caller that aborts during a backoff ends it at once', async () => {
    const server = await serve(503);
    const caller = new AbortController();
    const onWait = vi.fn(() => queueMicrotask(() => caller.abort(new Error('left'))));
    const {
      get,
      policy: { counters },
    } = setup({ backoff: () => 60_000, patience: '10m' }, { onWait });
    await expect(get(server.url, { signal: caller.signal })).rejects.toThrow('left');
    expect(onWait).toHaveBeenCalledOnce();
    expect(counters.stops.cancelled).toBe(1);
    expect(server.seen).toHaveLength(1);
  });

  test('a caller that aborts during an attempt ends it at once', async () => {
    const server = await serve(() => {});
    const caller = new AbortController();
    const {
      get,
      policy: { counters },
    } = setup();
    const running = get(server.url, { signal: caller.signal });
    await vi.waitFor(() => expect(server.seen).toHaveLength(1));
    caller.abort(new Error('left'));
    await expect(running).rejects.toThrow('left');
    expect(counters.stops.cancelled).toBe(1);
  });

  test('a hedge wins, and the slow one is ended', async () => {
    const gone = vi.fn();
    const server = await serve((_request, response) => response.on('close', gone), 200);
    await expect(setup({ hedge: { after: '20ms', extraLoad: 1 } }).get(server.url)).resolves.toEqual([
      200,
      'hello',
    ]);
    await vi.waitFor(() => expect(gone).toHaveBeenCalled());
  });

  test('an open breaker refuses without a connection', async () => {
    const server = await serve(500);
    const { get } = setup({ attempts: 1, breaker: { consecutive: 2 } });
    await get(server.url);
    await get(server.url);
    const error = await get(server.url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN', target: server.url });
    expect(server.seen).toHaveLength(2);
  });

  test('a bulkhead lets `concurrent` requests through at once, the others wait', async () => {
    let most = 0;
    let now = 0;
    const server = await serve((_request, response) => {
      most = Math.max(most, ++now);
      setImmediate(() => {
        now--;
        response.end('hello');
      });
    });
    const { get } = setup({ bulkhead: { concurrent: 2, queue: 20 } });
    const answers = await Promise.all(Array.from({ length: 12 }, () => get(server.url)));
    expect(answers).toEqual(Array(12).fill([200, 'hello']));
    expect(most).toBeLessThanOrEqual(2);
  });
});

describe('ambientContext', () => {
  test('what is inherited is handed on; otherwise nothing is said unless asked', async () => {
    const server = await serve(200);
    const { get } = setup();
    await get(server.url);
    await withAmbient({ patienceEndsAt: systemClock.now() + 700, priority: 'critical' }, () =>
      get(server.url),
    );
    await setup({}, { announce: true }).get(server.url, { headers: { 'x-told': 'yes' } });
    const [alone, inside, asked] = server.seen.map(({ headers }) => readRequest(headers));
    expect(alone).toEqual({});
    expect(inside).toMatchObject({ attempt: 1, owner: true, priority: 'critical' });
    expect(inside?.patienceMs).toBeLessThanOrEqual(700);
    expect(asked).toMatchObject({ attempt: 1, owner: true });
  });

  test.each([{ ownedUpstream: true }, { packaging: true }])(
    'another layer retries instead: %j',
    async (around) => {
      const server = await serve(503, 200);
      const {
        get,
        policy: { counters },
      } = setup();
      await expect(withAmbient(around, () => get(server.url))).resolves.toEqual([503, 'hello']);
      expect(counters.stops.not_owner).toBe(1);
    },
  );

  test('an abort of the inherited signal ends it', async () => {
    const server = await serve(() => {});
    const customer = new AbortController();
    const running = withAmbient({ signal: customer.signal }, () => setup().get(server.url));
    await vi.waitFor(() => expect(server.seen).toHaveLength(1));
    customer.abort(new Error('gone'));
    await expect(running).rejects.toThrow('gone');
    await expect(withAmbient({ signal: customer.signal }, () => setup().get(server.url))).rejects.toThrow(
      'gone',
    );
  });

  test('an abort of the inherited signal ends the body, too; after the end it is not followed', async () => {
    const server = await serve(503, { body: 'hello' }, (_request, response) => {
      response.writeHead(200);
      response.write('some');
    });
    const { get, dispatcher } = setup();
    const customer = new AbortController();
    await withAmbient({ signal: customer.signal }, () => get(server.url));
    expect(getEventListeners(customer.signal, 'abort')).toEqual([]);
    const { body } = await withAmbient({ signal: customer.signal }, () =>
      request(server.url, { dispatcher }),
    );
    customer.abort(new Error('gone'));
    await expect(body.text()).rejects.toThrow('gone');
    expect(getEventListeners(customer.signal, 'abort')).toEqual([]);
  });
});

test('the signal of the surrounding work has one listener for 20 requests at once, and none after', async () => {
  const { signal } = new AbortController();
  const count = () => getEventListeners(signal, 'abort').length;
  const counts: number[] = [];
  const server = await serve((_request, response) => {
    counts.push(count());
    response.end('hello');
  });
  const { get } = setup();
  await withAmbient({ signal }, () => Promise.all(Array.from({ length: 20 }, () => get(server.url))));
  expect([Math.max(...counts), count()]).toEqual([1, 0]);
});

describe('others on the same dispatcher', () => {
  test('undici.fetch', async () => {
    const server = await serve(503, { body: 'hello', headers: { 'x-told': 'yes' } });
    const response = await fetch(server.url, { dispatcher: setup().dispatcher });
    expect([response.status, response.headers.get('x-told'), await response.text()]).toEqual([
      200,
      'yes',
      'hello',
    ]);
  });

  test('undici.fetch, aborted while it waits', async () => {
    const server = await serve(503);
    const caller = new AbortController();
    const onWait = () => queueMicrotask(() => caller.abort(new Error('left')));
    const {
      dispatcher,
      policy: { counters },
    } = setup({ backoff: () => 60_000, patience: '10m' }, { onWait });
    await expect(fetch(server.url, { dispatcher, signal: caller.signal })).rejects.toThrow('left');
    expect(counters.stops.cancelled).toBe(1);
  });

  test("Node's own fetch, whose handlers are of an older kind", async () => {
    const server = await serve(503, { body: 'hello', headers: { 'x-told': 'yes' } });
    const { dispatcher } = setup();
    const response = await globalThis.fetch(server.url, { dispatcher } as RequestInit);
    expect([response.status, response.headers.get('x-told'), await response.text()]).toEqual([
      200,
      'yes',
      'hello',
    ]);
  });

  test('undici.stream with a factory that throws at a response that was held back', async () => {
    const server = await serve({ status: 503, body: 'down' });
    const { dispatcher } = setup({ attempts: 3, breaker: { consecutive: 2 }, backoff: () => 40 });
    const get = () =>
      stream(server.url, { method: 'GET', dispatcher }, () => {
        throw new Error('no place for it');
      });
    const ends = await Promise.allSettled([get(), get()]);
    expect(ends.map((end) => end.status === 'rejected' && end.reason.message)).toEqual([
      'no place for it',
      'no place for it',
    ]);
  });

  test('an interceptor that replaces the abort of its controller: an abort during a backoff still works', async () => {
    const server = await serve(503);
    const caller = new AbortController();
    const onWait = () => queueMicrotask(() => caller.abort(new Error('left')));
    const { dispatcher } = setup({ backoff: () => 60_000, patience: '10m' }, { onWait });
    const running = request(server.url, {
      dispatcher: dispatcher.compose(interceptors.dump()),
      signal: caller.signal,
    });
    await expect(running).rejects.toThrow('left');
  });

  test('an interceptor below that fails with errors that are causes of each other', async () => {
    const server = await serve(200);
    const failed = new Error('failed');
    failed.cause = new Error('because', { cause: failed });
    const failing: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
      dispatch(options, {
        onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
        onResponseStart: (controller) => handler.onResponseError?.(controller, failed),
        onResponseData: () => {},
        onResponseEnd: () => {},
        onResponseError: () => {},
      });
    const dispatcher = closing(new Agent()).compose(failing, retryInterceptor(policy(quick)));
    await expect(request(server.url, { dispatcher })).rejects.toBe(failed);
  });

  test('undici.stream', async () => {
    const server = await serve(503, 200);
    const { Writable } = await import('node:stream');
    const chunks: Buffer[] = [];
    await stream(
      server.url,
      { method: 'GET', dispatcher: setup().dispatcher },
      () =>
        new Writable({
          write: (chunk, _encoding, done) => {
            chunks.push(chunk);
            done();
          },
        }),
    );
    expect(String(Buffer.concat(chunks))).toBe('hello');
  });

  test('a slow reader holds the server back', async () => {
    const server = await serve({ body: 'x'.repeat(3_000_000) });
    const { body } = await request(server.url, { dispatcher: setup().dispatcher });
    let length = 0;
    for await (const chunk of body) {
      length += (chunk as Buffer).length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(length).toBe(3_000_000);
  });
});
