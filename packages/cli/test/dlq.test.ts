import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { commit, consumer, outbox } from '@holdfast/events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parkedStore } from './parked-store.ts';
import { ask } from './run-holdfast.ts';

function tempFile(name: string, text: string): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** Orders of two tenants and two regions, of which all are parked. */
async function mixedStore() {
  const store = await parkedStore(0);
  const events = Array.from({ length: 12 }, (_, index) => ({
    id: `order-${index}`,
    payload: `{"index":${index},"lines":[{"price":1}]}`,
    tenant: index < 9 ? 'acme' : 'zeta',
    type: index % 2 === 0 ? 'sale' : 'refund',
    headers: { region: index < 9 ? 'eu' : 'us' },
  }));
  await store.engine.broker.publish('orders', events);
  await expect.poll(() => store.engine.triage.count({}), { timeout: 10_000 }).toBe(12);
  return store;
}

describe('filters', () => {
  test('take several values, headers and what is not wanted', async () => {
    const { file } = await mixedStore();
    const count = async (...flags: string[]) =>
      (await ask(['dlq', 'ls', '--json', '--store', file, ...flags])).json().length;
    expect(await count('--tenant', 'acme', '--tenant', 'zeta')).toBe(12);
    expect(await count('--tenant', 'zeta')).toBe(3);
    expect(await count('--not', 'tenant=acme')).toBe(3);
    expect(await count('--header', 'region=us')).toBe(3);
    expect(await count('--not', 'header.region=us', '--not', 'type=sale')).toBe(4);
    expect(await count('--consumer', 'orders')).toBe(12);
    expect(await count('--status', 'parked', '--status', 'discarded')).toBe(12);
  });

  test.each([
    [
      ['--not', 'tenat=acme'],
      '--not: expected one of topic, type, key, tenant, reason, stop, group, consumer or header.<name>, got "tenat".',
    ],
    [['--header', 'region'], '--header: expected name=value, got "region".'],
    [
      ['--status', 'discardet'],
      '--status: expected one of parked, replaying, resolved, discarded, got "discardet". Did you mean "discarded"?',
    ],
    [['--replayed-by', 'none'], 'there is no replay "none" here.'],
  ])('refuse %j', async (flags, sentence) => {
    const { file } = await parkedStore(1);
    expect(await ask(['dlq', 'ls', '--store', file, ...flags])).toMatchObject({
      code: 2,
      err: `holdfast: ${sentence}\n`,
    });
  });
});

describe('holdfast dlq groups and differs', () => {
  test('count by a property or a header', async () => {
    const { file } = await mixedStore();
    const { out } = await ask(['dlq', 'groups', '--by', 'tenant', '--store', file]);
    expect(out).toBe('TENANT  EVENTS   SHARE\nacme         9  75.0 %\nzeta         3  25.0 %\n');
    const regions = await ask(['dlq', 'groups', '--by', 'header.region', '--json', '--store', file]);
    expect(regions.json()).toEqual([
      { value: 'eu', count: 9 },
      { value: 'us', count: 3 },
    ]);
    expect(await ask(['dlq', 'groups', '--by', 'tennant', '--store', file])).toMatchObject({
      code: 2,
      err: expect.stringContaining('got "tennant". Did you mean "tenant"?'),
    });
  });

  test('say what is different about some events', async () => {
    const { file } = await mixedStore();
    const args = [
      'dlq',
      'differs',
      '--tenant',
      'zeta',
      '--compare',
      'region',
      '--limit',
      '1',
      '--store',
      file,
    ];
    expect((await ask([...args, '--json'])).json()).toMatchObject([
      { by: { header: 'region' }, value: 'us', share: 1, otherShare: 0, count: 3 },
    ]);
    expect((await ask(args)).out).toMatch(/header region +us +100 % +0 % +3/);
    const named = args.map((word) => (word === 'region' ? 'header.region' : word));
    expect((await ask(named)).out).toMatch(/header region +us +100 % +0 % +3/);
    expect(await ask(['dlq', 'differs', '--store', file])).toMatchObject({ code: 2 });
  });
});

test('dlq differs names the headers that can be compared when nothing else differs', async () => {
  const store = await parkedStore(0);
  const events = Array.from({ length: 4 }, (_, index) => ({
    ...{ id: `order-${index}`, payload: '{}', key: index < 2 ? 'a' : 'b' },
    headers: { build: index < 2 ? 'old' : 'new', zone: '1' },
  }));
  await store.engine.broker.publish('orders', events);
  await expect.poll(() => store.engine.triage.count({}), { timeout: 10_000 }).toBe(4);
  const differs = (...flags: string[]) =>
    ask(['dlq', 'differs', '--key', 'a', '--store', store.file, ...flags]);
  expect((await differs()).out).toBe(
    'Nothing is different about them. Headers were not compared: --compare <header> does that; there are build, zone.\n',
  );
  expect((await differs('--compare', 'build')).out).toMatch(/header build +old +100 % +0 % +2/);
  expect((await differs('--compare', 'zone')).out).toBe('Nothing is different about them.\n');
});

describe('a part of an id', () => {
  const parked = '019b76da-abe8-779c-b172-3b0614e22cc7';
  const other = '019b76da-abe8-779c-b172-3b0614e33333';

  async function twoEvents() {
    const store = await parkedStore(0);
    await store.engine.broker.publish('orders', [
      { id: parked, payload: '1' },
      { id: other, payload: '2' },
    ]);
    await expect.poll(() => store.engine.triage.count({}), { timeout: 10_000 }).toBe(2);
    await ask(['dlq', 'discard', other, '--why', 'x', '--store', store.file]);
    return store;
  }

  test('means the parked event, if others fit, too', async () => {
    const { file } = await twoEvents();
    const shown = await ask(['dlq', 'show', '019b76da', '--json', '--store', file]);
    expect(shown.json()).toMatchObject([{ id: parked, status: 'parked' }]);
    const end = await ask(['dlq', 'show', '14e33333', '--json', '--store', file]);
    expect(end.json()).toMatchObject([{ id: other, status: 'discarded' }]);
  });

  test('means the discarded event where it is restored', async () => {
    const { file, engine } = await twoEvents();
    const back = await ask(['dlq', 'discard', '019b76da', '--undo', '--why', 'x', '--store', file]);
    expect([back.code, (await engine.triage.get(other))?.status]).toEqual([0, 'parked']);
  });
});

test('an id that no event has is not replayed, and said to be unknown', async () => {
  const { file } = await parkedStore(1);
  const replay = (...args: string[]) => ask(['dlq', 'replay', ...args, '--store', file]);
  expect(await replay('all')).toMatchObject({
    ...{ code: 1, out: '' },
    err: 'holdfast: no event all is parked here; did you mean --all?\n',
  });
  expect(await replay('zzzzzzzz', '--dry-run')).toMatchObject({
    ...{ code: 1, out: '' },
    err: 'holdfast: no event zzzzzzzz is parked here.\n',
  });
  await ask(['dlq', 'discard', 'order-0', '--why', 'x', '--store', file]);
  expect(await replay('order-0')).toMatchObject({
    ...{ code: 1, out: '0 parked events match.\n' },
    err: 'holdfast: event order-0 is discarded.\n',
  });
});

test('dlq show has the code of an error, in its attempts, too', async () => {
  const { file, engine } = await parkedStore(0);
  const slow = consumer({
    ...{ engine, topic: 'mails' },
    policy: { attempts: 2, backoff: { base: '1ms' } },
    handler: () => {
      throw Object.assign(new Error('the bank did not answer'), { code: 'ETIMEDOUT' });
    },
  });
  await slow.start();
  onTestFinished(() => slow.stop());
  await engine.broker.publish('mails', [{ id: 'mail-1', payload: '1' }]);
  await expect.poll(() => engine.triage.count({}), { timeout: 10_000 }).toBe(1);
  const { out } = await ask(['dlq', 'show', 'mail-1', '--store', file]);
  expect(out).toMatch(/^ {2}code {10}ETIMEDOUT$/m);
  expect(out).toMatch(/ 1\. .*Error: the bank did not answer \(ETIMEDOUT\); retry \(transient\)/);
});

test('dlq ls and show name the remedy for a topic that was never declared', async () => {
  const { file, engine } = await parkedStore(0);
  const mails = outbox<string>({ engine: engine as never, topic: 'mail' });
  const sender = consumer({
    ...{ engine, topic: 'sends' },
    handler: () => commit((tx) => void mails.publish(tx, { payload: 'hello' })),
  });
  await sender.start();
  onTestFinished(() => sender.stop());
  await engine.broker.publish('sends', [{ id: 'send-1', payload: '1' }]);
  await expect.poll(() => engine.triage.count({}), { timeout: 10_000 }).toBe(1);
  for (const args of [['ls'], ['show', 'send-1']]) {
    const { out } = await ask(['dlq', ...args, '--store', file]);
    expect(out).toContain('`await engine.broker.declare("mail")`');
    expect(out).not.toContain('transient(error)');
  }
});

test('holdfast dlq ls and show say why an unknown error was not tried again', async () => {
  const { file } = await parkedStore(2);
  const advice = /nothing says that this error is temporary.*throw `transient\(error\)`.*`policy\.retryOn`/;
  const { out } = await ask(['dlq', 'ls', '--store', file]);
  expect(out.split('\n').filter((line) => advice.test(line))).toHaveLength(1);
  expect((await ask(['dlq', 'show', 'order-1', '--store', file])).out).toMatch(advice);
});

describe('holdfast dlq edit', () => {
  test('changes a field, shows what changed, and replays it', async () => {
    const { file, engine, fix } = await mixedStore();
    const edit = ['dlq', 'edit', 'order-1', '--store', file, '--set', 'payload.lines.0.price=12.5'];
    const dry = await ask([...edit, '--dry-run']);
    expect([dry.code, dry.out]).toEqual([0, '- payload.lines.0.price: 1\n+ payload.lines.0.price: 12.5\n']);
    expect((await engine.triage.get('order-1'))?.edits).toEqual([]);
    expect((await ask(edit)).err).toBe('holdfast: --why is needed: it is kept in the audit log.\n');

    fix();
    const { code, out } = await ask([
      ...edit,
      '--header',
      'fixed=yes',
      '--header',
      'region=',
      '--why',
      'a typo',
      '--replay',
    ]);
    expect(code).toBe(0);
    expect(out).toContain('order-1 is edited.\n');
    const event = await engine.triage.get('order-1');
    expect(event).toMatchObject({
      status: 'resolved',
      payload: '{"index":1,"lines":[{"price":12.5}]}',
      headers: { fixed: 'yes' },
      edits: [{ who: 'ann', why: 'a typo' }],
    });
    const shown = await ask(['dlq', 'show', 'order-1', '--store', file]);
    expect(shown.out).toContain('edited by ann: a typo\n  payload.lines.0.price: 1 -> 12.5');
  });

  test.each([[[]], [['--replay']]])('refuses an event that is not parked: %j', async (flags: string[]) => {
    const { file, engine } = await mixedStore();
    await ask(['dlq', 'discard', 'order-1', '--why', 'x', '--store', file]);
    const edit = ['dlq', 'edit', 'order-1', '--set', 'payload.index=7', '--why', 'x', '--store', file];
    expect(await ask([...edit, ...flags])).toMatchObject({
      ...{ code: 1, out: '' },
      err: 'holdfast: order-1 was not edited: it is discarded.\n',
    });
    expect((await engine.triage.get('order-1'))?.edits).toEqual([]);
  });

  test('takes a whole payload from a file, and a text without quotes', async () => {
    const { file, engine } = await mixedStore();
    const payload = tempFile('payload.txt', 'not JSON');
    const act = ['--why', 'a test', '--store', file];
    expect((await ask(['dlq', 'edit', 'order-2', '--set', 'payload.note=as it is', ...act])).code).toBe(0);
    expect(JSON.parse((await engine.triage.get('order-2'))!.payload as string)).toMatchObject({
      note: 'as it is',
    });
    const asText = await ask(['dlq', 'edit', 'order-2', '--payload', payload, '--as-text', ...act]);
    expect(asText.code).toBe(0);
    expect((await engine.triage.get('order-2'))?.payload).toBe('not JSON');
  });

  test.each([
    ['{"index":2,}', 'Expected double-quoted property name, at line 1, column 12'],
    ['{\n  "index": x}', "Unexpected token 'x', at line 2, column 12"],
    ['{"index":', 'Unexpected end of JSON input, at line 1, column 10'],
  ])('refuses to replace JSON by %j, and says where the mistake is', async (text, mistake) => {
    const { file, engine } = await mixedStore();
    const bad = tempFile('bad.json', text);
    const edit = await ask(['dlq', 'edit', 'order-2', '--payload', bad, '--why', 'x', '--store', file]);
    expect([edit.code, edit.err]).toEqual([
      2,
      `holdfast: --payload: ${bad} is not JSON: ${mistake}. If that is meant, say --as-text.\n`,
    ]);
    expect((await engine.triage.get('order-2'))?.edits).toEqual([]);
  });

  test('puts the event back as it was before the first edit, with the command that it prints', async () => {
    const { file, engine } = await mixedStore();
    const before = await engine.triage.get('order-2');
    const act = ['--why', 'a test', '--store', file];
    await ask(['dlq', 'edit', 'order-2', '--set', 'payload.index=7', ...act]);
    const second = await ask(['dlq', 'edit', 'order-2', '--header', 'region=', ...act]);
    const [, words = ''] = /with "holdfast (.+) --why …"\.\n$/.exec(second.out) ?? [];
    const back = await ask([...words.split(' '), '--why', 'the wrong event']);
    expect([back.code, back.out.split('\n').at(-2)]).toEqual([
      0,
      'order-2 is as it was before the first edit.',
    ]);
    const after = await engine.triage.get('order-2');
    expect([after?.payload, after?.headers]).toEqual([before?.payload, before?.headers]);
  });

  test.each([
    [[], 2, 'what is to change? Say --set, --payload, --header or --original.'],
    [['--set', 'total=1'], 2, '--set: expected a path such as payload.total, got "total".'],
    [['--set', 'payload.none.total=1'], 2, '--set: the payload has no field payload.none.'],
    [['--set', 'payload.__proto__.x=1'], 2, '--set: the payload has no field payload.__proto__.'],
    [
      ['--set', 'payload.lines.first=1'],
      2,
      '--set: payload.lines.first is in a list, and "first" is no index.',
    ],
    [['--set', 'payload.index=0', '--why', 'x'], 1, 'nothing would change in event order-0.'],
    [['--payload', '/nowhere/x.json'], 3, 'there is no file /nowhere/x.json.'],
  ])('refuses %j', async (flags, code, sentence) => {
    const { file } = await mixedStore();
    expect(await ask(['dlq', 'edit', 'order-0', '--store', file, ...flags])).toMatchObject({
      code,
      err: `holdfast: ${sentence}\n`,
    });
  });
});

describe('operations', () => {
  test('discard by a filter, and undo all of it by its id or by the audit log', async () => {
    const { file, engine } = await mixedStore();
    const flags = ['--store', file, '--why', 'they are tests'];
    const dry = await ask(['dlq', 'discard', '--tenant', 'acme', '--dry-run', '--store', file]);
    expect([dry.code, dry.out]).toEqual([0, '9 events would be discarded.\n']);
    expect((await ask(['dlq', 'discard', ...flags])).err).toBe(
      'holdfast: which events? Say ids, a filter such as --topic, or --all.\n',
    );
    const discarded = await ask(['dlq', 'discard', '--tenant', 'acme', ...flags]);
    expect(discarded.code).toBe(0);
    const [, id = ''] =
      /9 events are discarded\. Undo it with "holdfast dlq discard --undo (\S+) --store \S+ --why …"\./.exec(
        discarded.out,
      ) ?? [];
    expect(await engine.triage.count({})).toBe(3);
    const back = await ask(['dlq', 'discard', '--undo', id.slice(-10), ...flags]);
    expect([back.code, await engine.triage.count({})]).toEqual([0, 12]);
    const again = await ask(['dlq', 'discard', '--undo', id, ...flags]);
    expect(again.code).toBe(2);

    await ask(['dlq', 'discard', '--tenant', 'zeta', ...flags]);
    const [entry] = (await ask(['audit', '--what', 'discard', '--json', '--store', file])).json();
    expect(entry).toMatchObject({ what: 'discard', who: 'ann', why: 'they are tests', canUndo: true });
    expect((await ask(['audit', '--undo', entry.id, ...flags])).code).toBe(0);
    expect(await engine.triage.count({})).toBe(12);
    for (const of of [id.slice(-10), `operation:${id.slice(-10)}`]) {
      const found = (await ask(['audit', '--of', of, '--json', '--store', file])).json();
      expect(found.map(({ what }) => what)).toContain('discard');
    }
    const [first] = (await ask(['audit', '--of', id, '--what', 'discard', '--json', '--store', file])).json();
    expect(first).toMatchObject({ undoneBy: expect.any(String), canUndo: false });
    const { out } = await ask(['audit', '--store', file]);
    expect(out).toMatch(/discard +operation:\S+ \(9\) +they are tests +undone/);
  });

  test('say how to undo them, and the undo says how many events it has changed', async () => {
    const { file, engine } = await parkedStore(3);
    const flags = ['--store', file, '--why', 'a test'];
    /** Runs the undo that a command has printed. */
    const undone = async (words: string[]) => {
      const { out } = await ask([...words, ...flags]);
      const [, command = ''] = /Undo it with "holdfast (.+) --why …"/.exec(out) ?? [];
      return ask([...command.split(' '), ...flags]);
    };
    expect((await undone(['dlq', 'discard', '--all'])).out).toContain('3 events are put back.');
    expect((await undone(['dlq', 'keep', '--all', '--for', '90d'])).out).toContain('3 events are put back.');
    await ask(['dlq', 'discard', '--all', ...flags]);
    const [entry] = (await ask(['audit', '--what', 'discard', '--json', '--store', file])).json();
    const byAudit = await ask(['audit', '--undo', entry.id, ...flags]);
    expect(byAudit.out).toBe(`${entry.id} is undone: 3 events changed.\n`);
    const undos = (await ask(['audit', '--what', 'undo', '--json', '--store', file])).json();
    expect(undos.map(({ count }) => count)).toEqual([3, 3, 3]);
    expect((await undone(['topics', 'pause', 'orders'])).code).toBe(0);
    const rule = ['dlq', 'rules', 'set', 'types', '--reason', 'TypeError', '--action', 'notify'];
    expect((await undone(rule)).out).toMatch(/^\S+ is undone\.\n$/);
    expect((await engine.controls.active()).controls).toEqual([]);
    expect(await engine.triage.rules()).toEqual([]);
  });

  test('keep events for longer', async () => {
    const { file, engine } = await parkedStore(2);
    const kept = await ask(['dlq', 'keep', 'order-0', '--for', '90d', '--store', file, '--json']);
    expect(kept.json()).toMatchObject([{ kind: 'keep', stage: 'done', changed: 1 }]);
    const { items } = await engine.triage.list({ ids: ['order-0'] }, { limit: 1 });
    expect(items[0]!.removedInMs).toBeGreaterThan(89 * 864e5);
    expect((await ask(['dlq', 'keep', 'order-0', '--store', file])).err).toBe(
      'holdfast: --for is needed: how long they are kept.\n',
    );
  });

  test('list and show replays, with what failed again', async () => {
    const { file } = await parkedStore(4);
    const args = [
      'dlq',
      'replay',
      '--topic',
      'orders',
      '--canary',
      '1',
      '--canary-for',
      '10ms',
      '--stop-above',
      '10%',
    ];
    const failed = await ask([...args, '--why', 'a try', '--store', file]);
    expect(failed.code).toBe(1);
    const [replay] = (await ask(['dlq', 'replays', 'ls', '--json', '--store', file])).json();
    expect(replay).toMatchObject({
      stage: 'stopped',
      stopped: 'the canary failed again',
      request: { stopAbove: 0.1, expected: 4 },
    });
    const shown = await ask(['dlq', 'replays', 'show', replay.id.slice(-8), '--store', file]);
    expect(shown.out).toContain(`replay      ${replay.id} (stopped)\nstopped     the canary failed again`);
    expect(shown.out).toMatch(/failed again\nGROUP +EVENTS +ERROR\n\S+ +1 +TypeError: total is not a number/);
    const again = await ask(['dlq', 'ls', '--replayed-by', replay.id, '--json', '--store', file]);
    expect(again.json()).toMatchObject([{ replayedBy: replay.id, parkings: 2 }]);
    const [id] = again.json().map((each) => each.id);
    const event = await ask(['dlq', 'show', id, '--store', file]);
    expect(event.out).toMatch(
      /parked before at \S+: TypeError: total is not a number \(not_retryable, attempt 1\)/,
    );
  });

  test('change the rate of a replay, and begin one for others to move on', async () => {
    const { file, engine, orders } = await parkedStore(3);
    await orders.stop();
    const begun = await ask(['dlq', 'replay', '--all', '--detach', '--json', '--store', file]);
    const [{ id }] = begun.json();
    expect(begun.json()).toEqual([{ id, count: 3 }]);
    expect(begun.err).toBe(
      `holdfast: no process that reports here runs maintenance, so nothing moves ${id} on: run it now with ` +
        `"holdfast dlq replay --resume ${id} --store ${file}", or start maintenance({ engine }) of @holdfast/events in a process.\n`,
    );
    const changed = await ask(['dlq', 'replay', '--resume', id, '--rate', '5', '--detach', '--store', file]);
    expect([changed.code, changed.out]).toEqual([0, `replay ${id} releases 5 events/s.\n`]);
    expect((await engine.triage.operations.get(id))?.request).toMatchObject({ rate: 5 });
    const listed = await ask(['dlq', 'replays', 'ls', '--unfinished', '--store', file]);
    expect(listed.out).toMatch(/replay +selecting +0 of 0 +\S+ +ann +by hand/);
    const stopped = await ask(['dlq', 'replay', '--cancel', id, '--why', 'enough', '--store', file]);
    expect(stopped.out).toBe(`replay ${id} is stopped.\n`);
  });
});

test('an interrupted replay is named by those who miss its events, and a cancel gives them back', async () => {
  const { file, engine, orders } = await parkedStore(3);
  await orders.stop();
  const [{ id }] = (await ask(['dlq', 'replay', '--all', '--detach', '--json', '--store', file])).json();
  await engine.triage.operations.select(id, 10);
  const dry = await ask(['dlq', 'replay', '--topic', 'orders', '--dry-run', '--store', file]);
  expect(dry.out).toBe('0 parked events match.\n');
  expect(dry.err).toBe(
    `holdfast: 3 more parked events belong to replay ${id}, which is at "selecting". ` +
      `Go on with "holdfast dlq replay --resume ${id} --store ${file}". ` +
      `Stop it with "holdfast dlq replay --cancel ${id} --store ${file} --why …".\n`,
  );
  await ask(['dlq', 'replay', '--cancel', id, '--why', 'enough', '--store', file]);
  expect((await engine.triage.operations.get(id))?.stage).toBe('stopped');
  expect(await engine.triage.count({ isFree: true, topic: 'orders' })).toBe(3);
});

test('a replay of an event that another replay released names that replay', async () => {
  const { file, engine, orders } = await parkedStore(2);
  await orders.stop();
  const [{ id }] = (await ask(['dlq', 'replay', '--all', '--detach', '--json', '--store', file])).json();
  await engine.triage.operations.select(id, 10);
  await engine.triage.operations.release(id, 1, (topic, events) => engine.broker.publish(topic, events));
  const [released] = (await engine.triage.list({ status: 'replaying' }, { limit: 2 })).items;
  const again = await ask(['dlq', 'replay', released!.id, '--store', file]);
  expect([again.code, again.err]).toEqual([
    1,
    `holdfast: event ${released!.id} is replaying. Replay ${id}, which is at "selecting", released it. ` +
      `Go on with "holdfast dlq replay --resume ${id} --store ${file}". ` +
      `Stop it with "holdfast dlq replay --cancel ${id} --store ${file} --why …".\n`,
  ]);
});

test('an act that changes nothing is not in the audit log', async () => {
  const { file } = await parkedStore(1);
  const act = ['--why', 'a test', '--store', file];
  const discarded = await ask(['dlq', 'discard', 'zzzzzzzz', ...act]);
  expect([discarded.code, discarded.out, discarded.err]).toEqual([
    1,
    'zzzzzzzz was not discarded: it is not parked here.\n',
    'holdfast: no event was discarded.\n',
  ]);
  expect((await ask(['dlq', 'discard', 'zzzzzzzz', '--undo', ...act])).code).toBe(1);
  expect((await ask(['audit', '--json', '--store', file])).json()).toEqual([]);
});

describe('what was mistyped is not good news', () => {
  test('an act of the audit log', async () => {
    const { file } = await parkedStore(0);
    expect(await ask(['audit', '--what', 'discardd', '--store', file])).toMatchObject({
      code: 2,
      err: 'holdfast: --what: no act here is "discardd"; did you mean "discard"?\n',
    });
  });

  test('flags before the command belong to it', async () => {
    const { file } = await parkedStore(1);
    const first = await ask(['--store', file, 'dlq', 'ls', '--json']);
    expect([first.code, first.json().length]).toEqual([0, 1]);
  });

  test.each([
    [['--stop', 'nonsense'], '--stop: no event here stopped for "nonsense"; there are: not_retryable.'],
    [
      ['--stop', 'not_retriable'],
      '--stop: no event here stopped for "not_retriable"; did you mean "not_retryable"?',
    ],
    [['--stop', 'posion'], '--stop: no event here stopped for "posion"; did you mean "poison"?'],
    [['--consumer', 'ordrs'], '--consumer: no event here was parked by "ordrs"; did you mean "orders"?'],
    [['--topic', 'ordres'], 'there is no topic "ordres" here; did you mean "orders"?'],
    [
      ['--status', 'park'],
      '--status: expected one of parked, replaying, resolved, discarded, got "park". Did you mean "parked"?',
    ],
    [['--group', 'ffffffff'], '--group: there is no group "ffffffff" here.'],
  ])('%j', async (flags, sentence) => {
    const { file } = await parkedStore(1);
    for (const command of ['ls', 'groups']) {
      const { code, err } = await ask(['dlq', command, '--store', file, ...flags]);
      expect([code, err]).toEqual([2, `holdfast: ${sentence}\n`]);
    }
  });

  test('a stop reason that is known is a good question, and the answer says that others are parked', async () => {
    const { file } = await parkedStore(3);
    for (const flags of [
      ['--stop', 'poison'],
      ['--tenant', 'acme'],
      ['--type', 'order'],
    ]) {
      for (const command of ['ls', 'groups']) {
        const { code, out } = await ask(['dlq', command, '--store', file, ...flags]);
        expect([code, out]).toEqual([
          0,
          'Nothing that is parked here matches; 3 events without the filter.\n',
        ]);
      }
    }
  });

  test('a rule may name what is not parked yet', async () => {
    const { file } = await parkedStore(0);
    const args = ['dlq', 'rules', 'set', 'later', '--stop', 'unpaid', '--action', 'notify', '--why', 'x'];
    expect(await ask([...args, '--store', file])).toMatchObject({ code: 0 });
  });

  test('an id that is too short is told so', async () => {
    const { file } = await parkedStore(2);
    const show = (id: string) => ask(['dlq', 'show', id, '--store', file]);
    expect((await show('er-1')).err).toBe(
      'holdfast: "er-1" is too short: say at least 6 characters of the start or the end of order-1.\n',
    );
    expect((await show('ord')).err).toBe(
      'holdfast: several events fit "ord": order-1, order-0; say more of it.\n',
    );
    expect((await show('zzz')).err).toBe('holdfast: no event zzz is parked here.\n');
    const discarded = await ask(['dlq', 'discard', 'er-1', '--why', 'x', '--store', file]);
    expect([discarded.code, discarded.out]).toEqual([2, '']);
  });
});

test('rules are set, tried, listed and removed', async () => {
  const { file } = await parkedStore(3);
  const flags = ['--store', file];
  const tried = await ask(['dlq', 'rules', 'try', '--reason', 'TypeError', ...flags]);
  expect(tried.out).toBe('3 events of the last 24 hours would have matched.\n');
  const args = [
    'dlq',
    'rules',
    'set',
    'types',
    '--reason',
    'TypeError',
    '--action',
    'discard',
    '--after',
    '10m',
  ];
  expect((await ask([...args, ...flags])).err).toBe(
    'holdfast: --why is needed: it is kept in the audit log.\n',
  );
  expect((await ask([...args, '--why', 'they never succeed', ...flags])).code).toBe(0);
  expect((await ask(['dlq', 'rules', 'ls', ...flags])).out).toMatch(
    /types +discard +10m +\{"reason":"TypeError"\}/,
  );
  expect((await ask(['dlq', 'rules', 'try', 'types', ...flags])).out).toMatch(/^3 events/);
  expect(await ask(['dlq', 'rules', 'rm', 'tipes', '--why', 'x', ...flags])).toMatchObject({
    code: 2,
    err: 'holdfast: there is no rule "tipes" here; did you mean "types"?\n',
  });
  expect((await ask(['dlq', 'rules', 'rm', 'types', '--why', 'fixed', ...flags])).code).toBe(0);
  expect((await ask(['dlq', 'rules', 'ls', ...flags])).out).toBe('There are no rules here.\n');
  expect(
    await ask(['dlq', 'rules', 'set', 'x', '--action', 'drop', '--reason', 'y', '--why', 'z', ...flags]),
  ).toMatchObject({
    code: 2,
    err: 'holdfast: --action: expected one of replay, discard, notify, got "drop".\n',
  });
});
