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
import { type Clock, type Duration, durationMs, OptionsError, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { Bell } from '../consumer/bell.ts';
import { storePolicy } from '../consumer/consumer-policy.ts';
import { type Replayer, replayer } from './replayer.ts';

export interface MaintenanceOptions {
  readonly engine: Engine;
  /** How often it makes its round; 10 s unless given. */
  readonly every?: Duration | undefined;
  /** Of replays that a rule begins. */
  readonly request?: Partial<Omit<ReplayRequest, 'filter'>> | undefined;
  /** How far back the first round looks for parked events that no rule was applied to; a day unless given. */
  readonly lookback?: Duration | undefined;
  /** A rule replays an event only while it has been parked no more often than this; 3 unless given. */
  readonly parkingsMax?: number | undefined;
  /** A rule that says `notify` has found these. Told once by each `maintenance`. */
  readonly onNotify?:
    | ((rule: TriageRule, events: readonly ParkedSummary[]) => void | Promise<void>)
    | undefined;
  /** A round, or a replay, that failed although it was tried for half a minute; the next round tries again. */
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
  /** What had outlived its time. */
  readonly swept: number;
}

export interface Maintenance {
  /** Makes a round at once, and then one after the other. */
  start(): void;
  /** Resolves when the round and the replays that it runs have let go. Replays stay where they are. */
  stop(): Promise<void>;
  round(): Promise<MaintenanceReport>;
}

/** One that was parked before another may be seen after it, but not later than this. */
const slackMs = 60_000;
const pageMax = 500;
/** What one round sweeps at most, so that it never takes long. */
const sweptMax = 10_000;

/**
 * Does what has to be done now and then: applies the rules to newly parked events, goes on with replays that nobody runs, and
 * removes what has outlived its time. One a process that has the engine open; several do no harm.
 */
export function maintenance(options: MaintenanceOptions): Maintenance {
  refuseUnknown(known, options);
  const { engine, clock = systemClock, parkingsMax = 3, onNotify } = options;
  const { triage } = engine;
  if (!triage) throw new OptionsError('engine.triage', triage, 'an engine with a triage');
  // A rule would replay what can never succeed for ever.
  if (!(parkingsMax >= 1)) throw new OptionsError('parkingsMax', parkingsMax, 'a number from 1');
  const everyMs = durationMs(options.every ?? '10s', 'every');
  if (everyMs === 0) throw new OptionsError('every', options.every, 'some time between two rounds');
  const replays = replayer({ engine, clock });
  const bell = new Bell(clock, () => void makeRound());
  const leaving = new AbortController();
  const running = new Map<string, Promise<void>>();
  const told = new Set<string>();
  const store = storePolicy({ attempts: 'unlimited', patience: '30s', retryOn: 'any' }, { clock });
  let lookedAt = clock.epochMs() - durationMs(options.lookback ?? '1d', 'lookback');
  // When the latest event was parked, by the store's clock, and since when that is known by ours.
  let latestAt = lookedAt;
  let knownSince = clock.now();
  let going: Promise<void> = Promise.resolve();

  async function makeRound(): Promise<void> {
    going = store.run(round).then(() => {}, report);
    try {
      await going;
    } finally {
      if (!leaving.signal.aborted) bell.within(everyMs);
    }
  }

  function report(error: unknown): void {
    if (options.onError) options.onError(error);
    else throw error;
  }

  async function round(): Promise<MaintenanceReport> {
    const [now, at] = [clock.now(), clock.epochMs()];
    // The two clocks may be minutes apart: what was parked after the latest is never too old.
    const from = Math.min(lookedAt, latestAt + Math.min(slackMs, now - knownSince)) - slackMs;
    const rules = { clock, parkingsMax, told, request: options.request, onNotify, from };
    const { latest, ...applied } = await applyRules(triage!, rules);
    lookedAt = at;
    if (latest !== undefined && latest > latestAt) [latestAt, knownSince] = [latest, now];
    for (const { id } of await replays.unfinished()) runReplay(replays, id);
    return { ...applied, swept: await engine.sweep(sweptMax) };
  }

  function runReplay(by: Replayer, id: string): void {
    if (running.has(id) || leaving.signal.aborted) return;
    const run = by.run(id, { signal: leaving.signal }).then(
      () => void running.delete(id),
      (error) => {
        running.delete(id);
        if (!leaving.signal.aborted) report(error);
      },
    );
    running.set(id, run);
  }

  return {
    round,
    start: () => void makeRound(),
    async stop() {
      bell.clear();
      leaving.abort(new Error('maintenance was stopped'));
      // What failed was told when it did.
      await Promise.allSettled([going, ...running.values()]);
    },
  };
}

interface RuleSettings {
  readonly clock: Clock;
  readonly parkingsMax: number;
  /** Parked since, epoch ms. */
  readonly from: number;
  /** Which events a rule has told of, by `rule\0id`. */
  readonly told: Set<string>;
  readonly request: Partial<Omit<ReplayRequest, 'filter'>> | undefined;
  readonly onNotify: MaintenanceOptions['onNotify'];
}

interface Applied extends Omit<MaintenanceReport, 'swept'> {
  /** When the latest event was parked. */
  readonly latest: number | undefined;
}

/** The first rule that matches an event counts; one that says `afterMs` leaves it alone until then. */
async function applyRules(triage: Triage, settings: RuleSettings): Promise<Applied> {
  const counts = { replayed: 0, discarded: 0, notified: 0 };
  const rules = await triage.rules();
  const [newest] = (await triage.list({ from: settings.from }, { limit: 1 })).items;
  const latest = newest?.parkedAt;
  if (rules.length === 0) return { ...counts, latest };
  // A rule that waits is looked at again until it acts.
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
  { clock, parkingsMax, told }: RuleSettings,
): Promise<Map<TriageRule, ParkedSummary[]>> {
  const found = new Map<TriageRule, ParkedSummary[]>();
  for (const summary of summaries) {
    const event = await triage.get(summary.id);
    const rule = event && ruleFor(rules, event);
    if (!rule || clock.epochMs() - summary.parkedAt < (rule.afterMs ?? 0)) continue;
    if (rule.action === 'replay' && summary.parkings > parkingsMax) continue;
    if (rule.action === 'notify' && told.has(`${rule.name}\0${summary.id}`)) continue;
    found.set(rule, [...(found.get(rule) ?? []), summary]);
  }
  return found;
}

async function act(
  triage: Triage,
  rule: TriageRule,
  events: readonly ParkedSummary[],
  { request, onNotify, told }: RuleSettings,
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
    for (const id of ids) remember(told, `${rule.name}\0${id}`);
    counts.notified += ids.length;
  }
}

const toldMax = 100_000;

/** The oldest is forgotten first: at worst somebody is told twice. */
function remember(told: Set<string>, name: string): void {
  if (told.size >= toldMax) told.delete(told.values().next().value as string);
  told.add(name);
}
