import type { NewAuditEntry } from '../audit.ts';
import { EngineFullError } from '../contract-errors.ts';
import type {
  AssemblyFilter,
  AssemblyGroup,
  AssemblyLease,
  Claimed,
  ClaimedAssembly,
  ClaimRequest,
  Journal,
  JournalEntry,
  NewAssembly,
  NewSignal,
  Next,
  ProgramCounts,
  ProgressEntry,
  ProgressResult,
  RecordResult,
  SignalResult,
  StartResult,
  StepRecord,
  StopRequest,
  StopResult,
  WorkerLease,
} from '../journal.ts';
import { changeEntry, forkEntry, forkNote, signalEntry, stopEntry, whatChanged } from '../journal-acts.ts';
import {
  assertEntries,
  assertNewAssembly,
  assertQueueLimits,
  assertSignal,
  assertStored,
} from '../journal-limits.ts';
import { assertReason } from '../parked-filter.ts';
import { assertMayUndo, writeAudit } from './audit.ts';
import { QueueGate } from './journal-queues.ts';
import { AssemblyRow, type JournalStorage } from './journal-storage.ts';
import { latestFirst, oldestFirst, pageOf, type SharedState } from './shared-state.ts';
import { beginTransaction, type MemoryTransaction } from './storage.ts';

const assembliesMax = 1_000_000;

export interface MemoryJournal extends Journal<MemoryTransaction> {
  /**
   * Removes at most `limit` ended assemblies (work in several steps) that were kept for their `keepMs`.
   * Returns how many were removed.
   */
  sweep(limit: number): number;
}

export function memoryJournal(shared: SharedState, storage: JournalStorage): MemoryJournal {
  const { limits } = shared;
  const { rows, workers } = storage;

  function held({ id, token }: AssemblyLease): AssemblyRow | undefined {
    const row = rows.get(id);
    return row?.lease?.token === token ? row : undefined;
  }

  function start(given: NewAssembly, now: number, worker?: WorkerLease): StartResult {
    const known = rows.get(given.id);
    if (known) return isSame(known.start, given) ? { kind: 'repeated' } : { kind: 'mismatch' };
    if (rows.size >= assembliesMax) throw new EngineFullError('assemblies', assembliesMax);
    const row = new AssemblyRow(given, shared.storage.next(), now);
    rows.set(given.id, row);
    if (worker && given.queue === undefined && row.dueAt <= now) {
      if ((workers.get(worker.name) ?? 0) <= now) workers.set(worker.name, now + worker.leaseMs);
      return { kind: 'accepted', at: now, lease: lease(row, worker.name) };
    }
    storage.ringDoorbells();
    return { kind: 'accepted', at: now };
  }

  function lease(row: AssemblyRow, worker: string): AssemblyLease {
    const token = `lease/${shared.storage.next()}`;
    row.state = 'running';
    row.lease = { token, worker };
    return { id: row.start.id, token };
  }

  function putStep(row: AssemblyRow, { dueInMs, ...step }: StepRecord, now: number): void {
    row.steps.set(step.path, { ...step, ...(dueInMs !== undefined && { dueAt: now + dueInMs }) });
  }

  /** Writes an entry, except its `transaction`, which the caller has already run. */
  function progress(row: AssemblyRow, entry: ProgressEntry<MemoryTransaction>, now: number): ProgressResult {
    const { revision } = row;
    for (const step of entry.steps) putStep(row, step, now);
    for (const each of entry.starts ?? []) start(each, now);
    for (const each of entry.signals ?? []) signal(each, now);
    if (entry.clearDeaths) row.deaths = 0;
    if (entry.commits) row.committed = true;
    row.stop ??= entry.stop;
    if (entry.next) leave(row, entry.next, now);
    storage.ringWatches(row.start.id);
    return { kind: 'took', revision };
  }

  function leave(row: AssemblyRow, next: Next, now: number): void {
    row.lease = undefined;
    row.parked = undefined;
    become(row, next, now);
    // Notify workers if this assembly is due now, or if another assembly of its queue may be leased now.
    if (row.isDue(now) || row.start.queue !== undefined) storage.ringDoorbells();
  }

  function become(row: AssemblyRow, next: Next, now: number): void {
    switch (next.kind) {
      case 'done':
        Object.assign(row, { state: 'done', result: next.result, endedAt: now, deaths: 0 });
        if (row.stop) Object.assign(row, { state: 'waiting', endedAt: undefined, dueAt: now });
        return;
      case 'stopped':
        Object.assign(row, { state: 'stopped', endedAt: now, deaths: 0 });
        return;
      case 'return':
        Object.assign(row, { state: 'waiting', dueAt: now });
        return;
      case 'suspend':
        Object.assign(row, { state: 'waiting', dueAt: dueAt(row, next, now), deaths: 0 });
        return;
      case 'park':
        Object.assign(row, { state: 'parked', parked: next.parked, dueAt: dueAt(row, next, now), deaths: 0 });
    }
  }

  async function runTransaction(entry: ProgressEntry<MemoryTransaction>): Promise<ProgressResult> {
    if (!held(entry.lease)) return { kind: 'lease_lost' };
    const { run, step } = entry.transaction!;
    const { tx, apply } = beginTransaction(shared.storage);
    let result: StepRecord['result'];
    try {
      result = await run(tx);
      assertStored('step.result', result, limits);
    } catch (error) {
      return { kind: 'commit_failed', error };
    }
    return shared.write((now) => {
      // Another worker may have got the assembly while `run` ran.
      const row = held(entry.lease);
      if (!row) return { kind: 'lease_lost' };
      apply();
      putStep(row, { ...step, result }, now);
      const took = progress(row, entry, now);
      return took.kind === 'took' ? { ...took, result } : took;
    });
  }

  function signal(given: NewSignal, now: number): SignalResult {
    const { to, id, name, payload } = given;
    const row = rows.get(to);
    if (!row) return 'unknown';
    if (row.signals.some((known) => known.id === id)) return 'repeated';
    if (row.hasEnded) return 'ended';
    audited(signalEntry(given));
    row.signals.push({ number: row.signals.length + 1, id, name, payload, at: now });
    row.revision++;
    if (row.state === 'waiting') row.dueAt = Math.min(row.dueAt, now);
    storage.ringDoorbells();
    storage.ringWatches(to);
    return 'accepted';
  }

  function requestStop(request: StopRequest, now: number): StopResult {
    const { id, stop } = request;
    const row = rows.get(id);
    if (!row) return 'unknown';
    if (row.stop) return 'already';
    if (row.committed) return 'committed';
    audited(stopEntry(request));
    row.stop = stop;
    row.revision++;
    if (row.state !== 'running')
      Object.assign(row, { state: 'waiting', parked: undefined, endedAt: undefined, dueAt: now });
    storage.ringDoorbells();
    storage.ringWatches(id);
    return 'requested';
  }

  function audited(entry: NewAuditEntry | undefined): void {
    if (entry) writeAudit(shared, entry);
  }

  /** Makes assemblies due again that belong to a worker whose lease has ended. */
  function recover(now: number): void {
    for (const row of rows.values()) {
      if (!row.lease || (workers.get(row.lease.worker) ?? 0) > now) continue;
      Object.assign(row, { state: 'waiting', dueAt: now, deaths: row.deaths + 1, lease: undefined });
    }
    for (const [worker, endsAt] of workers) if (endsAt <= now) workers.delete(worker);
  }

  function claim(request: ClaimRequest, now: number): Claimed {
    const { worker, leaseMs, limit, programs, suspectDeaths = Infinity, suspects = false } = request;
    // First extend the lease of the calling worker. Otherwise `recover` could take its assemblies away.
    workers.set(worker, now + leaseMs);
    recover(now);
    const mine = [...rows.values()].filter(
      (row) =>
        (row.state === 'waiting' || row.state === 'parked') &&
        programs.some(({ name, version }) => name === row.start.name && version === row.version),
    );
    const gate = new QueueGate(storage, now);
    const taken: ClaimedAssembly[] = [];
    let suspectsSeen = 0;
    let nextDueInMs = Infinity;
    // When another worker's lease ends, its assemblies are due again: the caller must claim at that time.
    for (const { lease: held } of rows.values())
      if (held && held.worker !== worker)
        nextDueInMs = Math.min(nextDueInMs, (workers.get(held.worker) ?? now) - now);
    for (const row of mine.sort((one, other) => one.dueAt - other.dueAt || one.order - other.order)) {
      if (!row.isDue(now)) {
        nextDueInMs = Math.min(nextDueInMs, row.dueAt - now);
        continue;
      }
      const isSuspect = row.deaths >= suspectDeaths;
      if (isSuspect) suspectsSeen++;
      if (isSuspect !== suspects || taken.length >= (suspects ? 1 : limit)) continue;
      if (!gate.tryTake(row)) {
        nextDueInMs = Math.min(nextDueInMs, gate.waitMs(row));
        continue;
      }
      const given = lease(row, worker);
      taken.push({ ...row.toStored(), lease: given, steps: stepsOf(row), signals: [...row.signals] });
    }
    return {
      assemblies: taken,
      suspects: suspectsSeen,
      nextDueInMs: nextDueInMs < Infinity ? nextDueInMs : undefined,
      now,
    };
  }

  return {
    limits,

    async now() {
      return shared.now();
    },

    async record(entries) {
      assertEntries(entries as readonly JournalEntry[], limits);
      const results: RecordResult[] = [];
      for (let from = 0; from < entries.length; ) {
        const first = entries[from]!;
        if (first.kind === 'progress' && first.transaction) {
          results.push(await runTransaction(first));
          from++;
          continue;
        }
        const to = entries.findIndex(
          (entry, index) => index > from && entry.kind === 'progress' && entry.transaction !== undefined,
        );
        const plain = entries.slice(from, to < 0 ? entries.length : to);
        from += plain.length;
        const written = shared.write((now) =>
          plain.map((entry) => {
            if (entry.kind === 'start') return start(entry.start, now, entry.worker);
            const row = held(entry.lease);
            return row ? progress(row, entry, now) : ({ kind: 'lease_lost' } as const);
          }),
        );
        results.push(...written);
      }
      return results;
    },

    startWithin(tx, starts) {
      for (const each of starts) assertNewAssembly(each, limits);
      return starts.map((given): StartResult => {
        const known = rows.get(given.id);
        if (known) return isSame(known.start, given) ? { kind: 'repeated' } : { kind: 'mismatch' };
        tx.defer(() => void start(given, shared.now()));
        return { kind: 'accepted', at: shared.now() };
      });
    },

    async claim(request) {
      return shared.write((now) => claim(request, now));
    },

    async heartbeat(worker, leaseMs) {
      return shared.write((now) => {
        const alive = (workers.get(worker) ?? 0) > now;
        workers.set(worker, now + leaseMs);
        const own = [...rows.values()].filter((row) => row.lease?.worker === worker);
        return {
          alive,
          leased: own.map(({ start: { id } }) => id),
          changed: own
            .filter(({ revision }) => revision > 0)
            .map(({ start: { id }, revision }) => ({ id, revision })),
        };
      });
    },

    async release(worker) {
      return shared.write((now) => {
        const own = [...rows.values()].filter((row) => row.lease?.worker === worker);
        for (const row of own) leave(row, { kind: 'return' }, now);
        workers.delete(worker);
        return own.length;
      });
    },

    async signal(signals) {
      for (const each of signals) assertSignal(each, limits);
      return shared.write((now) => signals.map((each) => signal(each, now)));
    },

    async requestStop(requests) {
      return shared.write((now) => requests.map((each) => requestStop(each, now)));
    },

    async setPatience(id, patienceMs) {
      return shared.write((now) => {
        const row = rows.get(id);
        if (!row || row.hasEnded) return false;
        row.expiresAt = now + patienceMs;
        row.revision++;
        if (row.state === 'waiting') row.dueAt = now;
        if (row.state === 'parked') row.dueAt = row.expiresAt;
        storage.ringDoorbells();
        storage.ringWatches(id);
        return true;
      });
    },

    async change(id, change, act) {
      assertReason(act);
      assertStored('input', change.input, limits);
      for (const { result } of change.put ?? []) assertStored('result', result, limits);
      return shared.write((now) => {
        const row = rows.get(id);
        if (!row) return 'unknown';
        if (row.lease) return 'leased';
        if (row.hasEnded) return 'ended';
        writeAudit(shared, changeEntry(id, change, act));
        for (const path of change.forget ?? []) row.steps.delete(path);
        let last = Math.max(0, ...[...row.steps.values()].map(({ order }) => order));
        for (const { path, result } of change.put ?? []) {
          const known = row.steps.get(path);
          const order = known?.state === 'done' ? known.order : ++last;
          const { kind = 'run', attempts = 0 } = known ?? {};
          putStep(row, { path, kind, state: 'done', order, attempts, at: now, result }, now);
        }
        row.version = change.version ?? row.version;
        row.input = change.input ?? row.input;
        row.settings = change.settings ?? row.settings;
        row.acts.push({ ...act, at: now, what: whatChanged(change) });
        row.revision++;
        if (change.resume) Object.assign(row, { state: 'waiting', parked: undefined, dueAt: now, deaths: 0 });
        storage.ringDoorbells();
        storage.ringWatches(id);
        return 'changed';
      });
    },

    async fork(id, { id: newId, keep, version, input }, act) {
      assertReason(act);
      return shared.write((now) => {
        const from = rows.get(id);
        if (!from) return 'unknown';
        if (rows.has(newId)) return 'repeated';
        assertMayUndo(shared, act);
        start(
          {
            ...from.start,
            id: newId,
            version: version ?? from.version,
            input: input ?? from.input,
            ...(from.settings !== undefined && { settings: from.settings }),
          },
          now,
        );
        const row = rows.get(newId)!;
        for (const step of stepsOf(from))
          if (keep.includes(step.path) && isSettled(step)) row.steps.set(step.path, step);
        row.signals.push(...from.signals);
        row.acts.push(forkNote(act, id, now));
        writeAudit(shared, forkEntry(id, newId, act));
        return 'forked';
      });
    },

    async get(ids) {
      return ids.map((id) => rows.get(id)?.toStored());
    },

    async steps(id, page) {
      const row = rows.get(id);
      return pageOf(row ? stepsOf(row) : [], page, ({ order, path }) => [order, path], oldestFirst);
    },

    async signals(id, after = 0) {
      return (rows.get(id)?.signals ?? []).filter(({ number }) => number > after);
    },

    async list(filter, page) {
      const found = [...rows.values()].filter((row) => matches(row, filter)).reverse();
      const { items, cursor } = pageOf(found, page, ({ order }) => [order, ''], latestFirst);
      return { items: items.map((row) => row.toStored()), cursor };
    },

    async counts() {
      const counts = new Map<string, Record<string, unknown>>();
      for (const {
        start: { name },
        version,
        state,
      } of rows.values()) {
        const of = JSON.stringify([name, version]);
        const count = counts.get(of) ?? {
          name,
          version,
          waiting: 0,
          running: 0,
          parked: 0,
          done: 0,
          stopped: 0,
        };
        counts.set(of, { ...count, [state]: (count[state] as number) + 1 });
      }
      return [...counts.values()] as unknown as ProgramCounts[];
    },

    async parkedGroups(limit) {
      const groups = new Map<string, AssemblyGroup>();
      for (const { state, parked, start } of rows.values()) {
        if (state !== 'parked' || !parked) continue;
        const { because, message } = parked;
        const fingerprint = parked.error?.fingerprint;
        const of = JSON.stringify([start.name, because, fingerprint]);
        const count = (groups.get(of)?.count ?? 0) + 1;
        groups.set(of, { name: start.name, because, fingerprint, count, latestId: start.id, message });
      }
      return [...groups.values()].sort((a, b) => b.count - a.count).slice(0, limit);
    },

    async setQueue(name, given) {
      assertQueueLimits(name, given, limits);
      shared.write(() => storage.queues.set(name, given));
      storage.ringDoorbells();
    },

    async queues() {
      return [...storage.queues].map(([name, given]) => {
        const own = [...rows.values()].filter(({ start: { queue } }) => queue === name);
        const count = (state: string) => own.filter((row) => row.state === state).length;
        return { name, limits: given, leased: count('running'), waiting: count('waiting') };
      });
    },

    doorbell(ring) {
      storage.doorbells.add(ring);
      return () => storage.doorbells.delete(ring);
    },

    watch(id, ring) {
      const rings = storage.watches.get(id) ?? new Set();
      storage.watches.set(id, rings.add(ring));
      return () => {
        rings.delete(ring);
        if (rings.size === 0) storage.watches.delete(id);
      };
    },

    sweep(limit) {
      const now = shared.now();
      let removed = 0;
      for (const [id, row] of rows) {
        if (removed >= limit) break;
        if (row.removedAt > now) continue;
        rows.delete(id);
        removed++;
      }
      return removed;
    },
  };
}

/**
 * Returns when a suspended or parked assembly is due. It is due at once if something, such as a signal, has
 * arrived since the worker read `next.revision`.
 */
function dueAt(row: AssemblyRow, next: { dueInMs?: number; revision: number }, now: number): number {
  return row.revision > next.revision ? now : now + (next.dueInMs ?? Infinity);
}

function isSame(one: NewAssembly, other: NewAssembly): boolean {
  return one.name === other.name && isSamePayload(one.input, other.input);
}

function isSamePayload(one: NewAssembly['input'], other: NewAssembly['input']): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other;
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

function stepsOf(row: AssemblyRow): StoredStepList {
  return [...row.steps.values()].sort((one, other) => one.order - other.order);
}

type StoredStepList = ClaimedAssembly['steps'][number][];

function isSettled({ state }: { readonly state: string }): boolean {
  return state === 'done' || state === 'failed';
}

function matches(row: AssemblyRow, filter: AssemblyFilter): boolean {
  const { name, version, state, queue, key, tenant, fingerprint, stopping } = filter;
  const its = row.start;
  return (
    (name === undefined || name === its.name) &&
    (version === undefined || version === row.version) &&
    (state === undefined || state === row.state) &&
    (queue === undefined || queue === its.queue) &&
    (key === undefined || key === its.key) &&
    (tenant === undefined || tenant === its.tenant) &&
    (fingerprint === undefined || fingerprint === row.parked?.error?.fingerprint) &&
    (stopping === undefined || stopping === (row.stop !== undefined))
  );
}
