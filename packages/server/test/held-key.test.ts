import { memoryEngine } from '@holdfast/contracts/memory';
import { ambientContext } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { deadline, guardWeb, type IdempotencyOptions, idempotency } from '../src/index.ts';
import { frameworks, type Handler, plain, reply } from './frameworks.ts';

async function setup(options: Partial<IdempotencyOptions>, handler: Handler, serve = plain.serve) {
  const engine = memoryEngine();
  const part = idempotency({ ledger: engine.ledger, scope: 'public', lease: '150ms', ...options });
  const server = await serve([part], handler);
  const post = (key = 'k', path = '') =>
    fetch(server.origin + path, { method: 'POST', body: 'one', headers: { 'idempotency-key': key } });
  return { ...engine, part, post, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe.each(frameworks)('an effect in the transaction of its key on $name', ({ serve }) => {
  test('is there with the answer, which is replayed', async () => {
    let effects = 0;
    await using it = await setup(
      { transactional: true },
      ({ context }) => context.idempotent!.commit(() => reply(201, `effect ${++effects}`)),
      serve,
    );
    expect(await (await it.post()).text()).toBe('effect 1');
    const again = await it.post();
    expect([again.headers.get('idempotent-replayed'), await again.text()]).toEqual(['true', 'effect 1']);
  });

  test('is undone when it throws, and the key is free', async () => {
    let calls = 0;
    await using it = await setup(
      { transactional: true },
      ({ context }) =>
        context.idempotent!.commit(() => {
          if (++calls === 1) throw new Error('no stock');
          return reply(201, 'done');
        }),
      serve,
    );
    const first = await it.post();
    expect([first.status, await first.text()]).toEqual([500, expect.stringContaining('no stock')]);
    expect(await (await it.post()).text()).toBe('done');
  });

  test.each([
    { status: 201 },
    { status: 99, headers: {}, body: '' },
    { status: 201, headers: { etag: 5 }, body: '' },
    { status: 201, headers: new Headers(), body: '' },
    { status: 201, headers: new Map([['etag', '5']]), body: '' },
    { status: 201, headers: {}, body: {} },
    'done',
  ])('is undone when it returns %j, which is no response', async (made) => {
    let isFirst = true;
    await using it = await setup(
      { transactional: true },
      ({ context }) =>
        context.idempotent!.commit(() => {
          const answer = isFirst ? (made as never) : reply(201, 'done');
          isFirst = false;
          return answer;
        }),
      serve,
    );
    const first = await it.post();
    expect([first.status, await first.text()]).toEqual([
      500,
      expect.stringContaining('the response of commit: expected { status, headers, body }'),
    ]);
    expect(await (await it.post()).text()).toBe('done');
  });

  test('may be asynchronous', async () => {
    await using it = await setup(
      { transactional: true },
      ({ context }) => context.idempotent!.commit(async () => reply(201, 'done')),
      serve,
    );
    expect((await it.post()).status).toBe(201);
  });
});

describe.each(frameworks)(
  'a failure of a handler that changes data only in `commit`, on $name',
  ({ serve }) => {
    const retryOf = (answer: Response) => answer.headers.get('holdfast');

    test('frees the key if it comes before the commit, and says that a retry is safe', async () => {
      const ways: Handler[] = [
        () => {
          throw new Error('no connection');
        },
        () => reply(503, 'not now'),
        ({ context }) =>
          context.idempotent!.commit(() => {
            throw new Error('no stock');
          }),
        ({ context }) => context.idempotent!.commit(() => reply(201, 'done')),
      ];
      let calls = 0;
      await using it = await setup({ transactional: true }, (call) => ways[calls++]!(call), serve);
      const answers = [await it.post(), await it.post(), await it.post(), await it.post(), await it.post()];
      expect(answers.map(({ status }) => status)).toEqual([500, 503, 500, 201, 201]);
      expect(answers.map(retryOf)).toEqual([...Array(3).fill('retry=safe'), null, null]);
      expect(await answers[1]!.text()).toBe('not now');
      expect(calls).toBe(4);
    });

    test('frees the key if its time ends before the commit', async () => {
      const { ledger } = memoryEngine();
      let calls = 0;
      const parts = [
        deadline({ timeout: '100ms' }),
        idempotency({ ledger, scope: 'public', transactional: true }),
      ];
      await using server = await serve(parts, async ({ context: { signal, idempotent } }) => {
        if (++calls === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        signal.throwIfAborted();
        return idempotent!.commit(() => reply(201, 'done'));
      });
      const post = () => fetch(server.origin, { method: 'POST', headers: { 'idempotency-key': 'k' } });
      const first = await post();
      expect([first.status, retryOf(first)]).toEqual([500, 'retry=safe']);
      expect([(await post()).status, calls]).toEqual([201, 2]);
    });

    test('is repeated as it was if it was committed, and so is a refusal without a commit', async () => {
      const answers: Record<string, Handler> = {
        committed: ({ context }) => context.idempotent!.commit(() => reply(502, 'half')),
        refused: () => reply(422, 'no lamp'),
        fine: () => reply(200, 'nothing to do'),
      };
      await using it = await setup(
        { transactional: true },
        (call) => answers[call.url.slice(1)]!(call),
        serve,
      );
      const again = async (name: string) => {
        await (await it.post(name, `/${name}`)).text();
        const answer = await it.post(name, `/${name}`);
        return [
          answer.status,
          answer.headers.get('idempotent-replayed'),
          retryOf(answer),
          await answer.text(),
        ];
      };
      expect(await again('committed')).toEqual([502, 'true', 'retry=never', 'half']);
      expect(await again('refused')).toEqual([422, 'true', null, 'no lamp']);
      expect(await again('fine')).toEqual([200, 'true', null, 'nothing to do']);
    });

    test('says what the handler says about retries', async () => {
      await using it = await setup(
        { transactional: true },
        () => reply(500, '', { holdfast: 'retry=never' }),
        serve,
      );
      expect(retryOf(await it.post())).toBe('retry=never');
    });

    test('is recorded without that promise, and a retry is told to stop', async () => {
      let calls = 0;
      await using it = await setup(
        {},
        () => {
          calls++;
          throw new Error('no connection');
        },
        serve,
      );
      const [first, again] = [await it.post(), await it.post()];
      expect([first.status, first.headers.get('idempotent-replayed'), retryOf(first)]).toEqual([
        500,
        null,
        null,
      ]);
      expect([again.status, again.headers.get('idempotent-replayed'), retryOf(again)]).toEqual([
        500,
        'true',
        'retry=never',
      ]);
      expect(calls).toBe(1);
    });
  },
);

describe('a commit whose outcome is unknown when its handler fails', () => {
  test('is not called undone', async () => {
    const { ledger } = memoryEngine();
    const settled = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    await using it = await setup({ ledger, transactional: true, lease: '10s' }, async ({ context }) => {
      const committing = context.idempotent!.commit(async () => {
        begun.resolve();
        await settled.promise;
        return reply(201, 'done');
      });
      committing.catch(() => {});
      await begun.promise;
      throw new Error('too late');
    });
    const first = await it.post();
    expect([first.status, first.headers.get('holdfast')]).toEqual([500, null]);
    settled.resolve();
  });
});

test('a handler of guardWeb that throws before its commit frees the key', async () => {
  let calls = 0;
  const once = idempotency({ ledger: memoryEngine().ledger, scope: 'public', transactional: true });
  const guarded = guardWeb([once], () => {
    if (++calls === 1) throw new Error('no connection');
    return new Response('done');
  });
  const post = () =>
    guarded(new Request('http://a/', { method: 'POST', headers: { 'idempotency-key': 'k' } }));
  await expect(post()).rejects.toThrow('no connection');
  expect(await (await post()).text()).toBe('done');
});

describe.each(frameworks)('phases on $name', ({ serve }) => {
  test('are not done again by the request that takes over, and calls inside have keys of their own', async () => {
    const done: string[] = [];
    const keys: (string | undefined)[] = [];
    let attempts = 0;
    const died = Promise.withResolvers<never>();
    const { ledger } = memoryEngine();
    await using it = await setup(
      { ledger: { ...ledger, extend: async () => [true] }, whenLost: 'reexecute' },
      async ({ context }) => {
        attempts++;
        const idempotent = context.idempotent!;
        const charged = await idempotent.phase('charge', async () => {
          done.push('charge');
          keys.push(ambientContext()?.idempotencyKey);
          return { id: 17 };
        });
        // The first process is never heard of again.
        if (attempts === 1) return died.promise;
        const shipped = await idempotent.phaseInTransaction('ship', () => {
          done.push('ship');
          return charged.id + 1;
        });
        return reply(200, `charged ${charged.id}, shipped ${shipped}`);
      },
      serve,
    );
    const first = it.post();
    await expect.poll(() => done).toEqual(['charge']);
    await expect
      .poll(async () => {
        const answer = await it.post();
        return answer.status === 200 ? answer.text() : answer.status;
      })
      .toBe('charged 17, shipped 18');
    expect(done).toEqual(['charge', 'ship']);
    expect(keys).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
    died.reject(new Error('gone'));
    await first;
  });

  test('and requests give calls a key that no other tenant has, whatever their own looks like', async () => {
    const keys: (string | undefined)[] = [];
    await using it = await setup(
      { scope: ({ url }) => url },
      async ({ context }) => {
        keys.push(ambientContext()?.idempotencyKey);
        await context.idempotent!.phase('charge the card, once', async () => {
          keys.push(ambientContext()?.idempotencyKey);
        });
        return reply(200, 'done');
      },
      serve,
    );
    for (const tenant of ['/a', '/b']) await it.post('"1"', tenant);
    await it.post('x'.repeat(255), '/a');
    await it.post('"a,b"', '/a');
    expect(new Set(keys).size).toBe(8);
    for (const key of keys) expect(key).toMatch(/^[\w-]{43}$/);
  });

  test('may give nothing', async () => {
    await using it = await setup(
      {},
      async ({ context }) => {
        expect(await context.idempotent!.phase('mail', async () => {})).toBe(undefined);
        return reply(200, 'done');
      },
      serve,
    );
    expect(await (await it.post()).text()).toBe('done');
  });
});

describe('a request that runs already', () => {
  test('can be waited for, and its response is replayed', async () => {
    const release = Promise.withResolvers<void>();
    let executed = 0;
    await using it = await setup({ wait: '5s', lease: '10s' }, async () => {
      executed++;
      await release.promise;
      return reply(200, 'done');
    });
    const first = it.post();
    await expect.poll(() => executed).toBe(1);
    const second = it.post();
    const third = it.post();
    setTimeout(release.resolve, 60);
    expect(await (await first).text()).toBe('done');
    for (const each of [second, third]) expect((await each).headers.get('idempotent-replayed')).toBe('true');
    expect(executed).toBe(1);
  });

  test('is waited for no longer than `wait`', async () => {
    const release = Promise.withResolvers<void>();
    await using it = await setup({ wait: '80ms', lease: '10s' }, async () => {
      await release.promise;
      return reply(200);
    });
    const first = it.post();
    await expect.poll(async () => (await it.post()).status).toBe(409);
    release.resolve();
    await first;
  });
});

describe('a ledger that is slow at the wrong time', () => {
  test('frees a key that was acquired after the request had got a 503', async () => {
    const { ledger } = memoryEngine();
    const slow = Promise.withResolvers<void>();
    let begins = 0;
    await using it = await setup(
      {
        ledger: {
          ...ledger,
          begin: async (claims) => {
            if (++begins === 1) await slow.promise;
            return ledger.begin(claims);
          },
        },
      },
      () => reply(200, 'done'),
    );
    expect((await it.post()).status).toBe(503);
    slow.resolve();
    await expect.poll(async () => (await it.post()).status).toBe(200);
  });

  test('gets the response later, and the client does not wait for that', async () => {
    const { ledger } = memoryEngine();
    let completions = 0;
    await using it = await setup(
      {
        lease: '10s',
        ledger: {
          ...ledger,
          complete: (all) =>
            ++completions === 1 ? Promise.reject(new Error('gone')) : ledger.complete(all as never),
        },
      },
      () => reply(200, 'done'),
    );
    expect(await (await it.post()).text()).toBe('done');
    await expect.poll(async () => (await it.post()).headers.get('idempotent-replayed')).toBe('true');
    expect(completions).toBe(2);
  });
});

test.each([401, 403, 408, 409, 425, 429])('a %i of the handler frees the key', async (status) => {
  let executed = 0;
  await using it = await setup({}, () => (++executed === 1 ? reply(status) : reply(200)));
  expect([(await it.post()).status, (await it.post()).status]).toEqual([status, 200]);
});

test('many at once: one is executed', async () => {
  let executed = 0;
  await using it = await setup({ lease: '10s' }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return reply(200, `${++executed}`);
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => it.post()));
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
  expect(executed).toBe(1);
});
