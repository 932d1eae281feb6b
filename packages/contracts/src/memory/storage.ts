import type { AttemptRecord } from '../attempt-record.ts';
import type { AuditEntry } from '../audit.ts';
import type { Ordering, SettledEvent } from '../broker.ts';
import type { ActiveControl } from '../controls.ts';
import type { Diagnosis, Envelope, Payload } from '../envelope.ts';
import type { ErrorNote } from '../error-note.ts';
import type { Operation } from '../operations.ts';
import type { Place } from '../page.ts';
import type { PresentProcess } from '../presence.ts';
import type { ParkedEvent, TriageRule } from '../triage.ts';
import { JournalStorage } from './journal-storage.ts';
import { KeyStore } from './key-store.ts';

export interface Row {
  envelope: Envelope;
  /** The position in the order of publication, over all topics. */
  order: number;
  /** Later events with this key wait for this event; `undefined`: no event waits for it. */
  orderKey: string | undefined;
  dueAt: number;
  attempts: number;
  snoozes: number;
  deaths: number;
  nextDelayMs: number | undefined;
  lastError: ErrorNote | undefined;
  story: readonly AttemptRecord[];
  suspect: boolean;
  /**
   * True: the event is parked (set aside for an operator). Its row stays, so that later events of its key
   * wait for it.
   */
  blocking: boolean;
  lease: { readonly token: string; readonly owner: string; endsAt: number } | undefined;
  diagnosis: Diagnosis | undefined;
}

export interface Topic {
  ordering: Ordering;
  keepSettledMs: number;
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

/** The data of a memory engine. Two engines on one storage behave like two processes on one database. */
export class MemoryStorage {
  readonly topics = new Map<string, Topic>();
  readonly controls = new Map<string, ActiveControl>();
  controlsVersion = 1;
  readonly doorbells = new Map<string, Set<() => void>>();

  readonly keys = new KeyStore();
  /** For each handled event, by `handler\0eventId`: when the record that it was handled expires, epoch ms. */
  readonly marks = new Map<string, number>();

  readonly parked = new Map<string, ParkedEvent>();
  readonly operations = new Map<string, Operation>();
  /** The position of the last event that each operation changed, by operation id. */
  readonly positions = new Map<string, Place>();
  /** The last operation that changed each event, and the event's `removedAt` before. An undo needs both. */
  readonly changes = new Map<string, { readonly operation: string; readonly removedAt: number }>();
  readonly rules = new Map<string, TriageRule>();
  readonly audit: AuditEntry[] = [];

  /** By process id; the process with the oldest report comes first. */
  readonly processes = new Map<string, PresentProcess>();

  readonly journal = new JournalStorage();

  readonly tats = new Map<string, number>();
  readonly effects = new Map<string, string>();

  /** Creates ids. All engines on this storage share this function, so that ids sort by creation. */
  newId: (() => string) | undefined;

  #last = 0;

  next(): number {
    return ++this.#last;
  }

  ring(topic: string): void {
    // A listener may call the broker, so call it in a microtask, when the current change is complete.
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
