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
  /** Calls that were not sent, because a circuit breaker, a limit or a full queue refused them. */
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

/** The counters of one process: events of its consumers, or calls of its policies if it has no consumers. */
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
    // Unlike in the counters of a consumer, `succeeded` does not include `succeededAfterRetry`.
    okAtOnce: sum((each) => each.succeeded),
    okAfterRetry: sum((each) => each.succeededAfterRetry),
    parked: 0,
    refused: sum(({ stops }) => refusals.reduce((total, name) => total + (stops[name] ?? 0), 0)),
    attempts,
    retries: Math.max(0, attempts - operations),
  };
}

/**
 * Adds up the work of all processes since the last snapshot. A new process is counted from its second
 * snapshot on.
 */
export class WorkMeter {
  #known = new Map<string, WorkCounts>();

  /** `processes`: the counters of each process by its id. */
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
