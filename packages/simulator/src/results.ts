import type { Bound, Metric, Scenario } from '@holdfast/config';
import { type CallerSeries, callerSeries, type ServiceSeries, serviceSeries } from './over-time.ts';
import type { Samples, Series } from './series.ts';
import type { Service } from './service.ts';
import type { CallerTally } from './tally.ts';

interface RunRecord {
  readonly scenario: Scenario;
  readonly policy: string;
  readonly durationMs: number;
  readonly endedAtMs: number;
  readonly events: number;
  readonly hash: string;
  readonly clients: ReadonlyMap<string, CallerTally>;
  readonly tiers: ReadonlyMap<string, CallerTally>;
  readonly services: ReadonlyMap<string, Service>;
}

/** What a figure is measured for: an interval of time, a class of clients, a service, an instance. */
export type Part = Partial<Pick<Bound, 'from' | 'until' | 'clients' | 'service' | 'instance' | 'step'>>;

/**
 * Figures of all clients, one class of clients, or one tier (a service that calls another). Times are in
 * seconds.
 */
export interface Figures {
  readonly begun: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly success: number;
  readonly goodput: number;
  readonly attempts: number;
  readonly multiplication: number;
  readonly refusedHere: number;
  /** Failed calls that a fallback has answered. */
  readonly fallbacks: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly reloads: number;
  readonly stops: Readonly<Record<string, number>>;
  readonly series: CallerSeries;
}

/** The report of a run as plain JSON. The same seed gives the same report, byte for byte. */
export interface RunReport {
  readonly scenario: string;
  readonly policy: string;
  readonly hash: string;
  readonly events: number;
  readonly all: Figures;
  /**
   * Seconds from the end of the faults until goodput (successes per second) was normal; null if it never was.
   */
  readonly recovery: number | null;
  readonly metastable: boolean;
  readonly clients: Readonly<Record<string, Figures>>;
  readonly tiers: Readonly<Record<string, Figures>>;
  readonly services: Readonly<Record<string, ServiceFigures>>;
}

/** What a service did. `zombies` are attempts that it finished after their caller had given up. */
export interface ServiceFigures {
  readonly received: number;
  readonly completed: number;
  readonly refused: number;
  readonly zombies: number;
  /** The share of the service's working time that was spent on calls whose caller had given up. */
  readonly wasted: number;
  readonly workedMs: number;
  readonly wastedMs: number;
  readonly duplicates: number;
  readonly queueMost: number;
  readonly series: ServiceSeries;
}

/**
 * Goodput (successes per second) has recovered when it is 95 % of its average before the faults. To decide
 * this, goodput is averaged over `RECOVERED_MS`.
 */
const RECOVERED = 0.95;
const RECOVERED_MS = 5000;
/** A system is metastable if its goodput stays below 50 % of normal after the faults have ended. */
const STUCK = 0.5;

/** The measurements of one run. The same scenario, policy and seed give the same `hash`. */
export class Results {
  readonly record: RunRecord;

  constructor(record: RunRecord) {
    this.record = record;
  }

  get hash(): string {
    return this.record.hash;
  }

  /**
   * Computes a figure; times are in seconds. Infinity: the event, such as a recovery, never happened. NaN:
   * nothing was measured.
   */
  figure(metric: Metric, part: Part = {}): number {
    const { durationMs, services } = this.record;
    const from = part.from ?? 0;
    const until = Math.min(part.until ?? Infinity, durationMs);
    const seconds = (until - from) / 1000;
    const tallies = this.#tallies(part.clients);
    const service = part.service === undefined ? undefined : services.get(part.service);
    if (part.service !== undefined && !service)
      throw new TypeError(`There is no service named ${part.service}.`);
    const sum = (pick: (tally: CallerTally) => Series, end = until) =>
      tallies.reduce((total, tally) => total + pick(tally).sum(from, end), 0);
    const ofServices = (pick: (each: Service) => number) =>
      (service ? [service] : [...services.values()]).reduce((total, each) => total + pick(each), 0);
    const attempts = () => (service ? service.tally.received.sum(from, until) : sum((each) => each.attempts));
    const begun = () => sum((each) => each.begun);
    switch (metric) {
      case 'goodput':
        return sum((each) => each.succeeded) / seconds;
      case 'offered':
        return begun() / seconds;
      case 'success':
        // Calls that have not ended count in `begun()`, but not as successes.
        return sum((each) => each.won) / begun();
      case 'successes':
        return sum((each) => each.won, part.until ?? Infinity);
      case 'failures':
        return sum((each) => each.lost, part.until ?? Infinity);
      case 'reloads':
        return sum((each) => each.reloads);
      case 'lostGood':
        return tallies.reduce((total, each) => total + each.lostGood, 0);
      case 'attempts':
        return attempts();
      case 'multiplication':
        return attempts() / begun();
      case 'extra':
        return attempts() / begun() - 1;
      case 'callsPerSuccess':
        return attempts() / sum((each) => each.succeeded);
      case 'peak':
        return this.#peak(part, from, until, tallies, service);
      case 'surge':
        return this.#surge(part, from, until, tallies, service);
      case 'p50':
        return this.#quantile(tallies, 0.5, from, until);
      case 'p99':
        return this.#quantile(tallies, 0.99, from, until);
      case 'p999':
        return this.#quantile(tallies, 0.999, from, until);
      case 'recovery':
        return this.#recovery(tallies);
      case 'metastable':
        return this.#isStuck(tallies) ? 1 : 0;
      case 'zombies':
        return ofServices(({ tally }) => tally.zombies.sum(from, Infinity));
      case 'wasted':
        return ofServices(({ tally }) => tally.wastedUs) / ofServices(({ tally }) => tally.workedUs);
      case 'duplicates':
        return ofServices(({ tally }) => tally.duplicates);
      case 'share': {
        const only = service?.tally.byInstance
          ? service.tally.byInstance[part.instance ?? 0]
          : service?.tally.received;
        return (only?.sum(from, until) ?? Number.NaN) / attempts();
      }
      case 'finish':
        return this.#lastSuccess(tallies);
      case 'finished':
        return (
          tallies.reduce((total, each) => total + each.finished, 0) /
          tallies.reduce((total, each) => total + each.clients, 0)
        );
      case 'backlog':
        return begun() - sum((each) => each.succeeded) - sum((each) => each.failed);
    }
  }

  /** True if the figure is within the bound. Infinity and NaN do not meet an upper bound. */
  meets(bound: Bound): boolean {
    const figure = this.figure(bound.metric, bound);
    return figure >= (bound.atLeast ?? -Infinity) && figure <= (bound.atMost ?? Infinity);
  }

  report(): RunReport {
    const { scenario, policy, hash, events, clients, tiers, services, durationMs } = this.record;
    const all = [...clients.values()];
    return {
      scenario: scenario.id,
      policy,
      hash,
      events,
      all: this.#figures(all),
      recovery: finite(this.#recovery(all)),
      metastable: this.#isStuck(all),
      clients: named(clients, (tally) => this.#figures([tally])),
      tiers: named(tiers, (tally) => this.#figures([tally])),
      services: named(services, ({ tally }) => ({
        received: tally.received.total,
        completed: tally.completed.total,
        refused: tally.refused.total,
        zombies: tally.zombies.total,
        wasted: tally.workedUs > 0 ? tally.wastedUs / tally.workedUs : 0,
        workedMs: tally.workedUs / 1000,
        wastedMs: tally.wastedUs / 1000,
        duplicates: tally.duplicates,
        queueMost: tally.queueMost,
        series: serviceSeries(tally, durationMs),
      })),
    };
  }

  #figures(tallies: readonly CallerTally[]): Figures {
    const { durationMs } = this.record;
    const total = (pick: (tally: CallerTally) => Series) =>
      tallies.reduce((sum, tally) => sum + pick(tally).total, 0);
    const begun = total((each) => each.begun);
    const succeeded = total((each) => each.succeeded);
    const failed = total((each) => each.failed);
    const attempts = total((each) => each.attempts);
    const stops: Record<string, number> = {};
    for (const tally of tallies) {
      for (const [stop, count] of Object.entries(tally.stops)) stops[stop] = (stops[stop] ?? 0) + count;
    }
    return {
      begun,
      succeeded,
      failed,
      success: succeeded / Math.max(1, begun),
      goodput:
        tallies.reduce((sum, { succeeded: its }) => sum + its.sum(0, durationMs), 0) / (durationMs / 1000),
      attempts,
      multiplication: attempts / Math.max(1, begun),
      refusedHere: total((each) => each.refused),
      fallbacks: total((each) => each.fallbacks),
      p50: finite(this.#quantile(tallies, 0.5, 0, Infinity)),
      p99: finite(this.#quantile(tallies, 0.99, 0, Infinity)),
      p999: finite(this.#quantile(tallies, 0.999, 0, Infinity)),
      reloads: total((each) => each.reloads),
      stops,
      series: callerSeries(tallies, durationMs),
    };
  }

  #tallies(name: string | undefined): CallerTally[] {
    const { clients, tiers } = this.record;
    if (name === undefined) return [...clients.values()];
    const one = clients.get(name) ?? tiers.get(name);
    if (!one) throw new TypeError(`There are no clients named ${name}.`);
    return [one];
  }

  #peak(
    part: Part,
    from: number,
    until: number,
    tallies: readonly CallerTally[],
    service: Service | undefined,
  ): number {
    const step = part.step ?? 1000;
    if (service) return service.tally.received.most(from, until, step);
    let most = 0;
    for (let at = from; at < until; at += step) {
      most = Math.max(
        most,
        tallies.reduce((sum, { attempts }) => sum + attempts.sum(at, at + step), 0),
      );
    }
    return most;
  }

  #surge(
    part: Part,
    from: number,
    until: number,
    tallies: readonly CallerTally[],
    service: Service | undefined,
  ): number {
    const { from: normalFrom, troubleFrom } = this.#measure();
    const series = service ? [service.tally.received] : tallies.map(({ attempts }) => attempts);
    const normal = series.reduce((sum, each) => sum + each.sum(normalFrom, troubleFrom), 0);
    const step = part.step ?? 1000;
    return this.#peak(part, from, until, tallies, service) / ((normal / (troubleFrom - normalFrom)) * step);
  }

  #quantile(tallies: readonly CallerTally[], share: number, from: number, until: number): number {
    const [only] = tallies;
    if (tallies.length === 1) return seconds(only!.latency, share, from, until);
    // An average of percentiles is not a percentile, so take the figure of the slowest class of clients.
    const known = tallies.map(({ latency }) => seconds(latency, share, from, until)).filter(isNumber);
    return known.length === 0 ? Number.NaN : Math.max(...known);
  }

  #recovery(tallies: readonly CallerTally[]): number {
    const { from, troubleFrom, troubleUntil } = this.#measure();
    const { durationMs } = this.record;
    const rate = (start: number, end: number) =>
      tallies.reduce((sum, { succeeded }) => sum + succeeded.sum(start, end), 0) / (end - start);
    const normal = rate(from, troubleFrom);
    // Without successes before the faults, there is no normal goodput to compare with.
    if (!(normal > 0)) return Infinity;
    // If goodput is low at the end of the run, an earlier recovery does not count.
    const lastFrom = Math.max(troubleUntil, durationMs - RECOVERED_MS);
    if (this.#isStuck(tallies) && rate(lastFrom, durationMs) < STUCK * normal) return Infinity;
    for (let at = troubleUntil; at + RECOVERED_MS <= durationMs; at += 1000) {
      if (rate(at, at + RECOVERED_MS) >= RECOVERED * normal) return (at - troubleUntil) / 1000;
    }
    return Infinity;
  }

  /** True if goodput (successes per second) is still low in the last minute of the run. */
  #isStuck(tallies: readonly CallerTally[]): boolean {
    const { from, troubleFrom, troubleUntil } = this.#measure();
    const { durationMs } = this.record;
    const tailFrom = Math.max(troubleUntil, durationMs - 60_000);
    if (tailFrom >= durationMs || troubleFrom <= from) return false;
    const rate = (start: number, end: number) =>
      tallies.reduce((sum, { succeeded }) => sum + succeeded.sum(start, end), 0) / (end - start);
    return rate(tailFrom, durationMs) < STUCK * rate(from, troubleFrom);
  }

  #lastSuccess(tallies: readonly CallerTally[]): number {
    const known = tallies.map(({ latency }) => latency.lastEndUs).filter(isNumber);
    return known.length === 0 ? Number.NaN : Math.max(...known) / 1e6;
  }

  #measure(): { from: number; troubleFrom: number; troubleUntil: number } {
    const { scenario, durationMs } = this.record;
    const { measure, faults } = scenario;
    const troubleFrom = measure?.troubleFrom ?? Math.min(...faults.map(({ from }) => from), durationMs);
    const ends = faults.map(({ until, from }) => (until < Infinity ? until : from));
    const troubleUntil = measure?.troubleUntil ?? Math.max(...ends, 0);
    return { from: measure?.from ?? 0, troubleFrom, troubleUntil };
  }
}

function seconds(latency: Samples, share: number, from: number, until: number): number {
  const [ms] = latency.quantiles([share], from, until);
  return ms === undefined ? Number.NaN : ms / 1000;
}

function isNumber(figure: number): boolean {
  return !Number.isNaN(figure);
}

function finite(figure: number): number | null {
  return Number.isFinite(figure) ? figure : null;
}

function named<T, R>(map: ReadonlyMap<string, T>, read: (each: T) => R): Record<string, R> {
  return Object.fromEntries([...map].map(([name, each]) => [name, read(each)]));
}
