import { Readable } from 'node:stream';
import { storyOf } from 'holdfast';
import { Agent } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { createFetch, type FetchOptions } from '../src/index.ts';
import { closing, downWith, serve } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 }, breaker: false } as const;
const setup = (options: FetchOptions = {}) => closing(createFetch({ policy: quick, ...options }));

const form = new FormData();
form.set('name', 'kelp');

describe('a body that lasts is sent again as it is', () => {
  test.each([
    ['a string', 'kelp', 'kelp'],
    ['a buffer', Buffer.from('kelp'), 'kelp'],
    ['an array buffer', new TextEncoder().encode('kelp').buffer, 'kelp'],
    ['a blob', new Blob(['kelp']), 'kelp'],
    ['parameters', new URLSearchParams({ name: 'kelp' }), 'name=kelp'],
    ['a form', form, /name="name"\r\n\r\nkelp/],
  ])('%s', async (_name, body, expected) => {
    const server = await serve(503, 200);
    const response = await setup()(server.url, { method: 'PUT', body: body as BodyInit });
    expect(response.status).toBe(200);
    expect(server.seen).toHaveLength(2);
    for (const seen of server.seen) {
      if (typeof expected === 'string') expect(seen.body).toBe(expected);
      else expect(seen.body).toMatch(expected);
    }
    // Which kind it is goes along each time.
    expect(server.seen[1]?.headers['content-type']?.slice(0, 20)).toBe(
      server.seen[0]?.headers['content-type']?.slice(0, 20),
    );
  });

  test('none at all', async () => {
    const server = await serve(503, 200);
    await expect(setup()(server.url, { method: 'PUT' })).resolves.toMatchObject({ status: 200 });
  });
});

describe('a body factory', () => {
  test('makes a new stream for each attempt', async () => {
    const server = await serve(503, 503, 200);
    const body = vi.fn(() => new Blob(['kelp']).stream());
    await expect(setup()(server.url, { method: 'PUT', body })).resolves.toMatchObject({ status: 200 });
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp', 'kelp', 'kelp']);
    expect(body).toHaveBeenCalledTimes(3);
  });

  test.each<[name: string, make: () => unknown]>([
    ['a stream of Node', () => Readable.from(['ke', 'lp'])],
    [
      'chunks as they come',
      async function* () {
        yield Buffer.from('kelp');
      },
    ],
  ])('may give %s', async (_name, make) => {
    const server = await serve(503, 200);
    const response = await setup()(server.url, { method: 'PUT', body: make as () => BodyInit });
    expect(response.status).toBe(200);
    expect(server.seen.map(({ body }) => body)).toEqual(['kelp', 'kelp']);
  });

  test('that gives a promise is refused, and nothing is sent', async () => {
    const server = await serve(200);
    const body = (async () => 'kelp') as never;
    await expect(setup()(server.url, { method: 'PUT', body })).rejects.toThrow('body: expected a body');
    expect(server.seen).toEqual([]);
  });

  test('that gives the same generator again is refused: nothing would be left to send', async () => {
    const server = await serve(503, 200);
    async function* kelp() {
      yield Buffer.from('kelp');
    }
    const same = kelp();
    const running = setup()(server.url, { method: 'PUT', body: () => same as never });
    await expect(running).rejects.toThrow('a new body');
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp']);
  });

  test('that throws ends the call', async () => {
    const server = await serve(200);
    const body = () => {
      throw new RangeError('no such file');
    };
    await expect(setup()(server.url, { method: 'PUT', body })).rejects.toThrow('no such file');
    expect(server.seen).toHaveLength(0);
  });
});

describe('a body that can be read once is sent once', () => {
  test.each([
    ['a web stream', () => new Blob(['kelp']).stream()],
    ['a Node stream', () => Readable.toWeb(Readable.from(['kelp'], { objectMode: false }))],
    ['an iterable', () => Readable.from([Buffer.from('kelp')])],
  ])('%s', async (_name, make) => {
    const server = await serve(503, 200);
    const init = { method: 'PUT', body: make() as BodyInit, duplex: 'half' } as RequestInit;
    const response = await setup()(server.url, init);
    expect(storyOf(response)?.stop).toBe('not_replayable');
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp']);
  });

  test('the body of a Request', async () => {
    const server = await serve(503, 200);
    const response = await setup()(new Request(server.url, { method: 'PUT', body: 'kelp' }));
    expect(storyOf(response)?.stop).toBe('not_replayable');
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp']);
  });

  test('the body of a Request, also where init says null: that is to fetch as if it said nothing', async () => {
    const server = await serve(503, 503, 200);
    const request = () => new Request(server.url, { method: 'PUT', body: 'kelp' });
    const response = await setup()(request(), { body: null });
    expect(storyOf(response)?.stop).toBe('not_replayable');
    await expect(setup({ bodyBufferMax: 10 })(request(), { body: null })).resolves.toMatchObject({
      status: 200,
    });
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp', 'kelp', 'kelp']);
  });

  test('unless it is short enough to be kept', async () => {
    const server = await serve(503, 200);
    const fetch = setup({ bodyBufferMax: 10 });
    const request = new Request(server.url, {
      method: 'PUT',
      body: 'kelp',
      headers: { 'content-type': 'text/seaweed', 'x-told': 'yes' },
    });
    await expect(fetch(request)).resolves.toMatchObject({ status: 200 });
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp', 'kelp']);
    expect(server.seen[1]?.headers).toMatchObject({ 'content-type': 'text/seaweed', 'x-told': 'yes' });
  });

  test('a caller that aborts while its body is read is not kept waiting', async () => {
    const server = await serve(200);
    const caller = new AbortController();
    const cancelled = Promise.withResolvers<unknown>();
    const body = new ReadableStream({
      pull: () => caller.abort(new Error('left')),
      cancel: cancelled.resolve,
    });
    const { signal } = caller;
    const request = new Request(server.url, { method: 'PUT', body, signal, duplex: 'half' } as RequestInit);
    await expect(setup({ bodyBufferMax: 1000 })(request)).rejects.toThrow('left');
    await cancelled.promise;
    expect(server.seen).toEqual([]);
  });

  test('one that was read before is said as fetch says it', async () => {
    const server = await serve(200);
    const request = new Request(server.url, { method: 'PUT', body: 'kelp' });
    await request.text();
    await expect(setup({ bodyBufferMax: 1000 })(request)).rejects.toThrow(/already been used/);
  });

  test('a longer one arrives whole, and once', async () => {
    const server = await serve(503, 200);
    const fetch = setup({ bodyBufferMax: 10 });
    const response = await fetch(new Request(server.url, { method: 'PUT', body: 'kelp'.repeat(50_000) }));
    expect(storyOf(response)?.stop).toBe('not_replayable');
    expect(server.seen.map((seen) => seen.body)).toEqual(['kelp'.repeat(50_000)]);
  });

  test('a Request without a body is repeated, with its headers', async () => {
    const server = await serve(503, 200);
    const request = new Request(server.url, { headers: { 'x-told': 'yes' } });
    await expect(setup()(request)).resolves.toMatchObject({ status: 200 });
    expect(server.seen.map(({ headers }) => headers['x-told'])).toEqual(['yes', 'yes']);
  });
});

describe('a response that is repeated', () => {
  test('frees its connection for the next attempt', async () => {
    const server = await serve({ status: 503, body: 'down' }, { status: 503, body: 'down' }, 200);
    const response = await setup()(server.url);
    await response.text();
    expect(server.seen.map(({ connection }) => connection)).toEqual([1, 1, 1]);
  });

  test.each([
    ['100 KiB with its length', 102_400, true],
    ['100 KiB in chunks', 102_400, false],
    ['250 KiB with its length', 256_000, true],
    ['250 KiB in chunks', 256_000, false],
  ])(
    'frees its connection while the next attempt waits, also where it is %s',
    async (_name, bytes, hasLength) => {
      const server = await serve(downWith(bytes, hasLength), 200);
      const dispatcher = closing(new Agent({ connections: 1 }));
      const fetch = setup({ dispatcher, policy: { ...quick, backoff: () => 60_000, patience: '1h' } });
      const caller = new AbortController();
      const waiting = Promise.withResolvers<void>();
      const init = { signal: caller.signal, holdfast: { onWait: () => waiting.resolve() } };
      const first = fetch(server.url, init).catch((error: unknown) => error);
      await waiting.promise;
      // On the only connection that there is.
      await expect(fetch(server.url).then((response) => response.text())).resolves.toBe('hello');
      expect(server.connections()).toBe(1);
      caller.abort();
      await first;
    },
  );

  test('is still whole where it is 250 KiB long and the breaker opens meanwhile', async () => {
    const server = await serve({ status: 503, body: 'x'.repeat(256_000) });
    const backoff = { base: '40ms', jitter: 'none' } as const;
    const fetch = setup({ policy: { budget: { ratio: 1 }, breaker: { consecutive: 2 }, backoff } });
    // The second call fails while the first one waits, and opens the breaker.
    const [first, second] = await Promise.all([fetch(server.url), fetch(server.url)]);
    expect(storyOf(first)?.stop).toBe('breaker_open');
    for (const response of [first, second]) expect((await response.text()).length).toBe(256_000);
  });

  test('is not read when it is long: its connection is closed', async () => {
    const long = (_request: unknown, response: import('node:http').ServerResponse) => {
      response.writeHead(503, { 'content-length': 10_000_000 });
      response.write('x'.repeat(1000));
    };
    const server = await serve(long, 200);
    const response = await setup()(server.url);
    expect(response.status).toBe(200);
    await response.text();
    await vi.waitFor(() => expect(server.open()).toBe(1));
  });
});
