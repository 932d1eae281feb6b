import { type Features, missing } from '@holdfast/contracts';

export const noTransaction: string = 'a script of Redis cannot run the code of a handler';
const noBroker = missing('Redis keeps keys and limits here, not events');

export const redisFeatures: Features = {
  ordering: noBroker,
  parkedHoldsKey: noBroker,
  anyDelay: noBroker,
  publishOnce: noBroker,
  atomicPublish: noBroker,
  retriesShare: noBroker,
  suspects: noBroker,
  waitingList: noBroker,
  quarantine: noBroker,
  sharedControls: noBroker,
  doorbell: noBroker,
  retention: noBroker,
  marksWithSettlement: noBroker,
  sharedTransaction: missing(noTransaction),
  parksInTriage: noBroker,
  durable: true,
};
