import {
  type Act,
  defaultReplay,
  type Engine,
  type ParkedSummary,
  ruleFor,
  type Triage,
  type TriageRule,
} from '@holdfast/contracts';
import { type Clock, type Duration, durationMs, OptionsError, systemClock, Timer } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { storePolicy } from '../consumer/consumer-policy.ts';
import { assertAwaited } from '../publish/assert-awaited.ts';
import { noteMaintenance } from './maintained-stores.ts';
import { type OperationRunner, operations } from './operation-runner.ts';
import type { ReplayOptions } from './replay-options.ts';

/** The options of `maintenance`. Only `engine` is required. */
export interface MaintenanceOptions {
  /** The engine whose store is maintained. Required. */
  readonly engine: Engine;
  /** The time between two rounds of maintenance. Default: `10s`. */
  readonly every?: Duration | undefined;
  /** The settings of the replays that triage rules start. Default: those of `ReplayOptions`. */
  readonly request?: ReplayOptions | undefined;
  /**
   * Triage rules also apply to events that were parked before the start, but at most this long before it.
   * Default: `1d`.
   */
  readonly lookback?: Duration | undefined;
  /** Triage rules do not replay an event that was parked more often than this. Default: `3`. */
  readonly parkingsMax?: number | undefined;
  /**
   * Called with the events that match a triage rule with the action `notify`, once per event and rule.
   * Default: none.
   */
  readonly onNotify?:
    | ((rule: TriageRule, events: readonly ParkedSummary[]) => void | Promise<void>)
    | undefined;
  /**
   * Called when a round of maintenance fails after 30 s of retries, or when a replay fails. The next round
   * tries again. Default: none.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof MaintenanceOptions, true>> = {
  engine: true,
  every: true,
  request: true,
  lookback: true,
  parkingsMax: true,
  onNotify: true,
  onError: true,
  clock: true,
};

/** What one round of maintenance has done, in numbers of events. */
export interface MaintenanceReport {
  readonly replayed: number;
  readonly discarded: number;
  readonly notified: number;
  /** How many expired entries of the store were removed. */
  readonly swept: number;
}

/**
 * Regular work for a store: applies triage rules to parked events, continues unfinished operations and
 * removes expired entries.
 */
export interface Maintenance {
  /** Starts the first round now. There is a delay of `every` between two rounds. */
  start(): void;
  /**
   * Resolves when the current round and its running replays have stopped. Unfinished replays can be resumed.
   */
  stop(): Promise<void>;
  round(): Promise<MaintenanceReport>;
}

/**
 * A parked event may become visible in the store up to 60 s late. So each round looks back 60 s further than
 * the last round.
 */
const slackMs = 60_000;
const pageMax = 500;
/** The most expired entries that one round removes. The limit keeps a round short. */
const sweptMax = 10_000;

/**
 * Creates a task that repeats its rounds. Each round applies triage rules, resumes replays and removes
 * expired entries. Several processes may run this task for the same store.
 */
export function maintenance(options: MaintenanceOptions): Maintenance {
  assertKnownFields(known, options);
  const { engine, clock = systemClock, parkingsMax = 3, onNotify } = options;
  assertAwaited(engine);
  const { triage } = engine;
  if (!triage) throw new OptionsError('engine.triage', triage, 'an engine with a triage');
  // Without this limit, a rule could replay the same event forever.
  if (!(parkingsMax >= 1)) throw new OptionsError('parkingsMax', parkingsMax, 'a number from 1');
  const everyMs = durationMs(options.every ?? '10s', 'every');
  if (everyMs === 0) throw new OptionsError('every', options.every, 'some time between two rounds');
  const runner = operations({ engine, clock });
  const timer = new Timer(clock, () => void makeRound());
  const stopping = new AbortController();
  const running = new Map<string, Promise<void>>();
  const notified = new Set<string>();
  const store = storePolicy({ attempts: 'unlimited', patience: '30s', retryOn: 'any' }, { clock });
  let lookedAt = clock.epochMs() - durationMs(options.lookback ?? '1d', 'lookback');
  // `latestAt`: when the latest known event was parked, by the store's clock. `knownSince`: when this process
  // found that event, by its own clock.
  let latestAt = lookedAt;
  let knownSince = clock.now();
  let going: Promise<void> = Promise.resolve();
  let ended: (() => void) | undefined;

  async function makeRound(): Promise<void> {
    going = store.run(round).then(() => {}, report);
    try {
      await going;
    } finally {
      if (!stopping.signal.aborted && !timer.isSet && everyMs < Infinity) timer.setIn(everyMs);
    }
  }

  function report(error: unknown): void {
    if (options.onError) options.onError(error);
    else throw error;
  }

  async function round(): Promise<MaintenanceReport> {
    const [now, at] = [clock.now(), clock.epochMs()];
    // The clocks of the store and of this process may differ by minutes. So look back at least to the time of
    // the latest known event, which the store's clock has set.
    const from = Math.min(lookedAt, latestAt + Math.min(slackMs, now - knownSince)) - slackMs;
    const rules = { clock, runner, parkingsMax, notified, request: options.request, onNotify, from };
    const { latest, ...applied } = await applyRules(triage!, rules);
    lookedAt = at;
    if (latest !== undefined && latest > latestAt) [latestAt, knownSince] = [latest, now];
    for (const { id } of await runner.unfinished()) runOperation(id);
    return { ...applied, swept: await engine.sweep(sweptMax) };
  }

  function runOperation(id: string): void {
    if (running.has(id) || stopping.signal.aborted) return;
    const run = runner.run(id, { signal: stopping.signal }).then(
      () => void running.delete(id),
      (error) => {
        running.delete(id);
        if (!stopping.signal.aborted) report(error);
      },
    );
    running.set(id, run);
  }

  return {
    round,
    start() {
      ended ??= noteMaintenance(engine.presence);
      void makeRound();
    },
    async stop() {
      ended?.();
      timer.clear();
      stopping.abort(new Error('maintenance was stopped'));
      // Do not throw errors of rounds or replays here: `report` has already received them.
      await Promise.allSettled([going, ...running.values()]);
    },
  };
}

interface RuleSettings {
  readonly clock: Clock;
  readonly runner: OperationRunner;
  readonly parkingsMax: number;
  readonly from: number;
  /** The pairs `rule\0id` (rule name and event id) that `onNotify` has already received. */
  readonly notified: Set<string>;
  readonly request: ReplayOptions | undefined;
  readonly onNotify: MaintenanceOptions['onNotify'];
}

interface Applied extends Omit<MaintenanceReport, 'swept'> {
  readonly latest: number | undefined;
}

/**
 * Applies the first matching rule to each parked event, but only when `afterMs` of that rule has passed since
 * the parking.
 */
async function applyRules(triage: Triage, settings: RuleSettings): Promise<Applied> {
  const counts = { replayed: 0, discarded: 0, notified: 0 };
  const rules = await triage.rules();
  const [newest] = (await triage.list({ from: settings.from }, { limit: 1 })).items;
  const latest = newest?.parkedAt;
  if (rules.length === 0) return { ...counts, latest };
  // A rule with `afterMs` waits before it applies, so its events were parked earlier. Look back further by
  // that time.
  const from = settings.from - Math.max(0, ...rules.map(({ afterMs = 0 }) => afterMs));
  let cursor: string | undefined;
  do {
    const page = await triage.list(
      { isFree: true, from },
      { limit: pageMax, ...(cursor !== undefined && { cursor }) },
    );
    ({ cursor } = page);
    for (const [rule, events] of await matched(triage, rules, page.items, settings)) {
      await act(rule, events, settings, counts);
    }
  } while (cursor !== undefined);
  return { ...counts, latest };
}

async function matched(
  triage: Triage,
  rules: readonly TriageRule[],
  summaries: readonly ParkedSummary[],
  { clock, parkingsMax, notified }: RuleSettings,
): Promise<Map<TriageRule, ParkedSummary[]>> {
  const found = new Map<TriageRule, ParkedSummary[]>();
  for (const summary of summaries) {
    const event = await triage.get(summary.id);
    const rule = event && ruleFor(rules, event);
    if (!rule || clock.epochMs() - summary.parkedAt < (rule.afterMs ?? 0)) continue;
    if (rule.action === 'replay' && summary.parkings > parkingsMax) continue;
    if (rule.action === 'notify' && notified.has(`${rule.name}\0${summary.id}`)) continue;
    found.set(rule, [...(found.get(rule) ?? []), summary]);
  }
  return found;
}

async function act(
  rule: TriageRule,
  events: readonly ParkedSummary[],
  { runner, request, onNotify, notified }: RuleSettings,
  counts: { replayed: number; discarded: number; notified: number },
): Promise<void> {
  const ids = events.map(({ id }) => id);
  const by: Act = { who: `rule ${rule.name}`, why: `the rule says ${rule.action}` };
  if (rule.action === 'discard') {
    const { id } = await runner.begin({ kind: 'discard', filter: { ids } }, by);
    counts.discarded += (await runner.run(id)).counts.changed;
  } else if (rule.action === 'replay') {
    await runner.begin({ ...defaultReplay, ...request, filter: { ids } }, by);
    counts.replayed += ids.length;
  } else {
    await onNotify?.(rule, events);
    for (const id of ids) remember(notified, `${rule.name}\0${id}`);
    counts.notified += ids.length;
  }
}

const notifiedMax = 100_000;

/**
 * Remembers that an event was reported. At 100,000 entries the oldest one is removed, so its event may be
 * reported again.
 */
function remember(notified: Set<string>, name: string): void {
  if (notified.size >= notifiedMax) notified.delete(notified.values().next().value as string);
  notified.add(name);
}
