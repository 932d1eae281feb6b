import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { commands } from '@holdfast/cli';
import { consumer } from '@holdfast/events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parkedStore } from './parked-store.ts';
import { ask, command, holdfast } from './run-holdfast.ts';

describe('holdfast dlq', () => {
  test('lists, groups and shows what is parked', async () => {
    const { file } = await parkedStore(3);
    const list = await holdfast(['dlq', 'ls', '--limit', '2'], { HOLDFAST_STORE: file });
    expect(list).toMatchObject({ code: 0, err: '' });
    expect(list.out).toMatch(/^ID +TOPIC/);
    expect(list.out).toMatch(
      /order-\d +orders +not_retryable +1 +\d{4}-\S+Z +30d +TypeError: total is not a number/,
    );
    expect(list.out).toMatch(/2 of 3; more with --cursor \S+/);
    const page = await ask(['dlq', 'ls', '--limit', '2', '--json'], { HOLDFAST_STORE: file });
    expect(page.json()).toHaveLength(2);
    const [, cursor = ''] = /there are more, with --cursor (\S+)/.exec(page.err) ?? [];
    const rest = await ask(['dlq', 'ls', '--cursor', cursor, '--json'], { HOLDFAST_STORE: file });
    expect([rest.json().length, rest.err]).toEqual([1, '']);

    const groups = await ask(['dlq', 'groups', '--store', file, '--json']);
    expect(groups.json()).toMatchObject([{ reason: 'TypeError', count: 3, topics: ['orders'] }]);
    const [{ fingerprint }] = groups.json();
    const narrowed = await ask(['dlq', 'ls', '--store', file, '--group', fingerprint, '--json']);
    expect(narrowed.json().length).toBe(3);
    expect((await ask(['dlq', 'ls', '--store', file, '--text', 'no such thing'])).out).toBe(
      'Nothing that is parked here matches; 3 events without the filter.\n',
    );

    const shown = await holdfast(['dlq', 'show', 'order-1', '--store', file]);
    expect(shown.code).toBe(0);
    expect(shown.out).toContain('stopped         not_retryable, at attempt 1');
    expect(shown.out).toMatch(/^correlationId {3}\S+$/m);
    expect(shown.out).toMatch(/^idempotencyKey {2}\S+$/m);
    expect(shown.out).toContain('{"index":1}');
    expect((await ask(['dlq', 'show', 'order-9', '--store', file])).code).toBe(1);
  });

  test('replays what matches, with progress, while the consumer runs', async () => {
    const { file, engine, fix } = await parkedStore(40);
    fix();
    const asked = await ask(['dlq', 'replay', '--topic', 'orders', '--dry-run', '--store', file]);
    expect([asked.code, asked.out]).toEqual([0, '40 parked events match.\n']);
    const flags = [
      '--rate',
      '1000',
      '--canary',
      '2',
      '--canary-for',
      '10ms',
      '--why',
      'it is fixed',
      '--json',
    ];
    const replay = await holdfast(['dlq', 'replay', '--topic', 'orders', '--store', file, ...flags]);
    expect(replay.code).toBe(0);
    const lines = replay.json();
    expect(lines.length).toBeGreaterThan(2);
    expect(lines.at(-1)).toMatchObject({
      stage: 'done',
      selected: 40,
      released: 40,
      succeeded: 40,
      failedAgain: 0,
    });
    expect(await engine.triage.count({ status: 'resolved' })).toBe(40);
    expect((await engine.audit.list({}, { limit: 1 })).items[0]).toMatchObject({
      what: 'replay',
      why: 'it is fixed',
    });
  });

  test('says that a replay waits for a consumer, and goes on when there is one', async () => {
    const { file, engine, orders } = await parkedStore(3);
    await orders.stop();
    const late = consumer({ engine, topic: 'orders', handler: () => {} });
    const args = ['dlq', 'replay', '--topic', 'orders', '--canary', '0', '--store', file, '--json'];
    const [node, ...words] = command;
    const child = spawn(node, [...words, ...args]);
    const ended = once(child, 'close');
    const [said] = await once(child.stderr, 'data');
    expect(String(said)).toMatch(
      /^holdfast: no consumer has taken an event of "orders" for \ds; the replay goes on when one does\.\n$/,
    );
    await late.start();
    expect((await ended)[0]).toBe(0);
    await late.stop();
  });

  test('says that a replay waits because its topic is paused', async () => {
    const { file, engine } = await parkedStore(1);
    await ask(['topics', 'pause', 'orders', '--for', '1h', '--why', 'a deploy', '--store', file]);
    const args = ['dlq', 'replay', '--all', '--canary', '0', '--store', file];
    const [node, ...words] = command;
    const child = spawn(node, [...words, ...args]);
    const [said] = await once(child.stderr, 'data');
    expect(String(said)).toMatch(
      /^holdfast: topic "orders" is paused by ann \d+s ago, for 1h more: a deploy; the replay waits\.\n$/,
    );
    const ended = once(child, 'close');
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(130);
    expect((await engine.triage.operations.list({ unfinished: true }, { limit: 1 })).items).toHaveLength(1);
  });

  test('says that a replay waits because its consumer waits for a dependency', async () => {
    const { file, engine, orders } = await parkedStore(1);
    await orders.stop();
    const report = {
      ...{ id: 'p1', service: 'shop', host: 'web-1', pid: 7, version: '1', startedAt: 0, clockOffsetMs: 0 },
      ...{ controlsVersion: 0, notObeyed: [], policies: [], leftOut: 0 },
      consumers: [{ ...orders.state(), status: 'dependency_down', waitsFor: ['bank'] }],
    };
    const [node, ...words] = command;
    const child = spawn(node, [...words, 'dlq', 'replay', '--all', '--canary', '0', '--store', file]);
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
    });
    await expect
      .poll(
        async () => {
          await engine.presence.report(report); // it is forgotten after 10 s
          return said;
        },
        { timeout: 30_000, interval: 500 },
      )
      .toBe(
        'holdfast: consumer "orders" of "orders" waits until bank can be called again; the replay waits.\n',
      );
    child.kill('SIGINT');
    expect((await once(child, 'close'))[0]).toBe(130);
  });

  test('says with its exit code that a replay came to nothing', async () => {
    const { file, engine } = await parkedStore(5);
    const flags = ['--canary', '1', '--canary-for', '10ms', '--store', file];
    const replay = await holdfast(['dlq', 'replay', '--all', ...flags]);
    expect(replay.code).toBe(1);
    expect(replay.err).toMatch(/was stopped: the canary failed again\./);
    expect(await engine.triage.count({})).toBe(5);
  });

  test('leaves a replay where it is when the command ends, to be resumed or cancelled', async () => {
    const { file, engine, fix } = await parkedStore(30);
    fix();
    const args = ['dlq', 'replay', '--all', '--rate', '5', '--canary', '0', '--store', file];
    const [node, ...words] = command;
    const child = spawn(node, [...words, ...args]);
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    const [code] = await once(child, 'close');
    expect(code).toBe(130);
    const [, id = ''] =
      /Go on with "holdfast dlq replay --resume (\S+) --store \S+"\. Stop it with/.exec(err) ?? [];
    expect((await engine.triage.operations.get(id))?.endedAt).toBe(undefined);

    const cancelled = await ask(['dlq', 'replay', '--cancel', id, '--why', 'enough', '--store', file]);
    expect([cancelled.code, cancelled.out]).toEqual([0, `replay ${id} is stopped.\n`]);
    const resumed = await ask(['dlq', 'replay', '--resume', id, '--store', file]);
    expect([resumed.code, resumed.err]).toEqual([1, `holdfast: replay ${id} was stopped: enough.\n`]);
    expect(await engine.triage.count({ isFree: true, topic: 'orders' })).toBeGreaterThan(0);
  });

  test('discards with a reason, and takes it back', async () => {
    const { file, engine } = await parkedStore(2);
    const refused = await ask(['dlq', 'discard', 'order-0', '--store', file]);
    expect([refused.code, refused.err]).toEqual([
      2,
      'holdfast: --why is needed: it is kept in the audit log.\n',
    ]);
    const discarded = await holdfast([
      'dlq',
      'discard',
      'order-0',
      'order-7',
      '--why',
      'a test',
      '--who',
      'ann',
      '--store',
      file,
    ]);
    expect(discarded.code).toBe(1);
    expect(discarded.out).toMatch(
      /^order-0 is discarded\.\norder-7 was not discarded: it is not parked here\.\n1 event is discarded\. Undo it with /,
    );
    expect((await engine.triage.get('order-0'))?.discarded).toMatchObject({ who: 'ann', why: 'a test' });
    const restored = await ask(['dlq', 'discard', 'order-0', '--undo', '--why', 'oh', '--store', file]);
    expect([restored.code, await engine.triage.count({})]).toEqual([0, 2]);
  });

  test('refuses to replay everything by accident', async () => {
    const { file } = await parkedStore(1);
    const cases: [string[], string][] = [
      [[], 'which events? Say ids, a filter such as --topic, or --all.'],
      [['order-0', '--all'], 'say ids, or a filter, or --all: not several of them.'],
      [['--topic', 'orders', '--rate', 'fast'], '--rate: expected a number, got "fast".'],
      [['--topic', 'orders', '--canary', '-1'], '--canary: expected a whole number from 0 on, got "-1".'],
      [['--since', 'yesterday'], '--since: expected a date or an age such as "2h", got "yesterday".'],
      [['--all', '--to', 'nowhere'], 'topic "nowhere" was never declared'],
      [['--cancel', 'none', '--why', 'enough'], 'there is no replay "none" here.'],
      [['--rte', '5'], '--rte is not a flag; did you mean --rate? Try "holdfast dlq replay --help".'],
    ];
    for (const [args, sentence] of cases) {
      const { code, err } = await ask(['dlq', 'replay', '--store', file, ...args]);
      expect([code, err]).toEqual([2, `holdfast: ${sentence}\n`]);
    }
  });
});

describe('holdfast topics', () => {
  test('lists topics, and pauses and resumes running consumers', async () => {
    const { file, engine, orders, fix } = await parkedStore(1);
    fix();
    expect(await holdfast(['topics', 'pause', 'orders', '--why', 'a test', '--store', file])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^orders: paused, until \S+\.\nUndo it with /),
    });
    await engine.broker.publish('orders', [{ id: 'later', payload: '1' }]);
    const listed = await ask(['topics', 'ls', '--json', '--store', file]);
    expect(listed.json()).toMatchObject([
      { topic: 'orders', ready: 1, parked: 1, controls: [{ id: 'pause:orders', act: { why: 'a test' } }] },
    ]);
    expect(orders.state().counters.succeeded).toBe(0);
    expect(await ask(['topics', 'resume', 'orders', '--store', file])).toMatchObject({
      code: 0,
      out: 'orders goes on.\n',
    });
    await expect.poll(() => orders.state().counters.succeeded, { timeout: 10_000 }).toBe(1);
    const unknown = await ask(['topics', 'pause', 'carts', '--store', file]);
    expect([unknown.code, unknown.err]).toEqual([
      2,
      'holdfast: there is no topic "carts" here; there are: orders.\n',
    ]);
  });
});

describe('holdfast', () => {
  test.skipIf(!existsSync('/dev/full'))('says so when its answer cannot be written', async () => {
    const full = openSync('/dev/full', 'w');
    const [node, ...words] = command;
    const child = spawn(node, [...words, '--help'], { stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    let err = '';
    child.stderr!.on('data', (chunk) => {
      err += chunk;
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(3);
    expect(err).toMatch(/^holdfast: the answer cannot be printed: ENOSPC: [^\n]+\.\n$/);
  });

  test('lists its commands, and those that are near to a wrong one', async () => {
    const help = await holdfast(['--help']);
    expect(help.code).toBe(0);
    expect(help.out).toContain('  dlq replay [id…]');
    const wrong = await ask(['dlq', 'list']);
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain('there is no command "dlq list"');
    expect(wrong.err).not.toContain('topics ls');
    expect((await ask(['dlq', 'ls', '--help'])).out).toContain('--group <fingerprint>');
  });

  test.each(['dlq', 'topics'])(
    'lists what belongs to %s, and nothing else, when asked for help',
    async (group) => {
      const { code, out, err } = await ask([group, '--help']);
      expect([code, err]).toEqual([0, '']);
      const listed = out.split('\n').filter((line) => line.startsWith(`  ${group} `));
      const own = commands.filter(({ name }) => name.startsWith(`${group} `));
      expect(listed).toHaveLength(own.length);
      for (const [index, { name, summary }] of own.entries()) {
        expect(listed[index]).toContain(`  ${name} `);
        expect(listed[index]).toContain(`  ${summary}`);
      }
    },
  );

  test('names the commands that begin with a command in the help of it', async () => {
    const { code, out } = await ask(['simulate', '--help']);
    expect(code).toBe(0);
    expect(out).toContain('--assert <bound>');
    expect(out).toMatch(/ {2}simulate sweep <scenario> +one figure over a grid/);
    expect(out).toContain('  simulate replay <notices.ndjson>');
    expect((await ask(['dlq', 'ls', '--help'])).out).not.toContain('holdfast dlq show');
  });

  test('says its version', async () => {
    const text = readFileSync(path.resolve(import.meta.dirname, '../package.json'), 'utf8');
    const { code, out, err } = await holdfast(['--version']);
    expect([code, out, err]).toEqual([0, `${JSON.parse(text).version}\n`, '']);
  });

  test('says which store it could not ask', async () => {
    expect(await ask(['dlq', 'ls'])).toMatchObject({ code: 2, err: expect.stringContaining('which store?') });
    const missing = await holdfast(['dlq', 'ls', '--store', '/nowhere/store.db']);
    expect([missing.code, missing.err]).toEqual([3, 'holdfast: there is no file /nowhere/store.db.\n']);
  });

  test.each([
    'postgres://ann:secret@127.0.0.1:1/db',
    'postgres://ann:with@secret@127.0.0.1:1/db',
    'postgres://ann@127.0.0.1:1/db?password=secret&application_name=x',
    'mysql://ann:secret@127.0.0.1:1/db',
  ])('keeps the password of %s to itself', async (store) => {
    const away = await ask(['dlq', 'ls', '--store', store]);
    expect(away.code).toBe(3);
    expect(away.err).toContain('127.0.0.1');
    expect(away.err).not.toContain('secret');
  });

  test('makes no store of an empty file, nor in one of somebody else', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-cli-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const empty = path.join(folder, 'empty.db');
    writeFileSync(empty, '');
    const { code, err } = await ask(['dlq', 'ls', '--store', empty]);
    expect([code, err]).toEqual([
      3,
      `holdfast: ${empty} cannot be opened: the file holds no store of ours\n`,
    ]);
    expect(readdirSync(folder)).toEqual(['empty.db']);
    expect(statSync(empty).size).toBe(0);
    const others = path.join(folder, 'others.db');
    const database = new DatabaseSync(others);
    database.exec('CREATE TABLE theirs (one)');
    expect((await ask(['dlq', 'ls', '--store', others])).code).toBe(3);
    expect(database.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'theirs' }]);
    database.close();
  });
});
