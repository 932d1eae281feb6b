import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { commands } from '@holdfast/cli';
import { nearest } from 'holdfast/fields';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fitReport } from '../src/fit-report.ts';
import { progressLine } from '../src/operation-progress.ts';
import { cursorOf, pasteable } from '../src/page-cursor.ts';
import { shortIds, wholeId } from '../src/short-ids.ts';
import { bad, dim } from '../src/styled-text.ts';
import { table } from '../src/table.ts';
import { drawable, hasColor, printable, programIn } from '../src/terminal.ts';
import { oneLine, widthOf, wrapped, wrapText } from '../src/text-width.ts';
import { parkedStore } from './parked-store.ts';
import { ask, holdfast, inTerminal, script } from './run-holdfast.ts';

test('commands are suggested in the form in which this program was started', () => {
  expect(programIn('/shop/node_modules/.bin/holdfast')).toBe('npx holdfast');
  expect(programIn('/usr/local/bin/holdfast')).toBe('holdfast');
});

test('progress keeps its counts in a narrow terminal, and gives up its bar', () => {
  const counts = { selected: 1250, released: 1250, succeeded: 1000, failedAgain: 250, changed: 0 };
  const operation = { request: { kind: 'replay' }, stage: 'releasing', counts } as never;
  for (const columns of [120, 80, 70]) {
    const line = progressLine(operation, columns);
    expect(widthOf(line)).toBeLessThan(columns);
    expect(line).toContain('250 failed again');
  }
});

const inPty = describe.skipIf(!existsSync(script));

inPty('in a terminal of 80 columns', () => {
  test('lists fit, have short ids, say when events were parked, and the ids are accepted again', async () => {
    const { file, engine } = await parkedStore(0);
    await park(engine, 3);
    const env = { HOLDFAST_STORE: file };
    const { code, lines } = await inTerminal(['dlq', 'ls', '--limit', '2'], env);
    expect(code).toBe(0);
    expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
    expect(lines[0]).toMatch(/^ID +TOPIC/);
    const [, shortId = ''] = /^(…[0-9a-f]{8}) {2}orders .* (\d+s ago|now) /m.exec(lines.join('\n')) ?? [];
    const [, cursor = ''] = /--cursor (\S+)/.exec(lines.join('\n')) ?? [];
    expect(cursor).toMatch(/^[\w.-]+$/);

    const { items } = await engine.triage.list({}, { limit: 10 });
    const whole = items.find(({ id }) => id.endsWith(shortId.slice(1)))!.id;
    for (const given of [shortId, shortId.slice(1), whole.slice(0, -1), whole]) {
      expect((await ask(['dlq', 'show', given, '--json'], env)).json()).toMatchObject([{ id: whole }]);
    }
    const rest = await ask(['dlq', 'ls', '--cursor', cursor, '--json'], env);
    expect(rest.json().map(({ id }) => id)).toEqual([items[2]!.id]);

    const one = await inTerminal(['dlq', 'ls', '--limit', '1'], env);
    const [, only = ''] = /^(…[0-9a-f]{8}) {2}orders /m.exec(one.lines.join('\n')) ?? [];
    expect((await ask(['dlq', 'show', only, '--json'], env)).json()).toMatchObject([{ id: items[0]!.id }]);
  });

  test('groups have short fingerprints, which every command accepts', async () => {
    const { file } = await parkedStore(2);
    const { lines } = await inTerminal(['dlq', 'groups'], { HOLDFAST_STORE: file });
    expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
    const [, group = ''] = /^(…[0-9a-f]{8}) +2 /m.exec(lines.join('\n')) ?? [];
    for (const given of [group, group.slice(1)]) {
      const listed = await ask(['dlq', 'ls', '--group', given, '--json', '--store', file]);
      expect(listed.json()).toHaveLength(2);
    }
    expect(await ask(['dlq', 'ls', '--group', 'abc', '--store', file])).toMatchObject({
      code: 2,
      err: 'holdfast: --group: there is no group "abc" here.\n',
    });
  });

  test('colours bad news, unless told not to', async () => {
    const { file } = await parkedStore(1);
    const args = ['dlq', 'ls', '--store', file];
    const red = '\x1b[31mTypeError: ';
    expect((await inTerminal(args)).screen).toContain(red);
    expect((await inTerminal(args, { NO_COLOR: '1' })).screen).not.toContain('\x1b[');
    expect((await holdfast(args)).out).not.toContain('\x1b[');
    expect((await holdfast(args, { FORCE_COLOR: '1' })).out).toContain(red);
    const failed = await inTerminal(['dlq', 'show', 'none', '--store', file]);
    expect(failed).toMatchObject({
      code: 1,
      screen: '\x1b[31mholdfast: no event none is parked here.\x1b[39m\n',
    });
  });

  test('one event begins with its error and attempts, and has only frames of the application', async () => {
    const { file } = await parkedStore(1);
    const { lines } = await inTerminal(['dlq', 'show', 'order-0', '--store', file]);
    expect(lines[1]).toMatch(/^error +TypeError: total is not a number$/);
    expect(lines.indexOf('attempts')).toBeLessThan(5);
    expect(lines.filter((line) => /^ +at /.test(line)).length).toBeLessThanOrEqual(5);
    expect(lines.filter((line) => /node_modules|node:internal/.test(line))).toEqual([]);
  });

  test('the audit log has short ids', async () => {
    const { file } = await parkedStore(1);
    await ask(['dlq', 'discard', 'order-0', '--why', 'a test', '--store', file]);
    const { lines } = await inTerminal(['audit', '--store', file]);
    expect(lines.join('\n')).toMatch(/discard +operation:\S{8,12} /);
    expect(lines.join('\n')).not.toMatch(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}/);
  });

  test('a command that is too long for a line is printed so that it can be pasted', async () => {
    const { file } = await parkedStore(1);
    const { lines } = await inTerminal(['dlq', 'discard', 'order-0', '--why', 'x', '--store', file]);
    const at = lines.findIndex((line) => line.includes('holdfast dlq discard --undo'));
    expect(lines[at]).toMatch(/ \\$/);
    expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
  });

  test('topics say until when, by whom and why a control holds', async () => {
    const { file } = await parkedStore(1);
    const why = 'the bank has an outage that will last for the rest of the night and perhaps longer';
    await ask(['topics', 'pause', 'orders', '--for', '10m', '--why', why, '--store', file]);
    const { lines } = await inTerminal(['topics', 'ls', '--store', file]);
    expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
    expect(lines.map((line) => line.trim()).join(' ')).toMatch(
      new RegExp(`paused by ann (\\d+s ago|now), for 10m more: ${why}`),
    );
    const piped = await holdfast(['topics', 'ls', '--store', file]);
    expect(piped.out).toMatch(new RegExp(`paused by ann at \\S+Z, until \\S+Z: ${why}`));
  });

  test.each([[['--help']], [['dlq', '--help']], [['dlq', 'replay', '--help']], [['simulate', '--help']]])(
    'the help of %j fits',
    async (args) => {
      const { code, lines } = await inTerminal(args);
      expect(code).toBe(0);
      expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
    },
  );

  test.each([
    [['explain'], ['--policy', 'payment']],
    [['lint'], ['--method', 'POST']],
  ])('%j fits', async (words, flags) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'p.yaml');
    writeFileSync(file, 'policies: { payment: { attempts: 4, breaker: true, patience: 5s } }\n');
    const { screen, lines } = await inTerminal([...words, file, ...flags]);
    expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
    expect(screen.includes('\x1b[31m')).toBe(words[0] === 'lint');
  });

  test('progress is drawn over itself, and is plain lines in a pipe', async () => {
    const { file, fix } = await parkedStore(6);
    fix();
    const args = ['dlq', 'replay', '--all', '--canary', '0', '--rate', '1000', '--store', file];
    const { code, screen } = await inTerminal(args);
    expect(code).toBe(0);
    const steps = screen.split('\r\x1b[2K').slice(1);
    expect(steps.length).toBeGreaterThan(2);
    expect(steps.at(-1)).toMatch(/^█{20} done: 6 of 6 released, 6 succeeded, 0 failed again\n/);
    for (const line of steps) expect(widthOf(line.trimEnd())).toBeLessThan(80);

    const other = await parkedStore(6);
    other.fix();
    const piped = await holdfast([
      'dlq',
      'replay',
      '--all',
      '--canary',
      '0',
      '--rate',
      '1000',
      '--store',
      other.file,
    ]);
    expect(piped.out.trimEnd().split('\n').at(-1)).toBe('done: 6 of 6 released, 6 succeeded, 0 failed again');
    for (const drawn of ['\r', '\x1b', '█']) expect(piped.out).not.toContain(drawn);
  });

  test('a wider terminal is used, and a narrow one is enough', async () => {
    const { file } = await parkedStore(1);
    const wide = await inTerminal(['dlq', 'ls', '--store', file], {}, 160);
    expect(wide.lines.filter((line) => line.includes('total is not a number'))).toHaveLength(1);
    const narrow = await inTerminal(['dlq', 'ls', '--store', file], {}, 60);
    expect(narrow.lines.filter((line) => widthOf(line) > 60)).toEqual([]);
  });
});

async function park(engine: Awaited<ReturnType<typeof parkedStore>>['engine'], count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({ payload: '{}', key: 'customer-4711' }));
  await engine.broker.publish('orders', events);
  while ((await engine.triage.count({})) < count) await new Promise((resolve) => setImmediate(resolve));
}

test.each(commands.map(({ name }) => name))('the help of "%s" fits and has examples', async (name) => {
  const { code, out } = await ask([...name.split(' '), '--help'], {}, undefined, 80);
  expect(code).toBe(0);
  expect(out.split('\n').filter((line) => widthOf(line) > 80)).toEqual([]);
  expect(out).toMatch(new RegExp(`^examples\n {2}holdfast ${name} ?`, 'm'));
});

describe('words that are not known', () => {
  test.each([
    [['dlq', 'list'], 'there is no command "dlq list"; did you mean "dlq ls"?'],
    [['topic', 'ls'], 'there is no command "topic"; did you mean "topics"? "holdfast --help" lists all.'],
    [
      ['replay', '--all'],
      'there is no command "replay"; did you mean "dlq replay" or "simulate replay"? "holdfast --help" lists all.',
    ],
    [
      ['groups'],
      'there is no command "groups"; did you mean "dlq groups" or "assembly groups"? "holdfast --help" lists all.',
    ],
    [
      ['pause', 'orders'],
      'there is no command "pause"; did you mean "topics pause" or "assembly pause"? "holdfast --help" lists all.',
    ],
    [['dlq', '--store', 'shop.db'], '"dlq" needs one of these words:'],
    [['gateway', 'chek', 'my.yaml'], 'there is no command "gateway chek"; did you mean "gateway check"?'],
    [['gateway', 'chek'], 'there is no command "gateway chek"; did you mean "gateway check"?'],
    [
      ['dlq', 'ls', '--topc', 'x'],
      '--topc is not a flag; did you mean --topic? Try "holdfast dlq ls --help".',
    ],
    [['dlq', 'ls', '--zzz'], '--zzz is not a flag; try "holdfast dlq ls --help".'],
  ])('%j', async (args, sentence) => {
    const { code, err } = await ask(args);
    expect(code).toBe(2);
    expect(err.split('\n')[0]).toBe(`holdfast: ${sentence}`);
  });

  test.each([
    [['dlq', 'ls', '--topic', 'ordres']],
    [['dlq', 'replay', '--topic', 'ordres']],
    [['topics', 'pause', 'ordres']],
  ])('a topic: %j', async (args) => {
    const { file } = await parkedStore(1);
    expect(await ask([...args, '--store', file])).toMatchObject({
      code: 2,
      err: 'holdfast: there is no topic "ordres" here; did you mean "orders"?\n',
    });
  });

  test('a word that is far from all others is not replaced', () => {
    expect(nearest('ls', ['show', 'groups'])).toBeUndefined();
    expect(nearest('ordres', ['carts', 'orders'])).toBe('orders');
    expect(nearest('x', ['y'])).toBeUndefined();
  });

  test('a missing file is a missing file', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const missing = path.join(folder, 'none.yaml');
    for (const args of [
      ['explain', missing],
      ['lint', missing],
      ['simulate', missing],
      ['dlq', 'ls', '--store', missing],
    ])
      expect(await ask(args)).toMatchObject({ code: 3, err: `holdfast: there is no file ${missing}.\n` });
    expect(await ask(['lint', folder])).toMatchObject({
      code: 3,
      err: `holdfast: ${folder} is a folder, not a file.\n`,
    });
  });

  test('a cursor can be pasted, whatever is in it', () => {
    const given = (cursor: string) => ({ operands: [], flags: { cursor }, lists: {} });
    for (const cursor of ['[17,"a-1"]', '17', '[17,"it\'s $HOME"]', '[-1.5,"a"]', '["x"]']) {
      expect(pasteable(cursor)).toMatch(/^[\w.-]+$/);
      expect(cursorOf(given(pasteable(cursor)))).toBe(cursor);
    }
    expect(pasteable('[17,"a-1"]')).toBe('17.a-1');
  });

  test('a cursor that no page has printed', async () => {
    const { file } = await parkedStore(1);
    expect(await ask(['dlq', 'ls', '--cursor', '[1,"a"]', '--store', file])).toMatchObject({
      code: 2,
      err: 'holdfast: --cursor: expected one that a page has printed, got "[1,"a"]".\n',
    });
  });
});

test('explain takes one policy of a file', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'policies.yaml');
  writeFileSync(file, 'policies: { payment: { attempts: 2 }, search: { attempts: 3 } }\n');
  const { code, out } = await ask(['explain', file, '--policy', 'search']);
  expect(code).toBe(0);
  expect(out).toContain('The policy search');
  expect(out).not.toContain('The policy payment');
  expect(await ask(['explain', file, '--policy', 'serach'])).toMatchObject({
    code: 2,
    err: `holdfast: --policy: ${file} has no policy "serach"; it has payment, search. Did you mean "search"?\n`,
  });
});

describe('short ids', () => {
  test('are the ends of ids, unique in the list, and ids whose ends are not random stay whole', () => {
    const ids = ['019b76da-abe8-779c-b172-3b0614e22cc7', '019b76da-abe8-779d-8172-000014e2aaaa'];
    expect([...shortIds(ids).values()]).toEqual(['…14e22cc7', '…14e2aaaa']);
    expect([...shortIds(ids.slice(0, 1)).values()]).toEqual(['…14e22cc7']);
    expect([...shortIds(['4f1d9ac000112233']).values()]).toEqual(['…00112233']);
    const alike = ['019b76da-abe8-779c-b172-3b0714e22cc7', '019b76da-abe8-779c-b172-3b0614e22cc7'];
    expect([...shortIds(alike).values()]).toEqual(['…714e22cc7', '…614e22cc7']);
    const own = ['order-1', 'order-17-of-2026-01-31', 'customer-4711/replayed-once-again'];
    expect([...shortIds(own).values()]).toEqual(own);
  });

  test('are refused where several fit, with the candidates', async () => {
    async function* pages() {
      yield ['order-1', 'order-12'];
      yield ['order-13', 'basket-1'];
    }
    expect(await wholeId('events', 'order-1', pages())).toBe('order-1');
    expect(await wholeId('events', 'basket', pages())).toBe('basket-1');
    await expect(wholeId('events', 'baske', pages())).rejects.toThrow(
      '"baske" is too short: say at least 6 characters of the start or the end of basket-1.',
    );
    expect(await wholeId('events', 'none', pages())).toBeUndefined();
    await expect(wholeId('events', 'order-', pages())).rejects.toThrow(
      'several events fit "order-": order-1, order-12, order-13; say more of it.',
    );
  });
});

describe('a table', () => {
  const rows = [
    ['one', '1', 'a sentence of several words that has to be wrapped'],
    ['two', '22', ''],
  ];
  const headings = ['NAME', { heading: 'COUNT', align: 'right' }, 'TEXT'] as const;

  test('is as wide as it is where there is no width', () => {
    expect(`${table(headings, rows, undefined)}`).toBe(
      'NAME  COUNT  TEXT\none       1  a sentence of several words that has to be wrapped\ntwo      22',
    );
  });

  test('wraps at words, and breaks only words that are too long', () => {
    expect(`${table(headings, rows, 40)}`.split('\n')).toEqual([
      'NAME  COUNT  TEXT',
      'one       1  a sentence of several words',
      '             that has to be wrapped',
      'two      22',
    ]);
    expect(wrapped('attempts_exhausted', 12)).toEqual(['attempts_', 'exhausted']);
    expect(wrapped('aaaaaaaaaaaaaaa', 10)).toEqual(['aaaaaaaaaa', 'aaaaa']);
    expect(wrapText('  holdfast: a b', 8, 2)).toBe('  holdfast:\n    a b');
  });

  test('leaves columns out that nothing is in, and puts notes under rows', () => {
    const noted = [['a', ''], dim('a note of its own')];
    expect(`${table(['A', 'EMPTY'], noted, 20)}`).toBe('A\na\n  a note of its\n    own');
  });

  test('counts what a terminal shows', () => {
    expect(widthOf('日本')).toBe(4);
    expect(widthOf('e\u0301')).toBe(1);
    expect(oneLine('日本語です', 6)).toBe('日本…');
    const text = `${table(
      ['A', 'B'],
      [
        [bad('\x1b[2J'), 'x'],
        ['日本', 'y'],
      ],
      80,
    )}`;
    expect(text.split('\n').map(widthOf)).toEqual([10, 10, 10]);
  });
});

describe('a report', () => {
  const report = [
    'A sentence that is longer than the terminal is wide.',
    '',
    '           success  goodput  recovery',
    '  noRetry   47.3 %      132     150 s',
    '  mine      96.3 %      270       2 s',
    '',
    'and so on',
  ].join('\n');

  test('is wrapped, and its tables are folded', () => {
    expect(fitReport(report, 30).split('\n')).toEqual([
      'A sentence that is longer than',
      '  the terminal is wide.',
      '',
      '           success  goodput',
      '  noRetry   47.3 %      132',
      '  mine      96.3 %      270',
      '',
      '           recovery',
      '  noRetry     150 s',
      '  mine          2 s',
      '',
      'and so on',
    ]);
    expect(fitReport(report, undefined)).toBe(report);
    expect(fitReport(report, 80)).toBe(report);
  });
});

describe('a terminal', () => {
  test('has colours if it can show them and nobody objects', () => {
    expect(hasColor({}, true)).toBe(true);
    expect(hasColor({}, false)).toBe(false);
    expect(hasColor({ NO_COLOR: '1' }, true)).toBe(false);
    expect(hasColor({ NO_COLOR: '' }, true)).toBe(true);
    expect(hasColor({ TERM: 'dumb' }, true)).toBe(false);
    expect(hasColor({ FORCE_COLOR: '1', NO_COLOR: '1' }, false)).toBe(true);
    expect(hasColor({ FORCE_COLOR: '0' }, true)).toBe(false);
  });

  test('shows what strangers wrote, and lets none of it be obeyed', () => {
    expect(printable('a\tb\nc \x1b]0;title\x07 \x9b2J \r é 💥')).toBe(
      'a\tb\nc \\x1b]0;title\\x07 \\x9b2J \\x0d é 💥',
    );
  });

  test('draws over one row, and not over a part of two', () => {
    expect(drawable('x'.repeat(39), 40)).toBe('x'.repeat(39));
    expect(drawable('x'.repeat(40), 40)).toBe(`${'x'.repeat(38)}…`);
    expect(drawable('x'.repeat(100), 0)).toHaveLength(79);
    expect(drawable('x'.repeat(100), undefined)).toHaveLength(79);
  });
});
