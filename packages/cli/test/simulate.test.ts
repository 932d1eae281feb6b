import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { commands, runCommand, type Terminal } from '@holdfast/cli';
import { afterAll, describe, expect, test } from 'vitest';

const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const whole = path.join(folder, name);
  writeFileSync(whole, text);
  return whole;
}

async function ask(...args: string[]) {
  const printed = { out: '', err: '', drawn: '' };
  const terminal: Terminal = {
    env: {},
    isInteractive: true,
    columns: undefined,
    program: 'holdfast',
    user: 'ann',
    out: (line) => {
      printed.out += `${line}\n`;
    },
    err: (line) => {
      printed.err += `${line}\n`;
    },
    draw: (line) => {
      printed.drawn += line;
    },
    clear: () => {},
    signal: new AbortController().signal,
  };
  const code = await runCommand(commands, args, terminal);
  return { code, ...printed };
}

const scenario = file(
  'scenario.yaml',
  `
id: small
duration: 20s
services: { api: { workers: 5, time: { exponential: 50ms } } }
clients: { web: { to: api, arrivals: { poisson: 40/s } } }
faults: [{ kind: refuse, service: api, from: 5s, until: 7s }]
policies: { mine: { attempts: 2 }, bold: { attempts: 6, budget: false, breaker: false } }
`,
);

describe('holdfast simulate', () => {
  test('compares the policies of a scenario and writes a report', async () => {
    const report = path.join(folder, 'report.html');
    const { code, out, drawn } = await ask('simulate', scenario, '--seeds', '2', '--out', report);
    expect(code).toBe(0);
    expect(out).toMatch(/mine +[89]\d/);
    expect(out).toMatch(/bold +9\d/);
    expect(drawn).toContain('of 4 runs');
    expect(readFileSync(report, 'utf8')).toContain('<svg viewBox');
  });

  test.each([
    [['simulate'], /mine +[89]\d/],
    [['simulate', 'sweep', '--vary', 'policy.attempts=1..2', '--policy', 'mine'], /goodput with mine/],
  ])('%s prints its figures although the report cannot be written', async (words, figures) => {
    const nowhere = path.join(folder, 'nowhere', 'report.html');
    const { code, out, err } = await ask(...words, scenario, '--seeds', '1', '--out', nowhere);
    expect([code, err]).toEqual([3, expect.stringContaining(`${nowhere} cannot be written`)]);
    expect(out).toMatch(figures);
  });

  test('is a gate: a sentence for each assertion that does not hold', async () => {
    const asserts = ['--assert', 'success > 10%', '--assert', 'multiplication < 0.5'];
    const { code, err } = await ask('simulate', scenario, '--policy', 'mine', '--seeds', '1', ...asserts);
    expect(code).toBe(1);
    expect(err).toMatch(/^mine: expected multiplication < 0.5, got [\d.]+ \(one run\)\.\n$/);
  });

  test('speaks of a figure in the unit that was asked for', async () => {
    const asserts = [
      'p99 < 1ms',
      'p50 < 0.001s',
      'success > 99.999%',
      'multiplication < 0.5x',
      'p99 < 0.001',
    ];
    const flags = asserts.flatMap((each) => ['--assert', each]);
    const { err } = await ask('simulate', scenario, '--policy', 'mine', '--seeds', '1', ...flags);
    const got = [...err.matchAll(/, got ([\d.]+)(\S*) \(/g)].map(([, figure, unit]) => [
      Number(figure),
      unit,
    ]);
    expect(got.map(([, unit]) => unit)).toEqual(['ms', 's', '%', 'x', '']);
    const [inMs, , percent, , inSeconds] = got.map(([figure]) => figure as number);
    expect(inMs).toBeCloseTo(1000 * inSeconds!, 0);
    expect(percent).toBeGreaterThan(1);
  });

  test.each([
    [['--assert', 'recovry < 3s'], 'holdfast: --assert: the metric: expected one of goodput, '],
    [
      ['--assert', 'recovery < 3 parsecs'],
      'holdfast: --assert: the value: expected a duration such as "200ms", got "3parsecs".',
    ],
    [['--assert', 'recovery'], 'holdfast: --assert: expected a metric, a relation and a number'],
    [['--policy', 'nobody'], 'holdfast: --policy: there is no policy "nobody"; there are mine, bold, '],
    [['--seeds', 'two'], 'holdfast: --seeds: expected a number, got "two".'],
  ])('refuses %j', async (flags, sentence) => {
    const { code, err } = await ask('simulate', scenario, ...flags);
    expect(code).toBe(2);
    expect(err).toContain(sentence);
  });

  test('says where a scenario is wrong, and which file cannot be read', async () => {
    const wrong = file('wrong.yaml', 'id: x\nduration: soon\n');
    expect(await ask('simulate', wrong)).toMatchObject({
      code: 2,
      err: expect.stringContaining('wrong.yaml:2:11: duration:'),
    });
    expect(await ask('simulate', path.join(folder, 'nowhere.yaml'))).toMatchObject({ code: 3 });
    expect(await ask('simulate')).toMatchObject({ code: 2, err: expect.stringContaining('s03') });
  });

  test.each([
    ['multiplication at db < 2', '--assert: there is no service "db": there are api.'],
    ['goodput of bots > 2', '--assert: there are no clients "bots": there are web.'],
    [
      'success > 9% at 5% failures',
      '--assert: "success > 9% at 5% failures" is a goal of "holdfast tune"; a scenario says itself how much of it is failing.',
    ],
  ])('does not assert what cannot be measured: %s', async (bound, sentence) => {
    const { code, err } = await ask('simulate', scenario, '--assert', bound);
    expect([code, err]).toEqual([2, `holdfast: ${sentence}\n`]);
  });

  test.each([[['simulate']], [['simulate', 'sweep', '--vary', 'policy.attempts=1..2']]])(
    'names the storms where there is none of that name: %j',
    async (command) => {
      const { code, err } = await ask(...command, 's99');
      expect(code).toBe(2);
      expect(err).toMatch(/^holdfast: there is no file and no storm "s99"; the suite has s01, .*s16\.\n$/);
      expect(await ask(...command, 's07-0.5')).toMatchObject({ code: 2 });
    },
  );

  test.each(['s12-dropExpired', 'S12-DROPEXPIRED'])('knows a storm in any letters: %s', async (name) => {
    const { code, out } = await ask('simulate', name, '--policy', 'noRetry', '--seeds', '1');
    expect(code).toBe(0);
    expect(out).toMatch(/^S12 \(dropExpired\): /);
  });

  test('takes a policy that is less patient than an attempt of the storm may last', async () => {
    const search = file('search.yaml', 'policies: { search: { patience: 500ms, hedge: true } }\n');
    const { code, err, out } = await ask('simulate', 's03', '--policy', search, '--seeds', '1');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^ {2}search /m);
  });

  test('names the place of a policy that is nowhere', async () => {
    const text = readFileSync(scenario, 'utf8').replace('to: api,', 'to: api, policy: theirs,');
    const { code, err } = await ask('simulate', file('theirs.yaml', text), '--seeds', '1');
    expect(code).toBe(2);
    expect(err).toMatch(
      /^holdfast: small: clients\.web\.policy: there is no policy "theirs"; there are mine, bold, /,
    );
  });

  test('takes policies from a file, and prints JSON or CSV', async () => {
    const policies = file('policies.yaml', 'policies: { theirs: { attempts: 3 } }\n');
    const flags = ['--policy', policies, '--seeds', '1'];
    const { out } = await ask('simulate', scenario, ...flags, '--json');
    expect(JSON.parse(out)).toMatchObject({
      scenario: { id: 'small' },
      policies: [{ policy: 'theirs' }],
      broken: [],
    });
    const csv = await ask('simulate', scenario, ...flags, '--csv');
    expect(csv.out).toMatch(/^policy,part,name,second/);
  });
});

describe('holdfast simulate sweep', () => {
  test('measures a grid', async () => {
    const grid = ['--vary', 'policy.attempts=1,4', '--vary', 'faults[0].until=6s,8s'];
    const { code, out } = await ask(
      'simulate',
      'sweep',
      scenario,
      ...grid,
      '--policy',
      'bold',
      '--metric',
      'attempts',
      '--seeds',
      '1',
      '--json',
    );
    expect(code).toBe(0);
    const medians = JSON.parse(out).cells.map((each: { figure: { median: number } }) => each.figure.median);
    const [fewShort, , manyShort, manyLong] = medians as number[];
    expect(manyShort).toBeGreaterThan(fewShort!);
    expect(manyLong).toBeGreaterThan(manyShort!);
  });

  test('measures what is there, and changes what has a name', async () => {
    const vary = ['--vary', 'policy.attempts=1..2'];
    const stranger = await ask('simulate', 'sweep', scenario, ...vary, '--metric', 'peak at db');
    expect([stranger.code, stranger.err]).toEqual([
      2,
      'holdfast: --metric: there is no service "db": there are api.\n',
    ]);
    const ancestor = await ask('simulate', 'sweep', scenario, '--vary', '__proto__.read=1');
    expect([ancestor.code, ancestor.err]).toEqual([
      2,
      'holdfast: __proto__.read: expected the name of a field, got "__proto__"\n',
    ]);
  });

  test('wants one parameter or two', async () => {
    expect(await ask('simulate', 'sweep', scenario)).toMatchObject({
      code: 2,
      err: 'holdfast: --vary is needed once or twice, got 0.\n',
    });
  });
});

test('holdfast simulate replay tries another policy on what was recorded', async () => {
  const lines = Array.from({ length: 50 }, (_, work) => [
    { type: 'start', at: 100 * work, work },
    { type: 'attempt', at: 100 * work + 10, work, attempt: 1, class: 'ok', tookMs: 10 },
    { type: 'done', at: 100 * work + 10, work, attempts: 1, tookMs: 10 },
  ]);
  const notices = file(
    'notices.ndjson',
    lines
      .flat()
      .map((each) => JSON.stringify(each))
      .join('\n'),
  );
  const { code, out } = await ask(
    'simulate',
    'replay',
    notices,
    '--policy',
    'holdfast',
    '--assert',
    'success >= 100%',
  );
  expect(out).toContain('recorded: 50 pieces of work, 100.00 % done with 1.000 attempts each');
  expect(code).toBe(0);
  const marked = file('marked.ndjson', `\uFEFF${readFileSync(notices, 'utf8').replaceAll('\n', '\r\n')}`);
  expect(await ask('simulate', 'replay', marked, '--policy', 'holdfast')).toMatchObject({
    code: 0,
    out: expect.stringContaining('recorded: 50 pieces of work'),
  });
});

test('holdfast tune finds a policy and shows the evidence', async () => {
  const storm = file('storm.yaml', readFileSync(scenario, 'utf8'));
  const { code, out } = await ask(
    'tune',
    '--goal',
    'multiplication <= 1.2, p99 <= 2s',
    '--scenario',
    storm,
    '--trials',
    '9',
  );
  expect(code).toBe(0);
  expect(out).toContain('It reaches the goal, of 9 policies.');
  expect(out).toMatch(/small +[\d.]+ +✓ {2}multiplication <= 1.2/);
  expect(await ask('tune')).toMatchObject({ code: 2, err: expect.stringContaining('--goal is needed') });
});

test('holdfast tune takes a goal about clients of one’s own, and none about nobody', async () => {
  const own = file('own.yaml', readFileSync(scenario, 'utf8').replace('web:', 'shop:'));
  const tuned = (goal: string) => ask('tune', '--goal', goal, '--scenario', own, '--trials', '1');
  const { code, out, err } = await tuned('success of shop >= 50%');
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/small +[\d.]+ +✓ {2}success of shop >= 50%/);
  expect(out).not.toContain('In storms it was not tuned on');
  expect(await tuned('success of nobody >= 50%')).toMatchObject({
    code: 2,
    err: expect.stringContaining('there are no clients "nobody": there are shop'),
  });
  expect((await tuned('success >= 50%')).out).toContain('In storms it was not tuned on');
});

describe('holdfast explain and lint', () => {
  const good = file('good.yaml', 'patience: 5s\n');
  const bad = file('bad.yaml', 'policies:\n  pay:\n    attempts: 5\n    backoff: { jitter: none }\n');

  test('explain says what a policy does', async () => {
    const { code, out } = await ask('explain', bad);
    expect(code).toBe(0);
    expect(out).toContain('The policy pay');
    expect(await ask('explain', bad, '--policy', 'buy')).toMatchObject({
      code: 2,
      err: expect.stringContaining('it has pay'),
    });
  });

  test('explain says what layers cost together', async () => {
    const two = file('two.yaml', 'policies:\n  call: {}\n  consume:\n    attempts: 5\n');
    const { out } = await ask('explain', two, '--within', 'consume');
    expect(out).toContain('Within consume, one piece of work is 5 × 4 = 20 calls at most.');
    expect(out).not.toContain('The policy consume');
    expect(await ask('explain', two, '--within', 'buy')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--within: '),
    });
  });

  test('explain says that nothing is left to explain, and that one file is enough', async () => {
    expect(await ask('explain', bad, '--within', 'pay')).toMatchObject({
      code: 2,
      err: expect.stringContaining('has no other policy to explain'),
    });
    expect(await ask('explain', bad, good)).toMatchObject({
      code: 2,
      err: 'holdfast: a file of policies is needed and no more, got 2.\n',
    });
  });

  test('lint names line and column, and is strict where asked', async () => {
    const { code, out } = await ask('lint', bad);
    expect(out).toContain(`${bad}:4:24: warning: pay.backoff.jitter: `);
    expect(code).toBe(0);
    expect((await ask('lint', bad, '--strict')).code).toBe(1);
    expect(await ask('lint', good)).toMatchObject({ code: 0, out: `${good}: nothing to complain about.\n` });
  });

  test('lint as JSON names the policy of each finding', async () => {
    const named = async (text: string) => {
      const { out } = await ask('lint', file('named.yaml', text), '--json', '--method', 'POST');
      return out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).policy);
    };
    expect(new Set(await named('policies: { pay: {}, buy: { backoff: { jitter: none } } }\n'))).toEqual(
      new Set(['pay', 'buy']),
    );
    expect(new Set(await named('name: pay\n'))).toEqual(new Set(['pay']));
    expect(await named('policies: { pay: { attempts: no }, pay.eu: { attempts: no } }\nstray: 1\n')).toEqual([
      'pay',
      'pay.eu',
      null,
    ]);
    expect(await named('attempts: no\n')).toEqual(['default']);
    expect(await named('attempts: [\n')).toEqual([null]);
  });

  test('lint calls an error what will hurt, and what cannot be read', async () => {
    const post = await ask('lint', good, '--method', 'POST');
    expect(post).toMatchObject({
      code: 1,
      out: expect.stringContaining('error: attempts: a POST is tried up to 4 times'),
    });
    const wrong = await ask('lint', file('wrong.yaml', 'attempts: four\n'));
    expect(wrong).toMatchObject({
      code: 1,
      out: expect.stringContaining('wrong.yaml:1:11: error: attempts: expected a whole number'),
    });
  });
});
