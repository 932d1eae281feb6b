import type { Bound, Scenario } from '@holdfast/config';
import type { PolicySpec } from 'holdfast';
import { type Band, band, type Spread, spread } from './estimates.ts';
import type { Figures, RunReport, ServiceFigures } from './results.ts';
import type { RunAnswer, RunRequest } from './run.ts';
import type { RunPool } from './run-pool.ts';
import { boundsOf, type Trial, trialOf } from './trial.ts';

/** The results of several policies in one scenario, as plain JSON. All reports are generated from it. */
export interface Comparison {
  readonly scenario: {
    readonly id: string;
    readonly title: string;
    readonly variant: string | null;
    readonly notes: readonly string[];
    readonly seconds: number;
    readonly faults: readonly FaultWindow[];
  };
  readonly seeds: readonly number[];
  readonly policies: readonly ComparedPolicy[];
}

/** When a fault begins and ends, in seconds from the start of the run. */
export interface FaultWindow {
  /** The kind of the fault and the affected service, such as `stall of db`. */
  readonly what: string;
  readonly from: number;
  readonly until: number;
}

/** One policy of a comparison, with its figures over all runs. */
export interface ComparedPolicy {
  readonly policy: string;
  /** The options of the policy; null if they are unknown. */
  readonly document: PolicySpec | null;
  readonly trial: Trial;
  /** For each bound (a limit for a figure) in the option `measure`: its figure with each seed. */
  readonly measured: readonly (readonly number[])[];
  /**
   * The first group is all clients together. Then follow each class of clients, each tier (a service that
   * calls another) and each service.
   */
  readonly groups: readonly Group[];
}

/**
 * The figures of a class of clients, a tier (a service that calls another) or a service. Times are in
 * seconds.
 */
export interface Group {
  readonly kind: 'all' | 'clients' | 'tier' | 'service';
  readonly name: string;
  readonly figures: Readonly<Record<string, Spread>>;
  /** Figures over time, with one element for each second. */
  readonly series: Readonly<Record<string, Band>>;
}

/** The options of `comparePolicies`. */
export interface ComparisonOptions {
  /** Policies by name, in addition to the policies of the scenario. Default: none. */
  readonly policies?: ReadonlyMap<string, PolicySpec> | undefined;
  /** The seeds of the runs: one run of each policy for each seed. Default: the seeds of the scenario. */
  readonly seeds?: readonly number[] | undefined;
  /** Further figures to measure in the same runs. Default: none. */
  readonly measure?: readonly Bound[] | undefined;
  /** Called after each run. Default: none. */
  readonly onProgress?: ((done: number, of: number) => void) | undefined;
}

/** Runs a scenario with several policies and seeds, in the worker threads of `pool`. */
export async function comparePolicies(
  scenario: Scenario,
  names: readonly string[],
  pool: RunPool,
  { policies, seeds = scenario.seeds, measure = [], onProgress }: ComparisonOptions = {},
): Promise<Comparison> {
  const requests = names.flatMap((policy) =>
    seeds.map(
      (seed): RunRequest => ({
        scenario,
        policy,
        policies,
        seed,
        bounds: [...boundsOf(scenario, policy), ...measure],
        report: true,
      }),
    ),
  );
  const answers = await pool.run(requests, (done) => onProgress?.(done, requests.length));
  return {
    scenario: describe(scenario),
    seeds,
    policies: names.map((policy) =>
      compared(
        scenario,
        policy,
        scenario.policies[policy] ?? policies?.get(policy) ?? null,
        answers.filter((each) => each.policy === policy),
      ),
    ),
  };
}

function compared(
  scenario: Scenario,
  policy: string,
  document: PolicySpec | null,
  answers: readonly RunAnswer[],
): ComparedPolicy {
  const reports = answers.map(({ report }) => report!);
  const own = boundsOf(scenario, policy).length;
  const others = (answers[0]?.figures.length ?? own) - own;
  const measured = Array.from({ length: others }, (_, index) =>
    answers.map(({ figures }) => figures[own + index]!),
  );
  return { policy, document, trial: trialOf(scenario, policy, answers), measured, groups: groupsOf(reports) };
}

function groupsOf(reports: readonly RunReport[]): Group[] {
  const [first] = reports;
  if (!first) return [];
  const total = (report: RunReport, pick: (service: ServiceFigures) => number) =>
    Object.values(report.services).reduce((sum, each) => sum + pick(each), 0);
  const all = callers(
    'all',
    'all customers',
    reports.map((report) => report.all),
  );
  const figures = {
    ...all.figures,
    recovery: spread(reports.map(({ recovery }) => recovery)),
    metastable: spread(reports.map(({ metastable }) => (metastable ? 1 : 0))),
    zombies: spread(reports.map((report) => total(report, ({ zombies }) => zombies))),
    duplicates: spread(reports.map((report) => total(report, ({ duplicates }) => duplicates))),
    wasted: spread(
      reports.map(
        (report) =>
          total(report, ({ wastedMs }) => wastedMs) /
          Math.max(
            1,
            total(report, ({ workedMs }) => workedMs),
          ),
      ),
    ),
  };
  return [
    { ...all, figures },
    ...Object.keys(first.clients).map((name) =>
      callers(
        'clients',
        name,
        reports.map(({ clients }) => clients[name]!),
      ),
    ),
    ...Object.keys(first.tiers).map((name) =>
      callers(
        'tier',
        name,
        reports.map(({ tiers }) => tiers[name]!),
      ),
    ),
    ...Object.keys(first.services).map((name) =>
      serviceGroup(
        name,
        reports.map(({ services }) => services[name]!),
      ),
    ),
  ];
}

function callers(kind: Group['kind'], name: string, runs: readonly Figures[]): Group {
  const { stops: _, series: __, ...numbers } = runs[0]!;
  return group(kind, name, runs, Object.keys(numbers) as never);
}

function serviceGroup(name: string, runs: readonly ServiceFigures[]): Group {
  const { series: _, ...numbers } = runs[0]!;
  return group('service', name, runs, Object.keys(numbers) as never);
}

function group<F extends { readonly series: object }>(
  kind: Group['kind'],
  name: string,
  runs: readonly F[],
  numbers: readonly Exclude<keyof F & string, 'series'>[],
): Group {
  const figures = numbers.map((key) => [key, spread(runs.map((run) => run[key] as number | null))]);
  const peak = spread(
    runs.map((run) => attemptsOf(run.series).reduce<number>((most, each) => Math.max(most, each ?? 0), 0)),
  );
  const series = Object.keys(runs[0]!.series).map((key) => [
    key,
    band(runs.map((run) => run.series[key as never] as (number | null)[])),
  ]);
  return {
    kind,
    name,
    figures: { ...Object.fromEntries(figures), peak },
    series: Object.fromEntries(series),
  };
}

function attemptsOf(series: object): readonly (number | null)[] {
  const { attempts, received } = series as Record<string, readonly (number | null)[] | undefined>;
  return attempts ?? received ?? [];
}

function describe({ id, title, variant, notes, duration, faults }: Scenario): Comparison['scenario'] {
  return {
    id,
    title,
    variant: variant ?? null,
    notes,
    seconds: duration / 1000,
    faults: faults.map(({ kind, service, instance, from, until }) => ({
      what: `${kind} of ${service}${instance === undefined ? '' : `-${instance}`}`,
      from: from / 1000,
      until: Math.min(until, duration) / 1000,
    })),
  };
}
