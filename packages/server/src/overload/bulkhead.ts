import { type Clock, type Random, systemClock, systemRandom } from 'holdfast';
import { count, duration, readTable, type SpecOf } from 'holdfast/fields';
import type { EndListener, Exchange } from '../exchange.ts';
import type { Part } from '../part.ts';
import { noCapacity } from '../problem.ts';
import { AdmissionQueue } from './admission-queue.ts';

const fields = {
  concurrent: count(100, 1),
  queueMax: count(50, 0),
  queueTimeout: duration('1s'),
  reserved: count(0, 0),
};

export type BulkheadOptions = SpecOf<typeof fields>;

export interface BulkheadPart extends Part {
  readonly inFlight: number;
  readonly queued: number;
  /** How many requests were refused, immediately or after they had waited. */
  readonly refused: number;
}

/**
 * Makes a part that handles at most `concurrent` requests at the same time. At most `queueMax` further requests wait in
 * a queue; all others are refused.
 */
export function bulkhead(
  options: BulkheadOptions = {},
  environment: { readonly clock?: Clock | undefined; readonly random?: Random | undefined } = {},
): BulkheadPart {
  const { queueTimeout, ...settings } = readTable(fields, options, 'bulkhead.');
  const { clock = systemClock, random = systemRandom } = environment;
  const queue = new AdmissionQueue({ ...settings, queueTimeoutMs: queueTimeout }, clock);

  const leave: EndListener = (now) => queue.leave(now);

  function admit(exchange: Exchange): void {
    exchange.onEnd(leave);
  }

  return {
    name: 'bulkhead',
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
