import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { assembly } from '@holdfast/assembly';
import { createFetch } from '@holdfast/http';
import { permanent, transient } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { settle, stage } from './stage.ts';

const act = { who: 'ada', why: 'the customer called' };

describe('a person', () => {
  function setup() {
    const { open, pass } = stage();
    const calls: string[] = [];
    const program = assembly('order', async (step, { street }: { street: string }) => {
      const paid = await step.run('charge', () => {
        calls.push('charge');
        return 'paid';
      });
      const shipped = await step.run('ship', () => {
        calls.push(`ship to ${street}`);
        if (street === '') throw permanent(new Error('no street'));
        return `to ${street}`;
      });
      return `${paid}, ${shipped}`;
    });
    return { work: open([program]), program, calls, pass };
  }

  async function parkedOrder() {
    const made = setup();
    await made.work.run();
    const it = await made.work.start(made.program, { street: '' }, { id: 'x' });
    await made.pass(100);
    expect((await it.status()).state).toBe('parked');
    return { ...made, it };
  }

  test('finds parked assemblies, with the failed step and its story', async () => {
    const { work } = await parkedOrder();
    const { items } = await work.list({ state: 'parked' });
    expect(items).toMatchObject([{ id: 'x', parked: { because: 'not_retryable', paths: ['ship'] } }]);
    const { steps } = await work.inspect('x');
    expect(steps.at(-1)).toMatchObject({
      path: 'ship',
      state: 'failed',
      story: [{ errorMessage: 'no street' }],
    });
  });

  test('edits the input and lets it go on from the failed step', async () => {
    const { work, it, pass, calls } = await parkedOrder();
    await work.edit('x', { input: { street: 'Elm' } }, act);
    await work.resume('x', act);
    await pass(100);
    expect(await it.result()).toBe('paid, to Elm');
    expect(calls).toEqual(['charge', 'ship to ', 'ship to Elm']);
    expect((await work.inspect('x')).assembly.acts).toMatchObject([
      { who: 'ada', what: 'input' },
      { who: 'ada', what: 'forgot ship, resumed' },
    ]);
  });

  test('puts a result in the place of a step', async () => {
    const { work, it, pass, calls } = await parkedOrder();
    await work.edit('x', { results: { ship: 'by hand' } }, act);
    await work.resume('x', act);
    await pass(100);
    expect(await it.result()).toBe('paid, by hand');
    expect(calls).toEqual(['charge', 'ship to ']);
  });

  test('forks an assembly before a step', async () => {
    const { work, pass, calls } = await parkedOrder();
    const copy = await work.fork('x', act, { from: 'ship', input: { street: 'Oak' } });
    await pass(100);
    expect(await work.get(copy).result()).toBe('paid, to Oak');
    expect(calls).toEqual(['charge', 'ship to ', 'ship to Oak']);
    expect((await work.get('x').status()).state).toBe('parked');
  });

  test('is told what is not possible', async () => {
    const { work, it, pass } = await parkedOrder();
    await expect(work.resume('nobody', act)).rejects.toThrow('there is no assembly nobody');
    await expect(work.resume('x', { who: '', why: '' })).rejects.toThrow('who');
    await expect(work.fork('x', act, { from: 'nothing' })).rejects.toThrow('a step of x');
    await it.cancel('enough');
    await pass(100);
    await expect(work.resume('x', act)).rejects.toThrow('is stopped, and not parked');
    await expect(work.edit('x', { input: 1 }, act)).rejects.toThrow('has ended: fork it instead');
  });
});

describe('queues', () => {
  test('limit how many run at the same time, and by key', async () => {
    const { open, pass } = stage();
    let running = 0;
    let most = 0;
    const program = assembly('job', async (step) =>
      step.run('work', async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
      }),
    );
    const work = open([program], { queues: { jobs: { concurrency: 2 }, keyed: { concurrencyByKey: 1 } } });
    await work.run();
    const jobs = await Promise.all(
      Array.from({ length: 6 }, () => work.start(program, undefined, { queue: 'jobs' })),
    );
    await pass(10_000, 20);
    for (const job of jobs) await job.result();
    expect(most).toBe(2);
    most = 0;
    const keyed = await Promise.all(
      ['a', 'a', 'a'].map((key) => work.start(program, undefined, { queue: 'keyed', key })),
    );
    await pass(10_000, 20);
    for (const job of keyed) await job.result();
    expect(most).toBe(1);
  });

  test('limit how many begin in a time', async () => {
    const { open, pass, clock } = stage();
    const begun: number[] = [];
    const program = assembly('job', async (step) => step.run('work', () => void begun.push(clock.now())));
    const work = open([program], { queues: { slow: { rate: { count: 1, perMs: 1000 } } } });
    await work.run();
    for (let number = 0; number < 4; number++) await work.start(program, undefined, { queue: 'slow' });
    await pass(5000, 50);
    expect(begun).toHaveLength(4);
    for (const [index, at] of begun.entries()) expect(at).toBeGreaterThanOrEqual(index * 1000);
  });
});

describe('workers', () => {
  test('park an assembly with which they die again and again, and run suspects alone', async () => {
    const { open, pass, settle: quiet } = stage();
    const begun: string[] = [];
    const deadly = assembly('deadly', async (step) =>
      step.run('crash', () => {
        begun.push('crash');
        return new Promise(() => {});
      }),
    );
    const good = assembly('good', async (step) => step.run('work', () => 'ok'));
    let last = open([deadly, good]);
    await last.run();
    await last.start(deadly, undefined, { id: 'x' });
    await quiet();
    for (let death = 0; death < 3; death++) {
      last.kill();
      last = open([deadly, good]);
      await last.run();
      await pass(40_000);
    }
    expect(begun).toHaveLength(3);
    expect((await last.inspect('x')).assembly).toMatchObject({
      state: 'parked',
      parked: { because: 'crashed' },
    });
    expect(await (await last.start(good, undefined)).result()).toBe('ok');
  });

  test('remove what was kept long enough', async () => {
    const { open, pass, storage } = stage();
    const program = assembly('job', { keep: '1h' }, async (step) => step.run('work', () => 1));
    const work = open([program]);
    await work.run();
    await (await work.start(program, undefined, { id: 'x' })).result();
    await pass(1_800_000);
    expect(storage.journal.rows.has('x')).toBe(true);
    await pass(3_600_000);
    expect(storage.journal.rows.has('x')).toBe(false);
  });

  test('give back what they have when they are stopped, and finish what runs', async () => {
    const { open, pass, settle: quiet } = stage();
    const finish: (() => void)[] = [];
    const calls: string[] = [];
    const program = assembly('job', async (step) => {
      await step.run('one', () => new Promise<void>((resolve) => finish.push(resolve)));
      await step.run('two', () => void calls.push('two'));
    });
    const first = open([program]);
    await first.run();
    await first.start(program, undefined, { id: 'x' });
    await quiet();
    const stopped = first.stop();
    finish[0]!();
    await quiet();
    await stopped;
    expect(calls).toEqual([]);
    const second = open([program]);
    await second.run();
    await pass(100);
    await second.get('x').result();
    expect([calls, finish.length]).toEqual([['two'], 1]);
  });
});

describe('schedules', () => {
  test('start each occurrence once, however many processes keep them', async () => {
    const { open, clock, pass } = stage();
    const ran: string[] = [];
    const nightly = assembly('nightly', async (step, day: string) =>
      step.run('work', () => void ran.push(day)),
    );
    const schedule = {
      ...{ name: 'nightly', cron: '0 3 * * *', program: nightly },
      input: (at: Date) => at.toISOString().slice(0, 10),
    };
    const works = [open([nightly], { schedules: [schedule] }), open([nightly], { schedules: [schedule] })];
    for (const work of works) await work.run();
    await pass(3 * 86_400_000, 72);
    expect(ran).toEqual(['2026-01-01', '2026-01-02', '2026-01-03']);
    expect(clock.epochMs()).toBe(Date.UTC(2026, 0, 4));
    expect((await works[0]!.get('schedule/nightly/2026-01-02T03:00').status()).state).toBe('done');
  });

  test('catch up on the last occurrence that was missed', async () => {
    const { open, pass } = stage();
    const ran: string[] = [];
    const hourly = assembly('hourly', async (step, at: string) => step.run('work', () => void ran.push(at)));
    const schedule = {
      ...{ name: 'hourly', cron: '30 * * * *', program: hourly, catchUp: true },
      input: (at: Date) => at.toISOString(),
    };
    const work = open([hourly], { schedules: [schedule] });
    await work.run();
    await pass(1000);
    expect(ran).toEqual(['2025-12-31T23:30:00.000Z']);
  });
});

test('the HTTP client sends the key of the step by itself, the same in each attempt', async () => {
  const keys: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'] as string | undefined);
    response.writeHead(keys.length === 1 ? 503 : 200, { 'content-type': 'text/plain' }).end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/charges`;
  const fetch = createFetch({ idempotency: 'derive', policy: { attempts: 1 } });
  const { open, clock } = stage();
  const program = assembly('order', async (step) =>
    step.run('charge', async () => {
      const answer = await fetch(url, { method: 'POST', body: '{}' });
      if (!answer.ok) throw transient(new Error(`status ${answer.status}`));
      return answer.status;
    }),
  );
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined, { id: 'order-1' });
  const result = it.result();
  for (let turn = 0; turn < 200 && keys.length < 2; turn++) {
    await clock.advance('100ms');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(await result).toBe(200);
  expect(keys[0]).toMatch(/^order-1\/charge\./);
  expect(keys).toEqual([keys[0], keys[0]]);
  await new Promise((resolve) => server.close(resolve));
});

describe('webhooks', () => {
  const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

  async function receiver(answer: (count: number) => number) {
    const got: { id: string; signature: string; timestamp: string; body: string }[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        const { headers } = request;
        got.push({
          id: String(headers['webhook-id']),
          signature: String(headers['webhook-signature']),
          timestamp: String(headers['webhook-timestamp']),
          body,
        });
        response.writeHead(answer(got.length), { location: 'http://127.0.0.1:1/' }).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
    return { got, url, close: () => new Promise((resolve) => server.close(resolve)) };
  }

  const program = assembly('order', async (step) => step.run('charge', () => 1));

  test('are signed, and tried again under the same id', async () => {
    const { got, url, close } = await receiver((count) => (count === 1 ? 500 : 200));
    const { open, clock } = stage();
    const work = open([program], { webhooks: { secrets: { shop: [secret] }, allow: () => true } });
    await work.run();
    await work.start(program, undefined, { id: 'x', notify: { url, secret: 'shop', on: ['done'] } });
    for (let turn = 0; turn < 200 && got.length < 2; turn++) {
      await clock.advance('1s');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(got).toHaveLength(2);
    expect(got[1]!.id).toBe(got[0]!.id);
    expect(got[0]!.id).not.toContain('.');
    for (const { id, timestamp, body, signature } of got) {
      const key = Buffer.from(secret.slice(6), 'base64');
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
      expect(signature).toBe(`v1,${mac}`);
    }
    expect(JSON.parse(got[0]!.body)).toMatchObject({
      type: 'assembly.done',
      data: { id: 'x', name: 'order' },
    });
    await close();
  });

  test('follow no redirect, and call no private address unless that is allowed', async () => {
    const { got, url, close } = await receiver(() => 302);
    const { open, settle: quiet } = stage();
    const work = open([program]);
    await work.run();
    await work.start(program, undefined, { notify: { url: url.replace('http:', 'https:') } });
    await quiet(20);
    const { items } = await work.list({ name: 'holdfast.webhook', state: 'parked' });
    expect(items[0]?.parked?.message).toContain('127.0.0.1, which is not a public address');
    expect(got).toEqual([]);
    await close();
  });

  test('are refused with a sentence if they can not be sent', async () => {
    const { open } = stage();
    const work = open([program]);
    await expect(work.start(program, undefined, { notify: { url: 'nowhere' } })).rejects.toThrow(
      'notify.url',
    );
    await expect(
      work.start(program, undefined, { notify: { url: 'https://a.example', secret: 'none' } }),
    ).rejects.toThrow('notify.secret');
    expect(() => open([program], { webhooks: { secrets: { shop: 'short' } } })).toThrow(
      'webhooks.secrets.shop',
    );
    await settle();
  });
});

test('refuses to start what is not a program, and says what is wanted', async () => {
  const { open } = stage();
  const program = assembly('order', async () => 1);
  const work = open([program]);
  for (const wrong of [{ name: 'q' }, undefined, 'order'])
    await expect(work.start(wrong as never, {})).rejects.toMatchObject({
      code: 'HOLDFAST_OPTIONS',
      message: expect.stringContaining('a program that assembly() has made'),
    });
  expect(() => open([{ name: 'q' } as never])).toThrow('a program that assembly() has made');
});

test('what an operator does with an assembly is in the audit log', async () => {
  const { open, settle } = stage();
  const program = assembly('order', async (step) =>
    step.run('ship', () => Promise.reject(permanent(new Error('no street')))),
  );
  const work = open([program]);
  await work.run();
  const it = await work.start(program, 'Elm', { id: 'x' });
  await settle();
  await it.result().catch(() => {});
  const act = { who: 'ada', why: 'a typing error' };
  await work.edit('x', { input: 'Elm Street' }, act);
  await work.fork('x', act, { id: 'y' });
  await work.resume('x', act);
  await it.signal('approved', undefined, { act });
  await it.signal('approved');
  await it.cancel('the customer left', 'bob');
  await work.get('y').cancel('by a program');

  const { items } = await work.engine.audit.list({ subject: 'assembly:x' }, { limit: 20 });
  expect(items.map(({ what, who, why }) => `${what} ${who}: ${why}`)).toEqual([
    'assembly_cancel bob: the customer left',
    'assembly_signal ada: a typing error',
    'assembly_resume ada: a typing error',
    'assembly_fork ada: a typing error',
    'assembly_edit ada: a typing error',
  ]);
});
