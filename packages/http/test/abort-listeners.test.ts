import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { fetch as undiciFetch } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { createFetch, type Fetch, type FetchOptions } from '../src/index.ts';
import { type Beat, closing, freePort, serve } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false } as const;

/** A signal that outlives its calls, and how many listeners it has had. */
function longLived() {
  const caller = new AbortController();
  const { signal } = caller;
  const count = () => getEventListeners(signal, 'abort').length;
  return { caller, signal, count };
}

/** Counts at each request that arrives, before it is answered as `beats` say. */
function counting(count: () => number, ...beats: number[]) {
  const counts: number[] = [];
  const counted = beats.map(
    (status): Beat =>
      (_request, response) => {
        counts.push(count());
        response.writeHead(status).end('hello');
      },
  );
  return { counts, beats: counted };
}

/** Writes for as long as somebody reads. */
const endless: Beat = (_request, response) => {
  const write = () => {
    while (!response.destroyed && response.write('x'.repeat(65_536)));
  };
  response.on('drain', write);
  write();
};

describe.each<[name: string, fetch: Fetch | undefined]>([
  ['the default fetch', undefined],
  ['the fetch of undici', undiciFetch as unknown as Fetch],
])('a long-lived signal that is given to %s', (_name, send) => {
  const setup = (options: FetchOptions = {}) =>
    closing(createFetch({ policy: quick, fetch: send, ...options }));

  test('has one listener at most while a call is retried, and none when its body has been read', async () => {
    const { signal, count } = longLived();
    const { beats, counts } = counting(count, 503, 503, 200);
    const server = await serve(...beats);
    const response = await setup()(server.url, { signal });
    expect([response.status, count()]).toEqual([200, 1]);
    await response.text();
    await expect.poll(count).toBe(0);
    expect(counts).toHaveLength(3);
    expect(Math.max(...counts)).toBeLessThanOrEqual(1);
  });

  test('has none when the retries have ended on a response, nor when they have ended on an error', async () => {
    const { signal, count } = longLived();
    const server = await serve(503);
    const fetch = setup();
    const response = await fetch(server.url, { signal });
    expect(response.status).toBe(503);
    await response.text();
    await expect.poll(count).toBe(0);
    await expect(fetch(`http://127.0.0.1:${await freePort()}`, { signal })).rejects.toThrow('fetch failed');
    expect(count()).toBe(0);
  });

  test('has none when a response without a body has come', async () => {
    const { signal, count } = longLived();
    const server = await serve(204);
    await setup()(server.url, { signal });
    expect(count()).toBe(0);
  });

  test('has one at most for 50 calls at once, and Node warns of nothing', async () => {
    const { signal, count } = longLived();
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const server = await serve(200);
    const fetch = setup();
    let most = 0;
    const calls = Array.from({ length: 50 }, async () => {
      const response = await fetch(server.url, { signal });
      most = Math.max(most, count());
      return response;
    });
    most = Math.max(most, count());
    const responses = await Promise.all(calls);
    expect(most).toBeLessThanOrEqual(1);
    for (const response of responses) await response.text();
    await expect.poll(count).toBe(0);
    expect(warn).not.toHaveBeenCalled();
  });

  test('ends bodies that are not read yet, with its reason', async () => {
    const { caller, signal, count } = longLived();
    const server = await serve(endless);
    const responses = await Promise.all([1, 2, 3].map(() => setup()(server.url, { signal })));
    expect(count()).toBe(1);
    const reason = new Error('not wanted');
    caller.abort(reason);
    for (const response of responses) await expect(response.text()).rejects.toBe(reason);
    await expect.poll(() => [count(), server.open()]).toEqual([0, 0]);
  });

  test('has none when a body was cancelled, or broke off', async () => {
    const { signal, count } = longLived();
    const broken: Beat = (_request, response) => {
      response.writeHead(200, { 'content-length': 10 });
      response.write('half', () => response.destroy());
    };
    const server = await serve(endless, broken);
    const fetch = setup();
    const response = await fetch(server.url, { signal });
    await response.body?.cancel();
    await expect.poll(count).toBe(0);
    await expect((await fetch(server.url, { signal })).text()).rejects.toThrow('terminated');
    await expect.poll(count).toBe(0);
  });

  test('has none when a response that nobody read is garbage', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { signal, count } = longLived();
    const server = await serve(endless);
    const fetch = setup();
    await (async () => {
      await fetch(server.url, { signal });
    })();
    await expect
      .poll(() => {
        collect();
        return count();
      })
      .toBe(0);
  });

  test('has one at most where a policy only observes, and none after', async () => {
    const { signal, count } = longLived();
    const { beats, counts } = counting(count, 503);
    const server = await serve(...beats);
    const fetch = setup({ policy: { ...quick, mode: 'observe' } });
    const responses = await Promise.all(Array.from({ length: 12 }, () => fetch(server.url, { signal })));
    for (const response of responses) await response.text();
    await expect.poll(count).toBe(0);
    expect(Math.max(...counts)).toBeLessThanOrEqual(1);
  });

  test('that aborts an observed call before its response rejects it with its reason', async () => {
    const { caller, signal, count } = longLived();
    const reason = new Error('not wanted');
    const server = await serve(() => caller.abort(reason));
    const fetch = setup({ policy: { ...quick, mode: 'observe' } });
    await expect(fetch(server.url, { signal })).rejects.toBe(reason);
    await expect(fetch(server.url, { signal })).rejects.toBe(reason);
    await expect.poll(() => [count(), server.open()]).toEqual([0, 0]);
  });
});

test('a long-lived signal has one listener while the bodies of 50 requests are buffered, and none after', async () => {
  const { caller, signal, count } = longLived();
  const fetch = closing(createFetch({ policy: quick, bodyBufferMax: 10 }));
  const calls = Array.from({ length: 50 }, () =>
    fetch(
      new Request('http://127.0.0.1', {
        method: 'PUT',
        body: new ReadableStream(),
        duplex: 'half',
      } as RequestInit),
      {
        signal,
      },
    ),
  );
  expect(count()).toBe(1);
  caller.abort(new Error('not wanted'));
  for (const call of calls) await expect(call).rejects.toThrow('not wanted');
  expect(count()).toBe(0);
});
