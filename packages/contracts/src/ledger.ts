import type { Payload } from './envelope.ts';
import type { SettlementResult } from './settlement-result.ts';

/**
 * Keyed outcomes that make repeats harmless. Every operation takes a batch and answers item by item, in the order given;
 * an item sees what those before it did.
 */
export interface Ledger<Tx = unknown> {
  begin(claims: readonly Claim[]): Promise<readonly Begun[]>;
  complete(completions: readonly Completion<Tx>[]): Promise<readonly SettlementResult[]>;
  /** Forgets the key, as if it had never been asked for. */
  release(holds: readonly Hold[]): Promise<readonly boolean[]>;
  /** The lease lasts `leaseMs` from now. False: it has ended. */
  extend(holds: readonly Hold[], leaseMs: number): Promise<readonly boolean[]>;
  /**
   * Forgets all keys of a scope with what was recorded under them, and says how many. Those that somebody holds now stay:
   * their effect is under way, and forgetting them would let it be made twice.
   */
  purge(scope: string): Promise<number>;

  /** True for the first only: the one who may make the effect. */
  mark(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
  isMarked(marks: readonly ProcessedMark[]): Promise<readonly boolean[]>;
}

export interface Claim {
  /** Whose key it is: a tenant and a route. Keys of two scopes never meet. */
  readonly scope: string;
  readonly key: string;
  /** Of the request: the same key with another one is a mistake. */
  readonly fingerprint: string;
  readonly leaseMs: number;
  /** When a holder's lease has ended, its effect may have happened. `tell`, unless given: answer `unknown`. */
  readonly whenLost?: 'tell' | 'takeOver';
  /** How long a key that was begun and never completed is remembered; a day unless given. */
  readonly keepMs?: number;
  /** Keys of this scope that may be remembered at once; absent: no limit. Those begun without one need not be counted. */
  readonly liveMax?: number;
}

/** The right to complete one key, for a while. */
export interface Hold {
  readonly scope: string;
  readonly key: string;
  readonly token: string;
}

export type Begun =
  | {
      readonly kind: 'acquired';
      readonly hold: Hold /** Counted from 1; above it, someone held the key and lost it. */;
      readonly attempt: number;
    }
  | { readonly kind: 'running' /** When the holder's lease ends. */; readonly retryAfterMs: number }
  /** `record` is `undefined` for a tombstone: it was done, and what it answered was not kept. */
  | { readonly kind: 'done'; readonly record: Payload | undefined }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'full' };

export interface Completion<Tx = unknown> {
  readonly hold: Hold;
  readonly record: Payload | undefined;
  /** From now. */
  readonly keepMs: number;
  /** Runs inside the transaction of the completion; its answer is then the record. */
  readonly commit?: (tx: Tx) => Payload | undefined | Promise<Payload | undefined>;
}

/** That a handler is done with an event. */
export interface ProcessedMark {
  readonly handler: string;
  readonly eventId: string;
}
