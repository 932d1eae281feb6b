import type { ClaimRequest } from '@holdfast/contracts';
import type { JournalQueues, Queue } from './journal-queues.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

export interface ClaimedRow {
  readonly seq: number;
  readonly token: number;
}

interface DueRow {
  readonly seq: number;
  readonly dueAt: number;
  readonly deaths: number;
  readonly key: string | null;
}

/**
 * A claim reads this many more rows than it needs: some may have to wait for another assembly of their key.
 */
const heldBackMax = 1000;

/**
 * A lease is extended only when at most this share of its time is left. A heartbeat comes when two thirds of
 * the time are left, so each heartbeat extends the lease.
 */
const freshShare = 0.7;

/**
 * Leases of workers on assemblies (durable workflows), and the due assemblies. Call all methods within a
 * transaction.
 */
export class JournalClaims {
  readonly #store: Store;
  readonly #queues: JournalQueues;
  readonly #workers = new Map<string, { readonly id: number; readonly endsAt: number }>();
  readonly #putWorker;
  readonly #dead;
  readonly #removeWorker;
  readonly #leasesOf;
  readonly #addLease;
  readonly #removeLease;
  readonly #due;
  readonly #addDue;
  readonly #removeDue;
  readonly #postpone;
  readonly #suspects;
  readonly #next;
  readonly #nextEnd;
  readonly #isCharged;
  readonly #setCharged;
  readonly #program;

  constructor(store: Store, queues: JournalQueues) {
    this.#store = store;
    this.#queues = queues;
    store.onRollback(() => this.#workers.clear());
    this.#putWorker = store.prepare(`
      INSERT INTO holdfast_assembly_worker (name, ends_at) VALUES (?1, ?2)
      ON CONFLICT (name) DO UPDATE SET ends_at = ?2 RETURNING id`);
    this.#dead = store.prepare('SELECT id, name FROM holdfast_assembly_worker WHERE ends_at <= ?');
    this.#removeWorker = store.prepare('DELETE FROM holdfast_assembly_worker WHERE id = ?');
    this.#leasesOf = store.prepare(`
      SELECT lease.seq, lease.deaths, lease.queue, lease.key, assembly.program
      FROM holdfast_assembly_lease lease JOIN holdfast_assembly assembly ON assembly.seq = lease.seq
      WHERE lease.worker = ?`);
    this.#addLease = store.prepare('INSERT INTO holdfast_assembly_lease VALUES (?, ?, ?, ?, ?, ?)');
    this.#removeLease = store.prepare('DELETE FROM holdfast_assembly_lease WHERE seq = ?');
    this.#due = store.prepare(`
      SELECT seq, due_at, deaths, key FROM holdfast_assembly_due
      WHERE program = ? AND line = ? AND due_at <= ? AND deaths < ? ORDER BY due_at, seq LIMIT ? + 0`);
    this.#addDue = store.prepare('INSERT OR REPLACE INTO holdfast_assembly_due VALUES (?, ?, ?, ?, ?, ?)');
    this.#removeDue = store.prepare('DELETE FROM holdfast_assembly_due WHERE seq = ?');
    this.#postpone = store.prepare('UPDATE holdfast_assembly_due SET due_at = ? WHERE seq = ?');
    this.#suspects = store.prepare(`
      SELECT seq, due_at, deaths, key, line FROM holdfast_assembly_due
      WHERE program = ? AND line = ? AND due_at <= ? AND deaths >= ? ORDER BY due_at, seq LIMIT 1`);
    this.#next = store.prepare(`
      SELECT due_at FROM holdfast_assembly_due WHERE program = ? AND line = ? AND due_at > ? ORDER BY due_at LIMIT 1`);
    this.#nextEnd = store.prepare(`
      SELECT min(ends_at) AS ends_at FROM holdfast_assembly_worker worker WHERE id <> ?
        AND EXISTS (SELECT 1 FROM holdfast_assembly_lease lease WHERE lease.worker = worker.id)`);
    this.#isCharged = store.prepare('SELECT is_charged FROM holdfast_assembly WHERE seq = ?');
    this.#setCharged = store.prepare('UPDATE holdfast_assembly SET is_charged = 1 WHERE seq = ?');
    this.#program = store.prepare('SELECT id FROM holdfast_program WHERE name = ? AND version = ?');
  }

  /** Extends the lease of a worker. `wasAlive`: the lease was still valid before. */
  renew(name: string, leaseMs: number, now: number): { readonly id: number; readonly wasAlive: boolean } {
    const known = this.#workers.get(name);
    // Write nothing while the lease is fresh. A write wakes other processes, so idle workers would wake each
    // other for ever.
    if (known && known.endsAt - now > leaseMs * freshShare) return { id: known.id, wasAlive: true };
    const endsAt = toStoredMs(now + leaseMs);
    const id = Number(this.#putWorker.get(name, endsAt)?.id);
    this.#workers.set(name, { id, endsAt });
    return { id, wasAlive: known !== undefined && known.id === id && known.endsAt > now };
  }

  /** Returns the id of a worker, and extends its lease if the lease has ended. */
  liveWorker(name: string, leaseMs: number, now: number): number {
    const known = this.#workers.get(name);
    return known && known.endsAt > now ? known.id : this.renew(name, leaseMs, now).id;
  }

  lease(seq: number, worker: number, deaths: number, queue: number, key: string | null): ClaimedRow {
    const token = this.#store.sequence.take(1);
    this.#addLease.run(seq, token, worker, deaths, queue, key);
    return { seq, token };
  }

  queue(
    program: number,
    queue: number,
    key: string | null,
    seq: number,
    dueAt: number,
    deaths: number,
  ): void {
    this.#addDue.run(program, queue, toStoredMs(dueAt), seq, deaths, key);
  }

  unqueue(seq: number): void {
    this.#removeDue.run(seq);
  }

  giveBack(seq: number, queue: number, key: string | null): void {
    this.#removeLease.run(seq);
    this.#queues.unblock(queue, key);
  }

  /**
   * Ends all leases of a worker, and makes its assemblies due. `deaths` is 1 if the worker crashed. It is
   * added to the number of deaths of each assembly.
   */
  release(worker: number, deaths: 0 | 1, now: number): number {
    const rows = this.#leasesOf.all(worker);
    for (const row of rows) {
      const [seq, queue, key] = [Number(row.seq), Number(row.queue), row.key as string | null];
      this.giveBack(seq, queue, key);
      this.queue(Number(row.program), queue, key, seq, now, Number(row.deaths) + deaths);
    }
    this.#removeWorker.run(worker);
    return rows.length;
  }

  releaseNamed(name: string, now: number): number {
    const { id } = this.renew(name, 0, now);
    this.#workers.delete(name);
    return this.release(id, 0, now);
  }

  claim(
    request: ClaimRequest,
    now: number,
  ): { rows: ClaimedRow[]; suspects: number; nextDueInMs: number | undefined } {
    const { worker, leaseMs, limit, suspectDeaths = Infinity, suspects = false } = request;
    const { id } = this.renew(worker, leaseMs, now);
    for (const { id: dead, name } of this.#dead.all(now)) {
      this.#workers.delete(String(name));
      this.release(Number(dead), 1, now);
    }
    const programs = this.#programsOf(request);
    const queues = this.#queues.all();
    const deathsBelow = Math.min(suspectDeaths, Number.MAX_SAFE_INTEGER);
    const waiting = this.#suspectsOf(programs, queues, now, deathsBelow);
    const rows: ClaimedRow[] = [];
    // This worker must claim again when another worker's lease ends, to take over its assemblies.
    let nextDueAt = Number(this.#nextEnd.get(id)?.ends_at ?? Infinity);
    if (suspects) {
      const first = waiting[0];
      if (first && this.#tryQueue(queues, first.line, first, now) === 0)
        rows.push(this.#take(first, id, first.line));
    } else {
      rows.push(...this.#claimFree(programs, id, limit, deathsBelow, now));
      for (const queue of queues) {
        const room = Math.min(limit - rows.length, this.#queues.room(queue));
        if (room <= 0) continue;
        const { taken, nextAt } = this.#claimQueue(queue, programs, id, room, deathsBelow, now);
        rows.push(...taken);
        nextDueAt = Math.min(nextDueAt, nextAt);
      }
    }
    for (const program of programs)
      for (const line of [0, ...queues.map((queue) => queue.id)])
        nextDueAt = Math.min(nextDueAt, Number(this.#next.get(program, line, now)?.due_at ?? Infinity));
    return {
      rows,
      suspects: waiting.length,
      nextDueInMs: nextDueAt < Number.MAX_SAFE_INTEGER ? Math.max(0, nextDueAt - now) : undefined,
    };
  }

  #programsOf({ programs }: ClaimRequest): number[] {
    return programs.flatMap(({ name, version }) => {
      const row = this.#program.get(name, version);
      return row ? [Number(row.id)] : [];
    });
  }

  /**
   * Returns the earliest due suspect of each program and queue: an assembly that has crashed at least
   * `deaths` workers. `line` is the id of the queue, or 0 for an assembly without a queue.
   */
  #suspectsOf(
    programs: readonly number[],
    queues: readonly Queue[],
    now: number,
    deaths: number,
  ): (DueRow & { readonly line: number })[] {
    if (deaths === Number.MAX_SAFE_INTEGER) return [];
    const found = programs.flatMap((program) =>
      [0, ...queues.map(({ id }) => id)].flatMap((line) => {
        const row = this.#suspects.get(program, line, now, deaths);
        return row ? [{ ...toDue(row), line }] : [];
      }),
    );
    return found.sort((one, other) => one.dueAt - other.dueAt || one.seq - other.seq);
  }

  #claimFree(
    programs: readonly number[],
    worker: number,
    limit: number,
    deaths: number,
    now: number,
  ): ClaimedRow[] {
    const due = programs.flatMap((program) => this.#due.all(program, 0, now, deaths, limit).map(toDue));
    if (programs.length > 1) due.sort((one, other) => one.dueAt - other.dueAt || one.seq - other.seq);
    return due.slice(0, limit).map((row) => this.#take(row, worker, 0));
  }

  #claimQueue(
    queue: Queue,
    programs: readonly number[],
    worker: number,
    room: number,
    deaths: number,
    now: number,
  ): { taken: ClaimedRow[]; nextAt: number } {
    const taken: ClaimedRow[] = [];
    let nextAt = Infinity;
    const most = Math.min(room + heldBackMax, 10 * heldBackMax);
    const due = programs.flatMap((program) => this.#due.all(program, queue.id, now, deaths, most).map(toDue));
    for (const row of due.sort((one, other) => one.dueAt - other.dueAt || one.seq - other.seq)) {
      if (taken.length >= room) break;
      const waitMs = this.#tryQueue([queue], queue.id, row, now);
      if (waitMs === 0) taken.push(this.#take(row, worker, queue.id));
      else if (waitMs < Infinity) nextAt = Math.min(nextAt, now + waitMs);
    }
    return { taken, nextAt };
  }

  /**
   * Returns 0 if the limits of the queue let the assembly run; otherwise the ms to wait. Infinity: until
   * another assembly ends.
   */
  #tryQueue(queues: readonly Queue[], line: number, { seq, key }: DueRow, now: number): number {
    const queue = queues.find(({ id }) => id === line);
    if (!queue) return 0;
    if (this.#queues.room(queue) <= 0) return Infinity;
    if (!this.#queues.hasRoomForKey(queue, key)) {
      this.#queues.block(queue, seq);
      return Infinity;
    }
    if (Number(this.#isCharged.get(seq)?.is_charged) === 1) return 0;
    const waitMs = this.#queues.waitMs(queue, key, now);
    if (waitMs > 0) {
      // Postpone the assembly, so that claims do not read it before the rate limit allows it.
      this.#postpone.run(toStoredMs(now + waitMs), seq);
      return waitMs;
    }
    this.#queues.charge(queue, key, now);
    this.#setCharged.run(seq);
    return 0;
  }

  #take({ seq, deaths, key }: DueRow, worker: number, queue: number): ClaimedRow {
    this.#removeDue.run(seq);
    return this.lease(seq, worker, deaths, queue, key);
  }
}

function toDue(row: Record<string, unknown>): DueRow {
  return {
    seq: Number(row.seq),
    dueAt: Number(row.due_at),
    deaths: Number(row.deaths),
    key: row.key as string | null,
  };
}
