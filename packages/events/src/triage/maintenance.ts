import {
  type Act,
  defaultReplay,
  type Engine,
  type ParkedSummary,
  type ReplayRequest,
  ruleFor,
  type Triage,
  type TriageRule,
} from '@holdfast/contracts';
import { type Clock, type Duration, durationMs, OptionsError, systemClock, Timer } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { storePolicy } from '../consumer/consumer-policy.ts';
import { type Replayer, replayer } from './replayer.ts';

export interface MaintenanceOptions {
  readonly engine: Engine;
  /** The time from the end of a round to the start of the next round; 10 s unless given. */
  readonly every?: Duration | undefined;
  /** The settings of replays that rules begin; `defaultReplay` for settings that are not given. */
  readonly request?: Partial<Omit<ReplayRequest, 'filter'>> | undefined;
  /**
   * How far the first round looks back: rules apply to events that were parked within this time before the start. A day
   * unless given.
   */
  readonly lookback?: Duration | undefined;
  /** Rules do not replay an event that was parked more often than this; 3 unless given. */
  readonly parkingsMax?: number | undefined;
  /** Called with the events that match a rule with the action `notify`. Each process reports an event once per rule. */
  readonly onNotify?:
    | ((rule: TriageRule, events: readonly ParkedSummary[]) => void | Promise<void>)
    | undefined;
  /** Called when a round fails in spite of 30 s of retries, or when a replay fails. The next round tries again. */
  readonly onError?: ((error: unknown) => void) | undefined;
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

export interface MaintenanceReport {
  readonly replayed: number;
  readonly discarded: number;
  readonly notified: number;
  /** How many expired entries were removed from the store. */
  readonly swept: number;
}

export interface Maintenance {
  /** Starts a round now, and further rounds with `every` between them. */
  start(): void;
  /**
   * Stops, and resolves when the current round and its replays have ended. Unfinished replays stay in the store and can
   * be resumed.
   */
  stop(): Promise<void>;
  round(): Promise<MaintenanceReport>;
}

/**
 * An event may become visible up to 60 s later than events that were parked after it. So each round looks back 60 s
 * further.
 */
const slackMs = 60_000;
const pageMax = 500;
/** The most expired entries that one round removes, so that a round never takes long. */
const sweptMax = 10_000;

/**
 * Creates a regular task. Each round applies triage rules to newly parked events, resumes replays that no process runs,
 * and removes expired entries from the store. Run at least one such task per store; several tasks do no harm.
 */
export function maintenance(options: MaintenanceOptions): Maintenance {
  assertKnownFields(known, options);
  const { engine, clock = systemClock, parkingsMax = 3, onNotify } = options;
  const { triage } = engine;
  if (!triage) throw new OptionsError('engine.triage', triage, 'an engine with a triage');
  // Without this limit, a rule would replay an event endlessly if the event always fails.
  if (!(parkingsMax >= 1)) throw new OptionsError('parkingsMax', parkingsMax, 'a number from 1');
  const everyMs = durationMs(options.every ?? '10s', 'every');
  if (everyMs === 0) throw new OptionsError('every', options.every, 'some time between two rounds');
  const replays = replayer({ engine, clock });
  const timer = new Timer(clock, () => void makeRound());
  const stopping = new AbortController();
  const running = new Map<string, Promise<void>>();
  const notified = new Set<string>();
  const store = storePolicy({ attempts: 'unlimited', patience: '30s', retryOn: 'any' }, { clock });
  let lookedAt = clock.epochMs() - durationMs(options.lookback ?? '1d', 'lookback');
  // `latestAt` is the time at which the latest known event was parked, by the store's clock. `knownSince` is the time
  // at which this process read that event, by its own clock.
  let latestAt = lookedAt;
  let knownSince = clock.now();
  let going: Promise<void> = Promise.resolve();

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
    // The clock of the store and that of this process may differ by minutes. So look back at least to the latest event
    // that was read.
    const from = Math.min(lookedAt, latestAt + Math.min(slackMs, now - knownSince)) - slackMs;
    const rules = { clock, parkingsMax, notified, request: options.request, onNotify, from };
    const { latest, ...applied } = await applyRules(triage!, rules);
    lookedAt = at;
    if (latest !== undefined && latest > latestAt) [latestAt, knownSince] = [latest, now];
    for (const { id } of await replays.unfinished()) runReplay(replays, id);
    return { ...applied, swept: await engine.sweep(sweptMax) };
  }

  function runReplay(by: Replayer, id: string): void {
    if (running.has(id) || stopping.signal.aborted) return;
    const run = by.run(id, { signal: stopping.signal }).then(
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
    start: () => void makeRound(),
    async stop() {
      timer.clear();
      stopping.abort(new Error('maintenance was stopped'));
      // Ignore errors here: they were reported when they happened.
      await Promise.allSettled([going, ...running.values()]);
    },
  };
}

interface RuleSettings {
  readonly clock: Clock;
  readonly parkingsMax: number;
  /** Rules are applied to events that were parked at this time or later, epoch ms. */
  readonly from: number;
  /** The pairs `rule\0id` for which `onNotify` was called already. */
  readonly notified: Set<string>;
  readonly request: Partial<Omit<ReplayRequest, 'filter'>> | undefined;
  readonly onNotify: MaintenanceOptions['onNotify'];
}

interface Applied extends Omit<MaintenanceReport, 'swept'> {
  /** When the latest event was parked, epoch ms by the store's clock. */
  readonly latest: number | undefined;
}

/** Applies to each event the first rule that matches it, as soon as `afterMs` of the rule has passed. */
async function applyRules(triage: Triage, settings: RuleSettings): Promise<Applied> {
  const counts = { replayed: 0, discarded: 0, notified: 0 };
  const rules = await triage.rules();
  const [newest] = (await triage.list({ from: settings.from }, { limit: 1 })).items;
  const latest = newest?.parkedAt;
  if (rules.length === 0) return { ...counts, latest };
  // A rule with `afterMs` is applied later, so look back further by the longest `afterMs`.
  const from = settings.from - Math.max(0, ...rules.map(({ afterMs = 0 }) => afterMs));
  let cursor: string | undefined;
  do {
    const page = await triage.list(
      { isFree: true, from },
      { limit: pageMax, ...(cursor !== undefined && { cursor }) },
    );
    ({ cursor } = page);
    for (const [rule, events] of await matched(triage, rules, page.items, settings)) {
      await act(triage, rule, events, settings, counts);
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
  triage: Triage,
  rule: TriageRule,
  events: readonly ParkedSummary[],
  { request, onNotify, notified }: RuleSettings,
  counts: { replayed: number; discarded: number; notified: number },
): Promise<void> {
  const ids = events.map(({ id }) => id);
  const by: Act = { who: `rule ${rule.name}`, why: `the rule says ${rule.action}` };
  if (rule.action === 'discard') {
    counts.discarded += (await triage.discard(ids, by)).filter(Boolean).length;
  } else if (rule.action === 'replay') {
    await triage.replays.begin({ ...defaultReplay, ...request, filter: { ids } }, by);
    counts.replayed += ids.length;
  } else {
    await onNotify?.(rule, events);
    for (const id of ids) remember(notified, `${rule.name}\0${id}`);
    counts.notified += ids.length;
  }
}

const notifiedMax = 100_000;

/**
 * Adds a name. At 100,000 names the oldest name is removed, and the event of that name may be reported a second time.
 */
function remember(notified: Set<string>, name: string): void {
  if (notified.size >= notifiedMax) notified.delete(notified.values().next().value as string);
  notified.add(name);
}
