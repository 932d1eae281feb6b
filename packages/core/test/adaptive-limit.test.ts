import { describe, expect, test } from 'vitest';
import { AdaptiveLimit, type AdaptiveLimitSettings } from '../src/machines/adaptive-limit.ts';

/** Repeatable chance: xorshift, from a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

interface Load {
  readonly seconds: number;
  readonly perSecond: number;
  readonly seed: number;
  readonly settings?: Partial<AdaptiveLimitSettings>;
  /** As a function of time in seconds. */
  readonly workers: (second: number) => number;
  readonly serviceMs: (second: number) => number;
  readonly fails?: (second: number) => boolean;
}

interface Seconds {
  served: number;
  refused: number;
  latencyMs: number;
  limit: number;
}

/** Offers calls at random times to some workers behind a queue of their own. Gives averages between two seconds. */
function run(load: Load): (from: number, to: number) => Seconds {
  const random = chance(load.seed);
  const limit = new AdaptiveLimit({ initial: 20, floor: 2, ceiling: 1_000, ...load.settings });
  const seconds: Seconds[] = [];
  const working: { endsAt: number; startedAt: number }[] = [];
  const queue: number[] = [];
  let now = 0;
  let nextArrival = 0;
  let looks = 0;
  const at = () => now / 1_000;
  const work = (startedAt: number) =>
    working.push({ startedAt, endsAt: now - Math.log(1 - random()) * load.serviceMs(at()) });

  while (now < load.seconds * 1_000) {
    let first = 0;
    for (let i = 1; i < working.length; i++) if (working[i]!.endsAt < working[first]!.endsAt) first = i;
    const endsAt = working[first]?.endsAt ?? Infinity;
    now = Math.min(nextArrival, endsAt);
    const second = Math.floor(at());
    if (!seconds[second]) looks = 0;
    seconds[second] ??= { served: 0, refused: 0, latencyMs: 0, limit: 0 };
    const its = seconds[second];
    its.limit += (limit.limit - its.limit) / ++looks;
    if (now === nextArrival) {
      nextArrival -= (Math.log(1 - random()) * 1_000) / load.perSecond;
      if (limit.inFlight >= limit.limit) its.refused++;
      else {
        limit.onStart();
        if (load.fails?.(at())) limit.onEnd(now, 0.1, true);
        else if (working.length < load.workers(at())) work(now);
        else queue.push(now);
      }
    } else {
      const { startedAt } = working[first]!;
      working.splice(first, 1);
      limit.onEnd(now, now - startedAt, false);
      its.served++;
      its.latencyMs += (now - startedAt - its.latencyMs) / its.served;
      while (queue.length > 0 && working.length < load.workers(at())) work(queue.shift()!);
    }
  }
  return (from, to) => {
    const some = seconds.slice(from, to);
    const mean = (of: (each: Seconds) => number) =>
      some.reduce((sum, each) => sum + of(each), 0) / some.length;
    return {
      served: mean((each) => each.served),
      refused: mean((each) => each.refused),
      latencyMs: mean((each) => each.latencyMs),
      limit: mean((each) => each.limit),
    };
  };
}

const seeds = [7_919, 15_838, 23_757];
const twice = { perSecond: 400, workers: () => 20, serviceMs: () => 100 };

describe.each(seeds)('twenty workers of 100 ms, seed %d', (seed) => {
  test('under twice their load: nearly all capacity is used, latency stays low, and nothing drifts in 20 minutes', () => {
    const between = run({ ...twice, seed, seconds: 1_200 });
    for (let minute = 1; minute < 20; minute++) {
      const { served, latencyMs, limit } = between(minute * 60, (minute + 1) * 60);
      expect(served).toBeGreaterThan(174);
      expect(latencyMs).toBeLessThan(170);
      expect(limit).toBeGreaterThan(20);
      expect(limit).toBeLessThan(34);
    }
    expect(between(60, 1_200).served).toBeGreaterThan(188);
  });

  test('at half their load hardly anybody is refused', () => {
    const between = run({ ...twice, perSecond: 100, seed, seconds: 300 });
    expect(between(0, 300).refused).toBeLessThan(1);
    expect(between(0, 300).limit).toBeLessThan(50);
  });

  test('when most workers go and more come back, the limit follows', () => {
    const workers = (second: number) => (second < 60 ? 20 : second < 120 ? 5 : 40);
    const between = run({ ...twice, perSecond: 600, seed, seconds: 180, workers });
    const few = between(80, 120);
    expect(few.served).toBeGreaterThan(38);
    expect(few.latencyMs).toBeLessThan(220);
    const many = between(135, 180);
    expect(many.served).toBeGreaterThan(350);
    expect(many.latencyMs).toBeLessThan(180);
  });

  test('four fifths of the workers go and come back unannounced: it is followed within five seconds', () => {
    const workers = (second: number) => (second >= 60 && second < 90 ? 5 : 25);
    const load = { perSecond: 1_500, serviceMs: () => 50, workers, seed, seconds: 120 };
    const between = run(load);
    const few = between(65, 90);
    expect(few.served).toBeGreaterThan(85);
    expect(few.latencyMs).toBeLessThan(120);
    const many = between(95, 120);
    expect(many.served).toBeGreaterThan(460);
    expect(many.latencyMs).toBeLessThan(90);
  });

  test('when the work takes longer for a while, it is not taken for a queue for long, nor the other way round', () => {
    const serviceMs = (second: number) => (second < 60 || second >= 120 ? 100 : 300);
    const between = run({ ...twice, seed, seconds: 180, serviceMs });
    expect(between(80, 120).served).toBeGreaterThan(55);
    const after = between(140, 180);
    expect(after.served).toBeGreaterThan(175);
    expect(after.latencyMs).toBeLessThan(180);
  });

  test('failing fast is not taken for capacity, and is recovered from', () => {
    const between = run({ ...twice, seed, seconds: 120, fails: (second) => second >= 60 && second < 80 });
    expect(between(70, 80).limit).toBeLessThanOrEqual(3);
    expect(between(95, 120).served).toBeGreaterThan(180);
  });

  test('a start that is far too high comes down', () => {
    const settings = { initial: 500 };
    const between = run({
      ...twice,
      seed,
      perSecond: 1_000,
      seconds: 120,
      serviceMs: () => 20,
      workers: () => 10,
      settings,
    });
    expect(between(60, 120).limit).toBeLessThan(20);
    expect(between(60, 120).latencyMs).toBeLessThan(36);
    expect(between(60, 120).served).toBeGreaterThan(440);
  });
});

describe('bounds', () => {
  test('hold whatever happens', () => {
    const limit = new AdaptiveLimit({ initial: 10, floor: 4, ceiling: 12 });
    for (let i = 0; i < 10_000; i++) {
      while (limit.inFlight < limit.limit) limit.onStart();
      limit.onEnd(i * 5, 10, i > 5_000);
      expect(limit.limit).toBeGreaterThanOrEqual(4);
      expect(limit.limit).toBeLessThanOrEqual(12);
      expect(Number.isInteger(limit.limit)).toBe(true);
    }
    expect(limit.limit).toBe(4);
  });

  test('nothing is learnt from a caller who leaves', () => {
    const limit = new AdaptiveLimit({ initial: 10, floor: 1, ceiling: 100 });
    for (let i = 0; i < 1_000; i++) {
      limit.onStart();
      limit.onCancel();
    }
    expect(limit.inFlight).toBe(0);
    expect(limit.limit).toBe(10);
  });

  test('calls that take no time at all do no harm', () => {
    const limit = new AdaptiveLimit({ initial: 10, floor: 1, ceiling: 100 });
    for (let i = 0; i < 10_000; i++) {
      limit.onStart();
      limit.onEnd(i, 0, false);
    }
    expect(limit.limit).toBeGreaterThanOrEqual(10);
  });
});
