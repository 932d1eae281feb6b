import { describe, expect, test } from 'vitest';
import { any, definePolicy, OptionsError, type PolicySpec, policies, policy, retry } from '../src/index.ts';
import { type LintFacts, lint, rules } from '../src/lint.ts';

const idsOf = (spec: PolicySpec, facts?: LintFacts) => lint(spec, facts).map(({ rule }) => rule);

describe('a good policy', () => {
  test('is the default one', () => {
    expect(lint(policy())).toEqual([]);
    expect(lint({})).toEqual([]);
  });

  test('is one with every part switched on', () => {
    const all = { bulkhead: true, limiter: true, throttle: true, hedge: true, cache: true } as const;
    expect(lint({ ...all, fallback: { to: 0 } })).toEqual([]);
  });

  test('is one that never tries again and limits its attempt', () => {
    const once = { attempts: 1, backoff: false, budget: false, breaker: false, retryOn: 'any' } as const;
    expect(lint({ ...once, respectServer: false }, { method: 'POST' })).toEqual([]);
  });
});

test('a misspelt fact is refused', () => {
  expect(() => lint({}, { metod: 'POST' } as LintFacts)).toThrow(
    'metod: not an option; did you mean method?',
  );
});

describe.each(rules)('the rule $id', (rule) => {
  const { id, example, fixedBy } = rule;

  test('flags its example', () => {
    const finding = lint(example.spec, example.facts).find((each) => each.rule === id);
    expect(finding).toEqual({
      rule: id,
      severity: rule.severity,
      path: expect.stringMatching(/^[a-z][\w.]*$/i),
      found: expect.stringMatching(/\w/),
      sentence: rule.sentence,
      fix: rule.fix,
    });
    expect(Object.keys(policy().settings)).toContain(finding!.path.split('.')[0]);
  });

  test('does not after the smallest fix, which breaks no other rule', () => {
    const before = idsOf(example.spec, example.facts);
    const fixed = policy(example.spec).with(fixedBy.spec ?? {});
    const after = lint(fixed, { ...example.facts, ...fixedBy.facts }).map((each) => each.rule);
    expect(after).not.toContain(id);
    expect(before).toEqual(expect.arrayContaining(after));
  });

  test('is fixed by a single value', () => {
    expect(leavesOf(fixedBy)).toBe(1);
  });

  test('says why and what to do in sentences', () => {
    expect(rule.sentence).toMatch(/^[A-Z].*\.$/);
    expect(rule.fix).toMatch(/^[A-Z].*\.$/);
  });
});

test('each rule has an id of its own, and the worst come first', () => {
  expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length);
  const order = rules.map(({ severity }) => ['error', 'warning', 'advice'].indexOf(severity));
  expect(order).toEqual(order.toSorted());
});

test('a policy of few parts is looked at like a whole one', () => {
  expect(lint(definePolicy([retry])()).map(({ rule }) => rule)).toEqual([
    'no-timeout',
    'no-budget',
    'no-breaker',
  ]);
});

test('a bad document is refused as the policy would', () => {
  expect(() => lint({ attempts: 0 })).toThrow(OptionsError);
});

test('a document with a name does not take the place of the policy that has it', () => {
  const made = policy({ name: 'in use' });
  made.counters.operations = 7;
  lint({ name: 'in use' });
  expect(policies().find(({ name }) => name === 'in use')?.counters.operations).toBe(7);
});

describe('waits', () => {
  test.each<[what: string, backoff: PolicySpec['backoff'], found: string[]]>([
    ['a function without chance', () => 100, ['no-jitter']],
    ['a function with chance', ({ roll }) => 100 * roll, []],
    ['a function that never waits', () => 0, ['no-delay']],
    ['a base of nothing', { base: 0 }, ['no-delay']],
    ['a jitter of nothing', { jitter: 0 }, ['no-jitter']],
    ['a jitter of give or take nothing', { jitter: { plusMinus: 0 } }, ['no-jitter']],
    ['chance only later', ({ attempt, roll }) => (attempt > 2 ? 100 * roll : 100), []],
    ['an end instead of a wait', ({ attempt, roll }) => (attempt > 2 ? Infinity : 100 * roll), []],
  ])('of %s', (_, backoff, found) => {
    expect(idsOf({ backoff })).toEqual(found);
  });

  test('that grow without a cap are found in a function, too', () => {
    const grows = ({ attempt, roll }: { attempt: number; roll: number }) => 1000 * 2 ** attempt * roll;
    expect(idsOf({ attempts: 12, patience: '5m', backoff: grows })).toEqual(['no-cap']);
    // With four attempts they never get there.
    expect(idsOf({ patience: '5m', backoff: grows })).toEqual([]);
  });
});

describe('limits in time', () => {
  test('`auto` and `split` need a patience to share out', () => {
    expect(idsOf({ patience: 'unlimited', attemptTimeout: 'split' }, { durable: true })).toEqual([
      'no-timeout',
    ]);
    expect(idsOf({ patience: 'unlimited' }, { durable: true })).toEqual(['no-timeout']);
    expect(idsOf({ patience: 'unlimited', attemptTimeout: '5s' }, { durable: true })).toEqual([]);
  });

  test('a patience of minutes is fine for durable work', () => {
    expect(idsOf({ patience: '1h' })).toEqual(['long-in-process']);
    expect(idsOf({ patience: '1h' }, { durable: true })).toEqual([]);
  });

  test('a large budget is nothing where there are no retries', () => {
    expect(idsOf({ budget: { ratio: 0.8 } })).toEqual(['large-budget']);
    expect(idsOf({ attempts: 1, budget: { ratio: 0.8 } })).not.toContain('large-budget');
  });

  test('waits count, not only attempts', () => {
    const spec = { patience: '10s', attemptTimeout: '2400ms', backoff: { base: '200ms' } } as const;
    expect(idsOf(spec)).toEqual(['attempts-exceed-patience']);
    expect(idsOf({ ...spec, backoff: { base: '50ms' } })).toEqual([]);
  });

  test('a live policy brings its own measurements', () => {
    const made = policy({ attemptTimeout: '100ms', hedge: true, bulkhead: { concurrent: 1, queue: 50 } });
    const { latency } = made.plan.targetOf!(undefined, 0);
    for (let sample = 0; sample < 999; sample++) latency!.record(0, 80);
    expect(lint(made)).toEqual([]);
    for (let sample = 0; sample < 2000; sample++) latency!.record(0, 300);
    expect(lint(made).map(({ rule }) => rule)).toEqual(['timeout-below-p999', 'queue-too-long']);
    expect(lint(made, { p999Ms: 50, typicalMs: 10 })).toEqual([]);
  });
});

describe('what is tried again', () => {
  test('a classifier that takes a 404 for transient is found, by error and by value', () => {
    const byError: PolicySpec['retryOn'] = (outcome) =>
      !outcome.ok && (outcome.error as { status?: number }).status === 404 ? 'transient' : undefined;
    const byValue: PolicySpec['retryOn'] = (outcome) =>
      outcome.ok && (outcome.value as { status?: number }).status === 422
        ? { class: 'throttled' }
        : undefined;
    expect(lint({ retryOn: byError })[0]).toMatchObject({
      rule: 'retries-4xx',
      found: expect.stringContaining('404'),
    });
    expect(lint({ retryOn: byValue })[0]).toMatchObject({
      rule: 'retries-4xx',
      found: expect.stringContaining('422'),
    });
    expect(idsOf({ retryOn: ['network', 'http', 'sql', 'grpc', 'aws', 'kafka'] })).toEqual([]);
  });

  test('`any` is found as a name and as a pack, and it takes a 404 for transient', () => {
    expect(idsOf({ retryOnly: 'any' })).toEqual(['retries-4xx', 'retries-any']);
    expect(idsOf({ retryOnly: [any] })).toEqual(['retries-4xx', 'retries-any']);
    expect(idsOf({ retryOn: 'any' })).toEqual(['retries-any']);
  });

  test.each<[facts: LintFacts, isFound: boolean]>([
    [{ method: 'POST' }, true],
    [{ method: 'patch' }, true],
    [{ idempotent: false }, true],
    [{ idempotent: false, method: 'GET' }, true],
    [{ method: 'PUT' }, false],
    [{ method: 'POST', idempotent: true }, false],
    [{ method: 'POST', runsKnow: true }, false],
    [{}, false],
  ])('with %j as the facts', (facts, isFound) => {
    expect(idsOf({}, facts)).toEqual(isFound ? ['unsafe-operation'] : []);
    expect(idsOf({ hedge: true }, facts)).toEqual(isFound ? ['unsafe-operation', 'hedge-unsafe'] : []);
  });
});

test('a single failure opens a breaker in two ways', () => {
  expect(idsOf({ breaker: { consecutive: 1 } })).toEqual(['hasty-breaker']);
  expect(idsOf({ breaker: { consecutive: 0 } })).toEqual([]);
});

test('a share of nothing protects nothing', () => {
  expect(idsOf({ mode: { enforce: 0 } })).toEqual(['observes-only']);
  expect(idsOf({ mode: { enforce: 0.01 } })).toEqual([]);
});

function leavesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 1;
  return Object.values(value).reduce((total: number, each) => total + leavesOf(each), 0);
}
