import { type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import { sqsCarrier } from './sqs-carrier.ts';
import { readSqsOptions, type SqsOptions } from './sqs-options.ts';

/**
 * Opens an engine on Amazon SQS. Without a store, retries wait in a retry queue, and parked events go to
 * `<topic>.dlq`. A store keeps retries, parked events and the order of each key, and its parked events can be
 * replayed.
 */
export function openSqs(options: SqsOptions = {}): CarrierEngine {
  const { settings, rest } = readSqsOptions(options);
  // SQS confirms a message after servers in several data centers have stored it.
  return carrierEngine(sqsCarrier(settings), { ...rest, durability: 'power' });
}
