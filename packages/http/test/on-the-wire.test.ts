import { storyOf, systemClock, withAmbient } from 'holdfast';
import 'holdfast/ambient';
import { readRequest } from 'holdfast/wire';
import { Agent, request } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { createFetch as createBrowserFetch } from '../src/browser.ts';
import { createFetch, type FetchOptions, retryInterceptor } from '../src/index.ts';
import { closing, type Server, serve } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false } as const;
const setup = (options: FetchOptions = {}) => closing(createFetch({ policy: quick, ...options }));
const keysOf = ({ seen }: Server) => seen.map(({ headers }) => headers['idempotency-key']);
const saidTo = ({ seen }: Server) => seen.map(({ headers }) => readRequest(headers));
const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

describe('idempotency keys', () => {
  test('are off unless asked for', async () => {
    const server = await serve(200);
    await setup()(server.url, { method: 'POST' });
    expect(keysOf(server)).toEqual([undefined]);
  });

  test('auto: one for all attempts of an operation, another for the next', async () => {
    const server = await serve(503, 503, 200);
    const fetch = setup({ idempotency: 'auto' });
    await fetch(server.url, { method: 'POST', body: 'pay' });
    await fetch(server.url, { method: 'POST', body: 'pay' });
    const [first, second, third, other] = keysOf(server);
    expect(first).toMatch(uuid);
    expect([second, third]).toEqual([first, first]);
    expect(other).toMatch(uuid);
    expect(other).not.toBe(first);
  });

  test('auto: never shared by two of ten thousand', async () => {
    const keys = new Set<string>();
    const fetch = createFetch({
      idempotency: 'auto',
      fetch: async (_input, init) => {
        keys.add(new Headers(init?.headers).get('idempotency-key') ?? '');
        return new Response();
      },
    });
    for (let count = 0; count < 10_000; count++) await fetch('http://kelp.test', { method: 'POST' });
    expect(keys.size).toBe(10_000);
  });

  test('auto: requests that are safe to repeat get none', async () => {
    const server = await serve(200);
    await setup({ idempotency: 'auto' })(server.url, { method: 'PUT' });
    expect(keysOf(server)).toEqual([undefined]);
  });

  test('one that is given is taken, in whatever form the headers are', async () => {
    const server = await serve(503, 200, 503, 200, 503, 200, 503, 200);
    const fetch = setup({ idempotency: 'auto' });
    const said = { 'IDEMPOTENCY-key': 'mine' };
    for (const headers of [said, new Headers(said), Object.entries(said) as [string, string][]]) {
      await expect(fetch(server.url, { method: 'POST', headers })).resolves.toMatchObject({ status: 200 });
    }
    await fetch(server.url, { method: 'POST', holdfast: { idempotencyKey: 'mine' } });
    expect(keysOf(server)).toEqual(Array(8).fill('mine'));
  });

  test('two that differ are refused, and nothing is sent', async () => {
    const server = await serve(200);
    const headers = { 'Idempotency-Key': 'order-17' };
    const call = (idempotencyKey: string) =>
      setup()(server.url, { method: 'POST', headers, holdfast: { idempotencyKey } });
    await expect(call('order-18')).rejects.toThrow(
      'holdfast.idempotencyKey: expected the key of the header Idempotency-Key, "order-17", or only one of the two, got "order-18"',
    );
    expect(server.seen).toEqual([]);
    await call('order-17');
    expect(keysOf(server)).toEqual(['order-17']);
  });

  test('headers that can be read once go out with each attempt', async () => {
    const server = await serve(503, 200);
    const headers = new Map([['x-told', 'yes']]).entries() as never;
    await setup({ idempotency: 'auto' })(server.url, { method: 'POST', headers });
    await setup()(server.url, { headers: new Map([['x-told', 'yes']]).entries() as never });
    expect(server.seen.map((seen) => seen.headers['x-told'])).toEqual(['yes', 'yes', 'yes']);
  });

  test('or a function says it', async () => {
    const server = await serve(503, 200, 200);
    const fetch = setup({
      idempotency: ({ method, url }) => (url.endsWith('/pay') ? `${method}-17` : undefined),
    });
    await fetch(`${server.url}/pay`, { method: 'POST' });
    await fetch(`${server.url}/look`, { method: 'POST' });
    expect(keysOf(server)).toEqual(['POST-17', 'POST-17', undefined]);
  });

  test.each([
    ['nothing', ''],
    ['a promise', Promise.resolve('k')],
    ['a number', 17],
  ])('%s is none: nothing is sent', async (_name, said) => {
    const server = await serve(503, 200);
    const post = { method: 'POST', body: 'pay' };
    const byFunction = setup({ idempotency: () => said as string })(server.url, post);
    await expect(byFunction).rejects.toThrow('idempotency: expected a text that is not empty');
    const byCall = setup()(server.url, { ...post, holdfast: { idempotencyKey: said as string } });
    await expect(byCall).rejects.toThrow('holdfast.idempotencyKey: expected a text that is not empty');
    const dispatcher = closing(
      new Agent().compose(retryInterceptor(quick, { idempotency: () => said as string })),
    );
    await expect(request(server.url, { method: 'POST', dispatcher })).rejects.toThrow('idempotency');
    expect(server.seen).toEqual([]);
  });

  test('an empty one in the headers is none: a POST is not repeated', async () => {
    const server = await serve(503);
    const headers = { 'Idempotency-Key': '' };
    await setup({ idempotency: 'auto' })(server.url, { method: 'POST', headers });
    const dispatcher = closing(new Agent().compose(retryInterceptor(quick)));
    await (await request(server.url, { method: 'POST', headers, dispatcher })).body.dump();
    expect(keysOf(server)).toEqual(['', '']);
  });

  test.each(['x'.repeat(300), 'order 17', 'a,b', 'größer'])(
    'derived from %s is one that servers take',
    async (idempotencyKey) => {
      const server = await serve(200);
      const fetch = setup({ idempotency: 'derive' });
      for (const path of ['/pay', '/pay', '/ship']) {
        await withAmbient({ idempotencyKey }, () => fetch(server.url + path, { method: 'POST' }));
      }
      const [first, again, other] = keysOf(server);
      expect(first).toMatch(/^[!#-+\--[\]-~]{1,255}$/);
      expect(again).toBe(first);
      expect(other).not.toBe(first);
    },
  );

  test('derived from the surrounding work: the same when it is run again, never the same for two calls', async () => {
    const server = await serve(200);
    const fetch = setup({ idempotency: 'derive' });
    const work = () =>
      withAmbient({ idempotencyKey: 'order-17' }, async () => {
        await fetch(`${server.url}/pay`, { method: 'POST' });
        await fetch(`${server.url}/pay`, { method: 'POST' });
        await fetch(`${server.url}/ship`, { method: 'POST' });
      });
    await work();
    await work();
    const keys = keysOf(server);
    expect(keys.slice(0, 3)).toEqual(keys.slice(3));
    expect(new Set(keys).size).toBe(3);
    for (const key of keys) expect(key).toMatch(/^order-17\.[\da-f]{16}\.\d$/);
    await fetch(server.url, { method: 'POST' });
    expect(keysOf(server).at(-1)).toBeUndefined();
  });
});

describe('the Holdfast header', () => {
  test('says patience, attempt and owner', async () => {
    const server = await serve(503, 200);
    await setup()(server.url, { holdfast: { patience: '5s', priority: 'critical' } });
    const [first, second] = saidTo(server);
    expect(first).toMatchObject({ attempt: 1, owner: true, priority: 'critical' });
    expect(second).toMatchObject({ attempt: 2, owner: true, priority: 'critical' });
    expect(first?.patienceMs).toBeLessThanOrEqual(5000);
    expect(second?.patienceMs).toBeLessThan(first?.patienceMs as number);
  });

  test('claims nothing of a request that will not be repeated', async () => {
    const server = await serve(200);
    const fetch = setup();
    await fetch(server.url, { method: 'POST' });
    await setup({ policy: { attempts: 1 } })(server.url);
    expect(saidTo(server).map(({ owner }) => owner)).toEqual([undefined, undefined]);
  });

  test('is left to a caller who writes it', async () => {
    const server = await serve(200);
    await setup()(server.url, { headers: { Holdfast: 'attempt=7' } });
    expect(saidTo(server)).toEqual([{ attempt: 7 }]);
  });

  test('goes to nobody, or to those that are listed', async () => {
    const [friend, stranger] = [await serve(200), await serve(200)];
    const fetch = setup({ announce: [friend.url] });
    await fetch(friend.url);
    await fetch(stranger.url);
    await setup({ announce: false })(friend.url);
    expect(friend.seen.map(({ headers }) => headers.holdfast !== undefined)).toEqual([true, false]);
    expect(stranger.seen[0]?.headers.holdfast).toBeUndefined();
  });

  test('does not follow a redirect to another origin', async () => {
    const elsewhere = await serve(200);
    const server = await serve(
      { status: 302, headers: { location: '/here' } },
      { status: 302, headers: { location: elsewhere.url } },
    );
    await setup()(server.url);
    expect(server.seen.map(({ headers }) => headers.holdfast !== undefined)).toEqual([true, true]);
    expect(elsewhere.seen.map(({ headers }) => headers.holdfast)).toEqual([undefined]);
  });

  test('in a browser goes to the own origin, and to those that are listed', async () => {
    vi.stubGlobal('location', { origin: 'https://shop.test' });
    const told: string[] = [];
    const fetch = createBrowserFetch({
      announce: ['https://api.test'],
      fetch: async (input, init) => {
        if (new Headers(init?.headers).has('holdfast')) told.push(String(input));
        return new Response();
      },
    });
    for (const url of ['https://shop.test/a', '/b', 'https://api.test/c', 'https://ads.test/d'])
      await fetch(url);
    vi.unstubAllGlobals();
    expect(told).toEqual(['https://shop.test/a', '/b', 'https://api.test/c']);
  });
});

describe('inside other work', () => {
  test('patience shrinks and priority is inherited', async () => {
    const server = await serve(200);
    const fetch = setup();
    const patienceEndsAt = systemClock.now() + 700;
    await withAmbient({ patienceEndsAt, priority: 'sheddable' }, () => fetch(server.url));
    expect(saidTo(server)[0]).toMatchObject({ priority: 'sheddable' });
    expect(saidTo(server)[0]?.patienceMs).toBeLessThanOrEqual(700);
  });

  test('where an owner upstream retries, a call is attempted once and its failure is passed up', async () => {
    const server = await serve(503, 200);
    const response = await withAmbient({ ownedUpstream: true }, () => setup()(server.url));
    expect(response.status).toBe(503);
    expect(storyOf(response)?.stop).toBe('not_owner');
    expect(server.seen).toHaveLength(1);
    // Those below must not repeat either.
    expect(saidTo(server)[0]?.owner).toBe(true);
  });

  test('packaging makes one attempt, and lets those below retry', async () => {
    const server = await serve(503, 200);
    const response = await withAmbient({ packaging: true }, () => setup()(server.url));
    expect(response.status).toBe(503);
    expect(storyOf(response)?.stop).toBe('not_owner');
    expect(server.seen).toHaveLength(1);
    expect(saidTo(server)[0]?.owner).toBeUndefined();
  });

  test.each<[name: string, call: (url: string) => Parameters<ReturnType<typeof setup>>]>([
    ['a Request', (url) => [new Request(url)]],
    ['a signal of its own', (url) => [url, { signal: new AbortController().signal }]],
  ])('a customer who has gone ends a call with %s, too', async (_name, call) => {
    const left = new AbortController();
    const server = await serve(() => left.abort(new Error('gone')));
    const running = withAmbient({ signal: left.signal }, () => setup()(...call(server.url)));
    await expect(running).rejects.toThrow('gone');
  });

  test('an abort of the inherited signal ends the call, and the body', async () => {
    const left = new AbortController();
    const server = await serve((_request, response) => {
      response.writeHead(200);
      response.write('some');
    });
    const response = await withAmbient({ signal: left.signal }, () => setup()(server.url));
    left.abort(new Error('gone'));
    await expect(response.text()).rejects.toThrow('gone');
  });
});
