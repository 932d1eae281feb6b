import { Alarm, type PolicySpec, policy } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { type Call, Caller, type Origin } from '../src/caller.ts';
import type { Job } from '../src/job.ts';
import { sampler } from '../src/sampling.ts';
import type { Service } from '../src/service.ts';
import { CallerTally } from '../src/tally.ts';
import { World } from '../src/world.ts';

/**
 * "Exponential Backoff And Jitter": N clients each want one conditional write of one row. Read, its answer, write and its
 * answer each take |N(10 ms, 2 ms)|; a write succeeds if the row has not changed since the read.
 */
class Row {
  readonly settings = { cancels: false };
  readonly targets = undefined;
  version = 0;
  writes = 0;
  readonly hop: () => number;
  readonly world: World;

  constructor(world: World) {
    this.world = world;
    this.hop = sampler({ normal: { mean: 10, sd: 2 } } as never, world.random('hops'));
  }

  send(job: Job): void {
    new Visit(this, job).go();
  }
}

class Visit extends Alarm {
  readonly row: Row;
  readonly job: Job;
  version = -1;

  constructor(row: Row, job: Job) {
    super();
    this.row = row;
    this.job = job;
  }

  go(hops = 1): void {
    const { world, hop } = this.row;
    let delayUs = 0;
    for (let each = 0; each < hops; each++) delayUs += hop();
    world.timeline.setUs(this, world.timeline.nowUs + delayUs);
  }

  ring(): void {
    const { row, job } = this;
    if (this.version < 0) {
      this.version = row.version;
      this.go(2);
      return;
    }
    row.writes++;
    const ok = this.version === row.version;
    if (ok) row.version++;
    job.reply(ok, ok ? true : { status: 500, headers: {} }, row.hop());
  }
}

const naive: PolicySpec = {
  attempts: 1000,
  patience: 'unlimited',
  budget: false,
  breaker: false,
  attemptTimeout: 'none',
};
const expo = { base: '10ms', cap: '2s' } as const;
const strategies: Record<string, PolicySpec['backoff']> = {
  none: false,
  expo: { ...expo, jitter: 'none' },
  equal: { ...expo, jitter: 'equal' },
  full: { ...expo, jitter: 'full' },
  decorrelated: { base: '5ms', cap: '2s', jitter: 'decorrelated' },
};

function trial(strategy: string, clients: number, seed: number): { calls: number; ms: number } {
  const world = new World(seed, false);
  const row = new Row(world);
  const quiet: Origin = { ended(_call: Call, _ok: boolean) {} };
  for (let client = 0; client < clients; client++) {
    const environment = { clock: world.timeline, random: world.random('policy', client) };
    const spec = { ...naive, backoff: strategies[strategy] };
    new Caller(world, {
      id: client,
      policy: policy(spec, environment),
      service: row as unknown as Service,
      tally: new CallerTally(),
    }).call(quiet);
  }
  world.timeline.run(Infinity, () => true);
  return { calls: row.writes, ms: world.timeline.now() };
}

/** Means of 2,000 trials of an independent simulation: calls and ms. */
const published: [clients: number, strategy: string, calls: number, ms: number][] = [
  [1, 'full', 1, 40],
  [10, 'none', 50.7, 379],
  [10, 'expo', 50.7, 3421],
  [10, 'equal', 42.4, 724],
  [10, 'full', 39.0, 459],
  [10, 'decorrelated', 37.5, 434],
  [50, 'none', 689.3, 1139],
  [50, 'expo', 622.4, 36336],
  [50, 'equal', 347.2, 4243],
  [50, 'full', 332.7, 2911],
  [50, 'decorrelated', 374.8, 2213],
];

describe('AWS: exponential backoff and jitter', () => {
  // A thousand trials are within 1 and 3 %; fewer are further off.
  const trials = Number(process.env.STORM_TRIALS ?? 60);
  test.each(published)('%i clients, %s', (clients, strategy, calls, ms) => {
    const runs = Array.from({ length: trials }, (_, index) => trial(strategy, clients, 31 * index + clients));
    expect(
      off(
        runs.map((each) => each.calls),
        calls,
      ),
    ).toBeLessThanOrEqual(Math.max(0.01, 4 * noise(runs, 'calls')));
    expect(
      off(
        runs.map((each) => each.ms),
        ms,
      ),
    ).toBeLessThanOrEqual(Math.max(0.03, 4 * noise(runs, 'ms')));
  });
});

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

function off(values: readonly number[], expected: number): number {
  return Math.abs(mean(values) / expected - 1);
}

/** The standard error of the mean, as a share of it. */
function noise(runs: readonly { calls: number; ms: number }[], what: 'calls' | 'ms'): number {
  const values = runs.map((each) => each[what]);
  const middle = mean(values);
  const variance = values.reduce((sum, each) => sum + (each - middle) ** 2, 0) / (values.length - 1);
  return Math.sqrt(variance / values.length) / middle;
}
