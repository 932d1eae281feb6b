import { type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import { sqsCarrier } from './sqs-carrier.ts';
import { readSqsOptions, type SqsOptions } from './sqs-options.ts';

/**
 * Opens an engine on Amazon SQS. Without a store, retries wait in a retry queue, and parked events go to
 * `<topic>.dlq`. With a store, retries and parked events are kept in the store, the order of each key is
 * kept, and parked events can be replayed.
 */
export function openSqs(options: SqsOptions = {}): CarrierEngine {
  const { settings, rest } = readSqsOptions(options);
  // SQS confirms a message after servers in several data centers have stored it.
  return carrierEngine(sqsCarrier(settings), { ...rest, durability: 'power' });
}
