import { parseAssertion, parseScenario, readDocument } from '@holdfast/config';
import { afterAll, describe, expect, test } from 'vitest';
import {
  failingStorm,
  heatHtml,
  heatText,
  parseAxis,
  parseGoal,
  RunPool,
  readIncident,
  scorePolicies,
  searchByChance,
  simulate,
  sweep,
  tune,
  tuningStorms,
  unseenStorms,
} from '../src/index.ts';

const pool = new RunPool(2);
afterAll(() => pool.close());

describe('a sweep', () => {
  test.each([
    ['policy.attempts=1..3', [1, 2, 3]],
    ['policy.backoff.base=50ms,1s', ['50ms', '1s']],
    ['clients.web.arrivals.poisson=100/s..300/s+100', ['100/s', '200/s', '300/s']],
    ['policy.budget=true,false', [true, false]],
  ])('reads %s', (text, values) => {
    expect(parseAxis(text).values).toEqual(values);
  });

  test.each([
    [
      'policy.attempts',
      'axis: expected a path and values, such as "policy.attempts=1..6", got "policy.attempts"',
    ],
    ['policy.attempts=5..1', 'axis: expected a range such as "1..6" or "100ms..500ms+100", got "5..1"'],
    [
      'policy.budget.ratio=0.1..0.2',
      'axis: expected a step that fits into the range, such as "0.1..0.2+0.01", got "0.1..0.2"',
    ],
    ['policy.attempts=1..6+10', 'such as "1..6+1"'],
  ])('refuses %s', (text, sentence) => {
    expect(() => parseAxis(text)).toThrow(sentence);
  });

  const text = `
id: layers
duration: 5s
services: { a: { calls: [{ to: b }] }, b: {} }
clients: { user: { to: a, arrivals: { constant: 10/s } } }
faults: [{ kind: errorRate, value: 1, service: b, from: 0s }]
policies: { p: { backoff: false, patience: unlimited, attemptTimeout: none, budget: false, breaker: false } }
`;
  const question = {
    document: readDocument(text).data as Record<string, unknown>,
    file: 'layers.yaml',
    policy: 'p',
    policies: new Map(),
    bound: parseAssertion('multiplication at b >= 0').bound,
    seeds: 1,
  };

  test('finds what is known: two layers of n attempts make n² calls', async () => {
    const found = await sweep({ ...question, axes: [parseAxis('policy.attempts=1..4')] }, pool);
    expect(found.cells.map(({ figure }) => figure.median)).toEqual([1, 4, 9, 16]);
  });

  test('draws a map of two parameters', async () => {
    const axes = [parseAxis('policy.attempts=1,3'), parseAxis('clients.user.arrivals.constant=5/s,10/s')];
    const found = await sweep({ ...question, axes }, pool);
    expect(found.cells.map(({ values, figure }) => [...values, figure.median])).toEqual([
      [1, '5/s', 1],
      [1, '10/s', 1],
      [3, '5/s', 9],
      [3, '10/s', 9],
    ]);
    expect(heatText(found)).toMatch(/5\/s +1 +██ 9/);
    expect(heatHtml(found).match(/<td style="background:rgb/g)).toHaveLength(4);
  });

  test('a heat map gives no colour to differences within the spread of the seeds', () => {
    const cell = (value: number, median: number, spread: number) => ({
      values: [value],
      figure: { median, least: median - spread, most: median + spread },
    });
    const sweep = (spread: number) => ({
      ...{ scenario: 's', policy: 'p', what: 'success', seeds: 3 },
      axes: [{ path: 'policy.attempts', values: [1, 2, 3] }],
      cells: [cell(1, 0.97, spread), cell(2, 0.98, spread), cell(3, 0.99, spread)],
    });
    const colours = (spread: number) =>
      new Set(heatHtml(sweep(spread)).match(/background:rgb\([^)]*\)/g)).size;
    expect(colours(0.001)).toBe(3);
    expect(colours(0.02)).toBe(1);
  });

  test('names the field that a value does not suit', async () => {
    const axes = [parseAxis('policy.attempts=many')];
    await expect(sweep({ ...question, axes }, pool)).rejects.toThrow(
      'policies.p.attempts: expected a whole number of at least 1 or "unlimited", got "many"',
    );
  });
});

describe('tuning', () => {
  test('names the part of a goal that cannot be read', () => {
    expect(() => parseGoal('multiplication <= 1.2, suces >= 99%')).toThrow(
      'goal, part 2: the metric: expected one of',
    );
  });

  test.each([1, 2, 3])(
    'beats chance in storms that neither was tuned on, with seed %i',
    async (seed) => {
      const goal = parseGoal(
        'multiplication <= 1.1, success >= 99.9% at 5% failures, p99 <= 1s, recovery <= 3s',
      );
      const storms = [failingStorm(0.05), ...tuningStorms()];
      const unseen = [failingStorm(0.05, 160), ...unseenStorms()];
      const options = { goal, base: {}, storms, trials: 20, seed };
      const tuned = await tune(options, pool);
      const chance = await searchByChance(options, pool);
      const [ours, theirs, before] = await scorePolicies(
        [tuned.policy, chance.policy, {}],
        { goal, storms: unseen },
        pool,
      );
      expect(ours!.loss).toBeLessThan(theirs!.loss);
      expect(ours!.loss).toBeLessThan(before!.loss);
    },
    120_000,
  );
});

describe('an incident', () => {
  /** Two hundred calls, of which those between 5 and 10 s fail at first. */
  function notices(): string[] {
    const lines: object[] = [];
    for (let work = 0; work < 200; work++) {
      const at = 100_000 + 100 * work;
      const isBad = work >= 50 && work < 100;
      const heading = { policy: 'pay', target: undefined, work };
      lines.push({ ...heading, type: 'start', at });
      lines.push({
        ...heading,
        type: 'attempt',
        at: at + 20,
        attempt: 1,
        class: isBad ? 'transient' : 'ok',
        tookMs: 20,
      });
      lines.push({ ...heading, type: isBad ? 'gave_up' : 'done', at: at + 20, attempts: 1, tookMs: 20 });
    }
    return lines.map((each) => JSON.stringify(each));
  }

  test('may be a long one', () => {
    const lines = Array.from({ length: 150_000 }, (_, at) => [
      JSON.stringify({ type: 'start', at, work: at }),
      JSON.stringify({ type: 'attempt', at: at + 1, work: at, class: 'ok', tookMs: 1 }),
    ]).flat();
    expect(readIncident(lines).recorded).toMatchObject({ begun: 150_000, attempts: 150_000 });
  });

  test('is replayed at its own times, with its own answers', () => {
    const { scenario, recorded } = readIncident(notices());
    expect(recorded).toMatchObject({
      begun: 200,
      succeeded: 150,
      failed: 50,
      success: 0.75,
      multiplication: 1,
    });
    const run = (policies: string) =>
      simulate({ ...scenario, policies: parseScenarioPolicies(policies) }, { policy: 'p' });
    const once = run('{ attempts: 1, budget: false, breaker: false }');
    expect(once.figure('success')).toBe(0.75);
    expect(once.figure('successes', { from: 5_000, until: 9_900 })).toBe(0);
    // With waits as long as the trouble, everybody is served in the end.
    const patient = run(
      '{ attempts: 3, patience: 1m, backoff: { strategy: constant, base: 6s, cap: 6s, jitter: none }, budget: false, breaker: false }',
    );
    expect(patient.figure('success')).toBe(1);
    expect(patient.figure('attempts')).toBe(250);
  });

  test.each([
    ['not json', 'notices:1: expected a notice as a JSON object, got "not json"'],
    ['{"type":"start"}', 'notices:1: at: expected a time in ms, got undefined'],
    ['{"type":"done","at":1}', 'notices: expected notices of at least one start and one attempt'],
  ])('refuses %s', (line, sentence) => {
    expect(() => readIncident([line])).toThrow(sentence);
  });
});

function parseScenarioPolicies(policy: string) {
  return parseScenario(`
id: any
duration: 1s
services: { s: {} }
clients: { c: { to: s, arrivals: { constant: 1/s } } }
policies: { p: ${policy} }
`).policies;
}
