import type { AttemptRecord } from '../attempt-record.ts';
import type { Ordering, SettledEvent } from '../broker.ts';
import type { ActiveControl } from '../controls.ts';
import type { Diagnosis, Envelope, Payload } from '../envelope.ts';
import type { ErrorNote } from '../error-note.ts';
import type { AuditEntry, ParkedEvent, ReplayOperation, TriageRule } from '../triage.ts';
import { KeyStore } from './key-store.ts';

/** A stored event that is not finished. */
export interface Row {
  envelope: Envelope;
  /** The position of the event in the order of publication, over all topics. */
  order: number;
  /** Later events with this key wait for this event. `undefined`: no event waits for it. */
  orderKey: string | undefined;
  dueAt: number;
  attempts: number;
  snoozes: number;
  deaths: number;
  nextDelayMs: number | undefined;
  lastError: ErrorNote | undefined;
  story: readonly AttemptRecord[];
  suspect: boolean;
  /** True: the event is parked, and this row stays only so that later events of the key keep waiting. */
  blocking: boolean;
  lease: { readonly token: string; readonly owner: string; endsAt: number } | undefined;
  diagnosis: Diagnosis | undefined;
}

export interface Topic {
  ordering: Ordering;
  keepSettledMs: number;
  /** The events that are not finished, by event id and in the order of publication. */
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
 * The data of a memory engine. Two engines on the same storage behave like two processes on one database. A new engine
 * on the storage of a closed engine behaves like a restarted process.
 */
export class MemoryStorage {
  readonly topics = new Map<string, Topic>();
  readonly controls = new Map<string, ActiveControl>();
  controlsVersion = 1;
  readonly doorbells = new Map<string, Set<() => void>>();

  readonly keys = new KeyStore();
  /** Marks of handled events: the key is `handler\0eventId`, the value is the time at which the mark is removed. */
  readonly marks = new Map<string, number>();

  readonly parked = new Map<string, ParkedEvent>();
  readonly operations = new Map<string, ReplayOperation>();
  readonly rules = new Map<string, TriageRule>();
  readonly audit: AuditEntry[] = [];

  readonly tats = new Map<string, number>();
  /** The values that `put` of a `MemoryTransaction` has written. */
  readonly effects = new Map<string, string>();

  /** All engines on this storage share one id generator, so that ids sort in the order of their creation. */
  newId: (() => string) | undefined;

  #last = 0;

  /** Returns the next number of a sequence that is used for positions and tokens. */
  next(): number {
    return ++this.#last;
  }

  ring(topic: string): void {
    // Call listeners in a microtask: a listener may call the broker, and the current change must be complete by then.
    for (const ring of this.doorbells.get(topic) ?? []) queueMicrotask(ring);
  }
}

/** The transaction that `commit` gets. Its writes are applied together with the settlement, or not at all. */
export interface MemoryTransaction {
  /** Calls `write` when the transaction commits. */
  defer(write: () => void): void;
  put(name: string, value: string): void;
  get(name: string): string | undefined;
}

/** Begins a transaction. `apply` commits it. */
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
