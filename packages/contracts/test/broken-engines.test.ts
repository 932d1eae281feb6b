import { missing } from '@holdfast/contracts';
import {
  type Check,
  ConformanceError,
  conformanceChecks,
  runCheck,
  whySkipped,
} from '@holdfast/contracts/conformance';
import { describe, expect, test } from 'vitest';
import { brokenAudits } from './broken-audits.ts';
import { brokenBrokers } from './broken-brokers.ts';
import { brokenFleets } from './broken-fleets.ts';
import { brokenJournals } from './broken-journals.ts';
import { brokenLedgers } from './broken-ledgers.ts';
import { brokenMoves } from './broken-moves.ts';
import { brokenOperationEngines } from './broken-operations.ts';
import { brokenQuestions } from './broken-questions.ts';
import { brokenTriages } from './broken-triages.ts';
import { features, memoryHarness } from './memory-harness.ts';

describe.each([
  ['brokers', brokenBrokers],
  ['moves', brokenMoves],
  ['ledgers', brokenLedgers],
  ['journals', brokenJournals],
  ['triages and rate limits', brokenTriages],
  ['questions', brokenQuestions],
  ['operations', brokenOperationEngines],
  ['audit logs', brokenAudits],
  ['fleets', brokenFleets],
])('broken %s', (_, engines) => {
  test.each(engines)('are found: $fault', async (broken) => {
    await expect(runCheck(checkNamed(broken.found), () => memoryHarness(broken.alter))).rejects.toThrow();
  });
});

test('says what is wrong in a sentence', async () => {
  const check = checkNamed('keeps a batch whole');
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
  expect(whySkipped(checkNamed('knows after a restart what is leased'), engine)).toBe('there is no reopen');
  expect(whySkipped(checkNamed('leases an event to one consumer only'), engine)).toBeUndefined();
});

test('names each check once', () => {
  const names = conformanceChecks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

function checkNamed(name: string): Check {
  const check = conformanceChecks.find((each) => each.name === name);
  if (!check) throw new Error(`there is no check ${name}`);
  return check;
}
