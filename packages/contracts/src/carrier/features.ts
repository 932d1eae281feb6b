import type { Engine } from '../engine.ts';
import { type Features, missing } from '../features.ts';
import type { Carrier } from './carrier.ts';

const queueHasNone = missing('a queue cannot be searched');

/**
 * Returns the features of a broker on a carrier (a message broker such as Kafka). A store beside the carrier
 * adds some features.
 */
export function carrierFeatures(
  { features }: Pick<Carrier, 'features'>,
  store: Engine | undefined,
): Features {
  const withStore = (why: string) =>
    store ? true : missing(`${why}: give a store, such as SQLite or PostgreSQL`);
  return {
    arrivalOrder: features.arrivalOrder,
    ordering: withStore(
      'a retry leaves its place in the queue, and later events of its key would overtake it',
    ),
    parkedHoldsKey: withStore('events that wait for a parked one would fill the memory of the consumer'),
    anyDelay: store ? true : features.anyDelay,
    publishOnce: missing('the server may store an event twice if its answer was lost'),
    atomicPublish: missing('the server stores messages one by one'),
    portableLeases: missing('only the process that got a message can settle it'),
    retriesShare: true,
    suspects: missing('the server counts deliveries, also of events that nobody has begun to handle'),
    waitingList: queueHasNone,
    quarantine: withStore('events that are held back would fill the memory of the consumer'),
    sharedControls: withStore('controls apply in one process'),
    doorbell: true,
    retention: missing('the server does not know how an event was settled'),
    marksWithSettlement: missing('marks are in another store, and are written before the settlement'),
    sharedTransaction: missing('the server has no transactions that others could share'),
    parksInTriage: withStore('parked events go to the dead-letter topic'),
    durable: features.durable,
  };
}
