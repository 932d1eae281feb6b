import { carrierFeatures } from '@holdfast/contracts/carrier';
import { conformance } from '@holdfast/contracts/conformance';
import { memoryEngine } from '@holdfast/contracts/memory';
import { describe, test, vi } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { sqsCarrier } from '../src/sqs-carrier.ts';
import { readSqsOptions } from '../src/sqs-options.ts';
import { access, sqsHarness } from './sqs-harness.ts';

const elasticmq = await service('elasticmq');
const endpoint = elasticmq.missing === undefined ? elasticmq.url : 'http://localhost:9324';
const carrier = sqsCarrier(readSqsOptions({ ...access, endpoint }).settings);

/**
 * Many checks at once: each has its own queues, and most of its time is waiting for a whole second. A check is repeated: a
 * standard queue may give fewer messages than it has, and on a busy machine a second passes between two calls.
 */
vi.setConfig({ maxConcurrency: 40 });
const concurrent = Object.assign(
  (name: string, check: () => Promise<void>) => test.concurrent(name, { timeout: 120_000, retry: 2 }, check),
  { skip: test.skip },
);

describe.skipIf(elasticmq.missing).concurrent(titled('SQS', elasticmq), () => {
  for (const hasStore of [false, true]) {
    conformance({
      name: hasStore ? 'sqs with a store' : 'sqs',
      contracts: ['broker'],
      features: carrierFeatures(carrier, hasStore ? memoryEngine() : undefined),
      means: ['reopen', 'dieAfterWrites'],
      create: () => sqsHarness(endpoint, hasStore),
      describe,
      test: concurrent,
    });
  }
});
