import type { PartSettings } from '../policy/part-settings.ts';
import type { Plan } from '../policy/plan.ts';
import type { Policy } from '../policy/policy.ts';
import { MOST, TYPICAL, waitsOf } from './delays.ts';
import { formatMs, round } from './format-duration.ts';

/** What ends the work: its time limit (`patience`), the last attempt, or nothing. */
export type Limit = 'patience' | 'attempts' | 'nothing';

/** The longest time that a run can take, in ms, and what ends the run. */
export interface WorstTime {
  /** The duration of the run in ms, if every attempt uses its whole time limit. null: no limit. */
  readonly hangingMs: number | null;
  readonly hangingEndsBy: Limit;
  /**
   * The duration of the run if every attempt fails immediately, so that only the waits take time. null: no
   * limit.
   */
  readonly failingMs: number | null;
  readonly failingEndsBy: Limit;
  /**
   * The number of attempts if all fail immediately and all waits have their typical length. null: no limit.
   */
  readonly failingAttempts: number | null;
  readonly says: readonly string[];
}

/** The most calls of a policy when the target is completely down. null: no limit. */
export interface WorstLoad {
  /** How many calls one piece of work causes if every call fails. null: no limit. */
  readonly calls: number | null;
  /** The most calls for one piece of work, as an average over a long time. null: no limit. */
  readonly longRun: number | null;
  /** How many calls one piece of work causes, including the retries of outer callers. null: no limit. */
  readonly callsInAll: number | null;
  readonly says: readonly string[];
}

/** Only this many waits are computed. All later waits are assumed to be as long as the last computed one. */
const waitsMax = 1000;

/** Computes the longest time that work can take. `isGuarded: false`: nothing ends an attempt that hangs. */
export function worstTime(plan: Plan, isGuarded: boolean): WorstTime {
  const { patienceMs, attempts, attemptTimeoutMs: timeoutMs } = plan;
  const waitsMs = sum(waitsOf(plan, MOST, waitsMax), attempts - 1);
  // A timeout of 0 means that attempts have no fixed time limit. In this case only the time limit of the
  // whole work is certain.
  const attemptsMs = timeoutMs > 0 ? attempts * timeoutMs : Infinity;
  const failing = endOf(patienceMs, waitsMs);
  const hanging = endOf(isGuarded ? patienceMs : Infinity, waitsMs + attemptsMs);
  const fitting = attemptsThatFit(plan);
  return {
    hangingMs: hanging.ms,
    hangingEndsBy: hanging.by,
    failingMs: failing.ms,
    failingEndsBy: failing.by,
    failingAttempts: fitting < Infinity ? fitting : null,
    says: [
      `If every attempt fails at once: ${sentence(failing, attempts)}${fitting < attempts ? ` About ${fitting} attempts fit.` : ''}`,
      `If every attempt takes as long as it may: ${sentence(hanging, attempts)}`,
    ],
  };
}

/** Computes how many calls one piece of work can cause when every call fails. */
export function worstLoad(plan: Plan, settings: PartSettings, within: readonly Policy[]): WorstLoad {
  const { calls, longRun, says } = ownLoad(plan, settings);
  if (within.length === 0) return { calls, longRun, callsInAll: calls, says };
  const factors = [...within.map(({ plan: each, settings: its }) => callsOf(each, its)), calls ?? Infinity];
  const product = factors.reduce((all, each) => all * each, 1);
  const names = within.map(({ name }) => name ?? 'a policy without a name').join(' and ');
  const formula = factors.map((each) => (each < Infinity ? each : 'any number')).join(' × ');
  const inAll =
    product < Infinity ? `${formula} = ${product} calls at most` : `${formula}: any number of calls`;
  return {
    calls,
    longRun,
    callsInAll: product < Infinity ? product : null,
    says: [...says, `Within ${names}, one piece of work is ${inAll}.`],
  };
}

function callsOf({ attempts, killSwitch }: Plan, { mode }: PartSettings): number {
  return killSwitch.isOn || mode === 'observe' ? 1 : attempts;
}

function ownLoad(plan: Plan, settings: PartSettings): Omit<WorstLoad, 'callsInAll'> {
  const { budget, hedge } = settings;
  const most = callsOf(plan, settings);
  if (most === 1) return { calls: 1, longRun: 1, says: ['Each piece of work is called once.'] };
  const calls = most < Infinity ? most : null;
  const amount = calls === null ? 'any number of calls' : `${calls} calls`;
  if (!budget) {
    return {
      calls,
      longRun: calls,
      says: [`In an outage each piece of work is ${amount}: no budget limits them.`],
    };
  }
  const { ratio } = budget;
  const longRun = 1 + ratio;
  const successes = Math.round(100 * lonelyCaller(ratio));
  const says = [
    `One piece of work is at most ${amount}. In the long run the budget holds all work together to ${round(longRun)} calls for each.`,
    `The budget always has room for one token: a caller with one call a minute, of which 5 % fail, succeeds in about ${successes} %.`,
  ];
  if (hedge) says.push(`Hedges are among these: at most ${round(100 * hedge.extraLoad)} % more calls.`);
  return { calls, longRun, says };
}

/**
 * Returns the success rate (0 to 1) of a caller with few calls. The share `failing` of its calls fails by
 * chance. Its retry budget holds one token, for one retry, and needs 1 / `ratio` successes for the next
 * token.
 */
export function lonelyCaller(ratio: number, failing = 0.05): number {
  if (ratio === 0) return 1 - failing;
  const callsWithout = Math.ceil(1 / ratio) / (1 - failing);
  const callsWith = 1 / failing;
  return 1 - (failing + failing * callsWithout) / (callsWith + callsWithout);
}

interface End {
  readonly ms: number | null;
  readonly by: Limit;
}

function endOf(patienceMs: number, allMs: number): End {
  if (allMs <= patienceMs && allMs < Infinity) return { ms: allMs, by: 'attempts' };
  return patienceMs < Infinity ? { ms: patienceMs, by: 'patience' } : { ms: null, by: 'nothing' };
}

function sentence({ ms, by }: End, attempts: number): string {
  if (ms === null) return 'for ever; nothing ends it.';
  return by === 'patience'
    ? `${formatMs(ms)}, when patience ends.`
    : `at most ${formatMs(ms)}, when ${attempts === 1 ? 'the attempt is' : `${attempts} attempts are`} used up.`;
}

/**
 * Adds up `count` waits. If `known` has fewer waits, each missing one is as long as the last known one. An
 * infinite wait ends the work, so the sum stops before it.
 */
function sum(known: readonly number[], count: number): number {
  const endless = known.indexOf(Infinity);
  const waits = endless < 0 ? known : known.slice(0, endless);
  if (endless < 0 && count === Infinity) return Infinity;
  const rest = endless < 0 ? count - waits.length : 0;
  const ms = waits.reduce((total, each) => total + each, 0) + rest * (waits.at(-1) ?? 0);
  return Math.round(ms * 1000) / 1000;
}

function attemptsThatFit(plan: Plan): number {
  const waits = waitsOf(plan, TYPICAL, waitsMax);
  let elapsedMs = 0;
  for (const [index, ms] of waits.entries()) {
    elapsedMs += ms;
    if (elapsedMs > plan.patienceMs || ms === Infinity) return index + 1;
  }
  const more = waits.length < waitsMax ? 0 : Math.floor((plan.patienceMs - elapsedMs) / (waits.at(-1) ?? 0));
  return Math.min(plan.attempts, waits.length + 1 + more);
}
