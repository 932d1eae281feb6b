import { conformance } from '@holdfast/contracts/conformance';
import { describe, test } from 'vitest';
import { features, memoryHarness } from './memory-harness.ts';

conformance({
  name: 'memory',
  contracts: ['broker', 'ledger', 'triage', 'rateLimits', 'journal', 'controls', 'audit', 'presence'],
  features,
  means: ['reopen', 'dieAfterWrites', 'effect', 'publishBehind'],
  create: memoryHarness,
  describe,
  test,
});
