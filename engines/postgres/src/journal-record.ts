import {
  clampMs,
  type JournalEntry,
  type NewAssembly,
  type NewSignal,
  type Payload,
  type ProgramVersion,
  type ProgressEntry,
  type StartEntry,
  type StepRecord,
} from '@holdfast/contracts';
import { storableJson, storableText } from './column-values.ts';
import type { PostgresTransaction } from './database.ts';
import { payloadPair } from './journal-payload.ts';
import { kindNumber, restOf, stateNumber } from './journal-rows.ts';
import { columnOf } from './publish.ts';

const argumentCount = 45;
export const recordText = `SELECT now, started, started_seqs, worker, revisions, asleep FROM {schema}.record_assemblies(${Array.from(
  { length: argumentCount },
  (_, index) => `$${index + 1}`,
).join(', ')})`;

const dayMs = 24 * 60 * 60 * 1000;
const nexts = ['keep', 'suspend', 'return', 'done', 'stopped', 'park'];

type Progress = ProgressEntry<PostgresTransaction>;

/** The numbers of a stored lease. The token of the lease contains all three. */
export interface LeaseRow {
  readonly seq: number;
  readonly token: number;
  readonly worker: number;
}

/**
 * Entries that one SQL call can write, because no assembly occurs twice. `place` is the index of an entry in
 * the batch.
 */
export interface Round {
  readonly starts: { readonly place: number; readonly start: NewAssembly; readonly isLeased: boolean }[];
  readonly progress: { readonly place: number; readonly entry: Progress; readonly lease: LeaseRow }[];
  worker: StartEntry['worker'];
  readonly ids: Set<string>;
}

export interface Numbers {
  program(program: ProgramVersion): number;
  queue(name: string | undefined): number;
}

/**
 * Splits a batch into rounds, which are written one after the other; mostly there is only one. Entries with
 * an invalid lease token are left out.
 */
export function roundsOf(entries: readonly JournalEntry<PostgresTransaction>[]): Round[] {
  const rounds: Round[] = [];
  for (const [place, entry] of entries.entries()) {
    const named =
      entry.kind === 'start'
        ? [entry.start.id]
        : [entry.lease.id, ...(entry.starts ?? []).map(({ id }) => id)];
    const isFree = (round: Round) =>
      named.every((id) => !round.ids.has(id)) &&
      (entry.kind !== 'start' || !entry.worker || !round.worker || round.worker.name === entry.worker.name);
    // Entries of one assembly keep their order: put the entry after the last round that has one of its
    // assemblies.
    let at = rounds.length;
    while (at > 0 && isFree(rounds[at - 1]!)) at--;
    const round = rounds[at] ?? { starts: [], progress: [], worker: undefined, ids: new Set() };
    rounds[at] = round;
    for (const id of named) round.ids.add(id);
    if (entry.kind === 'progress') {
      const lease = leaseRowOf(entry.lease.token);
      if (lease) round.progress.push({ place, entry, lease });
      continue;
    }
    const { start, worker } = entry;
    const isLeased = worker !== undefined && start.queue === undefined && !start.dueInMs;
    if (isLeased) round.worker = worker;
    round.starts.push({ place, start, isLeased });
  }
  return rounds;
}

/**
 * Returns the arguments of the SQL function that writes a round: one array for each field; null: it has no
 * value.
 */
export function recordValues(round: Round, numbers: Numbers, token: number): unknown[] {
  const progress = round.progress.map(({ entry }) => entry);
  const starts = [
    ...round.starts.map(({ start, isLeased }) => ({ entry: 0, start, isLeased })),
    ...progress.flatMap(({ starts: some = [] }, index) =>
      some.map((start) => ({ entry: index + 1, start, isLeased: false })),
    ),
  ];
  const steps = progress.flatMap((entry, index) =>
    lastOfEachPath(entry.steps).map((step) => ({ entry: index + 1, step })),
  );
  const signals = progress.flatMap(({ signals: some = [] }, index) =>
    some.map((signal) => ({ entry: index + 1, signal })),
  );
  return [
    ...startColumns(starts, numbers),
    ...[round.worker?.name ?? null, round.worker ? clampMs(round.worker.leaseMs) : null, token],
    ...progressColumns(round.progress),
    ...stepColumns(steps),
    ...signalColumns(signals),
  ];
}

function startColumns(
  starts: readonly { entry: number; start: NewAssembly; isLeased: boolean }[],
  numbers: Numbers,
): unknown[] {
  if (starts.length === 0) return Array.from({ length: 13 }, () => null);
  const [inputs, bytes] = payloadColumns(starts.map(({ start }) => start.input));
  const of = <T>(read: (start: NewAssembly) => T | undefined) =>
    columnOf(starts.map(({ start }) => read(start) ?? null));
  return [
    starts.map(({ entry }) => entry),
    starts.map(({ start }) => start.id),
    starts.map(({ start }) => numbers.program(start)),
    ...[inputs, bytes],
    starts.map(({ start }) => numbers.queue(start.queue)),
    of(({ key }) => key),
    of(({ tenant }) => tenant && storableText(tenant)),
    of(({ settings }) => settings && storableText(settings)),
    of(({ patienceMs }) => (patienceMs === Infinity ? undefined : patienceMs)),
    starts.map(({ start }) => clampMs(start.dueInMs ?? 0)),
    starts.map(({ start }) => clampMs(start.keepMs ?? 30 * dayMs)),
    starts.map(({ isLeased }) => isLeased),
  ];
}

function progressColumns(items: Round['progress']): unknown[] {
  if (items.length === 0) return Array.from({ length: 12 }, () => null);
  const all = items.map(({ entry: { next } }) => next);
  const [results, bytes] = payloadColumns(
    all.map((next) => (next?.kind === 'done' ? next.result : undefined)),
  );
  return [
    items.map(({ lease }) => lease.seq),
    items.map(({ lease }) => lease.token),
    items.map(({ lease }) => lease.worker),
    all.map((next) => nexts.indexOf(next?.kind ?? 'keep')),
    columnOf(all.map((next) => (next && 'dueInMs' in next ? finite(next.dueInMs) : null))),
    columnOf(all.map((next) => (next && 'revision' in next ? next.revision : null))),
    ...[results, bytes],
    columnOf(all.map((next) => (next?.kind === 'park' ? storableJson(next.parked) : null))),
    columnOf(items.map(({ entry: { stop } }) => stop && storableJson(stop))),
    columnOf(items.map(({ entry: { commits } }) => commits || null)),
    columnOf(items.map(({ entry: { clearDeaths } }) => clearDeaths || null)),
  ];
}

function stepColumns(steps: readonly { entry: number; step: StepRecord }[]): unknown[] {
  if (steps.length === 0) return Array.from({ length: 11 }, () => null);
  const [results, bytes] = payloadColumns(steps.map(({ step }) => step.result));
  return [
    steps.map(({ entry }) => entry),
    steps.map(({ step }) => step.path),
    steps.map(({ step }) => step.order),
    steps.map(({ step }) => kindNumber(step.kind)),
    steps.map(({ step }) => stateNumber(step.state)),
    steps.map(({ step }) => step.attempts),
    steps.map(({ step }) => Math.floor(step.at)),
    columnOf(steps.map(({ step }) => (step.dueInMs === undefined ? null : clampMs(step.dueInMs)))),
    ...[results, bytes],
    columnOf(steps.map(({ step }) => restOf(step))),
  ];
}

function signalColumns(signals: readonly { entry: number; signal: NewSignal }[]): unknown[] {
  if (signals.length === 0) return Array.from({ length: 6 }, () => null);
  return [signals.map(({ entry }) => entry), ...signalValues(signals.map(({ signal }) => signal))];
}

export function signalValues(signals: readonly NewSignal[]): unknown[] {
  return [
    signals.map(({ to }) => to),
    signals.map(({ id }) => id),
    signals.map(({ name }) => name),
    ...payloadColumns(signals.map(({ payload }) => payload)),
  ];
}

function payloadColumns(payloads: readonly (Payload | undefined)[]): [unknown, unknown] {
  const pairs = payloads.map(payloadPair);
  return [columnOf(pairs.map(([text]) => text)), columnOf(pairs.map(([, bytes]) => bytes))];
}

/** Keeps the last record of each step, because one SQL statement cannot write a row twice. */
function lastOfEachPath(steps: readonly StepRecord[]): readonly StepRecord[] {
  if (steps.length < 2) return steps;
  return [...new Map(steps.map((step) => [step.path, step])).values()];
}

function finite(ms: number | undefined): number | null {
  return ms === undefined || ms === Infinity ? null : clampMs(ms);
}

export function tokenOf({ seq, token, worker }: LeaseRow): string {
  return `${seq}.${token}.${worker}`;
}

export function leaseRowOf(text: string): LeaseRow | undefined {
  const match = /^(\d{1,16})\.(\d{1,16})\.(\d{1,10})$/.exec(text);
  return match ? { seq: Number(match[1]), token: Number(match[2]), worker: Number(match[3]) } : undefined;
}
