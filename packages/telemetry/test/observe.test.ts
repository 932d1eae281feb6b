import fc from 'fast-check';
import { http, type PolicySpec, policies } from 'holdfast';
import { after, heeding } from 'holdfast/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { metrics, observe } from '../src/index.ts';
import { LabelSets } from '../src/label-sets.ts';
import { counter, down, ended, gone, samplesOf, setup, watched } from './storm.ts';

describe('counters', () => {
  test('tell the four ways in which work ends', async () => {
    const { policy, call, clock, count } = watched({ attempts: 2, retryOn: ['network', 'http'] });
    await policy.try(call('fine'));
    await ended(clock, policy.try(call(down, 'fine')));
    await policy.try(call(gone));
    await ended(clock, policy.try(call(down)));
    const operations = (outcome: string) => count('holdfast_operations_total', { outcome });
    expect(operations('succeeded')).toBe(1);
    expect(operations('succeeded_after_retry')).toBe(1);
    expect(operations('failed')).toBe(1);
    expect(operations('failed_after_retry')).toBe(1);
    expect(count('holdfast_attempts_total')).toBe(6);
    expect(count('holdfast_attempts_total', { class: 'transient' })).toBe(3);
    expect(count('holdfast_failures_total', { reason: 'not_retryable' })).toBe(1);
  });

  test('tell how many got something else than a result', async () => {
    const { policy, call, clock, count } = watched({
      attempts: 1,
      fallback: { to: 'instead' },
      cache: { fresh: '1s', staleIfError: '1s' },
    });
    const cacheKey = 'k';
    await policy.run(call('fine'), { cacheKey });
    await policy.run(call('fine'), { cacheKey });
    await clock.advance('1s');
    await policy.run(call(down), { cacheKey });
    await policy.run(call(down));
    const counted = ['fresh', 'stale', 'fallback'].map((kind) =>
      count('holdfast_substitutes_total', { kind }),
    );
    expect(counted).toEqual([1, 1, 1]);
  });

  test('tell which errors lead to retries', async () => {
    const { policy, call, clock, count } = watched({ attempts: 3 });
    await ended(clock, policy.try(call(down, down, gone)));
    expect(count('holdfast_attempt_failures_total', { error_type: 'ECONNRESET' })).toBe(2);
    expect(count('holdfast_retries_total', { error_type: 'ECONNRESET' })).toBe(2);
    expect(count('holdfast_attempt_failures_total', { error_type: '404' })).toBe(1);
    expect(count('holdfast_retries_total', { error_type: '404' })).toBe(0);
  });

  test('tell what suppressed a retry, and nothing where the failure itself forbade it', async () => {
    const { policy, call, clock, count } = watched({ attempts: 2 });
    await policy.try(call(gone));
    await ended(clock, policy.try(call(down)));
    await policy.try(call(down), { idempotent: false });
    expect(count('holdfast_suppressed_retries_total')).toBe(2);
    expect(count('holdfast_suppressed_retries_total', { reason: 'attempts_exhausted' })).toBe(1);
    expect(count('holdfast_suppressed_retries_total', { reason: 'not_idempotent' })).toBe(1);
  });

  test('tell a timeout of an attempt from the end of patience, and count neither twice', async () => {
    const { policy, call, clock, count } = watched({ attemptTimeout: '1s', attempts: 2, patience: '10s' });
    await ended(clock, policy.try(call('hang', 'fine')));
    await ended(clock, policy.try(call('hang'), { patience: '500ms' }));
    expect(count('holdfast_timeouts_total', { kind: 'attempt' })).toBe(1);
    expect(count('holdfast_timeouts_total', { kind: 'patience' })).toBe(1);
  });

  test('tell of patience that ended in a queue', async () => {
    const { policy, call, clock, count } = watched({ bulkhead: { concurrent: 1, queue: 5 } });
    const first = policy.try(call(after('5s', 'slow')));
    const second = policy.try(call('never'), { patience: '1s' });
    await ended(clock, Promise.all([first, second]));
    expect(count('holdfast_timeouts_total', { kind: 'patience' })).toBe(1);
  });

  test('tell of refusals and of the breaker that made them', async () => {
    const { policy, call, count } = watched({ breaker: { consecutive: 2 }, attempts: 1 });
    for (let n = 0; n < 5; n++) await policy.try(call(down), { target: 'eu' });
    expect(count('holdfast_refusals_total', { reason: 'breaker_open', target: 'eu' })).toBe(3);
    const opened = { from: 'closed', to: 'open', reason: 'consecutive_failures', target: 'eu' };
    expect(count('holdfast_breaker_transitions_total', opened)).toBe(1);
    expect(count('holdfast_failures_total', { reason: 'breaker_open' })).toBe(3);
    // Nothing was tried, so no retry was suppressed.
    expect(count('holdfast_suppressed_retries_total', { reason: 'breaker_open' })).toBe(0);
  });

  test('of a policy that only observes are of the real calls, and what it would have done has a counter of its own', async () => {
    const { policy, call, clock, count, name } = watched({
      mode: 'observe',
      attempts: 3,
      attemptTimeout: '1s',
      breaker: { consecutive: 4 },
    });
    for (let n = 0; n < 3; n++) await ended(clock, policy.try(call(down), { target: 'eu' }));
    await ended(clock, policy.try(call(after('5s', 'slow')), { target: 'us' }));
    expect(count('holdfast_attempts_total')).toBe(4);
    expect(count('holdfast_operations_total', { outcome: 'failed' })).toBe(3);
    expect(count('holdfast_operations_total', { outcome: 'succeeded' })).toBe(1);
    expect(count('holdfast_failures_total', { reason: 'observed' })).toBe(3);
    const imagined = ['retries', 'refusals', 'timeouts', 'breaker_transitions', 'suppressed_retries'];
    expect(imagined.map((each) => count(`holdfast_${each}_total`))).toEqual([0, 0, 0, 0, 0]);
    const would = (kind: string, reason?: string) =>
      count('holdfast_would_have_total', reason === undefined ? { kind } : { kind, reason });
    expect(would('retry')).toBeGreaterThan(2);
    expect(would('refuse', 'breaker_open')).toBeGreaterThan(0);
    expect(would('change_breaker')).toBeGreaterThan(0);
    expect(would('time_out', 'attempt')).toBeGreaterThan(0);
    expect(would('stop')).toBe(4);
    expect(count('holdfast_enforced_ratio', { policy: name })).toBe(0);
  });

  test('count an attempt whose caller has left as abandoned', async () => {
    const { policy, call, clock, count } = watched();
    const caller = new AbortController();
    const running = policy.try(call(down, heeding('hang')), { signal: caller.signal });
    await clock.advance('1s');
    caller.abort();
    await running;
    expect(count('holdfast_attempts_total', { class: 'abandoned' })).toBe(1);
    expect(count('holdfast_attempts_total')).toBe(policy.counters.attempts);
  });

  test('tell of hedges, and of the attempt that was too slow', async () => {
    const { policy, call, clock, count } = watched({ hedge: { after: '100ms', extraLoad: 1 } });
    for (let n = 0; n < 20; n++) await ended(clock, policy.try(call('fine')));
    await ended(clock, policy.try(call(after('5s', 'slow'), 'quick')));
    expect(count('holdfast_hedges_total')).toBe(1);
    expect(count('holdfast_attempts_total', { class: 'abandoned' })).toBe(1);
    expect(count('holdfast_attempts_total')).toBe(policy.counters.attempts);
  });

  test('tell of calls that never come back', async () => {
    const { policy, call, clock, count } = watched({
      attemptTimeout: '1s',
      attempts: 1,
      bulkhead: { concurrent: 5 },
    });
    await ended(clock, policy.try(call('hang')));
    expect(count('holdfast_zombies_total')).toBe(1);
  });

  test('tell of a hint that cannot be read, and not what it says', async () => {
    const { policy, call, observed, count } = watched({ attempts: 1, retryOn: [http] });
    await policy.try(
      call(Object.assign(new Error(), { status: 503, headers: { 'retry-after': 'soonish' } })),
    );
    expect(count('holdfast_unreadable_hints_total')).toBe(1);
    expect(JSON.stringify(observed.snapshot())).not.toContain('soonish');
  });

  test('agree with what core counts, whatever happens', async () => {
    const beat = fc.constantFrom<unknown>(
      'fine',
      down,
      gone,
      'hang',
      after('700ms', 'slow'),
      after('1s', down),
    );
    const guards = fc.constantFrom<PolicySpec>(
      { bulkhead: { concurrent: 2, queue: 2 } },
      { hedge: { after: '500ms', extraLoad: 1 } },
    );
    const scripts = fc.array(fc.array(beat, { minLength: 1, maxLength: 4 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(scripts, guards, async (runs, guard) => {
        const { policy, call, clock, count, observed } = watched({
          attempts: 3,
          attemptTimeout: '2s',
          breaker: { consecutive: 4 },
          ...guard,
        });
        await ended(clock, Promise.all(runs.map((beats) => policy.try(call(...beats)))));
        const { counters } = policy;
        const told = (outcome: string) => count('holdfast_operations_total', { outcome });
        expect([
          told('succeeded'),
          told('succeeded_after_retry'),
          told('failed'),
          told('failed_after_retry'),
        ]).toEqual([
          counters.succeeded,
          counters.succeededAfterRetry,
          counters.failed,
          counters.failedAfterRetry,
        ]);
        expect(count('holdfast_attempts_total')).toBe(counters.attempts);
        expect(count('holdfast_hedges_total')).toBe(counters.hedges);
        // Patience that ends in a queue is no timeout of core's.
        expect(count('holdfast_timeouts_total', { kind: 'attempt' })).toBeLessThanOrEqual(counters.timeouts);
        expect(count('holdfast_timeouts_total')).toBeGreaterThanOrEqual(counters.timeouts);
        for (const [reason, n] of Object.entries(counters.stops)) {
          expect(count('holdfast_failures_total', { reason })).toBe(n);
        }
        observed.stop();
      }),
      { numRuns: 100 },
    );
  });
});

describe('histograms', () => {
  test('tell waits, attempts and whole operations in seconds', async () => {
    const { policy, call, clock, observed } = watched();
    await ended(clock, policy.try(call(after('30ms', down), after('2s', 'fine')), { target: 'eu' }));
    const [backoff] = samplesOf(observed.snapshot(), 'holdfast_backoff_seconds');
    expect(backoff).toMatchObject({ value: 0.1, count: 1, labels: { target: 'eu' } });
    const [operation] = samplesOf(observed.snapshot(), 'holdfast_operation_seconds');
    expect(operation!.value).toBeCloseTo(2.13, 6);
    const attempts = samplesOf(observed.snapshot(), 'holdfast_attempt_seconds');
    expect(attempts.map(({ labels, value }) => [labels.class, value])).toEqual([
      ['ok', 2],
      ['transient', 0.03],
    ]);
  });

  test('count what is on a bound as below it, and cumulate', async () => {
    const { policy, call, clock } = setup({ attempts: 1 });
    const observed = observe([policy], { bucketsSeconds: [0.1, 1] });
    onTestFinished(() => observed.stop());
    for (const ms of [50, 100, 101, 1000, 5000]) await ended(clock, policy.try(call(after(ms, 'fine'))));
    const [sample] = samplesOf(observed.snapshot(), 'holdfast_attempt_seconds');
    expect(sample).toMatchObject({
      count: 5,
      buckets: [
        { le: 0.1, count: 2 },
        { le: 1, count: 4 },
      ],
    });
  });
});

describe('gauges', () => {
  test('show breakers, budgets, permits and queues as they are now', async () => {
    const { policy, call, clock, count, name } = watched({
      breaker: { consecutive: 1 },
      budget: { ratio: 0.1 },
      bulkhead: { concurrent: 1, queue: 5 },
      attempts: 1,
    });
    const running = [policy.try(call(after('1s', 'slow'))), policy.try(call('second'))];
    await clock.advance('10ms');
    expect(count('holdfast_in_flight_attempts')).toBe(1);
    expect(count('holdfast_queued_attempts')).toBe(1);
    await ended(clock, Promise.all(running));
    expect(count('holdfast_in_flight_attempts')).toBe(0);
    await policy.try(call(down));
    expect(count('holdfast_breaker_state', { state: 'open' })).toBe(1);
    expect(count('holdfast_breaker_state', { state: 'closed' })).toBe(0);
    const listed = policies().find((each) => each.name === name);
    expect(count('holdfast_budget_tokens')).toBe(listed!.targets[0]!.tokens);
    policy.kill();
    expect(count('holdfast_kill_switch', { policy: name })).toBe(1);
  });
});

describe('labels', () => {
  test('are absent where there is no name', async () => {
    const { policy, call, clock } = setup({ name: undefined as never });
    const observed = observe('all');
    await ended(clock, policy.try(call('fine')));
    const samples = samplesOf(observed.snapshot(), 'holdfast_operations_total');
    expect(samples.map(({ labels }) => labels.policy)).toContain(undefined);
    observed.stop();
  });

  test('never hold a message', async () => {
    const { policy, call, clock, observed } = watched();
    await ended(clock, policy.try(call(down, new Error('hunter2'), 'hunter2')));
    await policy.try(() => {
      throw Object.assign(new TypeError('hunter2'), { name: 'my password is hunter2', code: 'a b' });
    });
    expect(JSON.stringify(observed.snapshot())).not.toContain('hunter2');
  });

  test('beyond the limit become other, and that is counted', async () => {
    const { policy, call } = setup();
    const observed = observe([policy], { labelSetsMax: 3 });
    onTestFinished(() => observed.stop());
    const count = counter(observed);
    for (let n = 0; n < 10; n++) await policy.try(call('fine'), { target: `t${n}` });
    expect(samplesOf(observed.snapshot(), 'holdfast_operations_total')).toHaveLength(4);
    expect(count('holdfast_operations_total', { target: 'other' })).toBe(7);
    expect(count('holdfast_operations_total')).toBe(10);
    expect(count('holdfast_label_overflows_total', { metric: 'holdfast_operations_total' })).toBe(7);
    expect(samplesOf(observed.snapshot(), 'holdfast_in_flight_attempts').length).toBeLessThanOrEqual(4);
  });

  test('never have more sets than twice the limit and the closed lists, and each set one place', () => {
    const name = fc.option(fc.string({ maxLength: 3 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.array(fc.record({ policy: name, target: name, class: fc.constantFrom('ok', 'fatal') }), {
          maxLength: 200,
        }),
        fc.integer({ min: 1, max: 20 }),
        (all, max) => {
          const sets = new LabelSets(metrics.attempts, max, () => 0);
          const places = all.map((labels) => sets.place(labels));
          expect(new Set(places).size).toBeLessThanOrEqual(2 * max + 2 * 2);
          for (const [at, place] of places.entries()) {
            if (!place.overflowed) expect(place.labels).toEqual(all[at]);
            expect(place.labels.class).toBe(all[at]!.class);
            expect(sets.place(all[at]!)).toBe(place);
          }
        },
      ),
    );
  });
});

describe('listening', () => {
  test('is to the listed policies only', async () => {
    const { policy, call, count } = watched();
    const other = setup();
    await other.policy.run(other.call('fine'));
    await policy.run(call('fine'));
    expect(count('holdfast_operations_total')).toBe(1);
    expect(count('holdfast_in_flight_attempts', { policy: other.name })).toBe(0);
  });

  test('ends with stop: the counts stand still, the gauges are gone, and core makes no notice', async () => {
    const { policy, call, observed, count } = watched();
    await policy.run(call('fine'));
    observed.stop();
    observed.stop();
    await policy.run(call('fine'));
    expect(count('holdfast_operations_total')).toBe(1);
    expect(samplesOf(observed.snapshot(), 'holdfast_in_flight_attempts')).toEqual([]);
  });

  test('costs nothing while nobody does it: work takes the short way, and no notice is made', async () => {
    const { policy, call } = setup();
    const { reporter } = policy.plan;
    const told = vi.spyOn(reporter!, 'started');
    const observed = observe([policy]);
    expect(reporter!.isHeard()).toBe(true);
    await policy.run(call('fine'));
    expect(told).toHaveBeenCalledTimes(1);
    observed.stop();
    expect(reporter!.isHeard()).toBe(false);
    await policy.run(call('fine'));
    expect(told).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['policies', () => observe('some' as never)],
    ['policies', () => observe([{ name: undefined }])],
    ['labelSetsMax', () => observe('all', { labelSetsMax: 0 })],
    ['labelsMax', () => observe('all', { labelsMax: 10 } as never)],
    ['bucketsSeconds', () => observe('all', { bucketsSeconds: [1, 1] })],
    ['bucketsSeconds', () => observe('all', { bucketsSeconds: [1, Infinity] })],
    ['bucketsSeconds', () => observe('all', { bucketsSeconds: [Number.NaN] })],
  ])('says what is wrong with %s', (path, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'HOLDFAST_OPTIONS', path }));
  });
});
