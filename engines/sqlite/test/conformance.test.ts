import { conformance } from '@holdfast/contracts/conformance';
import { sqliteFeatures } from '@holdfast/sqlite';
import { describe, test } from 'vitest';
import { sqliteHarness } from './sqlite-harness.ts';

conformance({
  name: 'sqlite',
  contracts: ['broker', 'ledger', 'triage', 'rateLimits', 'journal', 'controls', 'audit', 'presence'],
  features: sqliteFeatures,
  means: ['reopen', 'dieAfterWrites', 'effect', 'publishBehind'],
  create: sqliteHarness,
  describe,
  test,
});
