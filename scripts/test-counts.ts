/** The part of Vitest's JSON report that we count. */
export interface VitestReport {
  readonly testResults: readonly {
    readonly status: string;
    /** The path of the file. */
    readonly name?: string;
    /** Epoch ms. */
    readonly startTime?: number;
    readonly endTime?: number;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/**
 * Counts tests, and counts as one failure each what has no test to show for it: a file that did not load, a run that
 * ended badly with every test green, and a run that executed nothing.
 */
export function countTests(report: VitestReport | undefined, exitCode: number): Counts {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const file of report?.testResults ?? []) {
    const failedBefore = failed;
    for (const { status } of file.assertionResults) {
      if (status === 'passed') passed++;
      else if (status === 'failed') failed++;
      else skipped++;
    }
    if (file.status === 'failed' && failed === failedBefore) failed++;
  }
  if (failed === 0 && (exitCode !== 0 || passed === 0)) failed++;
  return { passed, failed, skipped };
}

/** How long the files of each package ran, in seconds, the longest first. Files run side by side, so the sum is no time of day. */
export function timeByPackage(
  report: VitestReport | undefined,
  root: string,
): [name: string, seconds: number][] {
  const times = new Map<string, number>();
  for (const { name = '', startTime = 0, endTime = startTime } of report?.testResults ?? []) {
    const [first = '', second = ''] = name.replace(root, '').split(/[/\\]/).filter(Boolean);
    const owner = first === 'scripts' || first === 'bench' ? first : `${first}/${second}`;
    times.set(owner, (times.get(owner) ?? 0) + (endTime - startTime) / 1000);
  }
  return [...times].sort(([, a], [, b]) => b - a);
}
