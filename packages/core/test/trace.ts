import fc from 'fast-check';
import { http } from '../src/classify/http.ts';
import { permanent, retryAfter, transient } from '../src/classify/marks.ts';
import { policy } from '../src/policy/all-parts.ts';
import type { Plan } from '../src/policy/plan.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import type { Ending } from '../src/run/promise-driver.ts';
import type { Context, RunOptions } from '../src/run/run-options.ts';
import { after, heeding, scripted, seededRandom, virtualClock } from '../src/testing.ts';
import { Alarm } from '../src/time/clock.ts';

/** What one attempt does, whoever calls it: told in numbers and words, so that it can be played twice. */
export interface Beat {
  /** Infinity: it never answers. */
  readonly tookMs: number;
  readonly gives:
    | 'value'
    | 'transient'
    | 'throttled'
    | 'hint'
    | 'fatal'
    | 'unknown'
    | 'response'
    | 'unprocessed';
  /** Stops when its signal aborts, as `fetch` does. */
  readonly heeds: boolean;
}

/** One piece of work of a trace. */
export interface Script {
  readonly startsAt: number;
  readonly options: RunOptions;
  /** When its caller leaves, if it has not ended by then. */
  readonly leavesAfterMs: number | undefined;
  readonly beats: readonly Beat[];
}

export interface Trace {
  readonly seed: number;
  readonly spec: PolicySpec;
  readonly scripts: readonly Script[];
  readonly changes?: readonly Change[];
}

/** What somebody does to the policy while it works. */
export interface Change {
  readonly at: number;
  readonly spec: PolicySpec | undefined;
  readonly kill: boolean | undefined;
}

export interface CallMade {
  readonly run: number;
  readonly attempt: number;
  readonly at: number;
  readonly target: string | undefined;
  /** What it gave, once it has. */
  gave: unknown;
  settledAt: number;
}

export interface RunSeen {
  readonly script: Script;
  readonly endedAt: number;
  readonly ending: Ending<unknown>;
  readonly calls: readonly CallMade[];
  readonly reason: unknown;
}

const hintMs = 1500;

/** The outcome of an attempt; errors are new ones, as one object would link the runs that give up on it. */
export function outcomeOf(gives: Beat['gives']): { ok: boolean; value: unknown } {
  switch (gives) {
    case 'value':
      return { ok: true, value: { fine: true } };
    case 'response':
      return { ok: true, value: { status: 503, headers: {} } };
    case 'transient':
      return { ok: false, value: transient(new Error(gives)) };
    case 'throttled':
      return { ok: false, value: retryAfter(new Error(gives), 0) };
    case 'hint':
      return { ok: false, value: retryAfter(new Error(gives), hintMs) };
    case 'fatal':
      return { ok: false, value: permanent(new Error(gives)) };
    case 'unprocessed':
      return { ok: false, value: transient(new Error(gives), { unprocessed: true }) };
    case 'unknown':
      return { ok: false, value: new Error(gives) };
  }
}

/** Lets hedges be paid for from the start: what they cost is earned by successes. */
export function earn({ targetOf }: Plan): void {
  for (const options of [{}, { target: 'a' }, { target: 'b' }, { targets: ['a', 'b', 'c'] }]) {
    const { hedgeBudget } = targetOf?.(options, 0) ?? {};
    for (let n = 0; n < 5; n++) hedgeBudget?.firstTry(0);
    for (let n = 0; n < 5; n++) hedgeBudget?.success();
  }
}

export function beatOf({ beats }: Script, call: number): Beat {
  return beats[Math.min(call, beats.length - 1)] as Beat;
}

class At extends Alarm {
  readonly ring: () => void;
  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

/**
 * Plays a trace through `policy.try` on virtual time, until all leases have ended too; or through `policy.run` with nobody
 * who leaves, by the short way where there is one.
 */
export async function play(
  { seed, spec, scripts, changes = [] }: Trace,
  define: typeof policy = policy,
  how: 'try' | 'run' = 'try',
) {
  const clock = virtualClock();
  const made = define({ retryOn: [http], ...spec }, { clock, random: seededRandom('trace', seed) });
  earn(made.plan);
  for (const { at, spec: next, kill } of changes) {
    const change = new At(() => {
      if (next) made.update({ retryOn: [http], ...next });
      if (kill !== undefined) made.kill(kill);
    });
    clock.set(change, at);
  }
  const runs: RunSeen[] = [];
  const calls: CallMade[] = [];
  scripts.forEach((script, run) => {
    const caller = new AbortController();
    const reason = { left: run };
    const own: CallMade[] = [];
    const operation = async (context: Context): Promise<unknown> => {
      const { tookMs, gives, heeds } = beatOf(script, own.length);
      const call: CallMade = {
        run,
        attempt: context.attempt,
        at: clock.now(),
        target: context.target,
        gave: undefined,
        settledAt: Infinity,
      };
      own.push(call);
      calls.push(call);
      const answer = () => {
        const { ok, value } = outcomeOf(gives);
        call.gave = value;
        return ok ? value : Promise.reject(value);
      };
      const beat = tookMs < Infinity ? after(tookMs, answer) : 'hang';
      try {
        return await scripted(clock, heeds ? heeding(beat) : beat)(context);
      } finally {
        call.settledAt = clock.now();
      }
    };
    const start = new At(async () => {
      const { leavesAfterMs } = script;
      const leave = new At(() => caller.abort(reason));
      if (leavesAfterMs !== undefined) clock.set(leave, clock.now() + leavesAfterMs);
      const ending =
        how === 'try'
          ? await made.try(operation, { ...script.options, signal: caller.signal })
          : await made.run(operation, orNone(script.options)).then(
              (value) => ({ ok: true, value }) as Ending<unknown>,
              (error: unknown) => ({ ok: false, error }) as Ending<unknown>,
            );
      clock.clear(leave);
      runs[run] = { script, endedAt: clock.now(), ending, calls: own, reason };
    });
    clock.set(start, script.startsAt);
  });
  await clock.advance('3m');
  return { clock, policy: made, runs, calls };
}

function orNone(options: RunOptions): RunOptions | undefined {
  return Object.values(options).some((each) => each !== undefined) ? options : undefined;
}

const ms = (min: number, max: number) =>
  fc.integer({ min: min * 1000, max: max * 1000 }).map((us) => us / 1000);

const beat: fc.Arbitrary<Beat> = fc.record({
  tookMs: fc.oneof(
    { weight: 4, arbitrary: ms(0, 300) },
    { weight: 2, arbitrary: ms(300, 4000) },
    fc.constant(Infinity),
  ),
  gives: fc.oneof(
    { weight: 3, arbitrary: fc.constant('value' as const) },
    { weight: 4, arbitrary: fc.constant('transient' as const) },
    fc.constantFrom('throttled', 'hint', 'fatal', 'unknown', 'response', 'unprocessed'),
  ),
  heeds: fc.boolean(),
});

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const anyScript: fc.Arbitrary<Script> = fc.record({
  startsAt: ms(0, 4000),
  options: fc.record({
    patience: maybe(ms(0, 3000)),
    target: maybe(fc.constantFrom('a', 'b')),
    idempotent: fc.constantFrom(undefined, undefined, undefined, true, false),
    priority: maybe(fc.constantFrom('critical', 'sheddable')),
  }),
  leavesAfterMs: fc.option(ms(0, 2000), { nil: undefined, freq: 2 }),
  beats: fc.array(beat, { minLength: 1, maxLength: 4 }),
});

/** Some runs have interchangeable targets instead of one. */
const anyRun: fc.Arbitrary<Script> = fc
  .tuple(anyScript, fc.boolean())
  .map(([script, pooled]) =>
    pooled
      ? { ...script, options: { ...script.options, target: undefined, targets: ['a', 'b', 'c'] } }
      : script,
  );

const anySpec: fc.Arbitrary<PolicySpec> = fc.record({
  attempts: fc.integer({ min: 1, max: 5 }),
  patience: ms(200, 8000),
  attemptTimeout: fc.constantFrom('auto', 'split', 'none', '150ms'),
  backoff: fc.oneof(
    fc.constant(false as const),
    fc.record({
      strategy: fc.constantFrom('constant', 'linear', 'exponential', 'fibonacci'),
      base: ms(0, 300),
      cap: ms(300, 1000),
      jitter: fc.constantFrom('none', 'full', 'equal', 'decorrelated', 0.3),
    }),
  ),
  budget: fc.constantFrom(true, false, { ratio: 0.5, window: '1s' } as const),
  breaker: fc.oneof(
    fc.constantFrom(true, false),
    fc.record({
      consecutive: fc.integer({ min: 0, max: 3 }),
      minimum: fc.integer({ min: 1, max: 5 }),
      probes: fc.integer({ min: 1, max: 3 }),
      openFor: fc.constant(['100ms', '1s'] as ['100ms', '1s']),
      whenOpen: fc.constantFrom('stop', 'wait'),
    }),
  ),
  bulkhead: fc.oneof(
    fc.constant(false as const),
    fc.record({ concurrent: fc.integer({ min: 1, max: 3 }), queue: fc.integer({ min: 0, max: 3 }) }),
  ),
  limiter: fc.oneof(
    { weight: 2, arbitrary: fc.constant(false as const) },
    fc.record({
      rate: fc.constantFrom('2/s', '20/s'),
      burst: fc.integer({ min: 1, max: 4 }),
      wait: fc.constantFrom('0ms', '500ms', 'unlimited'),
    }),
  ),
  throttle: fc.constantFrom(false, false, true),
  hedge: fc.constantFrom(false, { after: '50ms', extraLoad: 1 } as const),
  choice: fc.constantFrom(true, { consecutive: 1, ejectFor: '500ms' } as const),
}) as fc.Arbitrary<PolicySpec>;

export const anyTrace: fc.Arbitrary<Trace> = fc.record({
  seed: fc.nat(),
  spec: anySpec,
  scripts: fc.array(anyRun, { minLength: 1, maxLength: 20 }),
});

/** With layers around the work as well. */
const anyWhole: fc.Arbitrary<PolicySpec> = fc
  .tuple(
    anySpec,
    fc.record({
      cache: fc.constantFrom(false, { fresh: '200ms', staleIfError: '1s', entriesMax: 2 } as const),
      fallback: fc.constantFrom<PolicySpec['fallback']>(false, { to: 'instead' }),
      mode: fc.constantFrom<PolicySpec['mode']>('enforce', 'enforce', 'observe', { enforce: 0.5 }),
    }),
  )
  .map(([spec, layers]) => ({ ...spec, ...layers }) as PolicySpec);

/** Traces in which documents are replaced, and the kill switch thrown, while everybody is at work. */
export const anyUnrest: fc.Arbitrary<Trace> = fc
  .tuple(
    anyTrace,
    anyWhole,
    fc.array(fc.record({ at: ms(0, 4000), spec: maybe(anyWhole), kill: maybe(fc.boolean()) }), {
      maxLength: 5,
    }),
    fc.constantFrom(undefined, 'one', 'two'),
  )
  .map(([{ seed, scripts }, spec, changes, cacheKey]) => ({
    seed,
    spec,
    changes,
    scripts: scripts.map((script) => ({ ...script, options: { ...script.options, cacheKey } })),
  }));
