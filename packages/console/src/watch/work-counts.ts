import type { ConsumerState } from '@holdfast/events';
import type { PolicyState } from 'holdfast';

/**
 * The results of work between two snapshots. Each call or event counts once, however many attempts it had.
 */
export interface WorkCounts {
  readonly work: number;
  readonly okAtOnce: number;
  readonly okAfterRetry: number;
  readonly parked: number;
  /** Calls that a circuit breaker, a limit or a full queue refused. */
  readonly refused: number;
  readonly attempts: number;
  readonly retries: number;
}

export const workNames = [
  'work',
  'okAtOnce',
  'okAfterRetry',
  'parked',
  'refused',
  'attempts',
  'retries',
] as const;

const refusals = ['breaker_open', 'bulkhead_full', 'rate_limited', 'limiter_full', 'throttled', 'shed'];

/**
 * Counts the events that the consumers of a process handled. For a process without consumers, it counts the
 * calls of its policies.
 */
export function countsOf(policies: readonly PolicyState[], consumers: readonly ConsumerState[]): WorkCounts {
  return consumers.length > 0 ? consumed(consumers) : called(policies);
}

function consumed(consumers: readonly ConsumerState[]): WorkCounts {
  const sum = (read: (counters: ConsumerState['counters']) => number) =>
    consumers.reduce((total, { counters }) => total + (read(counters) || 0), 0);
  const succeeded = sum((each) => each.succeeded);
  const okAfterRetry = sum((each) => each.successAfterRetry);
  const parked = sum((each) => each.parked);
  const discarded = sum((each) => each.discarded + each.rerouted);
  return {
    work: succeeded + parked + discarded,
    okAtOnce: succeeded - okAfterRetry + discarded,
    ...{ okAfterRetry, parked, refused: 0 },
    attempts: sum((each) => each.attempts),
    retries: sum((each) => each.retryAttempts),
  };
}

function called(policies: readonly PolicyState[]): WorkCounts {
  const sum = (read: (counters: PolicyState['counters']) => number) =>
    policies.reduce((total, { counters }) => total + (read(counters) || 0), 0);
  const operations = sum((each) => each.operations);
  const attempts = sum((each) => each.attempts);
  return {
    work: operations,
    // For policies, `succeeded` leaves out the successes after a retry. For consumers, `succeeded` includes
    // them.
    okAtOnce: sum((each) => each.succeeded),
    okAfterRetry: sum((each) => each.succeededAfterRetry),
    parked: 0,
    refused: sum(({ stops }) => refusals.reduce((total, name) => total + (stops[name] ?? 0), 0)),
    attempts,
    retries: Math.max(0, attempts - operations),
  };
}

/**
 * Adds up the work of all processes since the last snapshot. A new process counts from its second snapshot
 * on.
 */
export class WorkMeter {
  #known = new Map<string, WorkCounts>();

  /** The key of `processes` is the id of the process. */
  take(processes: ReadonlyMap<string, WorkCounts>): WorkCounts {
    const total = Object.fromEntries(workNames.map((name) => [name, 0])) as Record<
      (typeof workNames)[number],
      number
    >;
    for (const [id, counts] of processes) {
      const before = this.#known.get(id);
      if (!before) continue;
      for (const name of workNames) total[name] += Math.max(0, counts[name] - before[name]);
    }
    this.#known = new Map(processes);
    return total;
  }
}
