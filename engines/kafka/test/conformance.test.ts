import { conformance } from '@holdfast/contracts/conformance';
import { memoryEngine } from '@holdfast/contracts/memory';
import { kafkaFeatures } from '@holdfast/kafka';
import { describe, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { kafkaHarness } from './kafka-harness.ts';

/** A few round trips are done in this time, on a busy machine too. */
const unitMs = 700;
const url = 'kafka://localhost';

const kafka = await service('kafka');

describe.skipIf(kafka.missing)(titled('conformance', kafka), { concurrent: true, timeout: 60_000 }, () => {
  const address = kafka.missing === undefined ? kafka.url : '';
  for (const [name, hasStore, partitions] of [
    ['kafka', false, 1],
    ['kafka with a store', true, 3],
  ] as const) {
    conformance({
      name,
      contracts: hasStore ? ['broker', 'ledger', 'triage', 'controls'] : ['broker'],
      features: kafkaFeatures({ url, partitions, ...(hasStore && { store: memoryEngine() }) }),
      means: ['reopen', 'dieAfterWrites'],
      create: () => kafkaHarness(address, { unitMs, partitions, hasStore }),
      describe,
      test,
    });
  }
});
