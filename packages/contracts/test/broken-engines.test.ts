import { missing } from '@holdfast/contracts';
import {
  type Check,
  ConformanceError,
  conformanceChecks,
  runCheck,
  whySkipped,
} from '@holdfast/contracts/conformance';
import { describe, expect, test } from 'vitest';
import { brokenBrokers } from './broken-brokers.ts';
import type { BrokenEngine } from './broken-engine.ts';
import { brokenLedgers } from './broken-ledgers.ts';
import { brokenTriages } from './broken-triages.ts';
import { features, memoryHarness } from './memory-harness.ts';

describe.each([
  ['brokers', brokenBrokers],
  ['ledgers', brokenLedgers],
  ['triages and rate limits', brokenTriages],
])('broken %s', (_, engines) => {
  test.each(engines)('are found: $fault', async (broken) => {
    expect(await failures(broken)).toContain(broken.found);
  });
});

test('says what is wrong in a sentence', async () => {
  const check = checkNamed('keeps a batch whole and in order');
  const lossy = brokenBrokers.find(({ fault }) => fault.startsWith('the tail of a published'))!;
  await expect(runCheck(check, () => memoryHarness(lossy.alter))).rejects.toThrow(ConformanceError);
  await expect(runCheck(check, () => memoryHarness(lossy.alter))).rejects.toThrow(
    '25 events can be leased, got 20',
  );
});

test('skips what an engine cannot do, with the reason', () => {
  const engine = {
    contracts: ['broker' as const],
    features: { ...features, ordering: missing('a queue has no keys') },
  };
  expect(whySkipped(checkNamed('lets a key flow past a parked event'), engine)).toBe(
    'ordering: a queue has no keys',
  );
  expect(whySkipped(checkNamed('keeps scopes apart'), engine)).toBe('the engine has no ledger');
  expect(whySkipped(checkNamed('knows after a restart what is leased'), engine)).toBe(
    'the harness has no reopen',
  );
  expect(whySkipped(checkNamed('leases an event to one consumer only'), engine)).toBeUndefined();
});

test('names each check once', () => {
  const names = conformanceChecks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

function checkNamed(name: string): Check {
  return conformanceChecks.find((check) => check.name === name)!;
}

/** The names of the checks that a broken engine does not pass. */
async function failures({ alter }: BrokenEngine): Promise<string[]> {
  const failed: string[] = [];
  for (const check of conformanceChecks) {
    await runCheck(check, () => memoryHarness(alter)).catch(() => failed.push(check.name));
  }
  return failed;
}
