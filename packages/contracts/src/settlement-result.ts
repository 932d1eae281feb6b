/** The result of one settlement of the broker, or of one completion of the ledger. */
export interface SettlementResult {
  /** True: the settlement was applied. */
  readonly took: boolean;
  /** True: a mark shows that this handler has handled the event before, so `commit` was not called again. */
  readonly repeated: boolean;
  /** Why the settlement was not applied; `undefined` if it was applied. */
  readonly because: 'lease_lost' | 'commit_failed' | 'topic_unknown' | undefined;
  /** The error that `commit` threw. */
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
