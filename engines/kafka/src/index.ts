export type { KafkaSasl } from './kafka-connection.ts';
export type { KafkaOptions } from './kafka-options.ts';
export { kafkaFeatures, openKafka } from './open-kafka.ts';
