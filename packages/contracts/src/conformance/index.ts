import { type Features, whyMissing } from '../features.ts';
import { actChecks, auditChecks } from './audit-checks.ts';
import { policyControlChecks, retryPauseChecks } from './control-checks.ts';
import { countChecks } from './count-checks.ts';
import { effectChecks } from './effect-checks.ts';
import { flowChecks } from './flow-checks.ts';
import type { Harness } from './harness.ts';
import { journalChecks } from './journal-checks.ts';
import { journalQueueChecks } from './journal-queue-checks.ts';
import { leaseChecks } from './lease-checks.ts';
import { ledgerChecks } from './ledger-checks.ts';
import { moveChecks } from './move-checks.ts';
import { operationChecks } from './operation-checks.ts';
import { presenceChecks } from './presence-checks.ts';
import { publishChecks } from './publish-checks.ts';
import { questionChecks, waitingQuestionChecks } from './question-checks.ts';
import { rateLimitChecks } from './rate-limit-checks.ts';
import { replayChecks, settledReplayChecks } from './replay-checks.ts';
import { type Check, type Contract, contracts, type Means, Stage } from './stage.ts';
import { triageChecks } from './triage-checks.ts';

export { ConformanceError } from './assertions.ts';
export type { Harness } from './harness.ts';
export type { Check, Contract, Means } from './stage.ts';

/** All checks that an engine must pass. */
export const conformanceChecks: readonly Check[] = [
  ...publishChecks,
  ...leaseChecks,
  ...flowChecks,
  ...moveChecks,
  ...waitingQuestionChecks,
  ...retryPauseChecks,
  ...effectChecks,
  ...ledgerChecks,
  ...triageChecks,
  ...questionChecks,
  ...countChecks,
  ...operationChecks,
  ...replayChecks,
  ...settledReplayChecks,
  ...rateLimitChecks,
  ...journalChecks,
  ...journalQueueChecks,
  ...policyControlChecks,
  ...auditChecks,
  ...actChecks,
  ...presenceChecks,
];

/** The functions of a test runner that `conformance` calls. Vitest and Jest have them. */
export interface Runner {
  /** Declares a group of tests. Required. */
  describe(name: string, suite: () => void): unknown;
  /** Declares a test. `test.skip` declares a test that is not run. Required. */
  test: TestFunction & { skip: (name: string, test: () => void) => unknown };
}

type TestFunction = (name: string, test: () => Promise<void>) => unknown;

/** The engine to check, its contracts, and the test runner to use. */
export interface ConformanceOptions<Tx> extends Runner {
  /** The name of the engine in the titles of the tests. Required. */
  readonly name: string;
  /** The contracts that the engine has. Required. */
  readonly contracts: readonly Contract[];
  /** The features of the engine. Checks that need other features are skipped. Required. */
  readonly features: Features;
  /**
   * The optional methods that this harness and its broker have. Checks that need other methods are skipped.
   * Default: none.
   */
  readonly means?: readonly Means[];
  /** Creates a new harness. Called once for each check. Required. */
  create(): Promise<Harness<Tx>>;
}

/** Declares one test for each check. A check is skipped if the engine lacks a feature that the check needs. */
export function conformance<Tx>(options: ConformanceOptions<Tx>): void {
  const { describe, test } = options;
  for (const contract of contracts) {
    const checks = conformanceChecks.filter(({ contracts }) => contracts[0] === contract);
    describe(`${options.name}: ${contract}`, () => {
      for (const check of checks) {
        const why = whySkipped(check, options);
        if (why === undefined) test(check.name, () => runCheck(check, options.create));
        else test.skip(`${check.name} (skipped: ${why})`, () => {});
      }
    });
  }
}

/** Runs one check on a new harness. Rejects if the engine fails the check. */
export async function runCheck<Tx>(check: Check, create: () => Promise<Harness<Tx>>): Promise<void> {
  const harness = await create();
  try {
    // The cast is safe: a check passes transactions only to the engine and harness that created them.
    await check.run(new Stage(harness as Harness));
  } finally {
    await harness.dispose();
  }
}

/** Returns why a check is skipped for an engine; `undefined` if the check must run. */
export function whySkipped(
  check: Check,
  engine: Pick<ConformanceOptions<unknown>, 'contracts' | 'features' | 'means'>,
): string | undefined {
  const lacking = check.contracts.find((contract) => !engine.contracts.includes(contract));
  if (lacking) return `the engine has no ${lacking}`;
  for (const feature of check.needs) {
    const why = whyMissing(engine.features, feature);
    if (why !== undefined) return `${feature}: ${why}`;
  }
  const unable = check.means.find((means) => !engine.means?.includes(means));
  return unable && `there is no ${unable}`;
}
