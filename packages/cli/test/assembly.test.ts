import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { assemblies, assembly } from '@holdfast/assembly';
import { openSqlite } from '@holdfast/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { ask } from './run-holdfast.ts';

const ids = ['019b76da-abe8-779c-b172-3b0614e22cc7', '019b76da-abe8-779c-b172-3b0614e99999'] as const;

/** A store with a worker, and one order that is parked at its second step and one that waits for a signal. */
async function orders() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-cli-'));
  const file = path.join(folder, 'store.db');
  const engine = await openSqlite({ file });
  const made: string[] = [];
  let isBroken = true;
  const order = assembly('order', { version: 1, plan: ['charge', 'ship'] }, async (step, item: string) => {
    await step.run('charge', () => made.push('charge'), { undo: () => void made.push('refund') });
    if (item === 'slow') return step.waitFor('approved');
    return step.run(
      'ship',
      () => {
        if (isBroken) throw new TypeError('no street');
        made.push('ship');
        return { label: 7 };
      },
      { policy: { attempts: 1 } },
    );
  });
  const work = assemblies({ engine, programs: [order] });
  await work.run();
  const [parked, waiting] = [
    await work.start(order, 'book', { id: ids[0], tenant: 'acme' }),
    await work.start(order, 'slow', { id: ids[1] }),
  ];
  onTestFinished(async () => {
    await work.stop();
    await engine.close();
    await rm(folder, { recursive: true });
  });
  const stateOf = async (id: string) => (await work.journal.get([id]))[0]?.state;
  await expect.poll(() => stateOf(parked.id)).toBe('parked');
  await expect.poll(() => stateOf(waiting.id)).toBe('waiting');
  return {
    ...{ file, work, parked, waiting, made, engine },
    fix: () => {
      isBroken = false;
    },
    run: (...args: string[]) => ask(['assembly', ...args], { HOLDFAST_STORE: file }),
  };
}

test('ls filters by state, program and tenant', async () => {
  const { run } = await orders();
  const found = async (...flags: string[]) =>
    (await run('ls', '--json', ...flags)).json().map(({ id }) => id);
  expect(await found()).toEqual([ids[1], ids[0]]);
  expect(await found('--state', 'parked')).toEqual([ids[0]]);
  expect(await found('--tenant', 'acme', '--name', 'order', '--version', '1')).toEqual([ids[0]]);
  expect(await found('--version', '2')).toEqual([]);
  const { out, code } = await run('ls', '--state', 'parked');
  expect(code).toBe(0);
  expect(out).toContain('order@1');
  expect(out).toContain('no street');
  expect((await run('ls', '--state', 'stopped')).out).toBe('There are no such assemblies.\n');
  expect((await run('ls', '--limit', '1')).out).toContain('more with --cursor');
});

test('ls refuses a state that does not exist', async () => {
  const { run } = await orders();
  expect(await run('ls', '--state', 'parkd')).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      '--state: expected one of waiting, running, parked, done, stopped, got "parkd".',
    ),
  });
});

test('show tells where an assembly is, by a part of its id', async () => {
  const { run } = await orders();
  const { code, out } = await run('show', '14e22cc7');
  expect(code).toBe(0);
  for (const text of [
    `${ids[0]} (order@1)`,
    'parked',
    'TypeError: no street',
    'charge',
    'input       "book"',
  ])
    expect(out).toContain(text);
  const [json] = (await run('show', ids[0], '--json')).json();
  expect(json).toMatchObject({
    ...{ id: ids[0], state: 'parked', status: { text: 'waits for a person' } },
    steps: [
      { path: 'charge', state: 'done' },
      { path: 'ship', state: 'failed' },
    ],
  });
  expect(await run('show', 'nothing-like-it')).toMatchObject({
    code: 2,
    err: 'holdfast: there is no assembly "nothing-like-it" here.\n',
  });
  expect((await run('show', '019b76da')).err).toContain('several assemblies fit "019b76da"');
});

test('resume runs only the step that failed', async () => {
  const { run, fix, parked, made } = await orders();
  fix();
  expect(await run('resume', '14e22cc7')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--why is needed'),
  });
  expect(await run('resume', '14e22cc7', '--why', 'fixed')).toMatchObject({
    code: 0,
    out: `${ids[0]} goes on.\n`,
  });
  expect(await parked.result()).toEqual({ label: 7 });
  expect(made).toEqual(['charge', 'charge', 'ship']);
  expect(await run('resume', '14e22cc7', '--why', 'again')).toMatchObject({
    code: 1,
    out: `assembly ${ids[0]} is done, and not parked.\n`,
  });
});

test('resume takes a result that a person gives', async () => {
  const { run, parked, made } = await orders();
  const wrong = await run('resume', ids[0], '--result', 'ship', '--why', 'by hand');
  expect(wrong).toMatchObject({ code: 2, err: 'holdfast: --result: expected step=JSON, got "ship".\n' });
  await run('resume', ids[0], '--result', 'ship={"label":8}', '--why', 'by hand', '--json');
  expect(await parked.result()).toEqual({ label: 8 });
  expect(made).not.toContain('ship');
});

test('cancel compensates what was done', async () => {
  const { run, parked, made } = await orders();
  const { code, out } = await run('cancel', ids[0], '--why', 'the customer left', '--json');
  expect({ code, out }).toEqual({ code: 0, out: `{"id":"${ids[0]}","result":"requested"}\n` });
  await expect(parked.result()).rejects.toThrow('the customer left');
  expect(made).toContain('refund');
  expect(await run('cancel', ids[0], '--why', 'again')).toMatchObject({
    code: 1,
    out: `${ids[0]} was asked to stop before.\n`,
  });
});

test('signal wakes an assembly, once for each id', async () => {
  const { run, waiting } = await orders();
  expect(await run('signal', ids[1], 'approved', '--payload', '{oops')).toMatchObject({
    code: 2,
    err: 'holdfast: --payload: expected JSON, got "{oops".\n',
  });
  const send = () => run('signal', '14e99999', 'approved', '--payload', '{"by":"ada"}', '--signal-id', 's1');
  expect(await send()).toMatchObject({ code: 0, out: `${ids[1]} has the signal.\n` });
  expect(await waiting.result()).toEqual({ by: 'ada' });
  expect(await send()).toMatchObject({ code: 0, out: `${ids[1]} had this signal before.\n` });
  expect((await run('signal', ids[1], 'approved')).code).toBe(1);
});

test('groups shows parked assemblies by error', async () => {
  const { run } = await orders();
  const [group] = (await run('groups', '--json')).json();
  expect(group).toMatchObject({ name: 'order', because: 'not_retryable', count: 1, latestId: ids[0] });
  const { out } = await run('groups');
  for (const text of ['ASSEMBLIES', 'order', 'not_retryable', 'no street']) expect(out).toContain(text);
  const found = (await run('ls', '--group', String(group!.fingerprint), '--json')).json();
  expect(found).toMatchObject([{ id: ids[0] }]);
  const end = (await run('ls', '--group', `…${String(group!.fingerprint).slice(-8)}`, '--json')).json();
  expect(end).toMatchObject([{ id: ids[0] }]);
});

test('pause and unpause, quarantine and release are controls of a program', async () => {
  const { run, engine } = await orders();
  const why = ['--why', 'the bank is down'];
  const active = async () => (await engine.controls.active()).controls.map(({ id }) => id).sort();
  expect(await run('pause', 'order', '--for', '10m', ...why)).toMatchObject({ code: 0 });
  expect(await run('quarantine', 'order', '--tenant', 'acme', ...why)).toMatchObject({ code: 0 });
  expect(await active()).toEqual(['pause:assembly%2Forder', 'quarantine:assembly%2Forder:tenant:acme']);
  expect(await run('unpause', 'order')).toMatchObject({ code: 0 });
  expect(await run('release', 'order', '--tenant', 'acme')).toMatchObject({ code: 0 });
  expect(await active()).toEqual([]);
  expect(await run('pause', 'ordr', ...why)).toMatchObject({
    code: 2,
    err: expect.stringContaining('did you mean "order"?'),
  });
  expect((await run('quarantine', 'order', ...why)).err).toContain('say --tenant or --key.');
});

test('status names parked assemblies, and does not say that their store is empty', async () => {
  const { file } = await orders();
  await expect
    .poll(async () => (await ask(['status', '--store', file])).out, { timeout: 10_000 })
    .toMatch(
      /^Nothing is urgent\.\n\n {2}1 assembly is parked \(order\)\.\n {4}holdfast assembly groups --store/,
    );
  expect((await ask(['status', '--store', file])).out).toContain('2 assemblies: 1 parked;');
});
