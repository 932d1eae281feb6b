import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { stopReasons } from '../src/decide/verdict.ts';
import { breaker } from '../src/parts/breaker.ts';
import { budget } from '../src/parts/budget.ts';
import { bulkhead } from '../src/parts/bulkhead.ts';
import { retry } from '../src/parts/retry.ts';
import { timeout } from '../src/parts/timeout.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy, type Policy } from '../src/policy/policy.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { ExpiredError, RefusedError } from '../src/report/errors.ts';
import { storyOf } from '../src/report/story.ts';
import type { RunOptions } from '../src/run/run-options.ts';
import { after, scripted, seededRandom, virtualClock } from '../src/testing.ts';
import { Alarm } from '../src/time/clock.ts';
import { drive, type Line } from './event-loop.ts';
import { anyTrace, anyUnrest, play, type RunSeen, type Trace } from './trace.ts';

/** The promises of the design that concern core, over whole policies: any document, any outcomes, any leaving. */

const down = new Error('down');

type Played = Awaited<ReturnType<typeof play>>;

function patienceEnd({ script }: RunSeen, made: Policy<PolicySpec>): number {
  const { patience } = script.options;
  return script.startsAt + ((patience as number | undefined) ?? made.plan.patienceMs);
}

function always(check: (played: Played, trace: Trace) => void | Promise<void>, numRuns = 200) {
  return fc.assert(
    fc.asyncProperty(anyTrace, async (trace) => {
      const played = await play(trace);
      await check(played, trace);
    }),
    { numRuns },
  );
}

/** Times are sums of fractions. */
const aboutMs = 1e-6;

describe('1. Load is bounded by the budget', () => {
  const ratio = 0.1;
  const windowMs = 10_000;
  /** Clients with their own traffic, and stretches of time in which calls fail with some probability. */
  const fleet = fc.record({
    seed: fc.nat(),
    clients: fc.integer({ min: 1, max: 20 }),
    callsPerSecond: fc.constantFrom(0.5, 2, 10, 40),
    attempts: fc.integer({ min: 2, max: 5 }),
    weather: fc.array(fc.constantFrom(0, 0.02, 0.3, 1), { minLength: 1, maxLength: 6 }),
  });

  test('attempts stay below 1.3 × first tries, and retries that fail below ratio ×, beside what a bucket holds, for any weather and any stretch of it', async () => {
    await fc.assert(
      fc.asyncProperty(fleet, async ({ seed, clients, callsPerSecond, attempts, weather }) => {
        const clock = virtualClock();
        const chance = seededRandom('weather', seed);
        const stretchMs = 5000;
        const runs: { client: number; startedAt: number; retriedAt: number[]; isGood: boolean }[] = [];
        const fails = () =>
          chance() < weather[Math.min(weather.length - 1, Math.floor(clock.now() / stretchMs))]!;
        for (let client = 0; client < clients; client++) {
          const made = policy(
            { attempts, breaker: false, retryOn: 'any', backoff: { base: '100ms' } },
            { clock, random: seededRandom('client', seed, client) },
          );
          const call = new (class extends Alarm {
            async ring(now: number) {
              const next = now - (Math.log(1 - chance()) * clients * 1000) / callsPerSecond;
              if (next < weather.length * stretchMs) clock.set(this, next);
              const { story, ok } = await made.try(async () => {
                if (fails()) throw new Error('down');
              });
              const retried = story.log.filter(({ verdict }) => verdict.kind === 'retry');
              const retriedAt = retried.map(({ endedAtMs }) => now + endedAtMs);
              runs.push({ client, startedAt: now, retriedAt, isGood: ok });
            }
          })();
          clock.set(call, chance() * 1000);
        }
        await clock.runAll();

        const started = (from: number, to: number, client?: number) =>
          runs.filter(
            (run) => run.startedAt >= from && run.startedAt <= to && (client ?? run.client) === run.client,
          ).length;
        // From the start, and from any moment in the middle: an outage does not begin with the process.
        for (const from of [0, ...weather.map((_, n) => n * stretchMs)]) {
          const retries = runs.flatMap(({ retriedAt }) => retriedAt).filter((at) => at >= from).length;
          const succeeded = runs.filter(
            ({ isGood, retriedAt }) => isGood && retriedAt.some((at) => at >= from),
          );
          let held = 0;
          for (let client = 0; client < clients; client++) {
            held += Math.max(attempts - 1, ratio * started(from - windowMs, from, client)) + attempts - 1;
            // In the middle, what may have been saved up for free retries by then.
            if (from > 0) held += attempts - 1;
          }
          const firstTries = started(from, Infinity);
          expect(firstTries + retries).toBeLessThanOrEqual(1.3 * firstTries + held + aboutMs);
          expect(retries - succeeded.length).toBeLessThanOrEqual(ratio * firstTries + held + aboutMs);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('2. No wait goes past patience; every wait can be cancelled', () => {
  test('every run ends by the end of its patience', () =>
    always(({ runs, policy: made }, { scripts }) => {
      expect(runs.filter(Boolean).length).toBe(scripts.length);
      for (const run of runs) expect(run.endedAt).toBeLessThanOrEqual(patienceEnd(run, made) + aboutMs);
    }));

  test('the moment the caller leaves, with the caller’s own reason', () =>
    always(({ runs }) => {
      for (const { script, endedAt, ending, reason } of runs) {
        const leavesAt = script.startsAt + (script.leavesAfterMs ?? Infinity);
        expect(endedAt).toBeLessThanOrEqual(leavesAt + aboutMs);
        if (ending.ok || ending.story.stop !== 'cancelled') continue;
        expect(endedAt).toBeCloseTo(leavesAt, 6);
        expect(ending.error).toBe(reason);
      }
    }));

  test('and nothing is called for who does not wait any more, nor too late to be answered', () =>
    always(({ runs, policy: made }) => {
      for (const run of runs) {
        for (const { at } of run.calls) {
          expect(at).toBeLessThanOrEqual(run.endedAt);
          expect(at).toBeLessThan(patienceEnd(run, made));
        }
      }
    }));

  test('nor more often than the document says', () =>
    always(({ runs, policy: made }) => {
      for (const { calls, ending } of runs) {
        expect(calls.length).toBeLessThanOrEqual(made.plan.attempts);
        expect(calls.length).toBe(ending.story.attempts);
        expect(calls.map(({ attempt }) => attempt)).toEqual(calls.map((_, index) => index + 1));
      }
    }));

  test('no alarm is left when all is over', () =>
    always(({ clock }) => {
      expect(clock.pendingTimers).toBe(0);
    }));
});

describe('3. What must not be repeated is not', () => {
  test('unless the attempt before was provably not processed', () =>
    always(({ runs }) => {
      for (const { script, calls } of runs) {
        if (script.options.idempotent !== false) continue;
        for (const { gave } of calls.slice(0, -1)) expect((gave as Error).message).toBe('unprocessed');
      }
    }));
});

describe('4. The real error is never lost', () => {
  test('what is thrown is what was thrown, or ours with the right code and what was thrown last as its cause', () =>
    always(({ runs }) => {
      for (const { ending, calls, reason } of runs) {
        if (ending.ok) {
          expect(calls.map(({ gave }) => gave)).toContain(ending.value);
          continue;
        }
        const { story, error, value, thrown } = ending;
        expect(stopReasons).toContain(story.stop);
        const given = calls.map(({ gave }) => gave);
        if (!thrown) expect(given).toContain(value);
        else if (story.stop === 'cancelled') expect(error).toBe(reason);
        else if (!given.includes(error)) {
          // Ours: nothing was called, or time ran out. Then the error before it, if there was one, is the cause.
          const { code, cause } = error as { code: string; cause: unknown };
          if (error instanceof RefusedError) {
            expect(code).toBe(`HOLDFAST_${story.stop!.toUpperCase()}`);
            expect([calls.length, error.reason]).toEqual([0, story.stop]);
          } else {
            expect(code).toMatch(/^HOLDFAST_(ATTEMPT_TIMEOUT|PATIENCE_SPENT)$/);
            const isOurs = (outcome: unknown) => outcome instanceof ExpiredError;
            const real = story.log.filter(({ outcome }) => !isOurs(outcome)).at(-1);
            expect(cause).toBe(real?.outcome);
          }
        }
        if (thrown) expect(storyOf(error)).toMatchObject({ stop: story.stop, attempts: story.attempts });
      }
    }));

  test('and the story has it all, in order, with a reason for each', () =>
    always(({ runs, policy: made }) => {
      for (const { ending, script, calls, endedAt } of runs) {
        const { log, stop, tookMs } = ending.story;
        expect(tookMs).toBeCloseTo(endedAt - script.startsAt, 6);
        expect(stop === undefined).toBe(ending.ok);
        expect(log.length).toBeLessThanOrEqual(calls.length);
        log.forEach(({ attempt, endedAtMs, verdict, outcome, target }, index) => {
          const call = calls[attempt - 1]!;
          const endsAt = script.startsAt + endedAtMs;
          expect(endedAtMs).toBeGreaterThanOrEqual(index > 0 ? log[index - 1]!.endedAtMs : 0);
          expect(target).toBe(call.target);
          expect(outcome).not.toBe(undefined);
          if (call.settledAt <= endsAt && !call.gave) expect(outcome).toHaveProperty('code');
          if (verdict.kind === 'give_up') {
            expect([index, verdict.because, endedAtMs]).toEqual([log.length - 1, stop, tookMs]);
          }
          if (verdict.kind === 'retry') {
            expect(verdict.at).toBeCloseTo(endsAt + verdict.delayMs, 6);
            const next = calls[attempt];
            // With a hedge the next number may be of an attempt that was sent before.
            if (next && !made.plan.hedge) expect(next.at).toBeGreaterThanOrEqual(verdict.at - aboutMs);
          }
        });
      }
    }));
});

describe('5. No breaker sticks', () => {
  test('whatever happened, a call is let through within a lease and an open time', async () => {
    const trouble = fc.record({
      seed: fc.nat(),
      timeout: fc.constantFrom('none', '200ms'),
      breaker: fc.record({
        consecutive: fc.integer({ min: 1, max: 3 }),
        probes: fc.integer({ min: 1, max: 3 }),
        whenOpen: fc.constantFrom('stop', 'wait'),
      }),
      calls: fc.array(fc.tuple(fc.nat(600), fc.constantFrom('hang', 'hang', down, 'well')), {
        maxLength: 40,
      }),
    });
    await fc.assert(
      fc.asyncProperty(trouble, async ({ seed, timeout, breaker, calls }) => {
        const clock = virtualClock();
        const made = policy(
          {
            retryOn: 'any',
            attempts: 1,
            patience: 'unlimited',
            attemptTimeout: timeout as 'none',
            breaker: { ...(breaker as object), openFor: ['100ms', '400ms'] },
          },
          { clock, random: seededRandom('stuck', seed) },
        );
        for (const [waitMs, beat] of calls) {
          await clock.advance(waitMs);
          void made.try(scripted(clock, beat));
        }
        // A probe without a limit of its own has a lease of a minute.
        const leaseMs = timeout === 'none' ? 60_000 : 1200;
        const { attempts } = made.counters;
        for (let waitedMs = 0; waitedMs <= leaseMs + 400; waitedMs += 100) {
          void made.try(() => 'well');
          await clock.advance(100);
          if (made.counters.attempts > attempts) return;
        }
        expect.unreachable('the breaker is stuck');
      }),
    );
  });

  test('and closes again after as many good probes as it asks for', async () => {
    await fc.assert(
      fc.asyncProperty(anyTrace, async (trace) => {
        const breaker = { consecutive: 1, probes: 2, openFor: '1s' } as const;
        const { clock, policy: made } = await play({
          ...trace,
          spec: { ...trace.spec, breaker, throttle: false },
        });
        for (const target of [undefined, 'a', 'b', 'c']) {
          for (let n = 0; n < 2; n++) {
            await clock.advance('2s');
            expect(await made.try(() => 'well', { target })).toMatchObject({ ok: true });
          }
          expect(made.plan.targetOf!({ target }, clock.now()).breaker!.isClosed).toBe(true);
        }
      }),
    );
  });
});

describe('6. A late result never changes a newer state', () => {
  test('what a call says that was given up makes no difference to anything', async () => {
    await fc.assert(
      fc.asyncProperty(anyTrace, async (trace) => {
        // Calls that pay no heed go on after their time is up, and then answer well, or badly.
        const late = (gives: 'value' | 'transient'): Trace => ({
          ...trace,
          spec: { ...trace.spec, attemptTimeout: '150ms' },
          scripts: trace.scripts.map((script) => ({
            ...script,
            beats: script.beats.map((beat) =>
              beat.tookMs > 150 && beat.tookMs < Infinity ? { ...beat, heeds: false, gives } : beat,
            ),
          })),
        });
        const [good, bad] = [await play(late('value')), await play(late('transient'))];
        expect(linesOf(bad)).toEqual(linesOf(good));
        expect(bad.policy.counters).toEqual(good.policy.counters);
        for (const target of ['a', 'b', 'c']) {
          const [one, other] = [good, bad].map(({ clock, policy: made }) => {
            const kept = made.plan.targets!.get(target, clock.now());
            return [kept.breaker?.save(clock.now()), kept.latency?.samples, kept.health?.share];
          });
          expect(other).toEqual(one);
        }
      }),
    );
  });
});

describe('7. Permits are conserved', () => {
  test('all are back when all is over, and tickets too', () =>
    always(({ clock, policy: made }) => {
      for (const { inFlight, bulkhead, breaker } of made.plan.everyTarget!()) {
        expect(inFlight).toBe(0);
        expect([bulkhead?.inFlight ?? 0, bulkhead?.queued ?? 0]).toEqual([0, 0]);
        expect(breaker?.refuses(clock.now()) ?? false).toBe(false);
      }
    }));

  test('a call that ends gives its permit back, whoever waits for it; only one that never ends is a zombie', () =>
    always(({ calls, policy: made }, { spec }) => {
      const endless = calls.filter(({ settledAt }) => settledAt === Infinity);
      expect(made.counters.zombies).toBe(spec.bulkhead ? endless.length : 0);
    }));

  test('never more calls are in flight than there are permits, but for zombies', () =>
    always(({ calls }, { spec }) => {
      if (!spec.bulkhead) return;
      const { concurrent } = spec.bulkhead as { concurrent: number };
      for (const { at, target } of calls) {
        const inFlight = calls.filter(
          (call) => call.target === target && call.at <= at && call.settledAt > at && at - call.at < 30_000,
        );
        expect(inFlight.length).toBeLessThanOrEqual(concurrent);
      }
    }));

  test('counters add up', () =>
    always(({ policy: made, calls, runs }) => {
      const { counters } = made;
      const { operations, succeeded, succeededAfterRetry, failed, failedAfterRetry } = counters;
      expect(operations).toBe(runs.length);
      expect(operations).toBe(succeeded + succeededAfterRetry + failed + failedAfterRetry);
      expect(counters.attempts).toBe(calls.length);
      const stops = Object.values(counters.stops).reduce((sum, count) => sum + count, 0);
      expect(stops).toBe(failed + failedAfterRetry);
      const endings = runs.map(({ ending }) => `${ending.ok}${ending.story.attempts > 1}`);
      const count = (which: string) => endings.filter((each) => each === which).length;
      expect([succeeded, succeededAfterRetry, failed, failedAfterRetry]).toEqual(
        ['truefalse', 'truetrue', 'falsefalse', 'falsetrue'].map(count),
      );
    }));
});

describe('8. Jitter never moves a server’s hint earlier', () => {
  test('no attempt of the same work is sent before it', () =>
    always(({ runs }) => {
      for (const { script, calls, ending } of runs) {
        for (const { retryAfterMs = 0, endedAtMs } of ending.story.log) {
          const endedAt = script.startsAt + endedAtMs;
          // Those before it are hedges that were sent when nothing was known of it.
          const later = calls.filter(({ at }) => at > endedAt + aboutMs);
          for (const { at } of later) expect(at).toBeGreaterThanOrEqual(endedAt + retryAfterMs - aboutMs);
        }
      }
    }));
});

describe('9. A bad document changes nothing, and reloading still works after it', () => {
  interface Model {
    attempts: number;
    operations: number;
  }
  interface Real {
    readonly made: Policy<PolicySpec>;
    readonly clock: ReturnType<typeof virtualClock>;
  }
  const base = { retryOn: 'any', budget: false, breaker: false, backoff: false } satisfies PolicySpec;
  const bad = [
    { attempts: 0 },
    { backoff: { base: '1h', cap: '1s' } },
    { nonsense: true },
    { breaker: { openFor: [] } },
    { retryOn: 'nobody knows' },
    null,
  ];

  class Good implements fc.AsyncCommand<Model, Real> {
    readonly attempts: number;
    constructor(attempts: number) {
      this.attempts = attempts;
    }
    check = () => true;
    async run(model: Model, { made }: Real) {
      made.update({ ...base, attempts: this.attempts });
      model.attempts = this.attempts;
    }
    toString = () => `good ${this.attempts}`;
  }
  class Bad implements fc.AsyncCommand<Model, Real> {
    readonly document: unknown;
    constructor(document: unknown) {
      this.document = document;
    }
    check = () => true;
    async run(_model: Model, { made }: Real) {
      const before = [made.plan, made.spec, made.settings];
      expect(() => made.update(this.document as PolicySpec)).toThrow();
      expect([made.plan, made.spec, made.settings]).toEqual(before);
    }
    toString = () => `bad ${JSON.stringify(this.document)}`;
  }
  class Call implements fc.AsyncCommand<Model, Real> {
    check = () => true;
    async run(model: Model, { made }: Real) {
      const { story } = await made.try(() => Promise.reject(new Error('down')));
      model.operations++;
      expect(story).toMatchObject({ attempts: model.attempts, stop: 'attempts_exhausted' });
      expect(made.counters.operations).toBe(model.operations);
    }
    toString = () => 'call';
  }

  test('in any order of good ones, bad ones and calls', () =>
    fc.assert(
      fc.asyncProperty(
        fc.commands([
          fc.integer({ min: 1, max: 5 }).map((attempts) => new Good(attempts)),
          fc.constantFrom(...bad).map((document) => new Bad(document)),
          fc.constant(new Call()),
        ]),
        (commands) =>
          fc.asyncModelRun(() => {
            const clock = virtualClock();
            const made = policy({ ...base, attempts: 2 }, { clock, random: seededRandom('update') });
            return { model: { attempts: 2, operations: 0 }, real: { made, clock } };
          }, commands),
      ),
    ));

  test('and while everybody is at work, all comes to its end and is given back', () =>
    fc.assert(
      fc.asyncProperty(anyUnrest, async (trace) => {
        const { clock, policy: made, runs } = await play(trace);
        const documents = [trace.spec, ...trace.changes!.flatMap(({ spec }) => spec ?? [])];
        // What is only observed is as late as it is.
        if (documents.every(({ mode }) => mode === 'enforce')) {
          expect(runs.filter(Boolean).length).toBe(trace.scripts.length);
          const { operations, succeeded, succeededAfterRetry, failed, failedAfterRetry } = made.counters;
          expect(operations).toBe(succeeded + succeededAfterRetry + failed + failedAfterRetry);
        }
        for (const { inFlight, bulkhead } of made.plan.everyTarget!()) {
          expect([inFlight, bulkhead?.inFlight ?? 0, bulkhead?.queued ?? 0]).toEqual([0, 0, 0]);
        }
        expect(clock.pendingTimers).toBe(0);
      }),
      { numRuns: 500 },
    ));
});

/** What was called and how it ended, in words that do not depend on who drove the machines. */
function linesOf({ runs, calls }: Played): Line[] {
  const lines: Line[] = calls.map(({ run, attempt, at, target }) => ({
    at,
    run,
    what: `attempt ${attempt} at ${target}`,
  }));
  runs.forEach(({ ending, endedAt }, run) => {
    lines.push({ at: endedAt, run, what: ending.ok ? 'is done' : `stops: ${ending.story.stop}` });
  });
  return inOrder(lines);
}

function withoutGiven({ gave: _, ...call }: Played['calls'][number]) {
  return call;
}

function inOrder(lines: Line[]): Line[] {
  return lines.sort((a, b) => a.at - b.at || a.run - b.run || (a.what < b.what ? -1 : 1));
}

describe('10. Same input, seed and clock: same decisions', () => {
  test('twice', () =>
    always(async (played, trace) => {
      const again = await play(trace);
      expect(linesOf(again)).toEqual(linesOf(played));
      expect(again.policy.counters).toEqual(played.policy.counters);
    }));

  test('and whether promises drive the machines or a plain loop of events does', () =>
    always((played, trace) => {
      expect(inOrder(drive(trace))).toEqual(linesOf(played));
    }, 500));

  test.each([
    ['whole', policy],
    ['with a breaker', definePolicy([retry, breaker])],
    ['with a timeout and a bulkhead', definePolicy([retry, timeout, bulkhead])],
    ['with a budget', definePolicy([retry, budget])],
    ['plain', definePolicy([retry])],
  ])('and by the short way as by the long one (%s)', (_kind, define) =>
    fc.assert(
      fc.asyncProperty(anyTrace, async (given) => {
        // Of the document, what these parts know; of the scripts, what the short way can do. Without a limit, calls answer.
        const known = Object.keys(define({}).settings);
        const spec = Object.fromEntries(Object.entries(given.spec).filter(([key]) => known.includes(key)));
        const scripts = given.scripts.map(
          ({ startsAt, beats, options: { target, idempotent, priority } }) => ({
            startsAt,
            options: { target, idempotent, priority },
            leavesAfterMs: undefined,
            beats: beats.map((beat) => (beat.tookMs < Infinity ? beat : { ...beat, tookMs: 5000 })),
          }),
        );
        const trace = { seed: given.seed, spec, scripts };
        const [long, short] = [
          await play(trace, define as typeof policy, 'try'),
          await play(trace, define as typeof policy, 'run'),
        ];
        expect(short.calls.map(withoutGiven)).toEqual(long.calls.map(withoutGiven));
        expect(short.runs.map(({ endedAt }) => endedAt)).toEqual(long.runs.map(({ endedAt }) => endedAt));
        expect(short.policy.counters).toEqual(long.policy.counters);
        const [one, other] = [long, short].map(({ clock, policy: made }) => {
          const now = clock.now();
          return [undefined, 'a', 'b'].map((target) => {
            const { breaker, budget, latency, inFlight } = made.plan.targetOf?.({ target }, now) ?? {};
            return [breaker?.save(now), budget?.save(now), latency?.samples, latency?.recent, inFlight];
          });
        });
        expect(other).toEqual(one);
        expect(short.clock.pendingTimers).toBe(0);
      }),
    ),
  );
});

describe('12. A refusal costs less than the work it refuses', () => {
  const cases: [by: string, spec: PolicySpec, options?: RunOptions][] = [
    ['breaker_open', { breaker: { consecutive: 1 } }],
    ['bulkhead_full', { bulkhead: { concurrent: 1, queue: 0 } }],
    ['rate_limited', { limiter: { rate: '1/h', burst: 1 } }],
    ['throttled', { throttle: true, breaker: false }],
    ['patience_too_short', {}, { patience: 0 }],
    ['breaker_open', { breaker: { consecutive: 1 } }, { targets: ['a', 'b'] }],
    ['cancelled', {}, { signal: AbortSignal.abort() }],
  ];
  test.each(cases)(
    '%s: no call, no timer, no controller, no listener, no stack',
    async (by, spec, options) => {
      const clock = virtualClock();
      const made = policy({ attempts: 1, retryOn: 'any', ...spec }, { clock, random: () => 0.3 });
      const until = by === 'throttled' ? 50 : 3;
      for (let n = 0; n < until; n++) void made.try(scripted(clock, after(1, new Error('down'))), options);
      await clock.advance('1ms');
      if (by === 'bulkhead_full') void made.run(scripted(clock, after('1s', 1)));

      const operation = vi.fn();
      const set = vi.spyOn(clock, 'set');
      const controllers = vi.spyOn(globalThis, 'AbortController');
      const listeners = vi.spyOn(EventTarget.prototype, 'addEventListener');
      const before = { ...made.counters };
      const ending = await made.try(operation, { signal: new AbortController().signal, ...options });
      expect(ending).toMatchObject({ ok: false, story: { stop: by, attempts: 0, log: [] } });
      expect(operation).not.toHaveBeenCalled();
      expect(set).not.toHaveBeenCalled();
      expect(listeners).not.toHaveBeenCalled();
      expect(controllers.mock.calls.length).toBe(1); // the test's own
      expect(made.counters.attempts).toBe(before.attempts);
      const error = (ending as { error: Error }).error;
      if (error instanceof RefusedError) expect(error.stack?.split('\n').length).toBe(1);
      vi.restoreAllMocks();
    },
  );
});
