import { type Clock, type Random, systemClock, systemRandom } from 'holdfast';
import { count, duration, readTable, type SpecOf } from 'holdfast/fields';
import type { EndListener, Exchange } from '../exchange.ts';
import type { Part } from '../part.ts';
import { noCapacity } from '../refusals.ts';
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
  /** Requests that were refused, at once or after having waited. */
  readonly refused: number;
}

/** So many requests at once, and so many more in a queue that never stands. */
export function bulkhead(
  options: BulkheadOptions = {},
  environment: { readonly clock?: Clock | undefined; readonly random?: Random | undefined } = {},
): BulkheadPart {
  const { queueTimeout, ...settings } = readTable(fields, options, 'bulkhead.');
  const { clock = systemClock, random = systemRandom } = environment;
  const gate = new AdmissionQueue({ ...settings, queueTimeoutMs: queueTimeout }, clock);

  const leave: EndListener = (now) => gate.leave(now);

  function admit(exchange: Exchange): void {
    exchange.onEnd(leave);
  }

  return {
    name: 'bulkhead',
    get inFlight() {
      return gate.bulkhead.inFlight;
    },
    get queued() {
      return gate.bulkhead.queued;
    },
    get refused() {
      return gate.dropped;
    },
    enter(exchange) {
      const now = exchange.nowBy(clock);
      const admitted = gate.tryEnter(exchange, now) || gate.enter(exchange, now);
      if (admitted === true) {
        admit(exchange);
        return undefined;
      }
      if (admitted === false) return noCapacity(random);
      return admitted.then((later) => {
        if (!later) return noCapacity(random);
        admit(exchange);
        return undefined;
      });
    },
  };
}
