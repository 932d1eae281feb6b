import type { AttemptRecord } from '../attempt-record.ts';
import type { Ordering, SettledEvent } from '../broker.ts';
import type { ActiveControl } from '../controls.ts';
import type { Diagnosis, Envelope, Payload } from '../envelope.ts';
import type { ErrorNote } from '../error-note.ts';
import type { AuditEntry, ParkedEvent, ReplayOperation, TriageRule } from '../triage.ts';
import { KeyStore } from './key-ring.ts';

/** An event that is not settled. */
export interface Row {
  envelope: Envelope;
  /** Among all events, in the order of publication. */
  order: number;
  /** The key that it keeps waiting; `undefined` where order is not kept, or not any longer. */
  lane: string | undefined;
  dueAt: number;
  attempts: number;
  snoozes: number;
  deaths: number;
  nextDelayMs: number | undefined;
  lastError: ErrorNote | undefined;
  story: readonly AttemptRecord[];
  suspect: boolean;
  /** Parked, and only holding its place. */
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
 * What a memory engine keeps, apart from the engine: two engines on one storage are two processes on one database, and a
 * new engine on the storage of an old one is a restart.
 */
export class MemoryStorage {
  readonly topics = new Map<string, Topic>();
  readonly controls = new Map<string, ActiveControl>();
  controlsVersion = 1;
  readonly bells = new Map<string, Set<() => void>>();

  readonly keys = new KeyStore();
  /** Handler and event id, to when the mark is removed. */
  readonly marks = new Map<string, number>();

  readonly parked = new Map<string, ParkedEvent>();
  readonly operations = new Map<string, ReplayOperation>();
  readonly rules = new Map<string, TriageRule>();
  readonly audit: AuditEntry[] = [];

  readonly tats = new Map<string, number>();
  /** What `commit` has written. */
  readonly effects = new Map<string, string>();

  /** Of all engines: what they do is listed by it, in the order in which it was done. */
  newId: (() => string) | undefined;

  #last = 0;

  /** Counts everything that needs an order or a name of its own. */
  next(): number {
    return ++this.#last;
  }

  ring(topic: string): void {
    // In a microtask: a listener may call the broker, and must find what rang it.
    for (const ring of this.bells.get(topic) ?? []) queueMicrotask(ring);
  }
}

/** What `commit` gets: writes that are made with the settlement, or not at all. */
export interface MemoryTransaction {
  /** Does `write` with the others. */
  defer(write: () => void): void;
  put(name: string, value: string): void;
  get(name: string): string | undefined;
}

/** A transaction, and how to make its writes. */
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
