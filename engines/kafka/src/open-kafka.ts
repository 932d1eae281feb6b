import type { Features } from '@holdfast/contracts';
import { type CarrierEngine, carrierEngine, carrierFeatures } from '@holdfast/contracts/carrier';
import { kafkaCarrier } from './kafka-carrier.ts';
import { type KafkaOptions, readOptions } from './kafka-options.ts';

/**
 * Opens an engine on Kafka 3.5 or later. Without a store, retries wait in topics by the class of their delay, and parked
 * events go to `<topic>.dlq`. With a store, both are there, keys keep their order, and parked events can be replayed.
 * Connects with the first call.
 */
export function openKafka(options: KafkaOptions): CarrierEngine {
  const settings = readOptions(options);
  const carrier = kafkaCarrier(settings, options.store !== undefined);
  const { store, parkedSuffix, prefetchMax, prefetchBytesMax, idleMs, clock, random } = options;
  return carrierEngine(carrier, {
    ...{ store, parkedSuffix, prefetchMax, prefetchBytesMax, idleMs, clock, random },
    // Kafka answers when the replicas in sync have an event in memory. A power cut of all of them can lose it.
    durability: 'process',
  });
}

/** What this engine can do with these options. */
export function kafkaFeatures(options: KafkaOptions): Features {
  const { features } = kafkaCarrier(readOptions(options), options.store !== undefined);
  return carrierFeatures({ features }, options.store);
}
