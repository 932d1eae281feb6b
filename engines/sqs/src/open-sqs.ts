import { type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import { sqsCarrier } from './sqs-carrier.ts';
import { readSqsOptions, type SqsOptions } from './sqs-options.ts';

/**
 * Opens an engine for events on Amazon SQS. Without a store, retries wait in a queue of their own, and parked events go to
 * `<topic>.dlq`. With a store, both are there, keys keep their order, and parked events can be replayed.
 */
export function openSqs(options: SqsOptions = {}): CarrierEngine {
  const { settings, rest } = readSqsOptions(options);
  // SQS answers when a message is stored on servers in several data centers.
  return carrierEngine(sqsCarrier(settings), { ...rest, durability: 'power' });
}
