import type { CaseResult } from './compare.ts';

export interface SuiteOptions {
  readonly rounds: number | undefined;
  /** Only cases whose name contains this. */
  readonly caseContains: string;
  /** Each case in a process of its own, to tell what cases do to each other. */
  readonly apart: boolean;
}

export interface Suite {
  /** What was measured, in the order of printing. */
  run(options: SuiteOptions): Promise<CaseResult[]>;
  /** Printed below the table: how to read it. */
  readonly notes: readonly string[];
}
