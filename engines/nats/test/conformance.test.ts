import { carrierFeatures } from '@holdfast/contracts/carrier';
import { conformance } from '@holdfast/contracts/conformance';
import { memoryEngine } from '@holdfast/contracts/memory';
import { systemClock } from 'holdfast';
import { describe, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { natsCarrier } from '../src/nats-carrier.ts';
import { readNatsOptions } from '../src/open-nats.ts';
import { natsHarness } from './nats-harness.ts';

const nats = await service('nats');
const url = nats.missing === undefined ? nats.url : 'nats://localhost:4222';
const carrier = natsCarrier({ ...readNatsOptions({ url }).carrier, clock: systemClock });

/** Several checks at once: each has its own streams, and most of its time is waiting. */
const concurrent = Object.assign(
  (name: string, check: () => Promise<void>) => test.concurrent(name, check, 60_000),
  { skip: test.skip },
);

describe.skipIf(nats.missing).concurrent(titled('NATS', nats), () => {
  for (const hasStore of [false, true]) {
    conformance({
      name: hasStore ? 'nats with a store' : 'nats',
      contracts: ['broker'],
      features: carrierFeatures(carrier, hasStore ? memoryEngine() : undefined),
      means: ['reopen', 'dieAfterWrites'],
      create: () => natsHarness(url, hasStore),
      describe,
      test: concurrent,
    });
  }
});
