import type { Payload } from './envelope.ts';
import type { SettlementResult } from './settlement-result.ts';

/**
 * Stores idempotency keys, so that a repeated request has no second effect. Every method takes a batch and
 * returns one result per item. Each item sees the changes of earlier items.
 */
export interface Ledger<Tx = unknown> {
  begin(claims: readonly Claim[]): Promise<readonly Begun[]>;
  complete(completions: readonly Completion<Tx>[]): Promise<readonly SettlementResult[]>;
  /**
   * Removes keys whose request was not executed, so that the request can be sent again. Returns false for a
   * key whose lease has ended.
   */
  release(holds: readonly Hold[]): Promise<readonly boolean[]>;
  /** Makes the leases end `leaseMs` from now. Returns false for a lease that has ended. */
  extend(holds: readonly Hold[], leaseMs: number): Promise<readonly boolean[]>;
  /** Removes all keys of a scope and returns how many. Keys whose request is being executed stay. */
  purge(scope: string): Promise<number>;

  /**
   * Records that handlers have handled events. Returns true only to the first caller for a handler and an
   * event. Only this caller may produce the effect of the event.
   */
  mark(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
  isMarked(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
}

/** An idempotency key that a caller claims before it executes a request. */
export interface Claim {
  /** The namespace of the key, for example a tenant and a route. */
  readonly scope: string;
  readonly key: string;
  /** A hash of the request. If the key was used with another hash, `begin` returns `mismatch`. */
  readonly fingerprint: string;
  readonly leaseMs: number;
  /**
   * What `begin` does if another caller's lease has expired, so that nobody knows whether the request was
   * executed. `tell` (the default) returns `unknown`; `takeOver` gives the key to this caller.
   */
  readonly whenLost?: 'tell' | 'takeOver';
  /** How many ms the key is kept if `complete` is never called; a day by default. */
  readonly keepMs?: number;
  /**
   * The most keys in this scope. When there are that many, `begin` returns `full`. No limit by default.
   * Engines need not count keys that were begun without `liveMax`.
   */
  readonly liveMax?: number;
}

/** The lease of an idempotency key. Its owner may call `complete`, `extend` and `release` for the key. */
export interface Hold {
  readonly scope: string;
  readonly key: string;
  readonly token: string;
}

/**
 * The result of a claim. `acquired`: execute the request. `mismatch`: the key was used for another request.
 * `unknown`: another caller's lease expired. `full`: there is no room.
 */
export type Begun =
  | {
      readonly kind: 'acquired';
      readonly hold: Hold;
      /**
       * How often the key was acquired, counted from 1. Above 1, an earlier caller's lease expired before it
       * completed the request.
       */
      readonly attempt: number;
    }
  /** Another caller has leased the key. That lease ends in `retryAfterMs`. */
  | { readonly kind: 'running'; readonly retryAfterMs: number }
  /** The request was executed before. `record` is its stored result, if there is one. */
  | { readonly kind: 'done'; readonly record: Payload | undefined }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'full' };

/** The result of a request that was executed. The engine stores it. */
export interface Completion<Tx = unknown> {
  readonly hold: Hold;
  readonly record: Payload | undefined;
  /** How many ms the key and its result are kept from now on. */
  readonly keepMs: number;
  /** Writes the effect in the same transaction as the completion. Its return value is stored as the record. */
  readonly commit?: (tx: Tx) => Payload | undefined | Promise<Payload | undefined>;
}

/** Says that the handler `handler` has handled the event `eventId`. */
export interface ProcessedMark {
  readonly handler: string;
  readonly eventId: string;
}
