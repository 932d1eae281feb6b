import { describe, expect, test } from 'vitest';
import { OptionsError, type PolicySpec, policy, type RunOptions } from '../src/index.ts';
import { nearest } from '../src/policy/nearest.ts';

describe('the name that was meant', () => {
  test.each([
    ['patiance', 'patience'],
    ['pateince', 'patience'],
    ['atempts', 'attempts'],
    ['Backof', 'backoff'],
    ['breakers', 'breaker'],
    ['bulk-head', 'bulkhead'],
  ])('%s is close to %s', (word, name) => {
    expect(nearest(word, ['mode', 'patience', 'attempts', 'backoff', 'breaker', 'bulkhead'])).toBe(name);
  });

  test.each(['x', 'timeout', 'retries', 'constructor', ''])('%j is close to none', (word) => {
    expect(nearest(word, ['patience', 'attempts', 'backoff', 'breaker'])).toBeUndefined();
  });
});

describe('a misspelt field', () => {
  test.each<[spec: object, path: string, meant: string]>([
    [{ patiance: '1s' }, 'patiance', 'patience'],
    [{ nam: 'shop' }, 'nam', 'name'],
    [{ backoff: { strategi: 'linear' } }, 'backoff.strategi', 'strategy'],
    [{ breaker: { slow: { rato: 1 } } }, 'breaker.slow.rato', 'ratio'],
  ])('of %j is told with the name that was meant', (spec, path, meant) => {
    const refused = refusalOf(() => policy(spec as PolicySpec));
    expect(refused).toMatchObject({ path, meant });
    expect(refused.message).toBe(`${path}: not an option; did you mean ${meant}?`);
  });

  test.each(['onWait', 'signal', 'target', 'idempotent'])(
    'that is the option %s of a run is told so',
    (key) => {
      const refused = refusalOf(() => policy({ [key]: 5 } as PolicySpec));
      expect(refused.message).toBe(`${key}: not an option; did you mean ${key}, in run()?`);
    },
  );

  test('that is like no other is told with all names', () => {
    const refused = refusalOf(() => policy({ xyz: 5 } as PolicySpec));
    expect(refused.message).toMatch(/^xyz: not an option; there are name, patience, attempts, .*, mode$/);
    expect(refused).toMatchObject({ meant: undefined, isUnknown: true });
  });

  test('is not told like a wrong value', () => {
    const wrong = refusalOf(() => policy({ attempts: 'three' } as unknown as PolicySpec));
    expect(wrong.message).toMatch(/^attempts: expected a whole number .*, got "three"$/);
    expect(wrong.isUnknown).toBe(false);
  });

  test.each<[spec: object, meant: string]>([
    [{ retries: 3 }, 'attempts: 4, which counts the first one'],
    [{ maxRetries: 0 }, 'attempts: 1, which counts the first one'],
    [{ retries: 'many' }, 'attempts'],
    [{ maxAttempts: 3 }, 'attempts'],
    [{ timeout: 1000 }, 'attemptTimeout, or patience for all attempts together'],
    [{ delay: 100 }, 'backoff.base'],
    [{ retryDelay: 100 }, 'backoff.base'],
    [{ minTimeout: 100 }, 'backoff.base'],
    [{ maxTimeout: 100 }, 'backoff.cap'],
    [{ factor: 2 }, 'backoff.factor'],
    [{ backoff: { minTimeout: 100 } }, 'base'],
    [{ backoff: { maxTimeout: 100 } }, 'cap'],
    [{ onRetry() {} }, 'subscribe()'],
    [{ threshold: 0.5 }, 'breaker.failureRatio'],
    [{ breaker: { threshold: 0.5 } }, 'failureRatio'],
    [{ breaker: { errorThresholdPercentage: 50 } }, 'failureRatio'],
    [{ breaker: { halfOpenAfter: 1000 } }, 'openFor'],
    [{ resetTimeout: 30_000 }, 'breaker.openFor'],
  ])('of another library, %j, is told with our word', (spec, meant) => {
    expect(refusalOf(() => policy(spec as PolicySpec)).message).toMatch(
      new RegExp(`not an option; did you mean ${meant.replace(/[().]/g, '\\$&')}\\?$`),
    );
  });

  test('of the options of a run is told in the same way', async () => {
    const run = policy().run(() => 1, { idempotant: true } as RunOptions);
    await expect(run).rejects.toThrow(/^idempotant: .*; did you mean idempotent\?$/);
  });
});

function refusalOf(make: () => unknown): OptionsError {
  try {
    make();
  } catch (error) {
    if (error instanceof OptionsError) return error;
  }
  throw new Error('it was not refused');
}
