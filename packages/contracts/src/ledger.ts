import type { Payload } from './envelope.ts';
import type { SettlementResult } from './settlement-result.ts';

/**
 * Records which work was done under which idempotency key, so that a repeated request has no second effect. Every
 * method takes a batch and returns one result per item, in the same order. Each item sees the changes of the items
 * before it.
 */
export interface Ledger<Tx = unknown> {
  begin(claims: readonly Claim[]): Promise<readonly Begun[]>;
  complete(completions: readonly Completion<Tx>[]): Promise<readonly SettlementResult[]>;
  /** Removes keys that the caller holds, as if their work had never begun. False: the lease on the key has ended. */
  release(holds: readonly Hold[]): Promise<readonly boolean[]>;
  /** Extends the leases on keys so that they end `leaseMs` from now. False: the lease has ended already. */
  extend(holds: readonly Hold[], leaseMs: number): Promise<readonly boolean[]>;
  /**
   * Removes all keys of a scope with their records, and returns how many keys it removed. Keys with an active lease
   * stay: their work is in progress, and could be done twice without the key.
   */
  purge(scope: string): Promise<number>;

  /** Marks events as handled. True: the mark is new, and only this caller may produce the effect of the event. */
  mark(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
  isMarked(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
}

export interface Claim {
  /** The namespace of the key, for example a tenant and a route. */
  readonly scope: string;
  readonly key: string;
  /** A hash of the request. If the key was used with another fingerprint, `begin` returns `mismatch`. */
  readonly fingerprint: string;
  readonly leaseMs: number;
  /**
   * What `begin` does if another caller's lease on the key has expired, so that the effect of that caller may or may
   * not have happened. `tell` returns `unknown`; `takeOver` gives the key to this caller. `tell` unless given.
   */
  readonly whenLost?: 'tell' | 'takeOver';
  /** How long a key is kept if its work is never completed; a day unless given. */
  readonly keepMs?: number;
  /**
   * The most keys that this scope may have, otherwise `begin` returns `full`; no limit unless given. Engines need not
   * count keys that were begun without `liveMax`.
   */
  readonly liveMax?: number;
}

/** The right to complete the work under one key, for a limited time. */
export interface Hold {
  readonly scope: string;
  readonly key: string;
  readonly token: string;
}

export type Begun =
  | {
      readonly kind: 'acquired';
      readonly hold: Hold;
      /**
       * The number of this attempt, counted from 1. Above 1: the lease of an earlier caller expired before that caller
       * completed the work.
       */
      readonly attempt: number;
    }
  /** Another caller has leased the key. `retryAfterMs` is the time until that lease ends. */
  | { readonly kind: 'running'; readonly retryAfterMs: number }
  /** The work was completed before. `record` is its stored result; `undefined`: no result was stored. */
  | { readonly kind: 'done'; readonly record: Payload | undefined }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'full' };

export interface Completion<Tx = unknown> {
  readonly hold: Hold;
  readonly record: Payload | undefined;
  /** How long the key and its record are kept from now on. */
  readonly keepMs: number;
  /** Writes the effect within the transaction of the completion. Its return value is stored as the record. */
  readonly commit?: (tx: Tx) => Payload | undefined | Promise<Payload | undefined>;
}

/** Says that this handler has processed this event. */
export interface ProcessedMark {
  readonly handler: string;
  readonly eventId: string;
}
