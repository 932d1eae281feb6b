import type { Payload } from './envelope.ts';
import type { SettlementResult } from './settlement-result.ts';

/**
 * Stores idempotency keys, so that a repeated request has no second effect. Every method takes a batch and returns one
 * result per item, in the same order. Each item sees the changes of earlier items.
 */
export interface Ledger<Tx = unknown> {
  begin(claims: readonly Claim[]): Promise<readonly Begun[]>;
  complete(completions: readonly Completion<Tx>[]): Promise<readonly SettlementResult[]>;
  /** Removes keys whose work was not done. Returns false for a key whose lease has ended. */
  release(holds: readonly Hold[]): Promise<readonly boolean[]>;
  /** Makes the leases end `leaseMs` from now. Returns false for a lease that has ended. */
  extend(holds: readonly Hold[], leaseMs: number): Promise<readonly boolean[]>;
  /**
   * Removes all keys of a scope and returns how many. Keys with an active lease stay, because their work is in
   * progress.
   */
  purge(scope: string): Promise<number>;

  /** Marks events as handled. Returns true for a new mark: only this caller may produce the effect of the event. */
  mark(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
  isMarked(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
}

/** A key to claim before a request is executed. Requests of one key with different fingerprints are told apart. */
export interface Claim {
  /** The namespace of the key, for example a tenant and a route. */
  readonly scope: string;
  readonly key: string;
  /** A hash of the request. If the key was used with another hash, `begin` returns `mismatch`. */
  readonly fingerprint: string;
  readonly leaseMs: number;
  /**
   * What `begin` does when the lease of another caller has expired, so that its effect is uncertain. `tell` (the
   * default) returns `unknown`; `takeOver` gives the key to this caller.
   */
  readonly whenLost?: 'tell' | 'takeOver';
  /** How long the key is kept if its work is never completed; a day by default. */
  readonly keepMs?: number;
  /**
   * The most keys in this scope; no limit by default. If the scope already has this many keys, `begin` returns `full`.
   * Engines need not count keys that were begun without `liveMax`.
   */
  readonly liveMax?: number;
}

/** The right to complete the work of one key, for a limited time. */
export interface Hold {
  readonly scope: string;
  readonly key: string;
  readonly token: string;
}

/** The answer to a claim: go on, wait, or here is the record of the first time. */
export type Begun =
  | {
      readonly kind: 'acquired';
      readonly hold: Hold;
      /** Counted from 1. Above 1, the lease of an earlier caller expired before its work was complete. */
      readonly attempt: number;
    }
  /** Another caller has leased the key. That lease ends in `retryAfterMs`. */
  | { readonly kind: 'running'; readonly retryAfterMs: number }
  /** The work is complete. `record` is the stored result, if there is one. */
  | { readonly kind: 'done'; readonly record: Payload | undefined }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'full' };

/** The record of a request that was executed, to be kept for `keepMs` ms. */
export interface Completion<Tx = unknown> {
  readonly hold: Hold;
  readonly record: Payload | undefined;
  /** How long the key and its result are kept from now on. */
  readonly keepMs: number;
  /** Writes the effect in the same transaction as the completion. Its return value is stored as the record. */
  readonly commit?: (tx: Tx) => Payload | undefined | Promise<Payload | undefined>;
}

/** A record that this handler has handled this event. */
export interface ProcessedMark {
  readonly handler: string;
  readonly eventId: string;
}
