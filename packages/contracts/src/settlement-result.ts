/** The result of one settlement or completion. */
export interface SettlementResult {
  /** True: it took effect. */
  readonly took: boolean;
  /** The mark existed already, so `commit` was not called: the effect had been made before. */
  readonly repeated: boolean;
  /** Why it did not take effect. */
  readonly because: 'lease_lost' | 'commit_failed' | 'topic_unknown' | undefined;
  /** What `commit` threw. */
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
