import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { memoryEngine } from '@holdfast/contracts/memory';
import { describe, expect, test } from 'vitest';
import { type IdempotencyOptions, idempotency, type RecordEncryption } from '../src/index.ts';
import { frameworks, type Handler, plain, reply } from './frameworks.ts';

async function setup(options: Partial<IdempotencyOptions>, handler: Handler, serve = plain.serve) {
  const engine = memoryEngine();
  const part = idempotency({
    ledger: engine.ledger,
    scope: (exchange) => exchange.header('x-tenant'),
    ...options,
  });
  const server = await serve([part], handler);
  const post = (tenant = 'a', key = 'k') =>
    fetch(server.origin, {
      method: 'POST',
      body: 'one',
      headers: { 'idempotency-key': key, 'x-tenant': tenant },
    });
  return { ...engine, part, post, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** AES-GCM, with the scope as what is signed with it. */
function aes(key = randomBytes(32)): RecordEncryption {
  return {
    encrypt(record, scope) {
      const iv = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(scope));
      const text = Buffer.concat([cipher.update(record), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]);
    },
    decrypt(encrypted, scope) {
      const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(0, 12));
      decipher.setAAD(Buffer.from(scope)).setAuthTag(encrypted.subarray(12, 28));
      return Buffer.concat([decipher.update(encrypted.subarray(28)), decipher.final()]);
    },
  };
}

describe('a tenant that leaves', () => {
  test('takes its keys with it, and nobody else’s', async () => {
    let executed = 0;
    await using it = await setup({}, () => reply(201, `order ${++executed}`));
    const long = 'b'.repeat(200);
    for (const tenant of ['a', long]) await it.post(tenant);
    expect(await it.part.purge('a')).toBe(1);
    expect(await it.part.purge('a')).toBe(0);
    expect(await (await it.post(long)).text()).toBe('order 2');
    expect(await (await it.post('a')).text()).toBe('order 3');
    expect(await it.part.purge(long)).toBe(1);
  });

  test('does not free a key that is in hand', async () => {
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await using it = await setup({}, async () => {
      begun.resolve();
      await release.promise;
      return reply(201, 'order');
    });
    const first = it.post();
    await begun.promise;
    expect(await it.part.purge('a')).toBe(0);
    expect((await it.post()).status).toBe(409);
    release.resolve();
    expect((await first).status).toBe(201);
    expect((await it.post()).headers.get('idempotent-replayed')).toBe('true');
  });
});

describe.each(frameworks)('encrypted records on $name', ({ serve }) => {
  test('are replayed, and cannot be read in the store', async () => {
    const { ledger } = memoryEngine();
    const kept: unknown[] = [];
    const watched: IdempotencyOptions['ledger'] = {
      ...ledger,
      complete: (all) => {
        kept.push(...all.map(({ record }) => record));
        return ledger.complete(all as never);
      },
    };
    await using it = await setup(
      { ledger: watched, encryption: aes() },
      () => reply(201, 'secret order', { location: '/orders/1' }),
      serve,
    );
    await it.post();
    const again = await it.post();
    expect([again.status, await again.text(), again.headers.get('location')]).toEqual([
      201,
      'secret order',
      '/orders/1',
    ]);
    expect(kept).toHaveLength(1);
    expect(Buffer.from(kept[0] as Uint8Array).toString('latin1')).not.toMatch(/secret|201|orders/);
  });
});

describe('encryption', () => {
  test('holds for effects in a transaction, and for phases', async () => {
    let charges = 0;
    let attempts = 0;
    await using it = await setup(
      { encryption: aes(), whenLost: 'reexecute', lease: '100ms' },
      async ({ context }) => {
        const { idempotent } = context;
        const { id } = await idempotent!.phase('charge', async () => ({ id: ++charges }));
        if (++attempts === 1) {
          idempotent!.nothingDone();
          return reply(500);
        }
        return idempotent!.commit(() => reply(201, `charge ${id}`));
      },
    );
    expect((await it.post()).status).toBe(500);
    expect(await (await it.post()).text()).toBe('charge 1');
    expect(await (await it.post()).text()).toBe('charge 1');
    expect([charges, attempts]).toEqual([1, 2]);
  });

  test('with another key is neither replayed nor executed again', async () => {
    const { ledger } = memoryEngine();
    let executed = 0;
    const order = () => reply(201, `order ${++executed}`);
    await using before = await setup({ ledger, encryption: aes() }, order, frameworks[1]!.serve);
    await using after = await setup({ ledger, encryption: aes() }, order, frameworks[1]!.serve);
    await before.post();
    expect((await after.post()).status).toBe(500);
    expect(executed).toBe(1);
  });

  test('wants both functions', () => {
    const { ledger } = memoryEngine();
    expect(() => idempotency({ ledger, scope: 'public', encryption: {} as RecordEncryption })).toThrow(
      'idempotency.encryption: expected an object with the functions `encrypt` and `decrypt`',
    );
  });
});
