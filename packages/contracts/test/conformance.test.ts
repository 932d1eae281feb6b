import { conformance } from '@holdfast/contracts/conformance';
import { describe, test } from 'vitest';
import { features, memoryHarness } from './memory-harness.ts';

conformance({
  name: 'memory',
  contracts: ['broker', 'ledger', 'triage', 'rateLimits'],
  features,
  means: ['reopen', 'dieAfterWrites', 'effect'],
  create: memoryHarness,
  describe,
  test,
});
