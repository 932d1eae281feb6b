import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Scenario } from '@holdfast/config';
import { RunPool, simulate } from '@holdfast/simulator';
import {
  awsTable,
  brooker,
  brookerMaker,
  brookerPolicies,
  brookerTable,
  cellOf,
  contention,
  contentionTrials,
  layers,
  published,
  strategies,
} from '../packages/simulator/test/published.ts';
import type { DrillOptions } from '../scripts/drill.ts';
import { type Curve, figure, type Panel } from './published/figure.ts';

const folder = path.join(import.meta.dirname, '../docs/plots');

/** Draws the published experiments anew for the docs. `times`: trials of each cell of the AWS experiment. */
export async function drill({ times = 100 }: DrillOptions): Promise<Record<string, number>> {
  const figures: Record<string, string> = {
    'aws-contention': await awsContention(times),
    brooker: brookerFigure(),
    'metastable-queue': metastableQueue(),
    'mongo-retries': mongoRetries(),
    layers: layersFigure(),
    'tail-at-scale': tailAtScale(),
  };
  await mkdir(folder, { recursive: true });
  for (const [name, svg] of Object.entries(figures)) await writeFile(path.join(folder, `${name}.svg`), svg);
  return { plots: Object.keys(figures).length };
}

async function awsContention(times: number): Promise<string> {
  await using pool = new RunPool();
  const calls: Curve[] = [];
  const seconds: Curve[] = [];
  for (const [index, policy] of strategies.entries()) {
    const callPoints: [number, number][] = [];
    const timePoints: [number, number][] = [];
    for (const [clients, ...row] of awsTable) {
      const scenario = contention(clients);
      const answers = await pool.run(contentionTrials(scenario, clients, policy, times));
      const mean = (figureAt: number) =>
        cellOf(
          answers.map(({ figures }) => figures[figureAt]!),
          row[index]![figureAt]!,
        ).mean;
      callPoints.push([clients, mean(0)]);
      timePoints.push([clients, mean(1)]);
    }
    const expected = (cell: 0 | 1, unit: number) =>
      awsTable.map(([clients, ...row]): [number, number] => [clients, row[index]![cell] / unit]);
    calls.push({ name: policy, points: callPoints, expected: expected(0, 1) });
    seconds.push({ name: policy, points: timePoints, expected: expected(1, 1000) });
  }
  const x = { says: 'clients that contend for one row', ticks: [0, 50, 100, 150, 200] };
  return figure('Exponential backoff and jitter', [
    {
      title: 'Work',
      x,
      y: { says: 'calls until all are done', ticks: [0, 2000, 4000, 6000, 8000, 10000] },
      curves: calls,
    },
    {
      title: 'Time',
      x,
      y: { says: 'seconds until all are done', ticks: [0.03, 0.1, 1, 10, 100], isLog: true, unit: ' s' },
      curves: seconds,
    },
  ]);
}

function brookerFigure(): string {
  const cells = brookerPolicies.map((policy, index) => {
    const runs = brookerTable.map(([p, ...row]) => {
      const results = simulate(brooker(p), {
        policy,
        make: brookerMaker(policy) as never,
        durationMs: 50_000,
      });
      return {
        p,
        success: 100 * results.figure('success'),
        load: 100 * results.figure('multiplication'),
        row,
      };
    });
    return {
      success: {
        name: policy,
        points: runs.map(({ p, success }): [number, number] => [100 * p, success]),
        expected: runs.map(({ p, row }): [number, number] => [100 * p, row[index]![0]]),
      },
      load: {
        name: policy,
        points: runs.map(({ p, load }): [number, number] => [100 * p, load]),
        expected: runs.map(({ p, row }): [number, number] => [100 * p, row[index]![1]]),
      },
    };
  });
  const x = { says: 'attempts that fail', ticks: [0, 20, 40, 60, 80], unit: ' %' };
  return figure('Fixing retries with token buckets and circuit breakers', [
    {
      title: 'What succeeds',
      x,
      y: { says: 'of all calls', ticks: [0, 25, 50, 75, 100], unit: ' %' },
      curves: cells.map(({ success }) => success),
    },
    {
      title: 'What it costs',
      x,
      y: { says: 'load, of that without retries', ticks: [100, 150, 200, 250, 300], unit: ' %' },
      curves: cells.map(({ load }) => load),
    },
  ]);
}

function metastableQueue(): string {
  const as = (name: string, edit: (text: string) => string, policy: string) =>
    goodput(name, published('metastable-queue', edit), policy);
  const same = (text: string) => text;
  const withQueue = (queue: string) => (text: string) =>
    text.replace('{ exponential: 100ms }', `{ exponential: 100ms }, queue: { ${queue} }`);
  const panel = (title: string, curves: Curve[]): Panel => ({
    title,
    x: { says: 'a stall of 10 s, and what comes after', ticks: [0, 50, 100, 150, 200], unit: ' s' },
    y: { says: 'answers a second in time, of 280', ticks: [0, 100, 200, 300, 400] },
    curves,
    trouble: [20, 30],
  });
  return figure('A queue that does not drain after a stall', [
    panel('What clients do', [
      as('one retry', same, 'oneRetry'),
      as('with jitter', same, 'jittered'),
      as('no retry', same, 'noRetry'),
      as('with a breaker', same, 'breaker'),
      as('Holdfast', same, 'holdfast'),
    ]),
    panel('What the server does, with one retry', [
      as('one retry', same, 'oneRetry'),
      as('short queue', withQueue('max: 100'), 'oneRetry'),
      as('newest first', withQueue('order: lifo'), 'oneRetry'),
      as('drops only the expired', withQueue('dropExpired: true'), 'oneRetry'),
    ]),
  ]);
}

function mongoRetries(): string {
  const as = (name: string, edit: (text: string) => string, policy = 'resend') =>
    goodput(name, published('mongo-retries', edit), policy);
  return figure('A primary that loses its processor for some seconds', [
    {
      title: 'Four verdicts',
      x: { says: 'clients that send again at once, four times', ticks: [0, 25, 50, 75, 100], unit: ' s' },
      y: { says: 'answers a second in time', ticks: [0, 1000, 2000, 3000] },
      curves: [
        as('−80 % for 10 s', (text) => text),
        as('−78 % for 10 s', (text) => text.replace('value: 0.2', 'value: 0.22')),
        as('−80 % for 9 s', (text) => text.replace('until: 30s', 'until: 29s')),
        as('−80 %, less load', (text) => text.replace('1125/s', '787/s')),
      ],
      trouble: [20, 30],
    },
    {
      title: '80 % less for 10 s',
      x: { says: 'with the default policy', ticks: [0, 25, 50, 75, 100], unit: ' s' },
      y: { says: 'answers a second in time', ticks: [0, 1000, 2000, 3000] },
      curves: [as('−80 % for 10 s', (text) => text), as('Holdfast', (text) => text, 'holdfast')],
      trouble: [20, 30],
    },
  ]);
}

function layersFigure(): string {
  const depths = [1, 2, 3, 4, 5];
  const curves = [2, 3, 4].map((attempts): Curve => {
    const points = depths.map((depth): [number, number] => {
      const results = simulate(layers(depth, attempts, 1, 1), { policy: 'p' });
      return [depth, results.figure('multiplication', { service: `t${depth - 1}` })];
    });
    const expected = depths.map((depth): [number, number] => [depth, attempts ** depth]);
    return { name: `${attempts} attempts each`, points, expected };
  });
  return figure('Layers that all retry', [
    {
      title: 'Calls of a leaf that is down, for one of the user',
      x: { says: 'layers that retry', ticks: depths },
      y: { says: 'calls', ticks: [1, 4, 16, 64, 256, 1024], isLog: true },
      curves,
    },
  ]);
}

function tailAtScale(): string {
  const shares = Array.from({ length: 54 }, (_, index) => 1 - 10 ** (-(index + 1) / 18));
  const curves = (['plain', 'hedged'] as const).map((policy): Curve => {
    const { record } = simulate(published('tail-at-scale'), { policy });
    const quantiles = record.clients.get('user')!.latency.quantiles(shares);
    return {
      name: policy === 'plain' ? 'one request' : 'a second after 10 ms',
      points: quantiles.map((ms, index): [number, number] => [ms!, 100 * (1 - shares[index]!)]),
      expected: [[policy === 'plain' ? 1800 : 74, 0.1]],
    };
  });
  return figure('The tail at scale', [
    {
      title: 'Reads of a thousand keys on a hundred servers',
      x: { says: 'take longer than', ticks: [1, 10, 100, 1000, 10000], isLog: true, unit: ' ms' },
      y: { says: 'share of the reads', ticks: [0.1, 1, 10, 100], isLog: true, unit: ' %' },
      curves,
    },
  ]);
}

/** Single seconds are noisy: the mean of several is drawn. */
const SMOOTHED_SECONDS = 4;

function goodput(name: string, scenario: Scenario, policy: string): Curve {
  const { series } = simulate(scenario, { policy, seed: 5 }).report().all;
  const points: [number, number][] = [];
  for (let second = 0; second < series.goodput.length; second += SMOOTHED_SECONDS) {
    const some = series.goodput.slice(second, second + SMOOTHED_SECONDS);
    points.push([second + some.length / 2, some.reduce((sum, each) => sum + each, 0) / some.length]);
  }
  return { name, points };
}
