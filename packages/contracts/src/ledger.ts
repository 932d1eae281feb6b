import type { Payload } from './envelope.ts';
import type { SettlementResult } from './settlement-result.ts';

/**
 * Records what was done under a key, so that a repeated request makes no second effect. Every operation takes a batch and
 * returns one result per item, in the same order. Each item sees the effects of those before it.
 */
export interface Ledger<Tx = unknown> {
  begin(claims: readonly Claim[]): Promise<readonly Begun[]>;
  complete(completions: readonly Completion<Tx>[]): Promise<readonly SettlementResult[]>;
  /** Removes the key, as if it had never been begun. */
  release(holds: readonly Hold[]): Promise<readonly boolean[]>;
  /** Makes leases last `leaseMs` from now. False: the lease has ended. */
  extend(holds: readonly Hold[], leaseMs: number): Promise<readonly boolean[]>;
  /**
   * Removes all keys of a scope with their records, and returns how many. Keys that are held now stay: their effect is under
   * way, and could be made twice if they were removed.
   */
  purge(scope: string): Promise<number>;

  /** Writes marks. True when the mark is new: only that caller may make the effect. */
  mark(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
  isMarked(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
}

export interface Claim {
  /** The namespace of the key, for example a tenant and a route. */
  readonly scope: string;
  readonly key: string;
  /** A hash of the request. The same key with another fingerprint is answered with `mismatch`. */
  readonly fingerprint: string;
  readonly leaseMs: number;
  /** When the lease of a holder has ended, its effect may have happened. `tell` (unless given) answers `unknown`; `takeOver` acquires. */
  readonly whenLost?: 'tell' | 'takeOver';
  /** How long a key that was begun and never completed is kept; a day unless given. */
  readonly keepMs?: number;
  /** The most keys that this scope may have; no limit unless given. Keys begun without this limit need not be counted. */
  readonly liveMax?: number;
}

/** The right to complete one key, for a limited time. */
export interface Hold {
  readonly scope: string;
  readonly key: string;
  readonly token: string;
}

export type Begun =
  | {
      readonly kind: 'acquired';
      readonly hold: Hold /** Counted from 1. Above 1: an earlier holder's lease ended. */;
      readonly attempt: number;
    }
  | { readonly kind: 'running' /** When the lease of the holder ends. */; readonly retryAfterMs: number }
  /** `record` is `undefined` when the work was done and its result was not stored. */
  | { readonly kind: 'done'; readonly record: Payload | undefined }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'full' };

export interface Completion<Tx = unknown> {
  readonly hold: Hold;
  readonly record: Payload | undefined;
  /** How long the record is kept, from now. */
  readonly keepMs: number;
  /** Runs inside the transaction of the completion. Its value is stored as the record. */
  readonly commit?: (tx: Tx) => Payload | undefined | Promise<Payload | undefined>;
}

/** A mark that a handler has processed an event. */
export interface ProcessedMark {
  readonly handler: string;
  readonly eventId: string;
}
