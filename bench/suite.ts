import type { CaseResult } from './compare.ts';

export interface SuiteOptions {
  readonly rounds: number | undefined;
  /** Only cases whose name contains this. */
  readonly caseContains: string;
  /** All cases in one process, to tell what they do to each other: the engine then meets a mixed profile of calls. */
  readonly together: boolean;
}

export interface Suite {
  /** What was measured, in the order of printing. */
  run(options: SuiteOptions): Promise<CaseResult[]>;
  /** Printed below the table: how to read it. */
  readonly notes: readonly string[];
}
