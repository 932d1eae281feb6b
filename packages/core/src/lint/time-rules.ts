import { MOST, TYPICAL, waitsOf } from '../explain/delays.ts';
import { formatMs } from '../explain/format-duration.ts';
import type { Plan } from '../policy/plan.ts';
import { defineRules, type LintFacts } from './rule.ts';

const attemptsMax = 10;
/** Work that may take more ms than this should be stored, so that it survives a restart of the process. */
const inProcessMaxMs = 300_000;
/** With fewer measured durations than this, a single slow call would determine the p99.9. */
const samplesMin = 1000;

/** Rules about time limits. */
export const timeRules = /* @__PURE__ */ defineRules(
  {
    id: 'unbounded',
    severity: 'error',
    sentence: 'Nothing limits how long the caller waits.',
    fix: 'Set a patience: how long is the answer still useful? `patience: "1m"`.',
    check({ plan }) {
      if (plan.patienceMs < Infinity || plan.attempts <= attemptsMax) return undefined;
      return { path: 'patience', found: `${plan.attempts} attempts and no limit in time` };
    },
    example: { spec: { patience: 'unlimited', attempts: 100 } },
    fixedBy: { spec: { patience: '1m' } },
  },
  {
    id: 'no-timeout',
    severity: 'warning',
    sentence: 'One attempt that hangs uses up all the patience, and no other attempt is made.',
    fix: 'Limit attempts: `attemptTimeout: "auto"` learns it, within a patience that is not unlimited.',
    check({ plan, settings: { attemptTimeout = Infinity } }) {
      const path = 'attemptTimeout';
      if (attemptTimeout === Infinity) return { path, found: 'an attempt has no limit of its own' };
      if (attemptTimeout > 0 || plan.patienceMs < Infinity) return undefined;
      return { path, found: 'an attempt has a share of the patience, which is unlimited' };
    },
    example: { spec: { attemptTimeout: 'none' } },
    fixedBy: { spec: { attemptTimeout: 'auto' } },
  },
  {
    id: 'blind-to-slowness',
    severity: 'warning',
    sentence: 'A target whose answers take ten times as long as usual is called as if it were healthy.',
    fix: 'Let `attemptTimeout: "auto"` learn what is usual, or set what is slow: `breaker: { slow: { over: "5s" } }`.',
    check({ settings: { attemptTimeout = Infinity, breaker } }) {
      if (attemptTimeout < Infinity || !breaker || (breaker.slow && breaker.slow.over > 0)) return undefined;
      return { path: 'breaker.slow', found: 'nothing measures how long answers take' };
    },
    example: { spec: { attemptTimeout: 'none' } },
    fixedBy: { spec: { breaker: { slow: { over: '5s' } } } },
  },
  {
    id: 'timeout-below-p999',
    severity: 'warning',
    sentence: 'Attempts that would have succeeded time out and are repeated: more load, and later answers.',
    fix: 'Raise `attemptTimeout` above the p99.9, or let `auto` find it.',
    check({ plan, settings: { attemptTimeout = 0 }, facts }) {
      const p999Ms = facts.p999Ms ?? measured(plan, 0.999, samplesMin);
      if (attemptTimeout <= 0 || p999Ms === undefined || attemptTimeout >= p999Ms) return undefined;
      return {
        path: 'attemptTimeout',
        found: `one attempt in a thousand takes longer than ${formatMs(p999Ms)}, and the limit is ${formatMs(attemptTimeout)}`,
      };
    },
    example: { spec: { attemptTimeout: '500ms' }, facts: { p999Ms: 900 } },
    fixedBy: { spec: { attemptTimeout: '1s' } },
  },
  {
    id: 'attempts-exceed-patience',
    severity: 'warning',
    sentence: 'When attempts time out, the last of them are never made or get less time than they need.',
    fix: 'Shorten `attemptTimeout`, make fewer attempts, or raise `patience`.',
    check({ plan, settings: { attemptTimeout = 0 } }) {
      const { attempts, patienceMs } = plan;
      if (!(attemptTimeout > 0 && attemptTimeout < Infinity && attempts < Infinity)) return undefined;
      const waitsMs = waitsOf(plan, TYPICAL, attempts).reduce((total, ms) => total + ms, 0);
      if (attempts * attemptTimeout + waitsMs <= patienceMs) return undefined;
      return {
        path: 'attemptTimeout',
        found: `${attempts} attempts of ${formatMs(attemptTimeout)} with ${formatMs(waitsMs)} between them are more than the patience of ${formatMs(patienceMs)}`,
      };
    },
    example: { spec: { patience: '10s', attemptTimeout: '5s' } },
    fixedBy: { spec: { attemptTimeout: '2s' } },
  },
  {
    id: 'base-above-patience',
    severity: 'warning',
    sentence: 'The first wait can be longer than the whole patience.',
    fix: 'Lower `backoff.base`, or raise `patience`.',
    check({ plan }) {
      const [firstMs = 0] = waitsOf(plan, MOST, 1);
      if (firstMs <= plan.patienceMs) return undefined;
      return {
        path: 'backoff.base',
        found: `the first wait can be ${formatMs(firstMs)}, and patience is ${formatMs(plan.patienceMs)}`,
      };
    },
    example: { spec: { patience: '1s', backoff: { base: '3s' } } },
    fixedBy: { spec: { backoff: { base: '100ms' } } },
  },
  {
    id: 'long-in-process',
    severity: 'advice',
    sentence:
      'Work that is retried for minutes is lost when the process ends, and its caller has long given up.',
    fix: 'Move it to something durable, such as a consumer of events, and keep retries in the process short.',
    check({ plan, facts }) {
      if (plan.patienceMs <= inProcessMaxMs || facts.durable) return undefined;
      return { path: 'patience', found: `patience: ${formatMs(plan.patienceMs)}` };
    },
    example: { spec: { patience: '1h' } },
    fixedBy: { spec: { patience: '1m' } },
  },
  {
    id: 'queue-too-long',
    severity: 'warning',
    sentence: 'The patience of the last call in the queue of the bulkhead ends before its turn.',
    fix: 'Shorten `bulkhead.queue` to what can be served within patience.',
    check({ plan, settings: { bulkhead }, facts }) {
      const typicalMs = facts.typicalMs ?? measured(plan, 0.5, 1);
      if (!bulkhead || typicalMs === undefined) return undefined;
      const waitMs = (bulkhead.queue / bulkhead.concurrent) * typicalMs;
      if (waitMs <= plan.patienceMs) return undefined;
      return {
        path: 'bulkhead.queue',
        found: `the last of ${bulkhead.queue} waits about ${formatMs(waitMs)}, and patience is ${formatMs(plan.patienceMs)}`,
      };
    },
    example: {
      spec: { patience: '2s', bulkhead: { concurrent: 10, queue: 500 } },
      facts: { typicalMs: 100 },
    },
    fixedBy: { spec: { bulkhead: { queue: 50 } } },
  },
);

function measured(plan: Plan, quantile: number, samples: number): LintFacts['p999Ms'] {
  const known = [...(plan.everyTarget?.() ?? [])].flatMap(({ latency }) => latency ?? []);
  const figures = known.filter((each) => each.samples >= samples).map((each) => each.quantile(quantile));
  return figures.length > 0 ? Math.max(...figures) : undefined;
}
