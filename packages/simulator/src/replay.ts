import { parseScenario, type Scenario } from '@holdfast/config';
import { type Notice, OptionsError } from 'holdfast';

/** An incident that was recorded in production, as a scenario. Calls arrive and are answered as recorded. */
export interface Incident {
  readonly scenario: Scenario;
  readonly recorded: RecordedFigures;
}

/** The figures of the real incident, to compare the simulation with. */
export interface RecordedFigures {
  readonly begun: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly attempts: number;
  readonly success: number;
  readonly multiplication: number;
  /** Percentiles of the duration of successful calls, in seconds; null if none succeeded. */
  readonly p50: number | null;
  readonly p99: number | null;
}

/** Selects a part of a recorded incident: the calls of one policy, or to one target. */
export interface IncidentFilter {
  readonly policy?: string | undefined;
  readonly target?: string | undefined;
}

/** The fields that are read from a recorded notice (an event that a policy reports). */
type Heard = Pick<Notice, 'type' | 'at' | 'policy' | 'target'> & {
  readonly work?: number;
  readonly class?: string;
  readonly tookMs?: number;
};

const gave = new Set(['ok', 'transient', 'throttled', 'fatal']);

/**
 * Builds a scenario from recorded notices (events) of policies, one JSON object per line. The replayed
 * service does not react to a different load. An abandoned attempt is replayed as a failure, because its real
 * end is unknown.
 */
export function readIncident(
  lines: Iterable<string>,
  filter: IncidentFilter = {},
  file = 'notices',
): Incident {
  const notices = [...parsed(lines, file)].filter(
    ({ policy, target }) =>
      (filter.policy === undefined || policy === filter.policy) &&
      (filter.target === undefined || target === filter.target),
  );
  const starts = notices.filter(({ type }) => type === 'start');
  const attempts = notices.filter((each) => each.type === 'attempt' && gave.has(each.class ?? ''));
  if (starts.length === 0 || attempts.length === 0) {
    throw new OptionsError(
      file,
      `${starts.length} starts, ${attempts.length} attempts`,
      'notices of at least one start and one attempt',
    );
  }
  const begins = [...starts.map(({ at }) => at), ...attempts.map(({ at, tookMs = 0 }) => at - tookMs)];
  const zero = begins.reduce((first, at) => Math.min(first, at));
  const lastMs = notices.reduce((last, { at }) => Math.max(last, at), zero) - zero;
  const empty = parseScenario(`
id: incident
title: what was recorded, with another policy
duration: ${Math.ceil(lastMs / 1000) + 1}s
seeds: [1]
services: { recorded: {} }
clients: { customers: { to: recorded, arrivals: { at: [0ms] } } }
`);
  const { recorded } = empty.services;
  const { customers } = empty.clients;
  const recording = attempts.map(({ at, tookMs = 0, class: its }) => ({
    at: at - tookMs - zero,
    took: tookMs,
    gave: its as 'ok',
  }));
  const arrivals = { ...customers!.arrivals, at: starts.map(({ at }) => at - zero).sort((a, b) => a - b) };
  return {
    scenario: {
      ...empty,
      services: { recorded: { ...recorded!, recording } },
      clients: { customers: { ...customers!, arrivals } },
    },
    recorded: figuresOf(notices),
  };
}

function* parsed(lines: Iterable<string>, file: string): Generator<Heard> {
  let number = 0;
  for (const line of lines) {
    number++;
    if (line.trim() === '') continue;
    yield noticeOf(line, `${file}:${number}`);
  }
}

function noticeOf(line: string, place: string): Heard {
  const notice = json(line);
  if (typeof notice !== 'object' || notice === null)
    throw new OptionsError(place, line, 'a notice as a JSON object');
  const { type, at, tookMs } = notice as Heard;
  if (typeof type !== 'string') throw new OptionsError(`${place}: type`, type, 'the type of a notice');
  if (!Number.isFinite(at)) throw new OptionsError(`${place}: at`, at, 'a time in ms');
  if (type === 'attempt' && !(Number(tookMs) >= 0))
    throw new OptionsError(`${place}: tookMs`, tookMs, 'a time in ms');
  return notice as Heard;
}

function json(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // `noticeOf` reports the error, with the line number
  }
}

function figuresOf(notices: readonly Heard[]): RecordedFigures {
  const count = (type: Notice['type']) => notices.filter((each) => each.type === type).length;
  const waits = notices
    .filter(({ type }) => type === 'done')
    .map(({ tookMs = 0 }) => tookMs / 1000)
    .sort((a, b) => a - b);
  const begun = count('start');
  const failed = count('gave_up');
  const attempts = count('attempt');
  const quantile = (share: number) => waits[Math.ceil(share * waits.length) - 1] ?? null;
  return {
    begun,
    succeeded: waits.length,
    failed,
    attempts,
    success: waits.length / Math.max(1, waits.length + failed),
    multiplication: attempts / begun,
    p50: quantile(0.5),
    p99: quantile(0.99),
  };
}
