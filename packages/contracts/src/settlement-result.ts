/** The result of a settlement (broker) or of a completion (ledger). */
export interface SettlementResult {
  /** True: the store has applied the settlement or completion. */
  readonly took: boolean;
  /** True: the handler has handled this event before, so `commit` was not called. */
  readonly repeated: boolean;
  /** Why the store did not apply the settlement or completion; `undefined`: the store applied it. */
  readonly because: 'lease_lost' | 'commit_failed' | 'topic_unknown' | undefined;
  /** The error that `commit` threw, if `because` is `commit_failed`. */
  readonly error: unknown;
}

/** The result of a settlement (such as an acknowledgement) that the store applied. */
export const TOOK: SettlementResult = { took: true, repeated: false, because: undefined, error: undefined };
/** The result of a settlement for an event that this handler had already handled: `commit` was not called. */
export const REPEATED: SettlementResult = {
  took: true,
  repeated: true,
  because: undefined,
  error: undefined,
};
/**
 * The result of a settlement (such as an acknowledgement) under a lease that has ended. It changed nothing.
 */
export const LEASE_LOST: SettlementResult = {
  took: false,
  repeated: false,
  because: 'lease_lost',
  error: undefined,
};
/** The result of a reroute to a topic that was never declared: it changed nothing. */
export const TOPIC_UNKNOWN: SettlementResult = {
  took: false,
  repeated: false,
  because: 'topic_unknown',
  error: undefined,
};

/**
 * The result of a settlement (such as an acknowledgement) whose `commit` threw. Nothing was stored, and the
 * event stays leased.
 */
export function commitFailed(error: unknown): SettlementResult {
  return { took: false, repeated: false, because: 'commit_failed', error };
}
