import { getEventListeners } from 'node:events';
import { policy, storyOf } from 'holdfast';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { createFetch, type FetchOptions, type HoldfastFetch } from '../src/index.ts';
import { closing, freePort, serve } from './servers.ts';

/** Waits of a few ms, and tokens enough: what is tested here is not how long or how often. */
const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false } as const;

function setup(options: FetchOptions = {}): HoldfastFetch {
  return closing(createFetch({ policy: quick, ...options }));
}

test('has the type of fetch', () => {
  expectTypeOf<HoldfastFetch>().toExtend<typeof globalThis.fetch>();
});

describe('a response', () => {
  test('is the very Response of the platform', async () => {
    const server = await serve({ status: 201, headers: { 'x-told': 'yes' }, body: 'made' });
    const response = await setup()(`${server.url}/orders?a=1`);
    expect(response).toBeInstanceOf(Response);
    expect(response.status).toBe(201);
    expect(response.headers.get('x-told')).toBe('yes');
    expect(response.url).toBe(`${server.url}/orders?a=1`);
    await expect(response.text()).resolves.toBe('made');
  });

  test('that was not wanted is asked for again', async () => {
    const server = await serve(503, 500, 200);
    const response = await setup()(server.url);
    expect(response.status).toBe(200);
    expect(server.seen).toHaveLength(3);
  });

  test('on which the retries end is returned, with its body and its story', async () => {
    const server = await serve({ status: 503, body: 'down' });
    const response = await setup({ policy: { ...quick, attempts: 2 } })(server.url);
    expect(response.status).toBe(503);
    await expect(response.text()).resolves.toBe('down');
    expect(storyOf(response)).toMatchObject({ attempts: 2, stop: 'attempts_exhausted' });
  });

  test('is still whole when the breaker opens while it was to be repeated', async () => {
    const server = await serve({ status: 503, body: 'still whole' });
    const policy = {
      attempts: 3,
      budget: { ratio: 1 },
      breaker: { consecutive: 2 },
      backoff: { base: '40ms', jitter: 'none' },
    } as const;
    const fetch = setup({ policy });
    const waits: number[] = [];
    // The second call fails while the first one waits, and opens the breaker.
    const [first] = await Promise.all([
      fetch(server.url, { holdfast: { onWait: ({ delayMs }) => waits.push(delayMs) } }),
      fetch(server.url),
    ]);
    expect(waits).toHaveLength(1);
    expect(storyOf(first)?.stop).toBe('breaker_open');
    await expect(first.text()).resolves.toBe('still whole');
  });

  test('that is longer than what is read ahead gives its connection back when the caller leaves it', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(503);
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', write);
      write();
    });
    const backoff = { base: '100ms', jitter: 'none' } as const;
    const policy = { attempts: 3, budget: { ratio: 1 }, breaker: { consecutive: 2 }, backoff } as const;
    const fetch = setup({ policy });
    const [first, second] = await Promise.all([fetch(server.url), fetch(server.url)]);
    expect(storyOf(first)?.stop).toBe('breaker_open');
    await Promise.all([first.body?.cancel(), second.body?.cancel()]);
    await expect.poll(() => server.open()).toBe(0);
  });
});

test('what comes late, from a fetch that hears no signal, takes nothing from the response that was given', async () => {
  const long = 'x'.repeat(300_000);
  const server = await serve({ body: 'late' }, { body: long });
  const late = Promise.withResolvers<Response>();
  let calls = 0;
  const fetch = setup({
    policy: { ...quick, attemptTimeout: '50ms' },
    fetch: (input) => (++calls === 1 ? late.promise : globalThis.fetch(input)),
  });
  const first = await globalThis.fetch(server.url);
  const response = await fetch(server.url);
  late.resolve(first);
  await vi.waitFor(() => expect(first.bodyUsed).toBe(true));
  expect(await response.text()).toBe(long);
});

test('an error is thrown as it came, with its story', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const error = await setup()(url).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TypeError);
  expect((error as TypeError).cause).toMatchObject({ code: 'ECONNREFUSED' });
  expect(storyOf(error)).toMatchObject({ attempts: 4, stop: 'attempts_exhausted' });
});

test('what is no URL is said as fetch says it', async () => {
  await expect(setup()('nowhere')).rejects.toThrow(/Failed to parse URL/);
});

describe('methods', () => {
  test.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])('%s is repeated', async (method) => {
    const server = await serve(503, 200);
    await expect(setup()(server.url, { method })).resolves.toMatchObject({ status: 200 });
  });

  test.each(['POST', 'PATCH'])('%s is not', async (method) => {
    const server = await serve(503, 200);
    const response = await setup()(server.url, { method, body: 'pay' });
    expect(response.status).toBe(503);
    expect(storyOf(response)?.stop).toBe('not_idempotent');
    expect(server.seen).toHaveLength(1);
  });

  test('POST is, where the caller says so', async () => {
    const server = await serve(503, 200);
    const response = await setup()(server.url, { method: 'POST', holdfast: { idempotent: true } });
    expect(response.status).toBe(200);
  });

  test('POST is, when the server says that it was not processed', async () => {
    const server = await serve({ status: 503, headers: { holdfast: 'retry=safe' } }, 200);
    await expect(setup()(server.url, { method: 'POST' })).resolves.toMatchObject({ status: 200 });
  });

  test('POST is, when nobody was there to be asked', async () => {
    const port = await freePort();
    const waits = vi.fn();
    const post = setup()(`http://127.0.0.1:${port}`, {
      method: 'POST',
      body: 'pay',
      holdfast: { onWait: waits },
    });
    await expect(post).rejects.toThrow('fetch failed');
    expect(waits).toHaveBeenCalledTimes(3);
  });

  test('FIELD 9: a POST is executed once, and a stream is never sent again as nothing', async () => {
    const server = await serve((_request, response) => response.destroy(), 200);
    const fetch = setup();
    await expect(fetch(server.url, { method: 'POST', body: 'pay' })).rejects.toThrow();
    expect(server.seen).toHaveLength(1);

    const upload = await serve(503, 200);
    const stream = new Blob(['all of it']).stream();
    const response = await fetch(upload.url, { method: 'PUT', body: stream, duplex: 'half' } as RequestInit);
    expect(response.status).toBe(503);
    expect(storyOf(response)?.stop).toBe('not_replayable');
    expect(upload.seen.map(({ body }) => body)).toEqual(['all of it']);
  });

  test('FIELD 13: by default no method pays twice', async () => {
    for (const method of ['POST', 'PATCH', 'NOTIFY']) {
      // It was paid, and then the connection broke.
      const server = await serve((_request, response) => response.socket?.resetAndDestroy(), 200);
      const error = await setup()(server.url, { method, body: 'pay' }).catch((thrown: unknown) => thrown);
      expect(storyOf(error)?.stop).toBe('not_idempotent');
      expect(server.seen).toHaveLength(1);
    }
  });
});

describe('the word of the server', () => {
  test('retry=never ends it', async () => {
    const server = await serve({ status: 503, headers: { holdfast: 'retry=never' } }, 200);
    const response = await setup()(server.url);
    expect(storyOf(response)?.stop).toBe('server_said_stop');
  });

  test.each(['-1', 'soon', ''])('a pushback of %j ends it', async (pushback) => {
    const server = await serve({ status: 503, headers: { 'grpc-retry-pushback-ms': pushback } }, 200);
    const response = await setup()(server.url);
    expect(storyOf(response)?.stop).toBe('server_said_stop');
  });

  test('a pushback in ms is waited for', async () => {
    const server = await serve({ status: 503, headers: { 'grpc-retry-pushback-ms': '7' } }, 200);
    const waits: number[] = [];
    await setup({ onWait: ({ delayMs }) => waits.push(delayMs) })(server.url);
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeGreaterThanOrEqual(7);
  });

  test('FIELD 4: a Retry-After of a day ends the work at once, and the caller has it', async () => {
    const server = await serve({ status: 503, headers: { 'retry-after': '86400' } });
    const response = await setup()(server.url);
    expect(storyOf(response)?.stop).toBe('server_said_stop');
    expect(response.headers.get('retry-after')).toBe('86400');

    const minute = await serve({ status: 429, headers: { 'retry-after': '60' } });
    const limited = await setup()(minute.url);
    expect(storyOf(limited)?.stop).toBe('patience_too_short');
    expect(minute.seen).toHaveLength(1);
  });

  test('FIELD 4: chance adds to a hint and never takes from it', async () => {
    const server = await serve(
      { status: 503, headers: { 'retry-after-ms': '20' } },
      { status: 503, headers: { 'retry-after-ms': '20' } },
      200,
    );
    const waits: number[] = [];
    await setup({ onWait: ({ delayMs }) => waits.push(delayMs) })(server.url);
    expect(waits).toHaveLength(2);
    for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(20);
    expect(new Set(waits).size).toBe(2);
  });
});

describe('patience', () => {
  test('FIELD 3: nothing is sent past it, and the real answer is not hidden', async () => {
    const server = await serve({ status: 503, body: 'the real answer' });
    const startedAt = performance.now();
    const response = await setup({ policy: { ...quick, backoff: { base: '300ms', jitter: 'none' } } })(
      server.url,
      {
        holdfast: { patience: '400ms' },
      },
    );
    expect(performance.now() - startedAt).toBeLessThan(400);
    await expect(response.text()).resolves.toBe('the real answer');
    expect(storyOf(response)?.stop).toBe('patience_too_short');
    expect(server.seen).toHaveLength(2);
  });

  test('ends an attempt that hangs, and the server is told to stop', async () => {
    const gone = Promise.withResolvers<void>();
    const server = await serve((_request, response) => response.on('close', () => gone.resolve()));
    const fetch = setup({ policy: { ...quick, attempts: 1 } });
    await expect(fetch(server.url, { holdfast: { patience: '50ms' } })).rejects.toMatchObject({
      code: 'HOLDFAST_PATIENCE_SPENT',
    });
    await gone.promise;
  });
});

describe('statuses', () => {
  test.each([408, 425, 429, 500, 502, 503, 504])('%i is repeated', async (status) => {
    const server = await serve({ status, headers: { 'retry-after-ms': '1' } }, 200);
    await expect(setup()(server.url)).resolves.toMatchObject({ status: 200 });
  });

  test.each([400, 401, 404, 409, 422, 501, 505])('%i is not', async (status) => {
    const server = await serve({ status, headers: { 'retry-after': '0' } }, 200);
    await expect(setup()(server.url)).resolves.toMatchObject({ status });
  });

  test('can be listed instead', async () => {
    const server = await serve(202, 404, 503, 200);
    const response = await setup({ statuses: [202, 404] })(server.url);
    expect(response.status).toBe(503);
    expect(storyOf(response)?.stop).toBe('not_retryable');
    expect(server.seen).toHaveLength(3);
  });

  test('or judged', async () => {
    const server = await serve(418, 503, 200);
    const fetch = setup({ classify: ({ status }) => (status === 418 ? 'transient' : undefined) });
    await expect(fetch(server.url)).resolves.toMatchObject({ status: 200 });
    const broken = setup({
      classify: () => {
        throw new Error('not again');
      },
    });
    await expect(broken(server.url)).resolves.toMatchObject({ status: 200 });
  });

  test('409 with Retry-After for our key means that it is still running', async () => {
    const running = { status: 409, headers: { 'retry-after': '0' } };
    const server = await serve(running, running, 200);
    const init = { method: 'POST', headers: { 'Idempotency-Key': 'order-17' } };
    await expect(setup()(server.url, init)).resolves.toMatchObject({ status: 200 });
    expect(server.seen.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(3).fill('order-17'));
  });

  test('and 409 with retry=never means that nobody knows', async () => {
    const server = await serve(
      { status: 409, headers: { 'retry-after': '0', holdfast: 'retry=never' } },
      200,
    );
    const response = await setup()(server.url, {
      method: 'POST',
      headers: { 'Idempotency-Key': 'order-17' },
    });
    expect(response.status).toBe(409);
  });
});

test('a fetch that was closed says so, and sends nothing', async () => {
  const server = await serve(200);
  for (const options of [{}, { policy: { name: 'shop' } }, { fetch: globalThis.fetch }]) {
    const fetch = createFetch(options);
    await fetch.close();
    await expect(fetch(server.url)).rejects.toMatchObject({
      code: 'HOLDFAST_FETCH_CLOSED',
      message: expect.stringMatching(
        /^this fetch( of the policy shop)? was closed with close\(\); make a new/,
      ),
    });
  }
  expect(server.seen).toEqual([]);
});

describe('a policy that only observes', () => {
  test('changes nothing, counts what it would have done, and forgets the signal of the caller', async () => {
    const server = await serve(503, 200);
    const observing = policy({ ...quick, mode: 'observe' });
    const caller = new AbortController();
    const fetch = setup({ policy: observing });
    const response = await fetch(server.url, { signal: caller.signal });
    expect(response.status).toBe(503);
    await vi.waitFor(() => expect(observing.counters.would.retry).toBeGreaterThan(0));
    expect(server.seen).toHaveLength(1);
    await response.text();
    await expect.poll(() => getEventListeners(caller.signal, 'abort')).toEqual([]);
  });
});
