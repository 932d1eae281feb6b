import { network } from 'holdfast';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { FaultSpec } from '../src/fault-spec.ts';
import { chaosFetch } from '../src/fetch.ts';
import { deadPort, httpServer, tcpServer } from './loopback.ts';

const there = 'http://shop.example:8080/orders/1?x=1';

function setup(...faults: FaultSpec[]) {
  const clock = virtualClock();
  const calls: string[] = [];
  const cancelled: unknown[] = [];
  const answer = () => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (sent === 100) return controller.close();
          sent += 50;
          controller.enqueue(new Uint8Array(50).fill(sent));
        },
        cancel: (reason) => void cancelled.push(reason),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { status: 200, headers: { 'x-real': 'yes' } });
  };
  const fetch = chaosFetch(
    { faults },
    {
      clock,
      fetch: async (input, init) => {
        calls.push(`${init?.method ?? 'GET'} ${input}`);
        init?.signal?.throwIfAborted();
        return answer();
      },
    },
  );
  return { clock, calls, cancelled, fetch };
}

const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => error,
  );

/** What a program can see of an error, but for the stack and what differs from one run to the next. */
function seen(error: Error & { cause?: Error }) {
  const { name, message, cause } = error;
  const { errno, code, syscall } = cause as NodeJS.ErrnoException;
  const where = /\S+:\d+$/;
  return {
    isTypeError: error instanceof TypeError,
    name,
    message,
    cause: { name: cause?.name, message: cause?.message.replace(where, 'there'), errno, code, syscall },
  };
}

test('is a fetch', async () => {
  const { fetch, calls } = setup();
  expectTypeOf(fetch).toExtend<typeof globalThis.fetch>();
  expect((await fetch(there, { method: 'PUT' })).status).toBe(200);
  expect(calls).toEqual([`PUT ${there}`]);
});

describe('its errors are those of the real one', () => {
  const real = async (onConnection: Parameters<typeof tcpServer>[0]) => {
    const { address } = await tcpServer(onConnection);
    return `http://${address}/`;
  };
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n';

  test.each<[string, FaultSpec, () => Promise<string>]>([
    ['refused', { kind: 'refuse' }, async () => `http://127.0.0.1:${await deadPort()}/`],
    [
      'reset before the first byte',
      { kind: 'reset' },
      () => real((socket) => socket.once('data', () => socket.resetAndDestroy())),
    ],
    [
      'reset in the body',
      { kind: 'reset', afterBytes: 5 },
      () =>
        real((socket) =>
          socket.once('data', () => socket.write(`${head}hello`, () => socket.resetAndDestroy())),
        ),
    ],
    [
      'body that ends early',
      { kind: 'truncate', afterBytes: 5 },
      () => real((socket) => socket.once('data', () => socket.end(`${head}hello`))),
    ],
    [
      'closed without an answer',
      { kind: 'error', code: 'UND_ERR_SOCKET' },
      () => real((socket) => socket.once('data', () => socket.end())),
    ],
  ])('%s', async (_, fault, url) => {
    const real = await caught(globalThis.fetch(await url()).then((response) => response.text()));
    const ours = await caught(
      setup(fault)
        .fetch('http://127.0.0.1:1/')
        .then((response) => response.text()),
    );
    expect(seen(ours)).toEqual(seen(real));
  });
});

test.each<[FaultSpec, boolean]>([
  [{ kind: 'refuse' }, true],
  [{ kind: 'reset', direction: 'request' }, true],
  [{ kind: 'error', code: 'ENOTFOUND' }, true],
  [{ kind: 'reset' }, false],
  [{ kind: 'error' }, false],
  [{ kind: 'error', code: 'UND_ERR_SOCKET' }, false],
  [{ kind: 'error', code: 'ETIMEDOUT', direction: 'response' }, false],
])('to a policy %j is proof that nothing was sent: %s', async (fault, unprocessed) => {
  const error = await caught(setup(fault).fetch(there));
  expect(network.classify({ ok: false, error }, () => 0)).toEqual({ class: 'transient', unprocessed });
});

describe('before anything is sent', () => {
  test.each<[FaultSpec, string]>([
    [{ kind: 'refuse' }, 'connect ECONNREFUSED shop.example:8080'],
    [{ kind: 'reset', direction: 'request' }, 'connect ECONNRESET shop.example:8080'],
    [{ kind: 'error', code: 'ENOTFOUND' }, 'getaddrinfo ENOTFOUND shop.example'],
    [{ kind: 'error', code: 'UND_ERR_CONNECT_TIMEOUT' }, 'Connect Timeout Error'],
    [{ kind: 'error', code: 'E_ODD', message: 'odd' }, 'odd'],
  ])('%j', async (fault, message) => {
    const { fetch, calls } = setup(fault);
    expect(await caught(fetch(there))).toMatchObject({ message: 'fetch failed', cause: { message } });
    expect(calls).toEqual([]);
  });
});

describe('after the server has done the work', () => {
  test.each<[FaultSpec]>([
    [{ kind: 'reset' }],
    [{ kind: 'error', code: 'UND_ERR_HEADERS_TIMEOUT', direction: 'response' }],
    [{ kind: 'status', direction: 'response' }],
  ])('%j takes the answer away', async (fault) => {
    const { fetch, calls, cancelled } = setup(fault);
    const result = await fetch(there).catch((error) => error);
    expect(result.status ?? result.message).toBe(fault.kind === 'status' ? 503 : 'fetch failed');
    expect(calls).toHaveLength(1);
    expect(cancelled).toHaveLength(1);
  });
});

describe('a status', () => {
  test('comes with its headers and body, and without a call', async () => {
    const { fetch, calls } = setup({
      kind: 'status',
      status: 429,
      retryAfter: '1.5s',
      headers: { 'x-why': 'chaos' },
      body: 'slow down',
    });
    const response = await fetch(there);
    expect([response.status, response.ok, response.url, response.clone().url]).toEqual([
      429,
      false,
      there,
      there,
    ]);
    expect(Object.fromEntries(response.headers)).toMatchObject({ 'retry-after': '2', 'x-why': 'chaos' });
    expect(await response.text()).toBe('slow down');
    expect(calls).toEqual([]);
  });

  test('can say Retry-After as a date, never an early one', async () => {
    const { fetch, clock } = setup({ kind: 'status', retryAfter: '1500ms', retryAfterAs: 'date' });
    const said = (await fetch(there)).headers.get('retry-after') as string;
    expect(Date.parse(said)).toBeGreaterThanOrEqual(clock.epochMs() + 1500);
    expect(new Date(said).toUTCString()).toBe(said);
  });

  test('may be one that has no body', async () => {
    const response = await setup({ kind: 'status', status: 204, body: 'x' }).fetch(there);
    expect([response.status, response.body]).toEqual([204, null]);
  });
});

describe('waiting', () => {
  test('latency comes before the call, after it, or both', async () => {
    const { fetch, clock, calls } = setup({ kind: 'latency', delay: '20ms', direction: 'both' });
    let done = false;
    const running = fetch(there).then(() => {
      done = true;
    });
    await clock.advance(19);
    expect(calls).toHaveLength(0);
    await clock.advance(20);
    expect([calls.length, done]).toEqual([1, false]);
    await clock.advance(1);
    expect(done).toBe(true);
    await running;
  });

  test.each<[FaultSpec, number]>([
    [{ kind: 'hang' }, 0],
    [{ kind: 'hang', direction: 'response' }, 1],
    [{ kind: 'latency', delay: '1h', direction: 'request' }, 0],
    [{ kind: 'latency', delay: '1h' }, 1],
  ])('%j ends the moment the caller leaves', async (fault, called) => {
    const { fetch, clock, calls, cancelled } = setup(fault);
    const caller = new AbortController();
    const running = caught(fetch(there, { signal: caller.signal }));
    await clock.advance('10m');
    caller.abort(new Error('left'));
    expect(await running).toEqual(new Error('left'));
    expect([calls.length, cancelled.length, clock.pendingTimers]).toEqual([called, called, 0]);
  });

  test('heeds the signal of a Request', async () => {
    const { fetch } = setup({ kind: 'hang' });
    const caller = new AbortController();
    const running = caught(fetch(new Request(there, { signal: caller.signal })));
    caller.abort();
    expect(await running).toMatchObject({ name: 'AbortError' });
  });

  test('who has left already is not a subject', async () => {
    const { fetch } = setup({ kind: 'hang' });
    expect(await caught(fetch(there, { signal: AbortSignal.abort() }))).toMatchObject({ name: 'AbortError' });
    expect(fetch.chaos.counts.subjects).toBe(0);
  });
});

describe('a body', () => {
  const read = async (response: Response) => {
    let bytes = 0;
    const error = await caught(
      (async () => {
        for await (const chunk of response.body!) bytes += chunk.length;
      })(),
    );
    return { bytes, error };
  };

  test.each([0, 1, 49, 50, 51, 99])('breaks after %i of 100 bytes', async (afterBytes) => {
    const { fetch, cancelled } = setup({ kind: 'truncate', afterBytes });
    const { bytes, error } = await read(await fetch(there));
    expect(bytes).toBe(afterBytes);
    expect(error).toMatchObject({ message: 'terminated', cause: { code: 'UND_ERR_SOCKET' } });
    expect(cancelled).toHaveLength(1);
  });

  test.each([100, 101])('of 100 bytes is whole when it would break after %i', async (afterBytes) => {
    const { fetch } = setup({ kind: 'reset', afterBytes });
    expect(await read(await fetch(there))).toEqual({ bytes: 100, error: undefined });
  });

  test('keeps the headers, the url and the status', async () => {
    const { url } = await httpServer((_, response) =>
      response.writeHead(201, { 'x-real': 'yes' }).end('hello'),
    );
    const fetch = chaosFetch({ faults: [{ kind: 'truncate', afterBytes: 2 }] });
    const response = await fetch(`${url}/made`);
    expect([response.status, response.url, response.headers.get('x-real'), response.type]).toEqual([
      201,
      `${url}/made`,
      'yes',
      'basic',
    ]);
    expect(await caught(response.clone().text())).toMatchObject({ message: 'terminated' });
  });

  test('trickles at the speed that was asked for', async () => {
    const { fetch, clock } = setup({ kind: 'slow', bytesPerSecond: 100 });
    const reader = (await fetch(there)).body!.getReader();
    let bytes = 0;
    const reading = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.length;
    })();
    await clock.advance(500);
    expect(bytes).toBe(50);
    await clock.advance(499);
    expect(bytes).toBeLessThan(100);
    await clock.advance(1);
    await reading;
    expect([bytes, clock.pendingTimers]).toEqual([100, 0]);
  });

  test('that trickles ends with the caller, and when it is cancelled', async () => {
    const { fetch, clock, cancelled } = setup({ kind: 'slow', bytesPerSecond: 1 });
    const caller = new AbortController();
    const aborted = caught((await fetch(there, { signal: caller.signal })).text());
    const reader = (await fetch(there)).body!.getReader();
    const left = reader.read();
    await clock.advance('500ms');
    caller.abort(new Error('left'));
    await reader.cancel('enough');
    expect(await aborted).toEqual(new Error('left'));
    expect((await left).done).toBe(true);
    expect([cancelled.length, clock.pendingTimers]).toEqual([2, 0]);
  });

  test('can be read into a buffer of the reader', async () => {
    const { fetch } = setup({ kind: 'truncate', afterBytes: 1000 });
    const reader = (await fetch(there)).body!.getReader({ mode: 'byob' });
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(30));
      bytes += value?.length ?? 0;
      if (done) break;
    }
    expect(bytes).toBe(100);
  });
});

test('matches by method, path and target', async () => {
  const { fetch } = setup({
    kind: 'status',
    match: { method: 'GET', path: '/orders/*', target: 'shop.example:8080' },
  });
  const status = async (url: string, method: string) => (await fetch(url, { method })).status;
  expect(await status(there, 'GET')).toBe(503);
  expect(await status(there, 'PUT')).toBe(200);
  expect(await status('http://shop.example/orders/1', 'GET')).toBe(200);
  expect((await fetch(new Request(there))).status).toBe(503);
  expect((await fetch(new URL(there))).status).toBe(503);
});

test('can be set anew and healed while it runs, and counts', async () => {
  const { fetch } = setup({ kind: 'status', first: 1 });
  const statuses = async () => [(await fetch(there)).status, (await fetch(there)).status];
  expect(await statuses()).toEqual([503, 200]);
  expect(fetch.chaos.counts).toEqual({ subjects: 2, struck: 1, byKind: { status: 1 } });

  expect(() => fetch.chaos.set({ faults: [{ kind: 'duplicate' }] })).toThrow('for a fetch');
  expect(fetch.chaos.spec.faults).toEqual([{ kind: 'status', first: 1 }]);

  fetch.chaos.set({ faults: [{ kind: 'status', status: 500 }] });
  expect(await statuses()).toEqual([500, 500]);
  fetch.chaos.heal();
  expect(await statuses()).toEqual([200, 200]);
});

test('the seed decides, or the chance that was given', async () => {
  const run = async (seed: number, random?: () => number) => {
    const fetch = chaosFetch(
      { seed, faults: [{ kind: 'status', rate: 0.5 }] },
      { fetch: async () => new Response(), random },
    );
    const statuses: number[] = [];
    for (let index = 0; index < 50; index++) statuses.push((await fetch(there)).status);
    return statuses;
  };
  expect(await run(1)).toEqual(await run(1));
  expect(await run(1)).not.toEqual(await run(2));
  expect(await run(1, seededRandom('mine'))).toEqual(await run(2, seededRandom('mine')));
});

test('an option that is not known is refused', () => {
  expect(() => chaosFetch({ faults: [] }, { seed: 7 } as never)).toThrow(
    'seed: not an option; there are fetch, clock, random',
  );
});
