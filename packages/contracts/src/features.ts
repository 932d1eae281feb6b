/**
 * `true`: the engine has the feature. Otherwise the reason why it does not have the feature, worded so that the reason
 * can follow "skipped:" in a test report.
 */
export type Feature = true | Missing;

export interface Missing {
  readonly missing: string;
}

/** The optional abilities of engines. Everything else in the contracts is supported by every engine. */
export interface Features {
  /** Broker: in a topic with `ordering: 'key'`, events of one key are handled in the order of publication. */
  readonly ordering: Feature;
  /** Broker: later events of a key can wait for a parked event of that key. */
  readonly parkedHoldsKey: Feature;
  /**
   * Broker: delays are exact to the millisecond. Without it, a delay is rounded up to the next delay that the engine
   * supports.
   */
  readonly anyDelay: Feature;
  /** Broker: an event is not stored again if its id is stored already. */
  readonly publishOnce: Feature;
  /** Broker: a publish of several events stores all of them or none. */
  readonly atomicPublish: Feature;
  /** Broker: a part of each lease can be reserved for retries (`retriesShare`). */
  readonly retriesShare: Feature;
  /**
   * Broker: detects suspects (events whose lease expired because a process died or hung), counts how often that
   * happened, and leases suspects alone. Without this feature, suspects are leased like other events, and a lease of
   * suspects returns nothing.
   */
  readonly suspects: Feature;
  /** Broker: waiting events can be listed, and delayed events can be made due now. */
  readonly waitingList: Feature;
  /** Broker: events of one tenant or key can be held back while other events are leased. */
  readonly quarantine: Feature;
  /**
   * Broker: operators' controls are stored and apply in every process. Without this feature, controls apply only in the
   * process that set them.
   */
  readonly sharedControls: Feature;
  /** Broker: notifies consumers when an event may be due. Without this feature, consumers poll. */
  readonly doorbell: Feature;
  /** Broker: acknowledged and discarded events can be kept and read later (`history`). */
  readonly retention: Feature;
  /** Broker and ledger: the idempotency marks of handled events are written in one transaction with the settlement. */
  readonly marksWithSettlement: Feature;
  /** Broker and ledger: `commit(tx)` of a handler runs within the transaction of the settlement. */
  readonly sharedTransaction: Feature;
  /** Broker and triage: a settlement that parks an event writes it directly to the triage of the same engine. */
  readonly parksInTriage: Feature;
  /** All contracts: stored data survives the end of the process. */
  readonly durable: Feature;
}

export const featureNames = [
  'ordering',
  'parkedHoldsKey',
  'anyDelay',
  'publishOnce',
  'atomicPublish',
  'retriesShare',
  'suspects',
  'waitingList',
  'quarantine',
  'sharedControls',
  'doorbell',
  'retention',
  'marksWithSettlement',
  'sharedTransaction',
  'parksInTriage',
  'durable',
] as const satisfies readonly (keyof Features)[];

export type FeatureName = (typeof featureNames)[number];

export function missing(why: string): Missing {
  return { missing: why };
}

/** Returns why the engine does not have a feature; `undefined` if it has the feature. */
export function whyMissing(features: Features, name: FeatureName): string | undefined {
  const feature = features[name];
  return feature === true ? undefined : feature.missing;
}
