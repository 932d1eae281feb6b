import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lonelyCaller } from '../src/explain/limits.ts';
import { type Explanation, explain, explainText } from '../src/explain.ts';
import { count, duration, either, group, shape, word } from '../src/fields.ts';
import { definePart, definePolicy, network, type PolicySpec, policy, retry } from '../src/index.ts';
import { RetryBudget } from '../src/machines/budget.ts';
import { after, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

const placeOf = (explanation: Explanation, part: string) =>
  [...explanation.operationRing, ...explanation.attemptRing].find((place) => place.part === part)!;

describe('the rings', () => {
  const partsOf = (ring: Explanation['operationRing']) => ring.map(({ part }) => part);

  test('are told in their fixed order', () => {
    const { operationRing, attemptRing } = explain(policy());
    expect(partsOf(operationRing)).toEqual([
      'patience',
      'fallback',
      'cache',
      'ownership',
      'retry',
      'hedge',
      'budget',
    ]);
    expect(partsOf(attemptRing)).toEqual([
      'target',
      'throttle',
      'breaker refuses?',
      'limiter',
      'bulkhead',
      'breaker admits',
      'attempt timeout',
      'the call',
    ]);
  });

  test('say which parts are on, and tell those that are off from those that are not there', () => {
    const whole = explain(policy({ bulkhead: true, breaker: false }));
    expect(placeOf(whole, 'bulkhead')).toMatchObject({
      on: true,
      says: expect.stringContaining('100 attempts'),
    });
    expect(placeOf(whole, 'breaker refuses?')).toMatchObject({ on: false, says: 'off' });
    expect(placeOf(whole, 'breaker admits')).toMatchObject({ on: false, says: 'off' });
    expect(placeOf(whole, 'limiter')).toMatchObject({ on: false, says: 'off' });
    const alone = explain(definePolicy([retry])());
    expect(placeOf(alone, 'limiter')).toMatchObject({ on: false, says: 'not a part of this policy' });
    expect(placeOf(alone, 'breaker admits')).toMatchObject({ on: false, says: 'not a part of this policy' });
  });

  test('a mode other than enforce has its place', () => {
    expect(placeOf(explain(policy({ mode: { enforce: 0.1 } })), 'mode').says).toContain('90 %');
    expect(placeOf(explain(policy({ mode: 'observe' })), 'mode').says).toContain('All work');
  });

  test('say it when the kill switch is on', () => {
    const made = policy();
    made.kill();
    expect(placeOf(explain(made), 'ownership').says).toContain('kill switch');
    expect(explain(made).load.calls).toBe(1);
  });

  test.each<[spec: PolicySpec, part: string, words: string]>([
    [{ patience: '2s' }, 'patience', '2 s for everything'],
    [{ patience: 'unlimited' }, 'patience', 'No limit'],
    [{ fallback: { to: () => 1, reserve: '100ms' } }, 'fallback', 'a function. 100 ms of patience'],
    [{ fallback: { to: [1, 2] } }, 'fallback', 'a chain of 2'],
    [{ cache: { fresh: '5s', staleIfError: '1m' } }, 'cache', 'For 1 min more'],
    [{ attempts: 1 }, 'retry', 'never repeated'],
    [{ attempts: 'unlimited', patience: '1m' }, 'retry', 'Any number of attempts'],
    [{ backoff: false }, 'retry', 'without waiting'],
    [{ backoff: () => 1 }, 'retry', 'from a function'],
    [{ backoff: { strategy: 'constant', jitter: 'none' } }, 'retry', 'waits of 100 ms, without jitter'],
    [
      { backoff: { strategy: 'linear', jitter: 'equal' } },
      'retry',
      'growing (linear) up to 30 s, half of it',
    ],
    [{ backoff: { jitter: 'decorrelated' } }, 'retry', 'three times the one before'],
    [{ backoff: { jitter: 0.25 } }, 'retry', '25 % of it jitter'],
    [{ backoff: { jitter: { plusMinus: '50ms' } } }, 'retry', 'give or take 50 ms'],
    [{ hedge: true }, 'hedge', 'slower than 98 % of them, for at most 2 % more calls'],
    [{ hedge: { percentile: 0.9 } }, 'hedge', 'slower than 90 % of them'],
    [{ hedge: { after: '30ms' } }, 'hedge', 'after 30 ms'],
    [{ hedge: true, attempts: 1 }, 'hedge', 'Never'],
    [{ budget: { ratio: 0 } }, 'budget', 'No retries'],
    [{ throttle: true }, 'throttle', '2 times'],
    [
      { breaker: { window: { calls: 50 }, consecutive: 0, slow: false } },
      'breaker refuses?',
      'last 50 calls. Open',
    ],
    [
      { breaker: { window: { calls: 5 }, minimum: 20, consecutive: 0 } },
      'breaker refuses?',
      '50 % of at least 5 calls failed in the last 5 calls',
    ],
    [{ breaker: { whenOpen: 'wait' } }, 'breaker refuses?', 'waits for it'],
    [{ attempts: 'unlimited', patience: '1m' }, 'breaker refuses?', 'waits for it'],
    [{ limiter: { rate: '120/m' } }, 'limiter', '2 attempts a second'],
    [{ limiter: { wait: '1s' } }, 'limiter', 'waits for its turn, at most 1 s'],
    [{ limiter: { wait: 'unlimited' } }, 'limiter', 'as long as patience allows'],
    [{ bulkhead: { queue: 0 } }, 'bulkhead', 'in flight; the others are refused'],
    [{ attemptTimeout: '1s' }, 'attempt timeout', 'after 1 s'],
    [{ attemptTimeout: 'split' }, 'attempt timeout', 'An attempt has an equal share'],
    [{ attemptTimeout: 'split', patience: 'unlimited' }, 'attempt timeout', 'no limit'],
    [{ attemptTimeout: 'none' }, 'attempt timeout', 'Nothing but patience'],
  ])('of %j say it in words', (spec, part, words) => {
    expect(placeOf(explain(policy(spec)), part).says).toContain(words);
  });
});

describe('settings', () => {
  test('are told as a document says them, defaults marked', () => {
    const { settings } = placeOf(explain(policy({ backoff: { base: 50, jitter: 'equal' } })), 'retry');
    expect(settings).toContainEqual({ path: 'attempts', value: '4', isDefault: true });
    expect(settings).toContainEqual({ path: 'backoff.base', value: '50', isDefault: false });
    expect(settings).toContainEqual({ path: 'backoff.jitter', value: 'equal', isDefault: false });
    expect(settings).toContainEqual({ path: 'backoff.cap', value: '30s', isDefault: true });
  });

  test('open the groups that are on, and say off of the others', () => {
    const { settings } = placeOf(explain(policy({ breaker: { slow: false } })), 'breaker refuses?');
    expect(settings).toContainEqual({ path: 'breaker.slow', value: 'off', isDefault: false });
    expect(settings).toContainEqual({ path: 'breaker.openFor', value: '1s, 30s', isDefault: true });
    const on = placeOf(explain(policy({ breaker: { slow: true } })), 'breaker refuses?').settings;
    expect(on).toContainEqual({ path: 'breaker.slow.over', value: 'auto', isDefault: true });
  });

  test('of either this or that are told by the one that takes the value', () => {
    const { settings } = placeOf(explain(policy({ backoff: { jitter: { plusMinus: '5ms' } } })), 'retry');
    expect(settings).toContainEqual({ path: 'backoff.jitter.plusMinus', value: '5ms', isDefault: false });
  });

  test('of a part that is in neither ring are told apart', () => {
    const own = definePart({
      key: 'own',
      fields: {
        colour: word('red', 'red', 'blue'),
        size: either('1s', duration(), shape({ items: count(3) })),
        more: group({ depth: count(2) }),
      },
      create() {},
    });
    const explanation = explain(definePolicy([retry, own])({ colour: 'blue', size: { items: 9 } }));
    expect(explanation.others).toEqual([
      { path: 'colour', value: 'blue', isDefault: false },
      { path: 'size.items', value: '9', isDefault: false },
      { path: 'more', value: 'off', isDefault: true },
    ]);
    expect(String(explanation)).toContain('colour blue, size.items 9, more off*');
  });

  test('functions, packs and values are named, not printed', () => {
    const spec = { retryOn: ['sql', network, () => undefined], neverOn: [TypeError], fallback: { to: {} } };
    const explanation = explain(policy(spec as PolicySpec));
    const values = placeOf(explanation, 'retry').settings.map(({ value }) => value);
    expect(values).toContain('sql, network, a function');
    expect(values).toContain('TypeError');
    expect(placeOf(explanation, 'fallback').settings[0]).toMatchObject({ value: 'given' });
  });
});

describe('the delay table', () => {
  test('has the least, the typical and the most that the backoff gives', () => {
    expect(explain(policy()).delays).toEqual([
      {
        afterAttempt: 1,
        leastMs: 0,
        typicalMs: 50,
        mostMs: 100,
        throttled: { leastMs: 0, typicalMs: 500, mostMs: 1000 },
      },
      {
        afterAttempt: 2,
        leastMs: 0,
        typicalMs: 100,
        mostMs: 200,
        throttled: { leastMs: 0, typicalMs: 1000, mostMs: 2000 },
      },
      {
        afterAttempt: 3,
        leastMs: 0,
        typicalMs: 200,
        mostMs: 400,
        throttled: { leastMs: 0, typicalMs: 2000, mostMs: 4000 },
      },
    ]);
  });

  test('has ten rows at most, and none where there is one attempt', () => {
    expect(explain(policy({ attempts: 50 })).delays).toHaveLength(10);
    expect(explain(policy({ attempts: 'unlimited', patience: '1h' })).delays).toHaveLength(10);
    expect(explain(policy({ attempts: 1 })).delays).toEqual([]);
  });

  test('follows a wait that depends on the one before', () => {
    const spec: PolicySpec = { backoff: { base: '10ms', jitter: 'decorrelated' } };
    expect(explain(policy(spec)).delays.map(({ mostMs }) => mostMs)).toEqual([30, 90, 270]);
  });

  test('takes a function at its word, as the decision does', () => {
    const waits = [-5, Number.NaN, Infinity];
    const made = policy({ backoff: ({ attempt }) => waits[attempt - 1]! });
    expect(explain(made).delays.map(({ typicalMs }) => typicalMs)).toEqual([0, 0, Infinity]);
  });

  test('holds for whatever the dice say', () => {
    const specs = fc.record({
      strategy: fc.constantFrom('constant', 'linear', 'exponential', 'fibonacci', 'polynomial'),
      base: fc.integer({ min: 0, max: 500 }),
      cap: fc.integer({ min: 500, max: 5000 }),
      jitter: fc.oneof(
        fc.constantFrom('none', 'full', 'equal', 'decorrelated'),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.record({ plusMinus: fc.nat(300) }, { noNullPrototype: true }),
      ),
    });
    fc.assert(
      fc.property(
        specs,
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        (backoff, dice) => {
          const made = policy({ attempts: 6, backoff } as PolicySpec);
          let previousMs = 0;
          for (const { afterAttempt, leastMs, mostMs } of explain(made).delays) {
            previousMs = made.plan.delay(afterAttempt, previousMs, dice.next().value, 0);
            expect(previousMs).toBeGreaterThanOrEqual(leastMs - 0.001);
            expect(previousMs).toBeLessThanOrEqual(mostMs + 0.001);
          }
        },
      ),
    );
  });
});

describe('the worst time', () => {
  test('says which limit binds, for failures at once and for attempts that hang', () => {
    expect(explain(policy()).time).toMatchObject({
      failingMs: 700,
      failingEndsBy: 'attempts',
      failingAttempts: 4,
      hangingMs: 10_000,
      hangingEndsBy: 'patience',
    });
    expect(explain(policy({ patience: '1m', attemptTimeout: '2s' })).time).toMatchObject({
      hangingMs: 8700,
      hangingEndsBy: 'attempts',
    });
    expect(explain(policy({ patience: '500ms' })).time).toMatchObject({
      failingMs: 500,
      failingEndsBy: 'patience',
    });
  });

  test('is for ever where nothing ends the work, and says so', () => {
    const endless = explain(policy({ patience: 'unlimited', attemptTimeout: 'none' })).time;
    expect(endless).toMatchObject({ hangingMs: null, hangingEndsBy: 'nothing', failingMs: 700 });
    expect(endless.says[1]).toContain('for ever');
    // Nothing stands around the attempts of this one, so patience cannot end one that hangs.
    expect(explain(definePolicy([retry])()).time).toMatchObject({ hangingMs: null, failingMs: 700 });
  });

  test('with any number of attempts says how many fit', () => {
    const constant = { strategy: 'constant', base: '1s', jitter: 'none' } as const;
    const time = explain(policy({ attempts: 'unlimited', patience: '10s', backoff: constant })).time;
    expect(time).toMatchObject({ failingMs: 10_000, failingEndsBy: 'patience', failingAttempts: 11 });
    expect(time.says[0]).toContain('About 11 attempts');
    const many = { ...constant, base: '1ms' } as const;
    const spec: PolicySpec = { attempts: 'unlimited', patience: '5s', backoff: many };
    expect(explain(policy(spec)).time.failingAttempts).toBe(5001);
    const rush = explain(policy({ attempts: 'unlimited', patience: '5s', backoff: false })).time;
    expect(rush.failingAttempts).toBe(null);
  });

  test('with very many attempts adds them all up', () => {
    const backoff = { strategy: 'constant', base: '10ms', jitter: 'none' } as const;
    const time = explain(policy({ attempts: 5001, patience: '1h', backoff })).time;
    expect(time).toMatchObject({ failingMs: 50_000, failingEndsBy: 'attempts', failingAttempts: 5001 });
  });

  test('ends with a wait without end', () => {
    const backoff = ({ attempt }: { attempt: number }) => (attempt < 3 ? 100 : Infinity);
    const time = explain(policy({ attempts: 'unlimited', patience: '1m', backoff })).time;
    expect(time).toMatchObject({ failingMs: 200, failingAttempts: 3 });
  });

  test('is never exceeded', async () => {
    const specs = fc.record({
      attempts: fc.integer({ min: 1, max: 5 }),
      patience: fc.constantFrom('300ms', '2s', 'unlimited'),
      attemptTimeout: fc.constantFrom('100ms', 'split', 'auto'),
      backoff: fc.record(
        { base: fc.integer({ min: 0, max: 400 }), jitter: fc.constantFrom('full', 'none', 'decorrelated') },
        { noNullPrototype: true },
      ),
    });
    const beats = fc.array(
      fc.constantFrom(down, after('80ms', down), after('500ms', down), after('90ms', 'ok')),
    );
    await fc.assert(
      fc.asyncProperty(specs, beats, fc.nat(), async (spec, script, seed) => {
        const clock = virtualClock();
        const made = policy(spec as PolicySpec, { clock, random: seededRandom('explain', seed) });
        const { hangingMs } = explain(made).time;
        const running = made.try(scripted(clock, ...script, down));
        await clock.runAll();
        const { story } = await running;
        expect(story.tookMs).toBeLessThanOrEqual((hangingMs ?? Infinity) + 0.01);
      }),
    );
  });
});

describe('the worst load', () => {
  test('is the attempts without a budget, and one and the ratio with it', () => {
    expect(explain(policy({ budget: false })).load).toMatchObject({ calls: 4, longRun: 4 });
    const { load } = explain(policy());
    expect(load).toMatchObject({ calls: 4, longRun: 1.1 });
    expect(load.says.join(' ')).toContain('one call a minute, of which 5 % fail, succeeds in about 98 %');
    expect(explain(policy({ hedge: true })).load.says.at(-1)).toContain('2 % more calls');
  });

  test('is any number where attempts are, and one where it only observes', () => {
    expect(explain(policy({ attempts: 'unlimited', patience: '1m', budget: false })).load).toMatchObject({
      calls: null,
      longRun: null,
    });
    expect(explain(policy({ mode: 'observe' })).load).toMatchObject({ calls: 1, longRun: 1 });
  });

  test('is the product of all layers that repeat the work', () => {
    const consumer = policy({ name: 'consumer', attempts: 5 });
    const { load } = explain(policy(), { within: [consumer] });
    expect(load).toMatchObject({ calls: 4, callsInAll: 20 });
    expect(load.says.at(-1)).toBe('Within consumer, one piece of work is 5 × 4 = 20 calls at most.');
    const endless = policy({ attempts: 'unlimited', patience: '1h' });
    const watching = policy({ mode: 'observe' });
    expect(explain(policy(), { within: [endless, watching] }).load.says.at(-1)).toBe(
      'Within a policy without a name and a policy without a name, one piece of work is any number × 1 × 4: any number of calls.',
    );
    expect(explain(policy()).load.callsInAll).toBe(4);
  });

  test.each([0, 0.1, 0.3, 1])('tells a lonely caller with a ratio of %d what it will see', (ratio) => {
    const random = seededRandom('lonely', ratio);
    const budget = new RetryBudget({ ratio, windowMs: 10_000, attempts: 4 });
    const calls = 100_000;
    let succeeded = 0;
    for (let call = 0; call < calls; call++) {
      const now = call * 60_000;
      budget.firstTry(now);
      let ok = random() >= 0.05;
      for (let attempt = 1; !ok && attempt < 4 && budget.trySpend(now, 1); attempt++) ok = random() >= 0.05;
      if (ok) {
        succeeded++;
        budget.success();
      }
    }
    expect(succeeded / calls).toBeCloseTo(lonelyCaller(ratio), 2);
  });
});

describe('what is tried again', () => {
  test('is told pack by pack', () => {
    expect(explain(policy()).retried).toEqual([
      expect.stringMatching(/^network: /),
      expect.stringMatching(/^http: /),
      'attempts that took too long',
      'errors marked with `transient` or `retryAfter`',
    ]);
    const own = { pack: 'own', classify: () => undefined };
    const { retried } = explain(policy({ retryOn: ['any', own, () => undefined], attemptTimeout: 'none' }));
    expect(retried.slice(0, 2)).toEqual([
      'own: a pack of your own',
      'failures that a function of your own classifies',
    ]);
    expect(retried[4]).toBe('any: every error that no other pack knows');
    expect(explain(policy({ attempts: 1 })).retried).toEqual([]);
  });

  test('is without packs only what is marked', () => {
    expect(explain(definePolicy([retry])()).retried).toEqual([
      'errors marked with `transient` or `retryAfter`',
    ]);
  });

  test('each pack of a whole policy has its words', () => {
    const { packs } = policy().plan;
    for (const line of explain(policy({ retryOn: packs })).retried) expect(line).not.toContain('of your own');
  });

  test('what is not includes the classes named', () => {
    expect(explain(policy({ neverOn: [TypeError] })).notRetried).toContain('TypeError and its descendants');
  });

  test('a server is followed up to the cap, or not at all', () => {
    expect(explain(policy()).hints).toContain('A hint above 5 min ends the work');
    expect(explain(policy({ respectServer: false })).hints).toContain('not followed');
  });
});

describe('as a text', () => {
  test('an explanation is the same from data that went through JSON', () => {
    const explanation = explain(policy({ name: 'payments', bulkhead: true }));
    const text = String(explanation);
    expect(explainText(JSON.parse(JSON.stringify(explanation)))).toBe(text);
    expect(Object.keys(explanation)).not.toContain('toString');
  });

  test('it names the policy, marks defaults and lines up the waits', () => {
    const text = `${explain(policy({ name: 'payments', patience: '2s' }))}`;
    expect(text).toContain('The policy payments');
    expect(text).toContain('patience 2s\n');
    expect(text).toContain('ratio 0.1*, window 10s*');
    expect(text).toContain('              2   0 ms   100 ms  200 ms');
    expect(text).not.toContain('not set*');
  });

  test('it changes nothing', () => {
    const made = policy({ name: 'untouched' });
    explain(made);
    expect(made.counters).toMatchObject({ operations: 0, attempts: 0 });
  });
});
