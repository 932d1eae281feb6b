import { type Features, missing } from '@holdfast/contracts';

export const noTransaction: string = 'a script of Redis cannot run the code of a handler';

/**
 * The features of the Redis engine. They depend on whether Redis is a cluster, and whether the option `store`
 * is given.
 */
export function redisFeatures({ isCluster = false, hasStore = false } = {}): Features {
  return {
    arrivalOrder: true,
    ordering: true,
    parkedHoldsKey: true,
    anyDelay: true,
    publishOnce: true,
    atomicPublish: true,
    portableLeases: true,
    retriesShare: true,
    suspects: true,
    waitingList: true,
    quarantine: true,
    sharedControls: true,
    doorbell: true,
    retention: missing('settled events would fill the memory of Redis'),
    marksWithSettlement: isCluster
      ? missing('on a cluster, the marks of an event are in another slot than its topic')
      : true,
    sharedTransaction: missing(noTransaction),
    parksInTriage: hasStore
      ? true
      : missing('parked events go to the dead-letter topic: give a store, such as SQLite or PostgreSQL'),
    durable: true,
  };
}
