import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { runChecks } from './check.ts';
import { endOnSignal, root, show, tool } from './command.ts';
import { install, mayInstall, missingPackages } from './services/install.ts';
import { type Counts, countTests, timeByPackage, type VitestReport } from './test-counts.ts';

endOnSignal();
console.log(`Node ${process.version}\n`);

const missing = mayInstall() ? missingPackages() : [];
if (missing.length > 0) {
  const failure = install(missing);
  // Not the end: the tests that need it fail, and say why.
  if (failure !== undefined) console.error(`Could not install ${missing.join(', ')}: ${failure}.`);
}

const checks = await runChecks();
console.log();
const tests = await runTests(process.argv.slice(2));

const passed = tests.passed + checks.filter((check) => check.passed).length;
const failed = tests.failed + checks.filter((check) => !check.passed).length;
process.exitCode = failed === 0 ? 0 : 1;
if (tests.skipped > 0) console.log(`\n${tests.skipped} skipped, each by name with the reason above`);
console.log(`\n${passed} passed, ${failed} failed`);

async function runTests(options: string[]): Promise<Counts> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-test-'));
  const reportFile = path.join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    const { code } = await show(tool('vitest/vitest.mjs', 'run', ...reporters, ...options));
    const report = await readReport(reportFile);
    const times = timeByPackage(report, root).map(([name, seconds]) => `${name} ${seconds.toFixed(0)} s`);
    console.log(`\nTime by package: ${times.join(', ')}`);
    return countTests(report, code);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Undefined where Vitest died before it could write one. */
async function readReport(file: string): Promise<VitestReport | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch {
    return undefined;
  }
}
