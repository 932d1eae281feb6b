import { PerformanceObserver } from 'node:perf_hooks';
import { type CaseResult, compare } from './compare.ts';
import { breathe, type Case, type Loop, orderOf } from './harness.ts';

/** Flags of a process in which a stretch of calls allocates without a collection in between. */
export const allocationFlags: readonly string[] = [
  '--expose-gc',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
];

const STRETCH_BYTES = 48 * 2 ** 20;
const WARM_UP_TIMES = 20_000;
const TRIES_MAX = 5;

/**
 * Bytes that a call allocates on the heap, in all: what a bare call allocates is part of it and shown as the floor, not
 * taken off. Needs a process started with `allocationFlags`.
 */
export async function weighCases(cases: readonly Case[], rounds: number): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const subject of cases) {
    const contestants = Object.entries({ floor: subject.floor, ours: subject.ours, ...subject.peers });
    const weights: Record<string, number[]> = {};
    for (const [name, loop] of contestants) {
      weights[name] = [];
      await loop(WARM_UP_TIMES);
    }
    for (let round = 0; round < rounds; round++) {
      for (const [name, loop] of orderOf(contestants, round)) weights[name]?.push(await weigh(loop));
    }
    const { floor = [], ours = [], ...peers } = weights;
    results.push(compare(subject, { floor, ours, peers }));
  }
  return results;
}

async function weigh(loop: Loop): Promise<number> {
  const { bytes: roughly } = await stretch(loop, 200);
  const times = Math.ceil(Math.min(STRETCH_BYTES / (roughly + 1), 100_000));
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const { bytes, collections } = await stretch(loop, times);
    if (collections === 0) return bytes;
  }
  throw new Error(
    `The heap was collected in each of ${TRIES_MAX} stretches of ${times} calls; none can be weighed.`,
  );
}

async function stretch(loop: Loop, times: number): Promise<{ bytes: number; collections: number }> {
  await breathe();
  globalThis.gc?.();
  const collectedAt: number[] = [];
  const observer = new PerformanceObserver((list) => {
    collectedAt.push(...list.getEntries().map((entry) => entry.startTime));
  });
  observer.observe({ entryTypes: ['gc'] });

  const startedAt = performance.now();
  const before = process.memoryUsage().heapUsed;
  await loop(times);
  const after = process.memoryUsage().heapUsed;
  const endedAt = performance.now();

  // Garbage collections are reported some turns of the event loop later.
  for (let turn = 0; turn < 10; turn++) await breathe();
  observer.disconnect();
  return {
    bytes: (after - before) / times,
    collections: collectedAt.filter((at) => at >= startedAt && at <= endedAt).length,
  };
}
