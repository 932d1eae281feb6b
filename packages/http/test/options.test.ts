import { definePolicy, type Policy, type PolicySpec, policy, retry } from 'holdfast';
import { explain } from 'holdfast/explain';
import { lint } from 'holdfast/lint';
import { fetch as undiciFetch } from 'undici';
import { expect, expectTypeOf, test } from 'vitest';
import { createFetch, type Fetch, type HoldfastFetch, retryInterceptor } from '../src/index.ts';

test.each<[said: string, options: object]>([
  ['attempts: not an option; did you mean policy: { attempts }?', { attempts: 3 }],
  ['patience: not an option; did you mean policy: { patience }?', { patience: '5s' }],
  ['name: not an option; did you mean policy: { name }?', { name: 'shop' }],
  ['colour: not an option; there are policy, endpoints', { colour: 'red' }],
  [
    'policy.fallback.to: expected a function that returns a Response',
    { policy: { fallback: { to: { price: 1 } } } },
  ],
  ['statuses[0]: expected a number from 100 to 599, got "503"', { statuses: '503' }],
  ['statuses[1]: expected a number', { statuses: [503, 'x'] }],
  ['classify: expected a function', { classify: 'transient' }],
  ['onWait: expected a function', { onWait: 5 }],
  ['fetch: expected a function', { fetch: 5 }],
  ['dispatcher: expected a dispatcher of undici', { dispatcher: {} }],
  ['bodyBufferMax: expected a number, got "1mb"', { bodyBufferMax: '1mb' }],
  ['endpoints[0]: expected an absolute http or https URL', { endpoints: 'a.example' }],
  ['announce: expected true, false, or origins', { announce: 'https://a.example/orders' }],
  ['idempotency: expected off, auto, derive or a function', { idempotency: 'always' }],
  ['connectTimeout: expected a duration', { connectTimeout: 'soon' }],
  ['policy.patiance: not an option; did you mean patience?', { policy: { patiance: '1s' } }],
  ['policy.patiance: not an option; did you mean patience?', { policy: { patiance: '1s' } }],
  [
    'policy.backoff.base: expected a duration such as "200ms", got "soon"',
    { policy: { backoff: { base: 'soon' } } },
  ],
  ['policy: expected an object, got []', { policy: [] }],
  ['polcy: not an option; did you mean policy?', { polcy: {} }],
  [
    'policy.onWait: not an option; did you mean onWait, in createFetch()?',
    { policy: { onWait: () => undefined } },
  ],
])('%s', (said, options) => {
  expect(() => createFetch(options)).toThrow(said);
});

test.each<[said: string, said: object]>([
  ['holdfast.timeout: not an option; did you mean patience?', { timeout: '1s' }],
  ['holdfast.patience: expected a duration', { patience: 'long' }],
  ['holdfast.priority: expected one of critical, default, sheddable, got "urgent"', { priority: 'urgent' }],
  ['holdfast.idempotent: expected true or false', { idempotent: 'yes' }],
  ['holdfast.onWait: expected a function', { onWait: true }],
])('of a call, %s', async (said, holdfast) => {
  const fetch = createFetch({ fetch: async () => new Response() });
  await expect(fetch('http://a.example', { holdfast })).rejects.toThrow(said);
});

test.each<[said: string, options: object]>([
  ['idleTimeout: not an option; there are idempotency, statuses', { idleTimeout: '1s' }],
  ['statuses[0]: expected a number', { statuses: 'many' }],
  ['classify: expected a function', { classify: {} }],
])('of an interceptor, %s', (said, options) => {
  expect(() => retryInterceptor({}, options)).toThrow(said);
});

test('of an interceptor, one that is given as a field of the policy is told where it belongs', () => {
  const spec = { onWait: () => undefined } as PolicySpec;
  expect(() => retryInterceptor(spec)).toThrow(
    'policy.onWait: not an option; did you mean onWait, in the second argument?',
  );
});

test('the policy of a fetch can be explained, linted, updated and switched off', () => {
  const fetch = createFetch({ policy: { name: 'shop', attempts: 2 } });
  fetch.policy.update({ name: 'shop', attempts: 3 });
  fetch.policy.kill();
  expect(fetch.policy.plan.attempts).toBe(3);
  expect(explain(fetch.policy).policy).toBe('shop');
  expect(lint(fetch.policy)).toBeInstanceOf(Array);
});

test('the policy of a fetch has the type of the one that was given', () => {
  const small = definePolicy([retry])({ attempts: 2 });
  const fetch = createFetch({ policy: small });
  expect(fetch.policy).toBe(small);
  expectTypeOf(fetch.policy).toEqualTypeOf(small);
  // @ts-expect-error This policy has no breaker.
  expect(() => fetch.policy.update({ breaker: true })).toThrow('breaker: not an option');
  expectTypeOf(createFetch({ policy: policy() })).toEqualTypeOf<HoldfastFetch>();
  expectTypeOf(createFetch().policy).toEqualTypeOf<Policy<PolicySpec>>();
});

test('a fetch is sent through a function of undici, or through one that is written in place', () => {
  expectTypeOf(createFetch({ fetch: undiciFetch })).toEqualTypeOf<HoldfastFetch>();
  createFetch({
    fetch: async (input, init) => {
      expectTypeOf(input).toEqualTypeOf<Parameters<Fetch>[0]>();
      expectTypeOf(init).toEqualTypeOf<RequestInit | undefined>();
      return new Response();
    },
  });
  // @ts-expect-error It returns no response.
  createFetch({ fetch: async () => 5 });
});
