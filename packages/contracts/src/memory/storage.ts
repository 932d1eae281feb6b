import type { AttemptRecord } from '../attempt-record.ts';
import type { Ordering, SettledEvent } from '../broker.ts';
import type { ActiveControl } from '../controls.ts';
import type { Diagnosis, Envelope, Payload } from '../envelope.ts';
import type { ErrorNote } from '../error-note.ts';
import type { AuditEntry, ParkedEvent, ReplayOperation, TriageRule } from '../triage.ts';
import { KeyStore } from './key-store.ts';

/** An event that is not settled. */
export interface Row {
  envelope: Envelope;
  /** Its number among all events, in the order of publication. */
  order: number;
  /** The key whose later events wait for this one; `undefined` when none do. */
  orderKey: string | undefined;
  dueAt: number;
  attempts: number;
  snoozes: number;
  deaths: number;
  nextDelayMs: number | undefined;
  lastError: ErrorNote | undefined;
  story: readonly AttemptRecord[];
  suspect: boolean;
  /** It is parked, and its row only keeps later events of the key waiting. */
  blocking: boolean;
  lease: { readonly token: string; readonly owner: string; endsAt: number } | undefined;
  diagnosis: Diagnosis | undefined;
}

export interface Topic {
  ordering: Ordering;
  keepSettledMs: number;
  /** By event id, in the order of publication. */
  readonly rows: Map<string, Row>;
  settled: { readonly order: number; readonly event: SettledEvent; readonly removedAt: number }[];
}

export interface KeyEntry {
  fingerprint: string;
  token: string;
  leaseEndsAt: number;
  attempt: number;
  done: boolean;
  record: Payload | undefined;
  removedAt: number;
}

/**
 * The data of a memory engine. Two engines on one storage act as two processes on one database; a new engine on the storage
 * of a closed one acts as a restart.
 */
export class MemoryStorage {
  readonly topics = new Map<string, Topic>();
  readonly controls = new Map<string, ActiveControl>();
  controlsVersion = 1;
  readonly doorbells = new Map<string, Set<() => void>>();

  readonly keys = new KeyStore();
  /** By `handler\0eventId`: when the mark is removed. */
  readonly marks = new Map<string, number>();

  readonly parked = new Map<string, ParkedEvent>();
  readonly operations = new Map<string, ReplayOperation>();
  readonly rules = new Map<string, TriageRule>();
  readonly audit: AuditEntry[] = [];

  readonly tats = new Map<string, number>();
  /** Values that `commit` has written. */
  readonly effects = new Map<string, string>();

  /** One maker of ids for all engines on this storage, so that ids sort in the order of the acts they name. */
  newId: (() => string) | undefined;

  #last = 0;

  /** The next number, for orders and tokens. */
  next(): number {
    return ++this.#last;
  }

  ring(topic: string): void {
    // In a microtask: a listener may call the broker, and the change that rang must be complete by then.
    for (const ring of this.doorbells.get(topic) ?? []) queueMicrotask(ring);
  }
}

/** The transaction that `commit` gets. Its writes are made together with the settlement, or not at all. */
export interface MemoryTransaction {
  /** Calls `write` when the transaction is applied. */
  defer(write: () => void): void;
  put(name: string, value: string): void;
  get(name: string): string | undefined;
}

/** A new transaction. `apply` makes its writes. */
export function beginTransaction(storage: MemoryStorage): { tx: MemoryTransaction; apply: () => void } {
  const staged = new Map<string, string>();
  const deferred: (() => void)[] = [];
  return {
    tx: {
      defer: (write) => void deferred.push(write),
      put: (name, value) => void staged.set(name, value),
      get: (name) => staged.get(name) ?? storage.effects.get(name),
    },
    apply: () => {
      for (const [name, value] of staged) storage.effects.set(name, value);
      for (const write of deferred) write();
    },
  };
}
