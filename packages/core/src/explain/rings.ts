import type { PartSettings } from '../policy/part-settings.ts';
import type { Plan } from '../policy/plan.ts';
import { formatMs, round } from './format-duration.ts';

/** One part of a policy, such as the breaker. It wraps the whole work or each attempt. */
export interface Place {
  readonly part: string;
  readonly on: boolean;
  readonly says: string;
  /** The fields of the document that configure the part. */
  readonly fields: readonly string[];
}

/** Returns the parts that wrap the whole work, outermost first. */
export function operationRing(plan: Plan, settings: PartSettings, isGuarded: boolean): Place[] {
  const place = placer(settings);
  const { fallback, cache, mode, hedge, budget } = settings;
  const observed = typeof mode === 'object' ? 1 - mode.enforce : mode === 'observe' ? 1 : 0;
  return [
    ...(observed > 0 ? [place('mode', true, sayObserved(observed))] : []),
    place('patience', plan.patienceMs < Infinity, sayPatience(plan.patienceMs, isGuarded)),
    place('fallback', fallback, fallback && sayFallback(fallback.to, fallback.reserve)),
    place('cache', cache, cache && sayCache(cache.fresh, cache.staleIfError)),
    place('ownership', true, sayOwnership(plan.killSwitch.isOn), []),
    place('retry', plan.attempts > 1, sayRetry(plan.attempts, settings.backoff), retryFields),
    place('hedge', hedge, hedge && sayHedge(hedge, plan.attempts)),
    place('budget', budget, budget && sayBudget(budget.ratio)),
  ];
}

/** Returns the parts that wrap each attempt, outermost first. */
export function attemptRing(plan: Plan, settings: PartSettings, isGuarded: boolean): Place[] {
  const place = placer(settings);
  const { choice, throttle, breaker, limiter, bulkhead } = settings;
  return [
    place('target', plan.targetOf !== undefined, sayTarget(plan, choice), ['choice']),
    place(
      'throttle',
      throttle,
      throttle && `Sends at most ${round(throttle.k)} times what the target has been accepting.`,
    ),
    place('breaker refuses?', breaker, breaker && sayBreaker(breaker, plan.waitsForBreaker), ['breaker']),
    place('limiter', limiter, limiter && sayLimiter(limiter)),
    place('bulkhead', bulkhead, bulkhead && sayBulkhead(bulkhead)),
    place('breaker admits', breaker, breaker && sayProbes(breaker.probes), []),
    place('attempt timeout', isGuarded, sayTimeout(plan, settings, isGuarded), ['attemptTimeout']),
    place('the call', true, 'Your operation, with its attempt, signal and patience left.', []),
  ];
}

const retryFields = ['attempts', 'backoff', 'retryOn', 'retryOnly', 'neverOn', 'respectServer'];

function placer(settings: PartSettings) {
  return (part: string, on: unknown, says: string | null | undefined, fields = [part]): Place => {
    const off = (fields[0] ?? 'breaker') in settings ? 'off' : 'not a part of this policy';
    return { part, on: Boolean(on), says: says ?? off, fields };
  };
}

function sayPatience(patienceMs: number, isGuarded: boolean): string {
  if (patienceMs === Infinity) return 'No limit, unless a run or its ambient context sets one.';
  const limit = `${formatMs(patienceMs)} for everything.`;
  return isGuarded
    ? `${limit} Then whatever still runs is given up.`
    : `${limit} No wait goes past it; but nothing here ends an attempt that hangs.`;
}

function sayFallback(to: unknown, reserveMs: number): string {
  const chain = Array.isArray(to) ? to : [to];
  const what =
    chain.length > 1 ? `a chain of ${chain.length}` : typeof to === 'function' ? 'a function' : 'a value';
  const reserve = reserveMs > 0 ? ` ${formatMs(reserveMs)} of patience are kept back for it.` : '';
  return `A failure is answered by ${what}.${reserve}`;
}

function sayCache(freshMs: number, staleMs: number): string {
  const stale = staleMs > 0 ? ` For ${formatMs(staleMs)} more it is served instead of a failure.` : '';
  return `For runs with a cacheKey: a result replaces the call for ${formatMs(freshMs)}.${stale}`;
}

function sayObserved(share: number): string {
  const work = share === 1 ? 'All work' : `${round(100 * share)} % of the work`;
  return `${work} is only observed: called once, and what would have been done is counted.`;
}

function sayOwnership(killSwitch: boolean): string {
  return killSwitch
    ? 'The kill switch is on: each piece of work is attempted once.'
    : 'Retries, unless a layer upstream does, or a run inside has given up on the same error.';
}

function sayRetry(attempts: number, backoff: PartSettings['backoff']): string {
  if (attempts === 1) return 'One attempt, never repeated.';
  const times = attempts < Infinity ? `Up to ${attempts} attempts` : 'Any number of attempts';
  return `${times}, ${sayBackoff(backoff)}`;
}

function sayBackoff(backoff: PartSettings['backoff']): string {
  if (!backoff) return 'without waiting in between.';
  if (typeof backoff === 'function') return 'with waits from a function.';
  const { strategy, base, factor, cap, jitter } = backoff;
  const growth = strategy === 'exponential' ? `growing ${round(factor)}-fold` : `growing (${strategy})`;
  const waits =
    jitter === 'decorrelated'
      ? `with waits from ${formatMs(base)} to three times the one before, at most ${formatMs(cap)}`
      : strategy === 'constant'
        ? `with waits of ${formatMs(Math.min(base, cap))}`
        : `with waits of ${formatMs(base)}, ${growth} up to ${formatMs(cap)}`;
  return `${waits}, ${sayJitter(jitter)}.`;
}

function sayJitter(jitter: string | number | { readonly plusMinus: number }): string {
  if (jitter === 'none' || jitter === 0) return 'without jitter';
  if (jitter === 'full' || jitter === 1) return 'with full jitter';
  if (jitter === 'equal') return 'half of it jitter';
  if (jitter === 'decorrelated') return 'chosen at random';
  return typeof jitter === 'object'
    ? `give or take ${formatMs(jitter.plusMinus)}`
    : `${round(100 * Number(jitter))} % of it jitter`;
}

function sayHedge(hedge: NonNullable<PartSettings['hedge']>, attempts: number): string {
  if (attempts === 1) return 'Never: a hedge is an attempt, and there is only one.';
  const { after, percentile, extraLoad } = hedge;
  const when =
    after !== undefined
      ? `after ${formatMs(after)}`
      : `when the first is slower than ${round(100 * (percentile ?? 1 - extraLoad))} % of them`;
  return `Starts a second attempt ${when}, for at most ${round(100 * extraLoad)} % more calls. Not for work that must not be repeated.`;
}

function sayBudget(ratio: number): string {
  if (ratio === 0) return 'No retries but those of the very first piece of work.';
  return `Each success pays for ${round(ratio)} of a retry. Without successes there are soon no retries.`;
}

function sayTarget({ targetOf, choose }: Plan, choice: PartSettings['choice']): string {
  if (!targetOf) return 'no state is kept';
  const chosen = choose && choice ? ' Of several, one with less latency and calls in flight is chosen.' : '';
  return `State is kept for each target by itself.${chosen}`;
}

function sayBreaker(breaker: NonNullable<PartSettings['breaker']>, waits: boolean): string {
  const { window, minimum, failureRatio, consecutive, slow, openFor } = breaker;
  const [least, most = least] = openFor as readonly [number, number?];
  const back = typeof window === 'number' ? formatMs(window) : `${window.calls} calls`;
  // If the window holds fewer calls than `minimum`, the breaker needs only a full window.
  const needed = typeof window === 'number' ? minimum : Math.min(minimum, window.calls);
  const ratio = `${round(100 * failureRatio)} % of at least ${needed} calls failed in the last ${back}`;
  const inARow = consecutive > 0 ? `, or ${consecutive} in a row` : '';
  const isAuto = slow?.over === 0;
  const over = isAuto ? '10 times what is usual, and a second' : formatMs(slow?.over ?? 0);
  const slowly = slow ? `, or ${round(100 * slow.ratio)} % took over ${over}` : '';
  const then = waits ? 'waits for it if patience allows' : 'refuses at once';
  return `Opens when ${ratio}${inARow}${slowly}. Open for ${formatMs(least)} to ${formatMs(most)}, up to half less by chance, it ${then}.`;
}

function sayProbes(probes: number): string {
  return `Half-open, it admits ${probes} at a time; ${probes} successes in a row close it.`;
}

function sayLimiter({ rate, burst, wait }: NonNullable<PartSettings['limiter']>): string {
  const late =
    wait > 0
      ? `waits for its turn, at most ${wait < Infinity ? formatMs(wait) : 'as long as patience allows'}`
      : 'is refused';
  return `${round(rate * 1000)} attempts a second, ${burst} at once after a pause; an attempt above the rate ${late}.`;
}

function sayBulkhead({ concurrent, queue }: NonNullable<PartSettings['bulkhead']>): string {
  const more = queue > 0 ? `${queue} more wait, and the others are refused` : 'the others are refused';
  return `At most ${concurrent} attempts in flight; ${more}.`;
}

function sayTimeout(plan: Plan, { attemptTimeout }: PartSettings, isGuarded: boolean): string {
  if (!isGuarded) return 'off';
  if (attemptTimeout === undefined || attemptTimeout === Infinity)
    return 'Nothing but patience ends an attempt.';
  if (attemptTimeout > 0) return `An attempt is given up after ${formatMs(attemptTimeout)}.`;
  const share = 'an equal share of the patience that is left';
  const until = plan.patienceMs < Infinity ? share : 'no limit, as there is none to patience';
  return attemptTimeout < 0
    ? `An attempt has ${until}.`
    : `Three times what all but one attempt in a thousand take, at least 50 ms; below 1,000 samples ${until}.`;
}
