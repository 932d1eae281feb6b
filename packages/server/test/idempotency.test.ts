import { memoryEngine } from '@holdfast/contracts/memory';
import fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { guard as guardFastify } from '../src/fastify.ts';
import { guardWeb, type IdempotencyOptions, idempotency } from '../src/index.ts';
import { frameworks, type Handler, plain, reply } from './frameworks.ts';

const mebibyte = 1024 * 1024;

async function setup(options: Partial<IdempotencyOptions> = {}, handler?: Handler, serve = plain.serve) {
  let executions = 0;
  const engine = memoryEngine();
  const order: Handler = () =>
    reply(201, `order ${++executions}`, {
      location: `/orders/${executions}`,
      'set-cookie': 'session=secret',
    });
  const part = idempotency({ ledger: engine.ledger, scope: () => 'tenant', ...options });
  const server = await serve([part], handler ?? order);
  const post = (headers: Record<string, string> = {}, body = 'one book', path = '/orders') =>
    fetch(server.origin + path, {
      method: 'POST',
      body,
      headers: { 'content-type': 'text/plain', ...headers },
    });
  return {
    ...engine,
    part,
    server,
    post,
    executions: () => executions,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const typeOf = async (answer: Response) => ((await answer.json()) as { type: string }).type.split(':').at(-1);

describe.each(frameworks)('idempotency on $name', ({ serve }) => {
  test('executes once, and replays what may be replayed', async () => {
    await using it = await setup({}, undefined, serve);
    const key = { 'idempotency-key': '"abc-1"' };
    const [first, second] = [await it.post(key), await it.post(key)];
    expect([first.status, await first.text()]).toEqual([201, 'order 1']);
    expect([second.status, await second.text()]).toEqual([201, 'order 1']);
    expect(first.headers.get('idempotent-replayed')).toBe(null);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(second.headers.get('location')).toBe('/orders/1');
    expect(second.headers.get('content-type')).toContain('text/plain');
    expect(first.headers.get('set-cookie')).toBe('session=secret');
    expect(second.headers.get('set-cookie')).toBe(null);
    expect(it.executions()).toBe(1);
  });

  test('the handler can read the body that was looked at', async () => {
    await using it = await setup({}, ({ body }) => reply(200, `got ${body.length}`), serve);
    const long = 'ü'.repeat(200_000);
    expect(await (await it.post({ 'idempotency-key': 'long' }, long)).text()).toBe('got 200000');
    expect(await (await it.post({ 'idempotency-key': 'none' }, '')).text()).toBe('got 0');
  });

  test('a longer body than was said is refused before anything is done', async () => {
    await using it = await setup({ bodyMax: 1_000 }, undefined, serve);
    expect((await it.post({ 'idempotency-key': 'k' }, 'x'.repeat(1_001))).status).toBe(413);
    expect(it.executions()).toBe(0);
    expect((await it.post({ 'idempotency-key': 'k' }, 'x'.repeat(1_000))).status).toBe(201);
  });

  test('one that runs is not run beside', async () => {
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await using it = await setup(
      {},
      async () => {
        begun.resolve();
        await release.promise;
        return reply(200, 'done');
      },
      serve,
    );
    const key = { 'idempotency-key': 'k' };
    const first = it.post(key);
    await begun.promise;
    const second = await it.post(key);
    expect([second.status, second.headers.get('retry-after'), await typeOf(second)]).toEqual([
      409,
      '1',
      'in-progress',
    ]);
    release.resolve();
    expect(await (await first).text()).toBe('done');
    expect((await it.post(key)).headers.get('idempotent-replayed')).toBe('true');
  });

  test('a response that is too long, or a failure, is not executed again either', async () => {
    const answers = [reply(200, 'x'.repeat(mebibyte + 1)), reply(500, 'it broke')];
    let next = 0;
    await using it = await setup({}, () => answers[next++]!, serve);
    const long = await it.post({ 'idempotency-key': 'long' });
    expect((await long.text()).length).toBe(mebibyte + 1);
    const again = await it.post({ 'idempotency-key': 'long' });
    expect([again.status, await typeOf(again)]).toEqual([409, 'response-not-stored']);
    expect((await it.post({ 'idempotency-key': 'broken' })).status).toBe(500);
    const broken = await it.post({ 'idempotency-key': 'broken' });
    expect([broken.status, await broken.text()]).toEqual([500, 'it broke']);
    expect(next).toBe(2);
  });

  test('an empty response is replayed as one', async () => {
    await using it = await setup({}, () => ({ status: 204, headers: {}, body: null }), serve);
    const key = { 'idempotency-key': 'k' };
    expect((await it.post(key)).headers.get('content-length')).toBe(null);
    const again = await it.post(key);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([204, 'true']);
    expect(again.headers.get('content-length')).toBe(null);
  });

  test('a failure that left nothing behind frees the key', async () => {
    let calls = 0;
    await using it = await setup(
      {},
      ({ context }) => {
        if (++calls === 1) return reply(503, '', { holdfast: 'retry=safe' });
        if (calls === 2) context.idempotent!.nothingDone();
        if (calls === 2) throw new Error('no connection');
        return reply(200, 'done');
      },
      serve,
    );
    const key = { 'idempotency-key': 'k' };
    expect((await it.post(key)).status).toBe(503);
    expect((await it.post(key)).status).toBe(500);
    expect(await (await it.post(key)).text()).toBe('done');
    expect(calls).toBe(3);
  });
});

describe('a response that could not be recorded whole', () => {
  const post = (origin: string) =>
    fetch(origin, { method: 'POST', body: 'one book', headers: { 'idempotency-key': 'k' } });
  const once = () => idempotency({ ledger: memoryEngine().ledger, scope: 'public' });

  test('because a handler sent it past Fastify is not given again, nor the request executed', async () => {
    let executions = 0;
    const app = fastify();
    app.register(guardFastify, { parts: [once()] });
    app.post('/', (_request, reply) => {
      executions++;
      reply.hijack();
      reply.raw.end('raw');
    });
    const origin = await app.listen({ port: 0, host: '127.0.0.1' });
    expect(await (await post(origin)).text()).toBe('raw');
    await expect.poll(async () => typeOf(await post(origin))).toBe('response-not-stored');
    expect(executions).toBe(1);
    app.server.closeAllConnections();
    await app.close();
  });

  test('because it broke off is not given again, nor the request executed', async () => {
    let executions = 0;
    const guarded = guardWeb([once()], () => {
      executions++;
      return new Response(
        new ReadableStream({
          pull(controller) {
            controller.error(new Error('broke'));
          },
        }),
      );
    });
    const request = () =>
      guarded(new Request('http://a/', { method: 'POST', body: 'x', headers: { 'idempotency-key': 'k' } }));
    await expect(request()).rejects.toThrow('broke');
    expect(await typeOf(await request())).toBe('response-not-stored');
    expect(executions).toBe(1);
  });
});
