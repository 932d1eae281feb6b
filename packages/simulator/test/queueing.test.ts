import { describe, expect, test } from 'vitest';
import { type Results, simulate } from '../src/index.ts';
import { queueOf, zScore } from './setup.ts';

const seedsPerCheck = Number(process.env.STORM_SEEDS ?? 20);
/** Of the times given below; `npm run storm` takes all of them. */
const share = Number(process.env.STORM_SHARE ?? 0.3);
let checks = 0;

/** Independent seeds for each check: shared ones would make all of them miss together. */
function measure(
  service: string,
  rate: string,
  seconds: number,
  read: (results: Results) => number,
): number[] {
  const scenario = queueOf(service, rate, seconds * share);
  const first = 1000 * ++checks;
  return Array.from({ length: seedsPerCheck }, (_, index) =>
    read(simulate(scenario, { policy: 'once', seed: first + index })),
  );
}

function meanWait(results: Results): number {
  return results.record.services.get('s')!.tally.waits.mean(20_000) / 1000;
}

function waiting(results: Results): number {
  const { waits } = results.record.services.get('s')!.tally;
  return waits.shareAbove(0, 20_000);
}

function refused(results: Results): number {
  const { received, refused: turnedAway } = results.record.services.get('s')!.tally;
  return turnedAway.total / received.total;
}

function erlangB(servers: number, load: number): number {
  let blocked = 1;
  for (let n = 1; n <= servers; n++) blocked = (load * blocked) / (n + load * blocked);
  return blocked;
}

function erlangC(servers: number, load: number): number {
  const blocked = erlangB(servers, load);
  return blocked / (1 - (load / servers) * (1 - blocked));
}

/** The chance that M/M/c/K is full, from its birth-death chain. */
function full(servers: number, places: number, load: number): number {
  let weight = 1;
  let sum = 1;
  for (let n = 1; n <= places; n++) {
    weight *= load / Math.min(n, servers);
    sum += weight;
  }
  return weight / sum;
}

describe('closed forms of queueing', () => {
  test.each([
    ['M/M/1 at 0.5', 'workers: 1, time: { exponential: 100ms }', '5/s', 1500, 0.1],
    ['M/M/1 at 0.8', 'workers: 1, time: { exponential: 100ms }', '8/s', 3000, 0.4],
    ['M/D/1 at 0.8', 'workers: 1, time: 100ms', '8/s', 2000, 0.2],
    [
      'M/G/1, two exponentials, at 0.8',
      'workers: 1, time: { mix: [{ share: 0.9, exponential: 50ms }, { share: 0.1, exponential: 550ms }] }',
      '8/s',
      4000,
      1.3,
    ],
    ['M/M/5 at 0.8', 'workers: 5, time: { exponential: 1s }', '4/s', 4000, erlangC(5, 4) / (5 - 4)],
  ])('mean wait of %s', (_name, service, rate, seconds, expected) => {
    expect(Math.abs(zScore(measure(service, rate, seconds, meanWait), expected))).toBeLessThanOrEqual(3.3);
  });

  test.each([
    [5, 4, 2000],
    [10, 8, 1500],
    [50, 40, 400],
  ])('Erlang C: who has to wait at %i workers and a load of %i', (workers, load, seconds) => {
    const waited = measure(`workers: ${workers}, time: { exponential: 1s }`, `${load}/s`, seconds, waiting);
    expect(Math.abs(zScore(waited, erlangC(workers, load)))).toBeLessThanOrEqual(3.3);
  });

  test.each([
    ['exponential', '{ exponential: 1s }', 5, 4],
    ['exponential', '{ exponential: 1s }', 10, 12],
    ['constant', '1s', 10, 8],
    ['lognormal', '{ lognormal: { median: 606.53ms, sigma: 1 } }', 10, 8],
  ])('Erlang B: %s times, %s, %i workers, a load of %i', (_kind, time, workers, load) => {
    const lost = measure(`workers: ${workers}, time: ${time}, queue: { max: 0 }`, `${load}/s`, 1500, refused);
    expect(Math.abs(zScore(lost, erlangB(workers, load)))).toBeLessThanOrEqual(3.3);
  });

  test.each([
    [1, 11, 0.95],
    [10, 30, 12],
  ])('M/M/%i/%i at a load of %d', (workers, places, load) => {
    const service = `workers: ${workers}, time: { exponential: 1s }, queue: { max: ${places - workers} }`;
    const lost = measure(service, `${load}/s`, 3000, refused);
    expect(Math.abs(zScore(lost, full(workers, places, load)))).toBeLessThanOrEqual(3.3);
  });

  test('Little’s law holds to the microsecond', () => {
    const scenario = queueOf(
      'workers: 3, time: { exponential: 300ms }, queue: { max: 20, order: codel }',
      '9/s',
      500,
    );
    const { tally } = simulate(scenario, { policy: 'once', seed: 3 }).record.services.get('s')!;
    expect(tally.presentUs).toBe(tally.stayedUs);
    expect(tally.stayedUs).toBeGreaterThan(0);
  });
});
