import { carrierFeatures } from '@holdfast/contracts/carrier';
import { conformance } from '@holdfast/contracts/conformance';
import { memoryEngine } from '@holdfast/contracts/memory';
import { describe, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { readRabbitmqOptions } from '../src/open-rabbitmq.ts';
import { rabbitmqCarrier } from '../src/rabbitmq-carrier.ts';
import { rabbitmqHarness } from './rabbitmq-harness.ts';

const rabbitmq = await service('rabbitmq');
const url = rabbitmq.missing === undefined ? rabbitmq.url : 'amqp://localhost:5672';
const carrier = rabbitmqCarrier(readRabbitmqOptions({ url }).carrier);

/** Several checks at once: each has its own topics, and most of its time is waiting. */
const concurrent = Object.assign(
  (name: string, check: () => Promise<void>) => test.concurrent(name, check, 60_000),
  { skip: test.skip },
);

describe.skipIf(rabbitmq.missing).concurrent(titled('RabbitMQ', rabbitmq), () => {
  for (const hasStore of [false, true]) {
    conformance({
      name: hasStore ? 'rabbitmq with a store' : 'rabbitmq',
      contracts: ['broker'],
      features: carrierFeatures(carrier, hasStore ? memoryEngine() : undefined),
      means: ['reopen', 'dieAfterWrites'],
      create: () => rabbitmqHarness(url, hasStore),
      describe,
      test: concurrent,
    });
  }
});
