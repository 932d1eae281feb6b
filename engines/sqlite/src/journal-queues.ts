import type { QueueLimits, QueueRate, QueueState } from '@holdfast/contracts';
import { gcraTake, gcraWait } from 'holdfast/machines';
import type { Store } from './store.ts';

export interface Queue {
  readonly id: number;
  readonly name: string;
  readonly limits: QueueLimits;
}

/** The queues of assemblies (durable workflows) and their limits. Call all methods within a transaction. */
export class JournalQueues {
  readonly #find;
  readonly #add;
  readonly #set;
  readonly #all;
  readonly #leased;
  readonly #leasedOfKey;
  readonly #tat;
  readonly #putTat;
  readonly #unblockAll;
  readonly #firstBlocked;
  readonly #move;
  readonly #waiting;

  constructor(store: Store) {
    this.#find = store.prepare('SELECT id FROM holdfast_assembly_queue WHERE name = ?');
    this.#add = store.prepare(`INSERT INTO holdfast_assembly_queue (name, limits) VALUES (?, '{}')`);
    this.#set = store.prepare('UPDATE holdfast_assembly_queue SET limits = ? WHERE id = ?');
    this.#all = store.prepare('SELECT id, name, limits FROM holdfast_assembly_queue ORDER BY id');
    this.#leased = store.prepare('SELECT count(*) AS count FROM holdfast_assembly_lease WHERE queue = ?');
    this.#leasedOfKey = store.prepare(
      'SELECT count(*) AS count FROM holdfast_assembly_lease WHERE queue = ? AND key = ?',
    );
    this.#tat = store.prepare('SELECT tat FROM holdfast_rate WHERE key = ?');
    this.#putTat = store.prepare('INSERT OR REPLACE INTO holdfast_rate VALUES (?, ?)');
    this.#unblockAll = store.prepare('UPDATE holdfast_assembly_due SET line = -line WHERE line = ?');
    this.#firstBlocked = store.prepare(
      'SELECT seq FROM holdfast_assembly_due WHERE line = ? AND key = ? ORDER BY due_at LIMIT 1',
    );
    this.#move = store.prepare('UPDATE holdfast_assembly_due SET line = ? WHERE seq = ?');
    this.#waiting = store.prepare('SELECT count(*) AS count FROM holdfast_assembly_due WHERE line IN (?, ?)');
  }

  idOf(name: string | undefined): number {
    if (name === undefined) return 0;
    const known = this.#find.get(name);
    return known ? Number(known.id) : Number(this.#add.run(name).lastInsertRowid);
  }

  set(name: string, limits: QueueLimits): void {
    const id = this.idOf(name);
    this.#set.run(JSON.stringify(limits), id);
    this.#unblockAll.run(-id);
  }

  all(): Queue[] {
    return this.#all.all().map((row) => ({
      id: Number(row.id),
      name: String(row.name),
      limits: JSON.parse(String(row.limits)) as QueueLimits,
    }));
  }

  states(): QueueState[] {
    return this.all().map(({ id, name, limits }) => ({
      ...{ name, limits, leased: Number(this.#leased.get(id)?.count) },
      waiting: Number(this.#waiting.get(id, -id)?.count),
    }));
  }

  room({ id, limits }: Queue): number {
    if (limits.concurrency === undefined) return Infinity;
    return limits.concurrency - Number(this.#leased.get(id)?.count);
  }

  hasRoomForKey({ id, limits }: Queue, key: string | null): boolean {
    if (limits.concurrencyByKey === undefined || key === null) return true;
    return Number(this.#leasedOfKey.get(id, key)?.count) < limits.concurrencyByKey;
  }

  block({ id }: Queue, seq: number): void {
    this.#move.run(-id, seq);
  }

  /** Call it when the lease of an assembly ends, so that the next assembly of its key can be leased. */
  unblock(queue: number, key: string | null): void {
    if (queue === 0 || key === null) return;
    const first = this.#firstBlocked.get(-queue, key);
    if (first) this.#move.run(queue, Number(first.seq));
  }

  /** Returns the ms until the rate limits of the queue and of the key allow the next assembly. */
  waitMs(queue: Queue, key: string | null | undefined, now: number): number {
    const rates = this.#ratesOf(queue, key);
    return Math.max(0, ...rates.map(({ name, rate }) => gcraWait(asLimit(rate), this.#read(name), now, 1)));
  }

  charge(queue: Queue, key: string | null, now: number): void {
    for (const { name, rate } of this.#ratesOf(queue, key))
      this.#putTat.run(name, gcraTake(asLimit(rate), this.#read(name), now, 1));
  }

  #ratesOf({ name, limits }: Queue, key: string | null | undefined): { name: string; rate: QueueRate }[] {
    const rates: { name: string; rate: QueueRate }[] = [];
    if (limits.rate) rates.push({ name: `assemblies\0${name}`, rate: limits.rate });
    if (limits.rateByKey && typeof key === 'string')
      rates.push({ name: `assemblies\0${name}\0${key}`, rate: limits.rateByKey });
    return rates;
  }

  #read(name: string): number {
    return Number(this.#tat.get(name)?.tat ?? 0);
  }
}

function asLimit({ count, perMs }: QueueRate): { ratePerMs: number; burst: number } {
  return { ratePerMs: count / perMs, burst: count };
}
