import type { DatabaseSync } from 'node:sqlite';
import {
  type AssemblyFilter,
  type AssemblyGroup,
  type AssemblyLease,
  assertEntries,
  assertNewAssembly,
  assertQueueLimits,
  assertReason,
  assertSignal,
  assertStored,
  type ClaimedAssembly,
  changeEntry,
  clampMs,
  forkEntry,
  forkNote,
  type Journal,
  type JournalEntry,
  type NewAssembly,
  type NewAuditEntry,
  type NewSignal,
  type Next,
  numberIn,
  type Payload,
  type ProgramCounts,
  type ProgressEntry,
  type ProgressResult,
  placeIn,
  type RecordResult,
  type SignalResult,
  type SizeLimits,
  type StartResult,
  type StepRecord,
  type StopRequest,
  type StopResult,
  signalEntry,
  stopEntry,
  type WorkerLease,
  whatChanged,
} from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import type { AuditLog } from './audit-log.ts';
import type { Doorbells } from './doorbells.ts';
import { type ClaimedRow, JournalClaims } from './journal-claims.ts';
import { JournalQueues } from './journal-queues.ts';
import {
  assemblyColumns,
  assemblyTables,
  DONE,
  OPEN,
  PARKED,
  restOf,
  STOPPED,
  stateOf,
  toAssembly,
  toSignal,
  toStep,
} from './journal-rows.ts';
import { journalStatements } from './journal-statements.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** Workers listen for due assemblies under this name. Listeners of one assembly add a slash and its id. */
const workersBell = '\0assemblies';

interface Found {
  readonly seq: number;
  readonly program: number;
  readonly state: number;
  readonly queue: number;
  readonly key: string | null;
  readonly revision: number;
  readonly deaths: number;
  readonly isLeased: boolean;
  readonly isStopping: boolean;
  readonly isCommitted: boolean;
}

/** Stores assemblies (durable workflows). Writes of one turn of the event loop share a transaction. */
export function sqliteJournal(
  store: Store,
  bells: Doorbells,
  audit: AuditLog,
  limits: SizeLimits,
): Journal<DatabaseSync> & { sweep(now: number, limit: number): number } {
  const queues = new JournalQueues(store);
  const claims = new JournalClaims(store, queues);
  const programs = new Map<string, number>();
  store.onRollback(() => programs.clear());
  const watched = new Map<string, number>();

  const sql = journalStatements(store);

  function programId(name: string, version: number): number {
    const key = `${name}@${version}`;
    const known = programs.get(key) ?? Number(sql.program.get(name, version)?.id);
    programs.set(key, known);
    return known;
  }

  function start(given: NewAssembly, now: number, worker?: WorkerLease, acts?: string): StartResult {
    const { id, name, version, input, tenant, settings, patienceMs, dueInMs = 0 } = given;
    const queue = queues.idOf(given.queue);
    const key = given.key ?? null;
    const program = programId(name, version);
    const expiresAt =
      patienceMs === undefined || patienceMs === Infinity ? null : toStoredMs(now + patienceMs);
    const keepMs = toStoredMs(clampMs(given.keepMs ?? 30 * dayMs));
    const added = sql.add.run(
      ...[id, program, input, queue, key, tenant ?? null, settings ?? null, now, expiresAt, keepMs],
      acts ?? null,
    );
    if (added.changes === 0) return { kind: isSame(given, sql.known.get(id)) ? 'repeated' : 'mismatch' };
    const seq = Number(added.lastInsertRowid);
    if (worker && queue === 0 && dueInMs <= 0) {
      const row = claims.lease(seq, claims.liveWorker(worker.name, worker.leaseMs, now), 0, 0, key);
      return { kind: 'accepted', at: now, lease: toLease(id, row) };
    }
    claims.queue(program, queue, key, seq, now + clampMs(dueInMs), 0);
    bells.ringAfterCommit(workersBell);
    return { kind: 'accepted', at: now };
  }

  function putStep(seq: number, step: StepRecord, now: number): void {
    const { path, order, kind, state, attempts, at, dueInMs, result } = step;
    const dueAt = dueInMs === undefined ? null : toStoredMs(now + clampMs(dueInMs));
    sql.putStep.run(
      seq,
      path,
      order,
      kind,
      state,
      attempts,
      Math.floor(at),
      dueAt,
      result ?? null,
      restOf(step),
    );
  }

  function progress(entry: ProgressEntry<DatabaseSync>, now: number): ProgressResult {
    const row = rowOf(entry.lease);
    const found =
      row && toHeld(sql.held.get(row.seq, row.token) as unknown as readonly unknown[] | undefined);
    if (!found) return { kind: 'lease_lost' };
    let result: Payload | undefined;
    if (entry.transaction) {
      const outcome = runTransaction(entry.transaction.run);
      if ('error' in outcome) return { kind: 'commit_failed', error: outcome.error };
      result = outcome.result;
      putStep(found.seq, { ...entry.transaction.step, result }, now);
    }
    for (const step of entry.steps) putStep(found.seq, step, now);
    for (const each of entry.starts ?? []) start(each, now);
    for (const each of entry.signals ?? []) signal(each, now);
    if (entry.clearDeaths) sql.clearDeaths.run(found.seq);
    if (entry.commits) sql.commit.run(found.seq);
    if (entry.stop) sql.stop.run(JSON.stringify(entry.stop), found.seq);
    if (entry.next) leave(found, entry.next, entry.clearDeaths ? 0 : found.deaths, now);
    if (watched.size > 0) ringWatchers(entry.lease.id);
    return { kind: 'took', revision: found.revision, ...(entry.transaction && { result }) };
  }

  /** Runs a step within a savepoint: if the step throws, only its own writes are rolled back. */
  function runTransaction(
    run: (tx: DatabaseSync) => Payload | undefined | Promise<Payload | undefined>,
  ): { readonly result: Payload | undefined } | { readonly error: unknown } {
    const { database } = store;
    database.exec('SAVEPOINT holdfast_step');
    try {
      const result = run(database);
      if (result instanceof Promise) {
        result.catch(() => {});
        throw new OptionsError('transaction', 'a promise', 'a function that is done when it returns');
      }
      assertStored('step.result', result, limits);
      return { result };
    } catch (error) {
      if (!database.isTransaction) throw error;
      database.exec('ROLLBACK TO holdfast_step');
      return { error };
    } finally {
      if (database.isTransaction) database.exec('RELEASE holdfast_step');
    }
  }

  function leave(found: Found, next: Next, deaths: number, now: number): void {
    const { seq, queue, key } = found;
    claims.giveBack(seq, queue, key);
    if (queue > 0) bells.ringAfterCommit(workersBell);
    switch (next.kind) {
      case 'done':
        endAs(DONE, found, next.result, now);
        if (!found.isStopping) return;
        sql.reopen.run(seq);
        makeDue(found, now, 0);
        return;
      case 'stopped':
        endAs(STOPPED, found, undefined, now);
        return;
      case 'park':
        sql.park.run(JSON.stringify(next.parked), seq);
        lieDown(found, next, 0, now);
        return;
      case 'return':
        if (found.state !== OPEN) sql.reopen.run(seq);
        makeDue(found, now, deaths);
        return;
      case 'suspend':
        if (found.state !== OPEN) sql.reopen.run(seq);
        lieDown(found, next, 0, now);
    }
  }

  function endAs(state: number, { seq }: Found, result: Payload | undefined, now: number): void {
    sql.end.run(state, result ?? null, now, seq);
  }

  function makeDue({ program, queue, key, seq }: Found, dueAt: number, deaths: number): void {
    claims.queue(program, queue, key, seq, dueAt, deaths);
    bells.ringAfterCommit(workersBell);
  }

  /**
   * Lets an assembly wait for `dueInMs`, or for a change (such as a signal). If a change arrived after
   * `revision` was read, the assembly is due at once.
   */
  function lieDown(
    found: Found,
    { dueInMs = Infinity, revision }: { readonly dueInMs?: number; readonly revision: number },
    deaths: number,
    now: number,
  ): void {
    if (found.revision > revision) makeDue(found, now, deaths);
    else if (dueInMs < Infinity)
      claims.queue(found.program, found.queue, found.key, found.seq, now + clampMs(dueInMs), deaths);
  }

  function signal({ to, id, name, payload }: NewSignal, now: number): SignalResult {
    const found = toFound(sql.find.get(to));
    if (!found) return 'unknown';
    if (found.state >= DONE) return hasSignal(found.seq, id) ? 'repeated' : 'ended';
    if (sql.addSignal.run(found.seq, id, name, payload ?? null, now).changes === 0) return 'repeated';
    touch(found, to);
    if (found.state === OPEN && !found.isLeased) makeDue(found, now, 0);
    return 'accepted';
  }

  function hasSignal(seq: number, id: string): boolean {
    return sql.signals.all(seq, 0).some((row) => row.id === id);
  }

  function touch({ seq }: Found, id: string): void {
    sql.revise.run(seq);
    bells.ringAfterCommit(workersBell);
    ringWatchers(id);
  }

  function ringWatchers(id: string): void {
    if (watched.has(id)) bells.ringAfterCommit(`${workersBell}/${id}`);
  }

  function requestStop({ id, stop }: StopRequest, now: number): StopResult {
    const found = toFound(sql.find.get(id));
    if (!found) return 'unknown';
    if (found.isStopping) return 'already';
    if (found.isCommitted) return 'committed';
    sql.stop.run(JSON.stringify(stop), found.seq);
    touch(found, id);
    if (found.isLeased) return 'requested';
    if (found.state !== OPEN) sql.reopen.run(found.seq);
    makeDue(found, now, 0);
    return 'requested';
  }

  function audited(entry: NewAuditEntry | undefined, wall: number): void {
    if (entry) audit.write(entry, wall);
  }

  function toClaimed({ seq, token }: ClaimedRow): ClaimedAssembly {
    const stored = toAssembly(sql.bySeq.get(seq)!);
    return {
      ...stored,
      lease: toLease(stored.id, { seq, token }),
      steps: sql.steps.all(seq).map(toStep),
      signals: sql.signals.all(seq, 0).map(toSignal),
    };
  }

  return {
    limits,

    async now() {
      return store.time().now;
    },

    async record(entries) {
      assertEntries(entries as readonly JournalEntry[], limits);
      return store.write((now): RecordResult[] =>
        entries.map((entry) =>
          entry.kind === 'start' ? start(entry.start, now, entry.worker) : progress(entry, now),
        ),
      );
    },

    startWithin(_tx, starts) {
      for (const each of starts) assertNewAssembly(each, limits);
      const { now } = store.time();
      return starts.map((each) => start(each, now));
    },

    async claim(request) {
      return store.write((now) => {
        const { rows, suspects, nextDueInMs } = claims.claim(request, now);
        return { assemblies: rows.map(toClaimed), suspects, nextDueInMs, now };
      });
    },

    async heartbeat(worker, leaseMs) {
      return store.write((now) => {
        const { id, wasAlive } = claims.renew(worker, leaseMs, now);
        const leased = sql.leasedBy
          .all(id)
          .map((row) => ({ id: String(row.id), revision: Number(row.revision) }));
        return {
          alive: wasAlive,
          leased: leased.map((each) => each.id),
          changed: leased.filter(({ revision }) => revision > 0),
        };
      });
    },

    async release(worker) {
      return store.write((now) => {
        const released = claims.releaseNamed(worker, now);
        if (released > 0) bells.ringAfterCommit(workersBell);
        return released;
      });
    },

    async signal(signals) {
      for (const each of signals) assertSignal(each, limits);
      return store.write((now, wall) =>
        signals.map((each) => {
          const result = signal(each, now);
          if (result === 'accepted') audited(signalEntry(each), wall);
          return result;
        }),
      );
    },

    async requestStop(requests) {
      return store.write((now, wall) =>
        requests.map((each) => {
          const result = requestStop(each, now);
          if (result === 'requested') audited(stopEntry(each), wall);
          return result;
        }),
      );
    },

    async setPatience(id, patienceMs) {
      return store.write((now) => {
        const found = toFound(sql.find.get(id));
        if (!found || found.state >= DONE) return false;
        const expiresAt = patienceMs < Infinity ? toStoredMs(now + clampMs(patienceMs)) : null;
        sql.setExpiry.run(expiresAt, found.seq);
        touch(found, id);
        if (found.isLeased) return true;
        if (found.state === OPEN) makeDue(found, now, 0);
        else if (expiresAt !== null) makeDue(found, expiresAt, 0);
        else claims.unqueue(found.seq);
        return true;
      });
    },

    async change(id, change, act) {
      assertReason(act);
      assertStored('input', change.input, limits);
      for (const { result } of change.put ?? []) assertStored('result', result, limits);
      return store.write((now, wall) => {
        const found = toFound(sql.find.get(id));
        if (!found) return 'unknown';
        if (found.isLeased) return 'leased';
        if (found.state >= DONE) return 'ended';
        audit.write(changeEntry(id, change, act), wall);
        const { seq } = found;
        for (const path of change.forget ?? []) sql.forget.run(seq, path);
        let last = Number(sql.lastOrder.get(seq)?.last ?? 0);
        for (const { path, result } of change.put ?? []) {
          const row = sql.step.get(seq, path);
          const step = row && toStep(row);
          const order = step?.state === 'done' ? step.order : ++last;
          const { kind = 'run', attempts = 0 } = step ?? {};
          putStep(seq, { path, kind, state: 'done', order, attempts, at: now, result }, now);
        }
        const { name } = sql.nameOf.get(found.program)!;
        const program =
          change.version === undefined ? found.program : programId(String(name), change.version);
        const what = JSON.stringify({ ...act, at: wall, what: whatChanged(change) });
        sql.update.run(program, change.input ?? null, change.settings ?? null, what, seq);
        touch(found, id);
        if (change.resume) {
          sql.reopen.run(seq);
          makeDue({ ...found, program }, now, 0);
        } else if (program !== found.program) moveDue({ ...found, program });
        return 'changed';
      });
    },

    async fork(id, { id: newId, keep, version, input }, act) {
      assertReason(act);
      return store.write((now, wall) => {
        const row = sql.byId.get(id);
        if (!row) return 'unknown';
        if (sql.byId.get(newId)) return 'repeated';
        audit.write(forkEntry(id, newId, act), wall);
        const from = toAssembly(row);
        const { queue, key, tenant, settings, expiresAt } = from;
        const copy: NewAssembly = {
          ...{ id: newId, name: from.name, version: version ?? from.version, input: input ?? from.input },
          ...{ keepMs: Number(row.keep_ms) },
          ...(queue !== undefined && { queue }),
          ...(key !== undefined && { key }),
          ...(tenant !== undefined && { tenant }),
          ...(settings !== undefined && { settings }),
          ...(expiresAt !== undefined && { patienceMs: Math.max(0, expiresAt - from.acceptedAt) }),
        };
        start(copy, now, undefined, JSON.stringify([forkNote(act, id, wall)]));
        const seq = Number(sql.byId.get(newId)?.seq);
        sql.copySteps.run(seq, Number(row.seq), JSON.stringify(keep));
        sql.copySignals.run(seq, Number(row.seq));
        return 'forked';
      });
    },

    async get(ids) {
      return store.look(() =>
        ids.map((id) => {
          const row = sql.byId.get(id);
          return row && toAssembly(row);
        }),
      );
    },

    async steps(id, { limit, cursor }) {
      const after = cursor === undefined ? 0 : placeIn(cursor)[0];
      return store.read(() => {
        const seq = toFound(sql.find.get(id))?.seq ?? -1;
        const rows = sql.stepsAfter.all(seq, after, limit + 1).map(toStep);
        const items = rows.slice(0, limit);
        const last = items.at(-1);
        return {
          items,
          cursor: last && rows.length > limit ? JSON.stringify([last.order, last.path]) : undefined,
        };
      });
    },

    async signals(id, after = 0) {
      return store.read(() => {
        const seq = toFound(sql.find.get(id))?.seq ?? -1;
        return sql.signals.all(seq, after).map(toSignal);
      });
    },

    async list(filter, { limit, cursor }) {
      const { where, values } = conditionsOf(filter);
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : numberIn(cursor);
      const statement = store.prepare(`
        SELECT ${assemblyColumns} FROM ${assemblyTables}
        WHERE assembly.seq < ? ${where} ORDER BY assembly.seq DESC LIMIT ? + 0`);
      const rows = store.look(() => statement.all(before, ...values, limit + 1));
      const items = rows.slice(0, limit);
      return {
        items: items.map(toAssembly),
        cursor: rows.length > limit ? String(items.at(-1)?.seq) : undefined,
      };
    },

    async counts() {
      const counts = new Map<string, Record<string, unknown>>();
      for (const row of store.look(() => sql.counts.all())) {
        const { name, version } = row;
        const of = `${name}@${version}`;
        const state = stateOf(Number(row.state), Boolean(row.is_leased));
        const none = { waiting: 0, running: 0, parked: 0, done: 0, stopped: 0 };
        const count = counts.get(of) ?? { name: String(name), version: Number(version), ...none };
        counts.set(of, { ...count, [state]: Number(count[state]) + Number(row.count) });
      }
      return [...counts.values()] as unknown as ProgramCounts[];
    },

    async parkedGroups(limit) {
      return store
        .look(() => sql.parkedGroups.all(limit))
        .map(
          (row): AssemblyGroup => ({
            name: String(row.name),
            because: String(row.because),
            fingerprint: (row.fingerprint as string | null) ?? undefined,
            count: Number(row.count),
            latestId: String(row.id),
            message: String(row.message),
          }),
        );
    },

    async setQueue(name, given) {
      assertQueueLimits(name, given, limits);
      await store.write(() => {
        queues.set(name, given);
        bells.ringAfterCommit(workersBell);
      });
    },

    async queues() {
      return store.read(() => queues.states());
    },

    doorbell: (ring) => bells.add(workersBell, ring),
    watch(id, ring) {
      const remove = bells.add(`${workersBell}/${id}`, ring);
      watched.set(id, (watched.get(id) ?? 0) + 1);
      return () => {
        remove();
        const left = (watched.get(id) ?? 1) - 1;
        if (left > 0) watched.set(id, left);
        else watched.delete(id);
      };
    },

    sweep(now, limit) {
      const expired = sql.expired.all(now, limit);
      for (const { seq } of expired) for (const remove of sql.remove) remove.run(Number(seq));
      return expired.length;
    },
  };

  /**
   * Moves the row with the due time of an assembly to its new program version, because due times are stored
   * by program version.
   */
  function moveDue({ program, queue, key, seq }: Found): void {
    const row = sql.bySeq.get(seq);
    if (row?.due_at === null || row?.due_at === undefined) return;
    claims.unqueue(seq);
    claims.queue(program, queue, key, seq, Number(row.due_at), Number(row.deaths));
  }
}

function toHeld(row: readonly unknown[] | undefined): Found | undefined {
  if (!row) return undefined;
  const [seq, program, state, queue, key, revision, deaths, , isStopping, isCommitted] = row;
  return {
    ...{ seq: seq as number, program: program as number, state: state as number, queue: queue as number },
    ...{ key: key as string | null, revision: revision as number, deaths: deaths as number, isLeased: true },
    ...{ isStopping: isStopping === 1, isCommitted: isCommitted === 1 },
  };
}

function toFound(row: Record<string, unknown> | undefined): Found | undefined {
  return (
    row && {
      seq: Number(row.seq),
      program: Number(row.program),
      state: Number(row.state),
      queue: Number(row.queue),
      key: row.key as string | null,
      revision: Number(row.revision),
      deaths: Number(row.deaths ?? 0),
      isLeased: Boolean(row.is_leased),
      isStopping: Boolean(row.is_stopping),
      isCommitted: Boolean(row.is_committed),
    }
  );
}

/**
 * The token contains the number of the assembly's row and the number of the lease, so that both are found
 * without the id.
 */
function toLease(id: string, { seq, token }: ClaimedRow): AssemblyLease {
  return { id, token: `${seq}.${token}` };
}

function rowOf({ token }: AssemblyLease): ClaimedRow | undefined {
  const dot = token.indexOf('.');
  const [seq, number] = [Number(token.slice(0, dot)), Number(token.slice(dot + 1))];
  return dot > 0 && Number.isSafeInteger(seq) && Number.isSafeInteger(number)
    ? { seq, token: number }
    : undefined;
}

function isSame({ name, input }: NewAssembly, row: Record<string, unknown> | undefined): boolean {
  if (row?.name !== name) return false;
  const known = row.input as Payload;
  if (typeof known === 'string' || typeof input === 'string') return known === input;
  return known.length === input.length && known.every((byte, index) => byte === input[index]);
}

function conditionsOf(filter: AssemblyFilter): { where: string; values: (string | number)[] } {
  const { name, version, state, queue, key, tenant, fingerprint, stopping } = filter;
  const where: string[] = [];
  const values: (string | number)[] = [];
  const add = (condition: string, value: string | number | undefined) => {
    if (value === undefined) return;
    where.push(condition);
    values.push(value);
  };
  add('program.name = ?', name);
  add('program.version = ?', version);
  add('queue.name = ?', queue);
  add('assembly.key = ?', key);
  add('assembly.tenant = ?', tenant);
  add(`parked ->> '$.error.fingerprint' = ?`, fingerprint);
  if (stopping !== undefined) where.push(`stop IS ${stopping ? 'NOT NULL' : 'NULL'}`);
  const ofState = {
    waiting: `state = ${OPEN} AND lease.seq IS NULL`,
    running: 'lease.seq IS NOT NULL',
    parked: `state = ${PARKED} AND lease.seq IS NULL`,
    done: `state = ${DONE}`,
    stopped: `state = ${STOPPED}`,
  };
  if (state !== undefined) where.push(ofState[state]);
  return { where: where.map((each) => `AND ${each}`).join(' '), values };
}
