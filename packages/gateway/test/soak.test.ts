import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

interface Soaked {
  readonly readings: readonly {
    readonly heap: number;
    readonly descriptors: number;
    readonly inFlight: number;
  }[];
  readonly statuses: Readonly<Record<string, number>>;
  readonly route: { readonly requests: number; readonly inFlight: number };
  readonly protections: readonly { readonly inFlight: number | null }[];
}

test('100,000 requests, of which one in twenty fails, leave memory and descriptors as they were', async () => {
  const program = new URL('soak-process.ts', import.meta.url).pathname;
  const flags = ['--expose-gc', '--conditions=holdfast-source', '--no-warnings'];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, program, '100000', '0.05']);
  const { readings, statuses, route, protections } = JSON.parse(stdout) as Soaked;

  expect(Object.values(statuses).reduce((sum, count) => sum + count, 0)).toBe(100_000);
  expect(statuses['200']).toBeGreaterThan(95_000);
  expect(route.inFlight).toBe(0);
  for (const { inFlight } of protections) expect(inFlight ?? 0).toBe(0);
  const [first, ...later] = readings.slice(1);
  for (const { heap, descriptors, inFlight } of later) {
    expect(heap - first!.heap).toBeLessThan(8 * 1024 * 1024);
    expect(descriptors - first!.descriptors).toBeLessThan(60);
    expect(inFlight).toBe(0);
  }
}, 300_000);
