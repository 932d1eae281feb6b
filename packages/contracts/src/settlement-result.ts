/** The result of a settlement (broker) or of a completion (ledger). */
export interface SettlementResult {
  /** True: the store has applied the settlement or completion. */
  readonly took: boolean;
  /** True: this handler had already handled the event, so `commit` was not called. */
  readonly repeated: boolean;
  /** Why the store did not apply it; `undefined` if it did. */
  readonly because: 'lease_lost' | 'commit_failed' | 'topic_unknown' | undefined;
  /** The error that `commit` threw, if `because` is `commit_failed`. */
  readonly error: unknown;
}

export const TOOK: SettlementResult = { took: true, repeated: false, because: undefined, error: undefined };
export const REPEATED: SettlementResult = {
  took: true,
  repeated: true,
  because: undefined,
  error: undefined,
};
export const LEASE_LOST: SettlementResult = {
  took: false,
  repeated: false,
  because: 'lease_lost',
  error: undefined,
};
export const TOPIC_UNKNOWN: SettlementResult = {
  took: false,
  repeated: false,
  because: 'topic_unknown',
  error: undefined,
};

export function commitFailed(error: unknown): SettlementResult {
  return { took: false, repeated: false, because: 'commit_failed', error };
}
