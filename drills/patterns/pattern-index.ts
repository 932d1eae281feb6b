import type { PatternRun } from './pattern-run.ts';

const TABLE = `
| you have | pattern | result with the anti-pattern | result with Holdfast |
|---|---|---|---|
| calls that fail for a moment | [retry with backoff](retry-with-backoff.md) | {retryBad} answers a second, long after the service stood still | {retryGood} answers a second, {retryRecovery} s after |
| clients that fail together | [jitter](jitter.md) | {jitterBad} attempts in 100 ms | {jitterGood} attempts in 100 ms |
| calls that hang | [timeouts and deadlines](timeouts-and-deadlines.md) | {timeoutBad} calls wait | {timeoutGood} calls wait |
| a service that is down | [circuit breaker](circuit-breaker.md) | the service is back to normal after {breakerBad} s | after {breakerGood} s |
| a dependency that is slow | [bulkhead](bulkhead.md) | {bulkheadBad} % of the pages that do not need the dependency are shown | {bulkheadGood} % are shown |
| an API with a quota | [rate limiting](rate-limiting.md) | {rateBad} calls for each successful call | {rateGood} calls |
| effects that must happen once | [idempotent API](idempotent-api.md) | {idempotentBad} of 1,000 cards are charged twice | {idempotentGood} cards |
| events during an outage | [event retry](event-retry.md) | {eventBad} of 200 events are parked (set aside for a person) | {eventGood} events |
| events that can never be handled | [dead letter](dead-letter.md) | {deadBad} messages wait | {deadGood} messages wait |
| parts that a page can do without | [graceful degradation](graceful-degradation.md) | {degradeBad} % of the pages are shown | {degradeGood} % are shown |
| several services, or several steps | [packaging or assembly](packaging-or-assembly.md) | {layersBad} calls for one request | {layersGood} calls |`;

/** For each figure of the table: the pattern, and the name of the figure there. */
const sources: Readonly<Record<string, readonly [pattern: string, figure: string]>> = {
  retryBad: ['retry-with-backoff', 'badGoodput'],
  retryGood: ['retry-with-backoff', 'goodGoodput'],
  retryRecovery: ['retry-with-backoff', 'goodRecovery'],
  jitterBad: ['jitter', 'badPeak'],
  jitterGood: ['jitter', 'goodPeak'],
  timeoutBad: ['timeouts-and-deadlines', 'badWaiting'],
  timeoutGood: ['timeouts-and-deadlines', 'goodWaiting'],
  breakerBad: ['circuit-breaker', 'badRecovery'],
  breakerGood: ['circuit-breaker', 'goodRecovery'],
  bulkheadBad: ['bulkhead', 'badBaskets'],
  bulkheadGood: ['bulkhead', 'goodBaskets'],
  rateBad: ['rate-limiting', 'badCalls'],
  rateGood: ['rate-limiting', 'goodCalls'],
  idempotentBad: ['idempotent-api', 'badTwice'],
  idempotentGood: ['idempotent-api', 'goodTwice'],
  eventBad: ['event-retry', 'badTen'],
  eventGood: ['event-retry', 'goodTen'],
  deadBad: ['dead-letter', 'badWaiting'],
  deadGood: ['dead-letter', 'goodWaiting'],
  degradeBad: ['graceful-degradation', 'badShare'],
  degradeGood: ['graceful-degradation', 'goodShare'],
  layersBad: ['packaging-or-assembly', 'badCalls'],
  layersGood: ['packaging-or-assembly', 'goodCalls'],
};

/** The table of all patterns, with some figures of their runs. */
export function patternIndex(runs: ReadonlyMap<string, PatternRun>): PatternRun {
  const figures = Object.entries(sources).map(([name, [pattern, figure]]) => {
    const value = runs.get(pattern)?.figures[figure];
    if (value === undefined) throw new TypeError(`There is no figure ${figure} of ${pattern}.`);
    return [name, value] as const;
  });
  return { plots: {}, texts: { patterns: TABLE }, figures: Object.fromEntries(figures) };
}
