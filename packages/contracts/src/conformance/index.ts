import { type Features, whyMissing } from '../features.ts';
import { effectChecks } from './effect-checks.ts';
import { flowChecks } from './flow-checks.ts';
import type { Harness } from './harness.ts';
import { leaseChecks } from './lease-checks.ts';
import { ledgerChecks } from './ledger-checks.ts';
import { publishChecks } from './publish-checks.ts';
import { rateLimitChecks } from './rate-limit-checks.ts';
import { replayChecks, settledReplayChecks } from './replay-checks.ts';
import { type Check, type Contract, type Means, Stage } from './stage.ts';
import { triageChecks } from './triage-checks.ts';

export { ConformanceError } from './assertions.ts';
export type { Harness } from './harness.ts';
export type { Check, Contract, Means } from './stage.ts';

/**
 * All requirements of the contracts. Each check has a name, the features that it needs, and a function that throws if
 * the engine fails.
 */
export const conformanceChecks: readonly Check[] = [
  ...publishChecks,
  ...leaseChecks,
  ...flowChecks,
  ...effectChecks,
  ...ledgerChecks,
  ...triageChecks,
  ...replayChecks,
  ...settledReplayChecks,
  ...rateLimitChecks,
];

/** The functions of a test runner that `conformance` calls. Vitest, Jest and `node:test` have them. */
export interface Runner {
  describe(name: string, suite: () => void): unknown;
  test: TestFunction & { skip: (name: string, test: () => void) => unknown };
}

type TestFunction = (name: string, test: () => Promise<void>) => unknown;

export interface ConformanceOptions<Tx> extends Runner {
  readonly name: string;
  readonly contracts: readonly Contract[];
  readonly features: Features;
  /**
   * The optional methods that the harness of this engine has. Checks that need another method are skipped, with the
   * reason.
   */
  readonly means?: readonly Means[];
  /** Creates a new harness. Called once for each check. */
  create(): Promise<Harness<Tx>>;
}

/**
 * Declares one test for each check. A check that needs a missing feature is declared as skipped, with the reason in its
 * name.
 */
export function conformance<Tx>(options: ConformanceOptions<Tx>): void {
  const { describe, test } = options;
  for (const contract of ['broker', 'ledger', 'triage', 'rateLimits'] as const) {
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
  return unable && `the harness has no ${unable}`;
}
