import { expect, test } from 'vitest';
import { countTests, timeByPackage } from './test-counts.ts';

test('counts what each test came to', () => {
  expect(countTests(report('passed', ['passed', 'passed', 'skipped', 'todo']), 0)).toEqual({
    passed: 2,
    failed: 0,
    skipped: 2,
  });
});

test('a failed test is counted once', () => {
  expect(countTests(report('failed', ['passed', 'failed']), 1)).toEqual({ passed: 1, failed: 1, skipped: 0 });
});

test('a file that did not load is a failure', () => {
  expect(countTests(report('failed', []), 1)).toEqual({ passed: 0, failed: 1, skipped: 0 });
});

test('no test executed is a failure', () => {
  expect(countTests({ testResults: [] }, 0)).toMatchObject({ failed: 1 });
  expect(countTests(report('passed', ['skipped']), 0)).toMatchObject({ failed: 1 });
});

test('a run that ends badly with every test green is a failure', () => {
  expect(countTests(report('passed', ['passed']), 1)).toMatchObject({ passed: 1, failed: 1 });
  expect(countTests(undefined, 1)).toMatchObject({ passed: 0, failed: 1 });
});

test('adds up how long each package ran', () => {
  const file = (name: string, seconds: number) => ({
    ...{ name: `/repo/${name}`, status: 'passed', assertionResults: [] },
    ...{ startTime: 1000, endTime: 1000 + seconds * 1000 },
  });
  const testResults = [
    file('packages/core/test/a.test.ts', 1),
    file('engines/kafka/test/b.test.ts', 9),
    file('packages/core/test/c.test.ts', 2),
    file('scripts/services/d.test.ts', 4),
  ];
  expect(timeByPackage({ testResults }, '/repo')).toEqual([
    ['engines/kafka', 9],
    ['scripts', 4],
    ['packages/core', 3],
  ]);
});

function report(status: string, tests: string[]) {
  return { testResults: [{ status, assertionResults: tests.map((each) => ({ status: each })) }] };
}
