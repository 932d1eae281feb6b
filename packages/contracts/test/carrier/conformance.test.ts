import { conformance } from '@holdfast/contracts/conformance';
import { describe, test } from 'vitest';
import { carrierHarness, channelTraits, featuresOf, queueTraits } from './carrier-harness.ts';

const withStore = ['broker', 'ledger', 'triage', 'rateLimits', 'controls', 'audit', 'presence'] as const;

for (const [name, traits] of [
  ['queue', queueTraits],
  ['channel', channelTraits],
] as const) {
  for (const hasStore of [false, true]) {
    conformance({
      name: `carrier like a ${name}${hasStore ? ' with a store' : ''}`,
      contracts: hasStore ? withStore : ['broker'],
      features: featuresOf(traits, hasStore),
      means: ['reopen', 'dieAfterWrites'],
      create: () => carrierHarness(traits, hasStore),
      describe,
      test,
    });
  }
}
