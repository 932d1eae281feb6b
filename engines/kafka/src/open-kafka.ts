import type { Features } from '@holdfast/contracts';
import { type CarrierEngine, carrierEngine, carrierFeatures } from '@holdfast/contracts/carrier';
import { kafkaCarrier } from './kafka-carrier.ts';
import { type KafkaOptions, readOptions } from './kafka-options.ts';

/**
 * Opens an engine on Kafka 3.5 or later. Without a store, retries wait in retry topics such as
 * `orders.retry.10s`, and parked events go to `<topic>.dlq`. A store keeps retries, parked events and the
 * order of each key, and its parked events can be replayed. The engine connects with the first call.
 */
export function openKafka(options: KafkaOptions): CarrierEngine {
  const settings = readOptions(options);
  const carrier = kafkaCarrier(settings, options.store !== undefined);
  const { store, parkedSuffix, prefetchMax, prefetchBytesMax, idleMs, clock, random } = options;
  return carrierEngine(carrier, {
    ...{ store, parkedSuffix, prefetchMax, prefetchBytesMax, idleMs, clock, random },
    // Kafka answers when all in-sync replicas have the event in memory. If all of them lose power, the event
    // can be lost.
    durability: 'process',
  });
}

/** The features of an engine with these options, and the reason for each missing one. */
export function kafkaFeatures(options: KafkaOptions): Features {
  const { features } = kafkaCarrier(readOptions(options), options.store !== undefined);
  return carrierFeatures({ features }, options.store);
}
