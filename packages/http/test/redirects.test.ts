import { Agent, interceptors, request, fetch as undiciFetch } from 'undici';
import { describe, expect, test } from 'vitest';
import { createFetch, retryInterceptor } from '../src/index.ts';
import { type Beat, closing, freePort, serve } from './servers.ts';

const quick = { attempts: 3, backoff: () => 2, budget: { ratio: 1 } } as const;

type Send = (url: string, headers?: Record<string, string>) => Promise<number>;

/** Everything that may follow a redirect without us seeing each step of it as a request of its own. */
const ways: readonly [string, () => Send][] = [
  ['fetch', () => posting(closing(createFetch({ policy: quick })))],
  ['undici.fetch', () => posting(closing(createFetch({ policy: quick, fetch: undiciFetch })))],
  [
    'a dispatcher that redirects, behind fetch',
    () => posting(createFetch({ policy: quick, dispatcher: redirecting() })),
  ],
  [
    'an interceptor around one that redirects',
    () => viaRequest(redirecting().compose(retryInterceptor(quick))),
  ],
];

function redirecting() {
  return closing(new Agent()).compose(interceptors.redirect({ maxRedirections: 3 }));
}

function posting(fetch: ReturnType<typeof createFetch>): Send {
  return async (url, headers = {}) => (await fetch(url, { method: 'POST', body: 'pay', headers })).status;
}

function viaRequest(dispatcher: ReturnType<typeof redirecting>): Send {
  return async (url, headers = {}) => {
    const { statusCode, body } = await request(url, { method: 'POST', body: 'pay', headers, dispatcher });
    await body.dump();
    return statusCode;
  };
}

const to = (status: number, location: string): Beat => ({ status, headers: { location } });

describe.each(ways)('a POST that is redirected, with %s', (_name, open) => {
  test.each([301, 302, 303, 307, 308])('by a %i to where nobody listens, was processed', async (status) => {
    const server = await serve(to(status, `http://127.0.0.1:${await freePort()}/paid`));
    await expect(open()(server.url)).rejects.toThrow();
    expect(server.seen).toHaveLength(1);
  });

  test.each([302, 303, 307])('by a %i to what has no capacity, was processed', async (status) => {
    const busy = await serve({ status: 503, headers: { holdfast: 'retry=safe' } });
    const server = await serve(to(status, `${busy.url}/paid`));
    expect(await open()(server.url)).toBe(503);
    expect(server.seen).toHaveLength(1);
  });

  test('is repeated with a key, from the start', async () => {
    const busy = await serve(503, 200);
    const server = await serve(to(307, `${busy.url}/paid`));
    expect(await open()(server.url, { 'idempotency-key': 'k' })).toBe(200);
    expect(server.seen.map(({ headers }) => headers['idempotency-key'])).toEqual(['k', 'k']);
    expect(busy.seen.map(({ body }) => body)).toEqual(['pay', 'pay']);
  });
});
