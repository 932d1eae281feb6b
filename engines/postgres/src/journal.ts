import {
  type AssemblyLease,
  assertEntries,
  assertNewAssembly,
  assertQueueLimits,
  assertReason,
  assertSignal,
  assertStored,
  type ChangeResult,
  changeEntry,
  clampMs,
  forkEntry,
  forkNote,
  type Journal,
  type JournalEntry,
  jsonWithInfinity,
  type NewAssembly,
  type NewAuditEntry,
  type ProgressEntry,
  type ProgressResult,
  type RecordResult,
  type SignalResult,
  type SizeLimits,
  type StartResult,
  type StepRecord,
  type StopResult,
  signalEntry,
  stopEntry,
  whatChanged,
} from '@holdfast/contracts';
import type { Random } from 'holdfast';
import type { WriteAudit } from './audit.ts';
import { storableJson, storableText } from './column-values.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import type { Doorbell } from './doorbell.ts';
import { JournalNumbers } from './journal-numbers.ts';
import { payloadPair } from './journal-payload.ts';
import { journalQuestions } from './journal-questions.ts';
import {
  leaseRowOf,
  type Numbers,
  type Round,
  recordText,
  recordValues,
  roundsOf,
  signalValues,
  tokenOf,
} from './journal-record.ts';
import {
  assembliesText,
  assemblyOf,
  claimedText,
  kindNumber,
  recordsOf,
  restOf,
  settledBelow,
  stateNumber,
  stepOf,
  stepsText,
} from './journal-rows.ts';
import { recordSingle } from './journal-single.ts';
import { JournalWatches } from './journal-watches.ts';
import { isUnanswered, toPostgresError } from './postgres-errors.ts';

export interface JournalParts {
  readonly database: Database;
  readonly doorbell: Doorbell;
  readonly channel: string;
  readonly limits: SizeLimits;
  readonly random: Random;
  readonly writeAudit: WriteAudit;
}

export interface PostgresJournal extends Journal<PostgresTransaction> {
  /** Removes at most `limit` ended assemblies whose retention time is over, and returns how many. */
  sweep(limit: number): Promise<number>;
  close(): void;
}

/** Workers listen for due assemblies under this name. No topic starts with U+0001. */
const workersBell = '\u0001assemblies';
/** If a call gets no answer, the server may still execute it for this many ms. */
const unansweredMs = 60_000;
const tokensMax = 2 ** 52;
/**
 * While a step's transaction is open, no other worker can take over the assembly. So PostgreSQL ends the
 * transaction when it is idle for 10 s.
 */
const idleText = `SELECT set_config('idle_in_transaction_session_timeout', '10000', true)`;
const heldText = 'SELECT 1 FROM {schema}.assembly_lease WHERE seq = $1 AND token = $2 AND worker = $3';
const storedStepText = `SELECT s.path, s.kind, s.state, s.step_order, s.attempts, s.at, s.due_at, s.result, s.result_bytes, s.rest
  FROM {schema}.assembly_step s WHERE s.seq = $1 AND s.path = $2`;
const claimText = `SELECT now, worker, suspects, next_due_in, claimed
  FROM {schema}.claim_assemblies($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
const putStepText = `INSERT INTO {schema}.assembly_step AS s VALUES ($1, {schema}.now_ms(), NULL, $2, $3, $4, $5, $6, $7, $8, $9)
  ON CONFLICT (seq, path) DO UPDATE SET at = excluded.at, due_at = NULL, step_order = excluded.step_order, state = excluded.state,
    result = excluded.result, result_bytes = excluded.result_bytes, rest = excluded.rest`;
const updateText = `UPDATE {schema}.assembly a SET program = coalesce($2, a.program), revision = a.revision + 1,
  input = CASE WHEN $3 THEN $4 ELSE a.input END, input_bytes = CASE WHEN $3 THEN $5 ELSE a.input_bytes END,
  settings = coalesce($6, a.settings), acts = $7 WHERE seq = $1`;
const copyText = `WITH steps AS (
    INSERT INTO {schema}.assembly_step SELECT $1, at, due_at, step_order, attempts, kind, state, path, result, result_bytes, rest
    FROM {schema}.assembly_step WHERE seq = $2 AND state < ${settledBelow} AND path = ANY ($3::text[])
  ), signals AS (
    INSERT INTO {schema}.assembly_signal SELECT $1, at, number, id, name, payload, payload_bytes FROM {schema}.assembly_signal WHERE seq = $2
  ) UPDATE {schema}.assembly SET acts = $4 WHERE seq = $1`;
const setQueueText = `WITH q AS (
    INSERT INTO {schema}.assembly_queue (name, limits) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET limits = excluded.limits RETURNING queue
  ) UPDATE {schema}.assembly_due d SET line = q.queue FROM q WHERE d.line = -q.queue`;
const sweepText = `WITH seen AS MATERIALIZED (
    SELECT seq, removed_at FROM {schema}.assembly WHERE seq > $1 ORDER BY seq LIMIT $2
  ), over AS MATERIALIZED (
    SELECT seq FROM {schema}.assembly a WHERE seq IN (SELECT seq FROM seen WHERE removed_at <= {schema}.now_ms() ORDER BY seq LIMIT $3)
      AND a.removed_at <= {schema}.now_ms() FOR UPDATE SKIP LOCKED
  ), steps AS (DELETE FROM {schema}.assembly_step WHERE seq IN (SELECT seq FROM over)
  ), signals AS (DELETE FROM {schema}.assembly_signal WHERE seq IN (SELECT seq FROM over)
  ), charges AS (DELETE FROM {schema}.assembly_charged WHERE seq IN (SELECT seq FROM over)
  ), removed AS (DELETE FROM {schema}.assembly WHERE seq IN (SELECT seq FROM over) RETURNING 1)
  SELECT (SELECT count(*) FROM removed), (SELECT max(seq) FROM seen), (SELECT count(*) FROM seen)`;

/**
 * Stores assemblies (durable workflows) in PostgreSQL. A batch of entries is one SQL call, which is one
 * transaction.
 */
export function postgresJournal({
  database,
  doorbell,
  channel,
  limits,
  random,
  writeAudit,
}: JournalParts): PostgresJournal {
  const numbers = new JournalNumbers(database);
  const watches = new JournalWatches(database);
  /**
   * Lease tokens of calls without an answer, by worker. The server may have executed them, so the next claim
   * ends these leases.
   */
  const unanswered = new Map<string, { readonly token: number; readonly until: number }[]>();
  let sweptTo = 0;

  function wake(isAsleep: boolean): void {
    doorbell.ring(workersBell);
    if (isAsleep) doorbell.notify(workersBell);
  }

  function newToken(): number {
    return 1 + Math.floor(random() * tokensMax);
  }

  function noteUnanswered(worker: string, token: number): void {
    const now = database.clock.now();
    const recent = (unanswered.get(worker) ?? []).filter(({ until }) => until > now);
    unanswered.set(worker, [...recent, { token, until: now + unansweredMs }]);
    doorbell.ring(workersBell);
  }

  function lostTokensOf(worker: string): number[] | null {
    const known = unanswered.get(worker);
    if (!known) return null;
    const now = database.clock.now();
    const recent = known.filter(({ until }) => until > now);
    if (recent.length > 0) unanswered.set(worker, recent);
    else unanswered.delete(worker);
    return recent.map(({ token }) => token);
  }

  /**
   * Runs a statement that returns one result for each of `entries`. The audit entry of each result that is
   * `accepted` is written in the same transaction.
   */
  async function audited<Result extends string>(
    call: { readonly text: string; readonly values: readonly unknown[]; readonly accepted: Result },
    entries: readonly (NewAuditEntry | undefined)[],
  ): Promise<Result[]> {
    const { text, values, accepted } = call;
    if (entries.every((entry) => entry === undefined))
      return (await database.rows(text, values))[0]![0] as Result[];
    return database.transaction(async (tx) => {
      const results = (await database.rowsWithin(tx, text, values))[0]![0] as Result[];
      for (const [index, entry] of entries.entries())
        if (entry && results[index] === accepted) await writeAudit(tx, entry);
      return results;
    });
  }

  async function writeRound(round: Round, results: RecordResult[], tx?: PostgresTransaction): Promise<void> {
    const starts = [
      ...round.starts.map(({ start }) => start),
      ...round.progress.flatMap(({ entry }) => entry.starts ?? []),
    ];
    const found = starts.length > 0 ? await numbers.of(starts, tx) : noNumbers;
    const token = newToken();
    const values = recordValues(round, found, token);
    const ask = tx ? database.rowsWithin(tx, recordText, values) : database.rows(recordText, values);
    const [row] = await ask.catch((error) => {
      if (round.worker) noteUnanswered(round.worker.name, token);
      throw error;
    });
    answer(round, row!, token, results);
  }

  function answer(round: Round, row: Row, token: number, results: RecordResult[]): void {
    const [now, started, seqs, worker, revisions, isAsleep] = row;
    let isDue = false;
    for (const [index, { place, start, isLeased }] of round.starts.entries()) {
      const stored = (seqs as (string | null)[])[index];
      if (typeof stored !== 'string') {
        results[place] = { kind: (started as number[])[index] === 1 ? 'repeated' : 'mismatch' };
        continue;
      }
      isDue ||= !isLeased;
      const seq = Number(stored);
      const lease = { id: start.id, token: tokenOf({ seq, token, worker: worker as number }) };
      results[place] = { kind: 'accepted', at: now as number, ...(isLeased && { lease }) };
    }
    for (const [index, { place, entry }] of round.progress.entries()) {
      const revision = (revisions as number[])[index]!;
      if (revision < 0) continue;
      results[place] = { kind: 'took', revision };
      // Wake the workers: this assembly, or one that it started or signalled, may be due.
      isDue ||=
        entry.next !== undefined || (entry.starts ?? []).length > 0 || (entry.signals ?? []).length > 0;
      watches.ring(entry.lease.id);
      for (const { to } of entry.signals ?? []) watches.ring(to);
    }
    if (isDue || isAsleep === true) wake(isAsleep === true);
  }

  /** Returns false for an entry that must be written as a batch. */
  async function writeSingle(
    entry: JournalEntry<PostgresTransaction>,
    results: RecordResult[],
  ): Promise<boolean> {
    const token = newToken();
    const written = await recordSingle(
      database,
      entry,
      (each) => numbers.of(each.kind === 'start' ? [each.start] : []),
      token,
    ).catch((error) => {
      if (entry.kind === 'start' && entry.worker) noteUnanswered(entry.worker.name, token);
      throw error;
    });
    if (!written) return false;
    const { result, seq, worker } = written;
    results[0] = result;
    if (result.kind === 'accepted' && entry.kind === 'start')
      results[0] = {
        ...result,
        lease: { id: entry.start.id, token: tokenOf({ seq: seq!, token, worker: worker! }) },
      };
    else if (entry.kind === 'progress') watches.ring(entry.lease.id);
    return true;
  }

  /** Runs a step of the caller, and records its result in the same transaction. */
  async function runTransaction(entry: ProgressEntry<PostgresTransaction>): Promise<ProgressResult> {
    const lease = leaseRowOf(entry.lease.token);
    if (!lease) return LEASE_LOST;
    const { run, step } = entry.transaction!;
    const results: RecordResult[] = [];
    try {
      return await database.transaction(async (tx) => {
        const held = await database.rowsWithin(tx, heldText, [lease.seq, lease.token, lease.worker]);
        if (held.length === 0) return LEASE_LOST;
        // If the answer to an earlier try was lost, the step is already stored, and does not run again.
        const [known] = await database.rowsWithin(tx, storedStepText, [lease.seq, step.path]);
        const stored = known && stepOf(known);
        const isNew = stored?.state !== 'done';
        const result = isNew ? await runStep(run, tx) : stored.result;
        const steps: StepRecord[] = isNew ? [{ ...step, result }, ...entry.steps] : [...entry.steps];
        await tx.query(idleText);
        const round = { starts: [], progress: [{ place: 0, entry: { ...entry, steps }, lease }] };
        await writeRound({ ...round, worker: undefined, ids: new Set() }, results, tx);
        const [took] = results as ProgressResult[];
        if (took?.kind !== 'took') throw new LeaseLost();
        return { ...took, result };
      });
    } catch (error) {
      if (error instanceof LeaseLost) return LEASE_LOST;
      if (error instanceof StepThrew) return { kind: 'commit_failed', error: error.cause };
      throw error;
    }
  }

  async function runStep(
    run: (tx: PostgresTransaction) => unknown,
    tx: PostgresTransaction,
  ): Promise<StepRecord['result']> {
    try {
      const result = (await run(tx)) as StepRecord['result'];
      assertStored('step.result', result, limits);
      return result;
    } catch (error) {
      // A lost connection and a collision are retried. Any other error was thrown by the step.
      if (isUnanswered(error) || toPostgresError(error) !== error || isRepeatable(error)) throw error;
      throw new StepThrew(error);
    }
  }

  /** Locks an assembly. If a claim is leasing it, this waits until the claim has ended. */
  async function lock(tx: PostgresTransaction, id: string) {
    await database.rowsWithin(tx, 'SELECT 1 FROM {schema}.assembly WHERE id = $1 FOR UPDATE', [id]);
    await database.rowsWithin(
      tx,
      'SELECT 1 FROM {schema}.assembly_due WHERE seq = (SELECT seq FROM {schema}.assembly WHERE id = $1) FOR UPDATE',
      [id],
    );
    const [row] = await database.rowsWithin(tx, `${assembliesText} WHERE a.id = $1`, [id]);
    return row && assemblyOf(row);
  }

  async function startWithin(
    tx: PostgresTransaction,
    starts: readonly NewAssembly[],
  ): Promise<readonly StartResult[]> {
    const results: RecordResult[] = [];
    for (const round of roundsOf(starts.map((start) => ({ kind: 'start', start })))) {
      await writeRound(round, results, tx);
    }
    // PostgreSQL sends the notification when the transaction commits.
    await tx.query('SELECT pg_notify($1, $2)', [channel, workersBell]);
    return results as StartResult[];
  }

  return {
    limits,

    async now() {
      const [row] = await database.rows('SELECT {schema}.now_ms()');
      return row![0] as number;
    },

    async record(entries) {
      assertEntries(entries as readonly JournalEntry[], limits);
      const results: RecordResult[] = entries.map(() => LEASE_LOST);
      const [only] = entries;
      if (only && entries.length === 1 && (await writeSingle(only, results))) return results;
      const plain = entries.map((entry) =>
        entry.kind === 'progress' && entry.transaction ? undefined : entry,
      );
      for (const segment of segmentsOf(plain)) {
        if (segment.length === 1 && plain[segment[0]!] === undefined) {
          const place = segment[0]!;
          results[place] = await runTransaction(entries[place] as ProgressEntry<PostgresTransaction>);
          continue;
        }
        const some: RecordResult[] = segment.map(() => LEASE_LOST);
        for (const round of roundsOf(segment.map((place) => entries[place]!))) await writeRound(round, some);
        segment.forEach((place, index) => {
          results[place] = some[index]!;
        });
      }
      return results;
    },

    async startWithin(tx, starts) {
      for (const each of starts) assertNewAssembly(each, limits);
      return startWithin(tx, starts).catch((error) => {
        // If the connection does not answer, the caller gets the driver's own error.
        throw isUnanswered(error) ? error : toPostgresError(error);
      });
    },

    async claim({ worker, leaseMs, limit, programs, suspectDeaths = Infinity, suspects = false }) {
      const token = newToken();
      const [row] = await database
        .rows(claimText, [
          ...[worker, clampMs(leaseMs), token, lostTokensOf(worker), limit],
          programs.map(({ name }) => name),
          programs.map(({ version }) => version),
          ...[Math.min(suspectDeaths, 2 ** 31 - 1), suspects],
        ])
        .catch((error) => {
          noteUnanswered(worker, token);
          throw error;
        });
      const [now, number, found, nextDueInMs, seqs] = row!;
      const rows = await readClaimed(worker, token, (seqs as string[] | null) ?? []);
      return {
        assemblies: rows.map((each) => {
          const { seq, stored } = assemblyOf(each);
          const lease: AssemblyLease = {
            id: stored.id,
            token: tokenOf({ seq, token, worker: number as number }),
          };
          return { ...stored, lease, ...recordsOf(each) };
        }),
        suspects: found as number,
        nextDueInMs: (nextDueInMs as number | null) ?? undefined,
        now: now as number,
      };
    },

    async heartbeat(worker, leaseMs) {
      const text = 'SELECT alive, id, revision FROM {schema}.heartbeat_of_worker($1, $2)';
      const [first, ...rows] = await database.rows(text, [worker, clampMs(leaseMs)]);
      const leased = rows.map(([, id, revision]) => ({ id: id as string, revision: revision as number }));
      return {
        alive: first![0] as boolean,
        leased: leased.map(({ id }) => id),
        changed: leased.filter(({ revision }) => revision > 0),
      };
    },

    async release(worker) {
      const [row] = await database.rows('SELECT {schema}.release_worker($1)', [worker]);
      unanswered.delete(worker);
      wake(true);
      return row![0] as number;
    },

    async signal(signals) {
      for (const each of signals) assertSignal(each, limits);
      if (signals.length === 0) return [];
      const text = 'SELECT {schema}.signal_assemblies($1, $2, $3, $4, $5)';
      const results = await audited<SignalResult>(
        { text, values: signalValues(signals), accepted: 'accepted' },
        signals.map(signalEntry),
      );
      news(signals.map(({ to }) => to));
      return results;
    },

    async requestStop(requests) {
      if (requests.length === 0) return [];
      const ids = requests.map(({ id }) => storableText(id));
      const notes = requests.map(({ stop }) => storableJson(stop));
      const text = 'SELECT {schema}.stop_assemblies($1, $2)';
      const results = await audited<StopResult>(
        { text, values: [ids, notes], accepted: 'requested' },
        requests.map(stopEntry),
      );
      news(ids);
      return results;
    },

    async setPatience(id, patienceMs) {
      const text = 'SELECT {schema}.set_assembly_patience($1, $2)';
      const values = [storableText(id), patienceMs === Infinity ? null : clampMs(patienceMs)];
      const [row] = await database.rows(text, values);
      news([id]);
      return row![0] as boolean;
    },

    async change(id, change, act) {
      assertReason(act);
      assertStored('input', change.input, limits);
      for (const { result } of change.put ?? []) assertStored('result', result, limits);
      const version = change.version;
      const result = await database.transaction(async (tx): Promise<ChangeResult> => {
        const found = await lock(tx, storableText(id));
        if (!found) return 'unknown';
        const { seq, stored } = found;
        if (stored.state === 'running') return 'leased';
        if (stored.endedAt !== undefined) return 'ended';
        await writeAudit(tx, changeEntry(id, change, act));
        const within = (text: string, values: readonly unknown[]) => database.rowsWithin(tx, text, values);
        const forget = change.forget ?? [];
        await within('DELETE FROM {schema}.assembly_step WHERE seq = $1 AND path = ANY ($2)', [seq, forget]);
        const steps = (await within(stepsText, [stored.id, 0, '', 2 ** 31 - 1])).map(stepOf);
        let last = steps.reduce((most, { order }) => Math.max(most, order), 0);
        for (const { path, result: edited } of change.put ?? []) {
          const known = steps.find((step) => step.path === path);
          const order = known?.state === 'done' ? known.order : ++last;
          const { kind = 'run', attempts = 0 } = known ?? {};
          const rest = restOf({ path, kind, state: 'done', order, attempts, at: 0 });
          await within(putStepText, [
            ...[seq, order, attempts, kindNumber(kind), stateNumber('done'), path],
            ...[...payloadPair(edited), rest],
          ]);
        }
        const { name } = stored;
        const program =
          version === undefined
            ? null
            : (await numbers.of([{ name, version }], tx)).program({ name, version });
        const note = { ...act, at: await nowWithin(tx), what: whatChanged(change) };
        await within(updateText, [
          ...[seq, program, change.input !== undefined, ...payloadPair(change.input)],
          ...[change.settings === undefined ? null : storableText(change.settings)],
          storableJson([...stored.acts, note]),
        ]);
        if (program !== null)
          await within('UPDATE {schema}.assembly_due SET program = $2 WHERE seq = $1', [seq, program]);
        if (!change.resume) return 'changed';
        const again = 'FROM {schema}.assembly a WHERE a.seq = $1';
        await within(`SELECT {schema}.reopen_assembly(a) ${again}`, [seq]);
        await within('UPDATE {schema}.assembly_due SET deaths = 0 WHERE seq = $1', [seq]);
        await within(`SELECT {schema}.make_assembly_due(a, {schema}.now_ms()) ${again}`, [seq]);
        return 'changed';
      });
      news([id]);
      return result;
    },

    async fork(id, { id: newId, keep, version, input }, act) {
      assertReason(act);
      const result = await database.transaction(async (tx) => {
        const [row] = await database.rowsWithin(tx, `${assembliesText} WHERE a.id = $1`, [storableText(id)]);
        if (!row) return 'unknown';
        const { seq, keepMs, stored: from } = assemblyOf(row);
        const { queue, key, tenant, settings, expiresAt } = from;
        const copy: NewAssembly = {
          ...{
            id: newId,
            name: from.name,
            version: version ?? from.version,
            input: input ?? from.input,
            keepMs,
          },
          ...(queue !== undefined && { queue }),
          ...(key !== undefined && { key }),
          ...(tenant !== undefined && { tenant }),
          ...(settings !== undefined && { settings }),
          ...(expiresAt !== undefined && { patienceMs: Math.max(0, expiresAt - from.acceptedAt) }),
        };
        assertNewAssembly(copy, limits);
        const [started] = await startWithin(tx, [copy]);
        if (started?.kind !== 'accepted') return 'repeated';
        const [made] = await database.rowsWithin(tx, 'SELECT seq FROM {schema}.assembly WHERE id = $1', [
          newId,
        ]);
        const acts = storableJson([forkNote(act, id, await nowWithin(tx))]);
        await database.rowsWithin(tx, copyText, [made![0], seq, keep, acts]);
        await writeAudit(tx, forkEntry(id, newId, act));
        return 'forked';
      });
      wake(true);
      return result as 'forked' | 'unknown' | 'repeated';
    },

    ...journalQuestions(database),

    async setQueue(name, given) {
      assertQueueLimits(name, given, limits);
      await database.rows(setQueueText, [name, jsonWithInfinity(given)]);
      wake(true);
    },

    doorbell: (ring) => doorbell.listen(workersBell, ring),
    watch: (id, ring) => watches.watch(id, ring),

    async sweep(limit) {
      const lookMax = Math.max(10 * limit, 10_000);
      const [row] = await database.rows(sweepText, [sweptTo, lookMax, limit]);
      const [removed, lastSeq, seen] = row as [number, number | null, number];
      // After `limit` removed rows there may be more in this range, so the next sweep reads it again.
      if (removed < limit) sweptTo = seen < lookMax ? 0 : (lastSeq ?? 0);
      return removed;
    },

    close: () => watches.close(),
  };

  /** Notifies workers and listeners after a change from outside, such as a signal. */
  function news(ids: readonly string[]): void {
    wake(true);
    for (const id of ids) watches.ring(id);
  }

  async function nowWithin(tx: PostgresTransaction): Promise<number> {
    const [row] = await database.rowsWithin(tx, 'SELECT {schema}.now_ms()');
    return row![0] as number;
  }

  /** Reads the claimed assemblies. If that fails, the worker's next claim ends their leases. */
  async function readClaimed(
    worker: string,
    token: number,
    seqs: readonly string[],
  ): Promise<readonly Row[]> {
    if (seqs.length === 0) return [];
    return database.rows(claimedText, [seqs]).catch((error) => {
      noteUnanswered(worker, token);
      throw error;
    });
  }
}

const LEASE_LOST: ProgressResult = { kind: 'lease_lost' };
const noNumbers: Numbers = { program: () => 0, queue: () => 0 };

/** Thrown to roll back a transaction, because another worker has the lease. */
class LeaseLost extends Error {}
/** Thrown to roll back a transaction, because the step has thrown `cause`. */
class StepThrew extends Error {
  constructor(cause: unknown) {
    super('the step has thrown', { cause });
  }
}

/** Groups the indexes of entries that are written together. An entry with a transaction is written alone. */
function segmentsOf(plain: readonly unknown[]): number[][] {
  const segments: number[][] = [];
  let isOpen = false;
  for (const [place, entry] of plain.entries()) {
    if (entry === undefined) segments.push([place]);
    else if (isOpen) segments.at(-1)!.push(place);
    else segments.push([place]);
    isOpen = entry !== undefined;
  }
  return segments;
}

function isRepeatable(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return code === '40001' || code === '40P01';
}
