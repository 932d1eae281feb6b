import { catalog } from '../../../scripts/services/catalog.ts';
import type { EngineCases } from '../events/engines.ts';
import { type BrokerBench, casesOf } from './broker-bench.ts';

/** One file an engine, loaded where it is measured. */
const benches: Readonly<Record<string, () => Promise<BrokerBench>>> = {
  kafka: async () => (await import('./kafka.ts')).kafkaBench,
  rabbitmq: async () => (await import('./rabbitmq.ts')).rabbitmqBench,
  sqs: async () => (await import('./sqs.ts')).sqsBench,
  nats: async () => (await import('./nats.ts')).natsBench,
  redis: async () => (await import('./redis.ts')).redisBench,
};

export const brokerNames: readonly string[] = Object.keys(benches);

export async function brokerCases(name: string): Promise<EngineCases> {
  const bench = await benches[name]!();
  const { missing } = catalog[bench.service].find();
  return { cases: missing === undefined ? casesOf(name, bench) : [], missing };
}
