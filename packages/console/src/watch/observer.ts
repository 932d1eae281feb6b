import type { Operation, ParkedStatus, PresentProcess, TopicCounts } from '@holdfast/contracts';
import {
  type ConsumerState,
  type FleetControl,
  type FleetNote,
  fleetState,
  type Need,
  needsOf,
} from '@holdfast/events';
import { type Clock, type PolicyState, Timer } from 'holdfast';
import type { ConsoleEngine } from '../console-options.ts';
import { type BreakerChange, BreakerStrips } from './breaker-strips.ts';
import { Series, type WindowName, windowMs } from './ring.ts';
import { countsOf, type WorkCounts, WorkMeter, workNames } from './work-counts.ts';

export type ObservedControl = FleetControl;
export type ObservedConsumer = ConsumerState & { readonly process: string };

export interface ObservedTopic {
  readonly topic: string;
  readonly counts: TopicCounts;
  readonly parked: number;
  readonly controls: readonly ObservedControl[];
  readonly consumers: readonly ObservedConsumer[];
}

export interface ObservedPolicy {
  readonly name: string;
  readonly states: readonly (PolicyState & { readonly process: string })[];
  /** The states of circuit breakers over the last 15 minutes, by process and target. */
  readonly strips: ReadonlyMap<string, [from: number, state: string][]>;
  readonly controls: readonly ObservedControl[];
}

/** The state of the store at one point in time. */
export interface Snapshot {
  /** Epoch ms by the store's clock. */
  readonly now: number;
  readonly answersInMs: number;
  readonly processes: readonly PresentProcess[];
  readonly controls: readonly ObservedControl[];
  readonly consumers: readonly ObservedConsumer[];
  readonly topics: readonly ObservedTopic[];
  readonly parked: number;
  /** How many events were parked in each time window, whatever happened to them since. */
  readonly parkedIn: Readonly<Record<WindowName, number>>;
  readonly operations: readonly Operation[];
  readonly needs: readonly Need[];
  /** Facts that are no problem: parked events that wait, and paused topics. */
  readonly notes: readonly FleetNote[];
  /** Sentences about checks with a good result. */
  readonly good: readonly string[];
  readonly changes: readonly BreakerChange[];
}

const gauges = ['parkedNow', 'ready', 'delayed', 'oldestDueMs', 'breakersOpen'] as const;
export const seriesNames = [...workNames, ...gauges] as const;
export type SeriesName = (typeof seriesNames)[number];

export interface ObserverSettings {
  readonly engine: ConsoleEngine;
  readonly clock: Clock;
  onError(error: unknown): void;
}

/** The time between two snapshots. Processes report every 2 s, so more snapshots would show nothing new. */
const everyMs = 2000;
/** The time between two snapshots without readers. These snapshots fill the charts for the next reader. */
const idleEveryMs = 10_000;
const everyStatus: readonly ParkedStatus[] = ['parked', 'replaying', 'resolved', 'discarded'];
/** For this time (ms) after a request to the API, snapshots are taken as often as for a reader. */
const readerMs = 30_000;

/** Polls the store once for all readers (such as open pages), so the cost does not depend on their number. */
export class Observer {
  readonly #settings: ObserverSettings;
  readonly #timer: Timer;
  readonly #listeners = new Set<(snapshot: Snapshot) => void>();
  readonly #series: Readonly<Record<SeriesName, Series>>;
  readonly #meter = new WorkMeter();
  readonly #strips = new BreakerStrips();
  #snapshot: Snapshot | undefined;
  #looking: Promise<Snapshot> | undefined;
  #askedAt = -Infinity;
  #error: unknown;
  #isStopped = false;
  /** The time of the first snapshot, epoch ms by the store's clock. Figures before that are unknown. */
  since = 0;

  constructor(settings: ObserverSettings) {
    this.#settings = settings;
    this.#timer = new Timer(settings.clock, () => void this.refresh().catch(() => {}));
    this.#series = Object.fromEntries(
      seriesNames.map((name) => [name, new Series(workNames.some((each) => each === name))]),
    ) as Record<SeriesName, Series>;
  }

  /** Use this only after the first snapshot was taken. */
  get latest(): Snapshot {
    return this.#snapshot!;
  }

  async start(): Promise<void> {
    this.since = (await this.refresh()).now;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer.clear();
  }

  /** Returns a function that removes the listener. */
  subscribe(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener);
    this.#plan();
    return () => this.#listeners.delete(listener);
  }

  /** Returns a snapshot that is at most about 2 s old. Rejects if the store does not answer. */
  async fleet(): Promise<Snapshot> {
    const { clock } = this.#settings;
    const isIdle = clock.now() - this.#askedAt > everyMs;
    this.#askedAt = clock.now();
    if (!this.#snapshot || (isIdle && this.#listeners.size === 0)) return this.refresh();
    if (this.#error !== undefined) throw this.#error;
    return this.#snapshot;
  }

  async topics(): Promise<Snapshot> {
    return this.fleet();
  }

  async policies(): Promise<{ readonly now: number; readonly policies: readonly ObservedPolicy[] }> {
    const { now, processes, controls } = await this.fleet();
    const states = new Map<string, (PolicyState & { readonly process: string })[]>();
    for (const process of processes)
      for (const state of process.policies as readonly PolicyState[])
        states.set(state.name, [...(states.get(state.name) ?? []), { ...state, process: nameOf(process) }]);
    const policies = [...states].map(([name, its]) => ({
      name,
      states: its,
      strips: this.#strips.of(`${name}\n`),
      controls: controls.filter(
        ({ control }) => 'policy' in control && (control.policy === name || control.policy === '*'),
      ),
    }));
    return { now, policies: policies.sort((a, b) => (a.name < b.name ? -1 : 1)) };
  }

  /** The time of the store's clock, epoch ms. */
  async now(): Promise<number> {
    const { now } = await this.fleet();
    return Math.max(now, this.#storeTime());
  }

  series(name: SeriesName): Series {
    return this.#series[name];
  }

  /** Call this after a change by this console: the next snapshot is then taken after 50 ms. */
  changed(): void {
    this.#timer.setIn(50);
  }

  /** Takes a snapshot. Concurrent calls share it. */
  refresh(): Promise<Snapshot> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      this.#plan();
    });
    return this.#looking;
  }

  #plan(): void {
    if (this.#isStopped) return;
    const { clock } = this.#settings;
    const isRead = this.#listeners.size > 0 || clock.now() - this.#askedAt < readerMs;
    const ms = isRead ? everyMs : idleEveryMs;
    if (!this.#timer.isSet || this.#timer.at > clock.now() + ms) this.#timer.setIn(ms);
  }

  /** How far the store's clock is ahead of the local clock, in ms. */
  #offset = 0;
  #storeTime(): number {
    return this.#settings.clock.epochMs() + this.#offset;
  }

  async #look(): Promise<Snapshot> {
    const { clock, onError } = this.#settings;
    try {
      const snapshot = await this.#read();
      this.#error = undefined;
      this.#offset = snapshot.now - clock.epochMs();
      this.#snapshot = snapshot;
      this.#remember(snapshot);
      for (const listener of this.#listeners) listener(snapshot);
      return snapshot;
    } catch (error) {
      if (this.#error === undefined) onError(error);
      this.#error = error;
      throw error;
    }
  }

  async #read(): Promise<Snapshot> {
    const { engine, clock } = this.#settings;
    const { broker, triage } = engine;
    const sentAt = clock.now();
    const fleet = await fleetState(engine);
    const answersInMs = clock.now() - sentAt;
    const { needs, notes, good, counts, operations } = await needsOf(engine, fleet);
    const consumers = fleet.processes.flatMap((process) =>
      (process.consumers as readonly ConsumerState[]).map((each) => ({ ...each, process: nameOf(process) })),
    );
    const topics: ObservedTopic[] = [];
    for (const topic of await broker.topics()) {
      topics.push({
        topic,
        counts: counts.get(topic) ?? (await broker.counts(topic)),
        parked: await triage.count({ topic }),
        controls: fleet.controls.filter(({ control }) => 'topic' in control && control.topic === topic),
        consumers: consumers.filter((each) => each.topic === topic),
      });
    }
    const parked = await triage.count({});
    const parkedIn = await this.#parkedIn(fleet.now, parked);
    return {
      ...{ now: fleet.now, answersInMs, processes: fleet.processes, controls: fleet.controls, consumers },
      ...{ topics, parked, parkedIn, operations, needs, notes, good },
      changes: this.#breakerChanges(fleet.processes, fleet.now),
    };
  }

  #counted:
    | { readonly at: number; readonly parked: number; readonly parkedIn: Snapshot['parkedIn'] }
    | undefined;

  /**
   * Counts the events that were parked in each time window, whatever their status is now. The store also has
   * the events from before this console started. The counts are used again for up to 10 s while the number of
   * parked events stays the same.
   */
  async #parkedIn(now: number, parked: number): Promise<Snapshot['parkedIn']> {
    const { triage } = this.#settings.engine;
    const known = this.#counted;
    if (known && known.parked === parked && now - known.at < idleEveryMs) return known.parkedIn;
    const countOf = (window: WindowName) =>
      triage.count({ status: everyStatus, from: now - windowMs[window] });
    const parkedIn = {
      '15m': await countOf('15m'),
      '1h': await countOf('1h'),
      '24h': await countOf('24h'),
    };
    this.#counted = { at: now, parked, parkedIn };
    return parkedIn;
  }

  #breakerChanges(processes: readonly PresentProcess[], now: number): BreakerChange[] {
    const changes: BreakerChange[] = [];
    for (const process of processes) {
      for (const { name, targets } of process.policies as readonly PolicyState[])
        for (const { target, breaker, breakerForMs } of targets) {
          if (breaker === undefined) continue;
          const since = now - (breakerForMs ?? 0);
          const change = this.#strips.put(`${name}\n${nameOf(process)} ${target}`, breaker, since, now);
          if (change) changes.push(change);
        }
    }
    return changes;
  }

  #remember({ now, processes, topics, parked }: Snapshot): void {
    const byProcess = new Map<string, WorkCounts>(
      processes.map((process) => [
        process.id,
        countsOf(process.policies as readonly PolicyState[], process.consumers as readonly ConsumerState[]),
      ]),
    );
    const counts = this.#meter.take(byProcess);
    for (const name of workNames) this.#series[name].put(now, counts[name]);
    const sum = (read: (topic: ObservedTopic) => number) =>
      topics.reduce((total, topic) => total + read(topic), 0);
    const values = {
      parkedNow: parked,
      ready: sum(({ counts: { ready } }) => ready),
      delayed: sum(({ counts: { delayed } }) => delayed),
      oldestDueMs: Math.max(0, ...topics.map((topic) => topic.counts.oldestReadyMs)),
      breakersOpen: breakersOf(processes).filter(({ breaker }) => breaker === 'open').length,
    };
    for (const name of gauges) this.#series[name].put(now, values[name]);
  }
}

/** For example `checkout@web-1 (4711)`. */
function nameOf({ service, host, pid }: PresentProcess): string {
  return `${service}@${host} (${pid})`;
}

export function breakersOf(processes: readonly PresentProcess[]): { readonly breaker: string }[] {
  return processes.flatMap((process) =>
    (process.policies as readonly PolicyState[]).flatMap(({ targets }) =>
      targets.flatMap(({ breaker }) => (breaker === undefined ? [] : { breaker })),
    ),
  );
}
