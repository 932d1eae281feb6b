import { type Command, capture, endOnSignal, script, tool } from './command.ts';

export interface CheckResult {
  readonly name: string;
  readonly passed: boolean;
}

/** In this order because package lint reads what the build wrote. */
const checks: readonly { name: string; command: Command }[] = [
  {
    name: 'format and lint',
    command: tool('@biomejs/biome/bin/biome', 'ci', '--colors=off', '--error-on-warnings'),
  },
  { name: 'build', command: script('scripts/build.ts') },
  { name: 'types of tests and scripts', command: tool('typescript/bin/tsc', '-p', 'tsconfig.test.json') },
  { name: 'types of the page', command: tool('typescript/bin/tsc', '-p', 'packages/console/page') },
  { name: 'tidy', command: script('scripts/tidy.ts') },
  { name: 'unused exports', command: tool('knip/bin/knip.js', '--no-progress') },
  { name: 'package lint', command: script('scripts/package-lint.ts') },
  { name: 'sizes', command: script('scripts/sizes.ts') },
];

/** Runs every check, also after one has failed; prints a line each, and the whole output of those that failed. */
export async function runChecks(): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { name, command } of checks) {
    const startedAt = performance.now();
    const { code, output } = await capture(command);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${code === 0 ? 'pass' : 'FAIL'}  ${name} (${seconds} s)`);
    if (code !== 0) console.log(`${indent(output || `exit code ${code}, no output`)}\n`);
    results.push({ name, passed: code === 0 });
  }
  return results;
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '      ');
}

if (import.meta.main) {
  endOnSignal();
  const results = await runChecks();
  process.exitCode = results.every((result) => result.passed) ? 0 : 1;
}
