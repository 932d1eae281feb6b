import { type Duration, type Environment, systemClock, systemRandom } from 'holdfast';
import { count, duration, type FieldsOf } from 'holdfast/fields';
import type { EndListener, Exchange } from '../exchange.ts';
import { readOptions } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { noCapacity } from '../problem.ts';
import { AdmissionQueue } from './admission-queue.ts';

/** The options of `bulkhead`: how many requests run at the same time, and how many wait. */
export interface BulkheadOptions {
  /** The most requests that run at the same time. Default: `100`. */
  concurrent?: number | undefined;
  /**
   * The most requests in the queue, which is ordered by priority. Further requests are refused. Default:
   * `50`.
   */
  queueMax?: number | undefined;
  /** The longest time that a request waits in the queue. Default: `1s`. */
  queueTimeout?: Duration | undefined;
  /** How many more requests of priority `critical` may run, in addition to `concurrent`. Default: `0`. */
  reserved?: number | undefined;
}

export const bulkheadFields = {
  concurrent: count(100, 1),
  queueMax: count(50, 0),
  queueTimeout: duration('1s'),
  reserved: count(0, 0),
} satisfies FieldsOf<BulkheadOptions>;

/** Limits how many requests run at the same time. Requests that do not fit into its queue are refused. */
export interface BulkheadPart extends Part {
  /** The most requests that run at the same time. */
  readonly limit: number;
  readonly inFlight: number;
  readonly queued: number;
  /** How many requests were refused, immediately or after a wait. */
  readonly refused: number;
}

/**
 * A part for `guard` that runs at most `concurrent` requests at the same time. At most `queueMax` more
 * requests wait; all others are refused.
 */
export function bulkhead(options: BulkheadOptions = {}, environment: Environment = {}): BulkheadPart {
  const { queueTimeout, ...settings } = readOptions(
    bulkheadFields,
    options,
    'bulkhead',
    '{ concurrent: 100 }',
    {
      max: 'concurrent',
      limit: 'concurrent',
      maxConcurrent: 'concurrent',
    },
  );
  const { clock = systemClock, random = systemRandom } = environment;
  const queue = new AdmissionQueue({ ...settings, queueTimeoutMs: queueTimeout }, clock);

  const leave: EndListener = (now) => queue.leave(now);

  function admit(exchange: Exchange): void {
    exchange.onEnd(leave);
  }

  return {
    name: 'bulkhead',
    limit: settings.concurrent,
    get inFlight() {
      return queue.bulkhead.inFlight;
    },
    get queued() {
      return queue.bulkhead.queued;
    },
    get refused() {
      return queue.dropped;
    },
    enter(exchange) {
      const now = exchange.nowOf(clock);
      const admitted = queue.tryEnter(exchange, now) || queue.enter(exchange, now);
      if (admitted === true) {
        admit(exchange);
        return undefined;
      }
      if (admitted === false) return noCapacity(random);
      return admitted.then((isAdmitted) => {
        if (!isAdmitted) return noCapacity(random);
        admit(exchange);
        return undefined;
      });
    },
  };
}
