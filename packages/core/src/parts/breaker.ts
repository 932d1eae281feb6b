import { count, duration, either, type FieldsOf, group, list, number, shape, word } from '../fields.ts';
import { Breaker } from '../machines/breaker.ts';
import type { Latency } from '../machines/latency.ts';
import { breaker as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { BreakerFields } from '../policy/policy-spec.ts';
import { addGuards, perTarget } from './per-target.ts';
import { rangeOf } from './range.ts';

const AUTO = 0;

/**
 * With `slow.over: 'auto'`, a call above this multiple of the median duration is slow, if it is also above
 * UNUSUAL_MIN_MS.
 */
const UNUSUAL_FACTOR = 10;
const UNUSUAL_MIN_MS = 1000;
/** With fewer measured durations than this, no call counts as slow. */
const SAMPLES_MIN = 100;

function unusualMs(latency: Latency | undefined): number {
  if (!latency || latency.samples < SAMPLES_MIN) return Infinity;
  return Math.max(UNUSUAL_MIN_MS, UNUSUAL_FACTOR * latency.quantile(0.5));
}

const fields = {
  breaker: group(
    {
      window: either(defaults.window, duration(undefined, undefined, 1), shape({ calls: count(100, 1) })),
      minimum: count(defaults.minimum, 1),
      failureRatio: number(defaults.failureRatio, 0, 1),
      consecutive: count(defaults.consecutive, 0),
      slow: group(
        { over: duration(defaults.slow.over, { auto: AUTO }), ratio: number(defaults.slow.ratio, 0, 1) },
        true,
      ),
      openFor: list(duration(undefined, undefined, 1), defaults.openFor),
      probes: count(defaults.probes, 1),
      whenOpen: word(defaults.whenOpen, 'stop', 'wait'),
    },
    true,
  ),
} satisfies FieldsOf<BreakerFields>;

/**
 * The part `breaker`: stops calling a target that is failing. A few trial calls (probes) find out when it
 * works again.
 */
export const breaker = definePart<typeof fields, BreakerFields>({
  key: 'breaker',
  fields,
  create({ breaker: settings }, plan, spec) {
    if (!settings) return;
    const { window, slow, openFor } = settings;
    const written = Object(spec.breaker) as { openFor?: unknown; whenOpen?: string };
    const machine = {
      ...settings,
      windowMs: typeof window === 'number' ? window : 0,
      windowCalls: typeof window === 'object' ? window.calls : 0,
      slowOverMs: slow?.over || Infinity,
      slowRatio: slow?.ratio ?? 1,
      openForMs: rangeOf('breaker.openFor', openFor, written.openFor),
    };
    addGuards(plan);
    plan.needsClock ||= machine.slowOverMs < Infinity;
    // With unlimited attempts, a run waits while the breaker is open. Only an explicit `whenOpen: 'stop'`
    // makes it end.
    plan.waitsForBreaker =
      settings.whenOpen === 'wait' || (plan.attempts === Infinity && written.whenOpen === undefined);
    perTarget(plan, 'member', (target) => {
      target.breaker = new Breaker(machine, plan.random);
      if (slow?.over === AUTO) target.breaker.slowOver = () => unusualMs(target.latency);
      target.breaker.onChange = (from, to, because, at) => {
        plan.reporter?.breaker(target.name, at, from, to, because);
      };
    });
  },
});
