import axios, { AxiosError } from 'axios';
import { storyOf } from 'holdfast';
import ky, { HTTPError } from 'ky';
import { getGlobalDispatcher, MockAgent, setGlobalDispatcher } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { createFetch, type FetchOptions } from '../src/index.ts';
import { closing, serve } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false, attempts: 3 } as const;
const setup = (options: FetchOptions = {}) =>
  closing(createFetch({ policy: quick, bodyBufferMax: 1_000_000, ...options }));

describe('axios on our fetch', () => {
  const client = (options?: FetchOptions) =>
    axios.create({ adapter: 'fetch', env: { fetch: setup(options) } });

  test('GET is repeated', async () => {
    const server = await serve(503, { body: '{"kelp":1}', headers: { 'content-type': 'application/json' } });
    await expect(client().get(server.url)).resolves.toMatchObject({ status: 200, data: { kelp: 1 } });
    expect(server.seen).toHaveLength(2);
  });

  test('PUT is repeated with its body', async () => {
    const server = await serve(503, 200);
    await expect(client().put(server.url, { kelp: 1 })).resolves.toMatchObject({ status: 200 });
    expect(server.seen.map(({ body }) => body)).toEqual(['{"kelp":1}', '{"kelp":1}']);
    expect(server.seen[1]?.headers['content-type']).toContain('application/json');
  });

  test('POST is not, without a key', async () => {
    const server = await serve(503, 200);
    await expect(client().post(server.url, { kelp: 1 })).rejects.toBeInstanceOf(AxiosError);
    expect(server.seen).toHaveLength(1);
    const keyed = await serve(503, 200);
    await client({ idempotency: 'auto' }).post(keyed.url, { kelp: 1 });
    expect(new Set(keyed.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  });

  test('an abort ends it', async () => {
    const server = await serve(() => {});
    const caller = new AbortController();
    const running = client().get(server.url, { signal: caller.signal });
    await vi.waitFor(() => expect(server.seen).toHaveLength(1));
    caller.abort();
    await expect(running).rejects.toMatchObject({ code: 'ERR_CANCELED' });
  });
});

describe('ky on our fetch', () => {
  const client = (options?: FetchOptions) =>
    ky.create({ fetch: setup(options) as typeof fetch, retry: 0, timeout: false });

  test('GET is repeated', async () => {
    const server = await serve(503, { body: '{"kelp":1}' });
    await expect(client().get(server.url).json()).resolves.toEqual({ kelp: 1 });
  });

  test('PUT is repeated with its body', async () => {
    const server = await serve(503, 200);
    await client().put(server.url, { json: { kelp: 1 } });
    expect(server.seen.map(({ body }) => body)).toEqual(['{"kelp":1}', '{"kelp":1}']);
  });

  test('POST is not, and its error has the story', async () => {
    const server = await serve(503, 200);
    const error = await client()
      .post(server.url, { json: { kelp: 1 } })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HTTPError);
    expect(storyOf((error as HTTPError).response)?.stop ?? 'not_idempotent').toBe('not_idempotent');
    expect(server.seen).toHaveLength(1);
  });
});

describe('the global dispatcher', () => {
  test('of somebody else, such as a mock, is respected', async () => {
    const before = getGlobalDispatcher();
    const mock = new MockAgent();
    mock.disableNetConnect();
    const pool = mock.get('http://kelp.test');
    pool.intercept({ path: '/' }).reply(503, 'down');
    pool.intercept({ path: '/' }).reply(200, 'mocked');
    setGlobalDispatcher(mock);
    try {
      const response = await setup()('http://kelp.test/');
      await expect(response.text()).resolves.toBe('mocked');
    } finally {
      setGlobalDispatcher(before);
      await mock.close();
    }
  });

  test('a fetch that a test puts in place of the global one is used', async () => {
    const fake = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response('fake'));
    const response = await setup()('http://kelp.test/');
    await expect(response.text()).resolves.toBe('fake');
    fake.mockRestore();
  });
});
