/** `true`: the engine has the feature. Otherwise `missing` is the reason why it lacks the feature. */
export type Feature = true | Missing;

/** The reason why an engine lacks a feature, as a sentence for people. */
export interface Missing {
  readonly missing: string;
}

/** The features that an engine may have or lack. Every engine supports everything else in the contracts. */
export interface Features {
  /** Broker: while nothing fails, events are leased in the order of publication. */
  readonly arrivalOrder: Feature;
  /** Broker: in a topic with `ordering: 'key'`, events of one key are handled in the order of publication. */
  readonly ordering: Feature;
  /**
   * Broker: after an event is parked (set aside for an operator), later events of the same key can wait until
   * it is replayed or unblocked.
   */
  readonly parkedHoldsKey: Feature;
  /** Broker: delays are exact to the millisecond. Without this feature, delays are rounded up. */
  readonly anyDelay: Feature;
  /** Broker: a second event with the same id is not stored. */
  readonly publishOnce: Feature;
  /** Broker: a publish of several events stores all of them or none. */
  readonly atomicPublish: Feature;
  /**
   * Broker: leases are stored in the engine, not in one process. So any process that has the lease can settle
   * the event.
   */
  readonly portableLeases: Feature;
  /** Broker: a share of the events in each `lease` call can be reserved for retries (`retriesShare`). */
  readonly retriesShare: Feature;
  /**
   * Broker: leases suspects (events whose lease expired) alone. Without this feature, they are leased like
   * other events.
   */
  readonly suspects: Feature;
  /** Broker: waiting events can be listed, and delayed events can be made due now. */
  readonly waitingList: Feature;
  /** Broker: an operator can quarantine a tenant or a key. The engine then leases none of its events. */
  readonly quarantine: Feature;
  /**
   * Broker: an operator's controls (for example `pause`) apply in every process. Without this feature, they
   * apply only in one process.
   */
  readonly sharedControls: Feature;
  /**
   * Broker: the engine notifies consumers when an event becomes due. Without this feature, consumers poll.
   */
  readonly doorbell: Feature;
  /** Broker: acknowledged and discarded events can be kept and read later (`history`). */
  readonly retention: Feature;
  /**
   * Broker and ledger: a settlement and its marks (records of handled events) are written in one transaction.
   */
  readonly marksWithSettlement: Feature;
  /** Broker and ledger: `commit(tx)` runs in the transaction that settles the event. */
  readonly sharedTransaction: Feature;
  /**
   * Broker and triage: the broker stores parked events (set aside for an operator) directly in the triage of
   * the same engine.
   */
  readonly parksInTriage: Feature;
  /** All contracts: stored data survives the end of the process. */
  readonly durable: Feature;
}

/** The names of all features that an engine may lack. */
export const featureNames = [
  'arrivalOrder',
  'ordering',
  'parkedHoldsKey',
  'anyDelay',
  'publishOnce',
  'atomicPublish',
  'portableLeases',
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

/** The name of a feature that an engine may lack. */
export type FeatureName = (typeof featureNames)[number];

/**
 * Returns the value for a feature that an engine lacks. The reason is shown to users who ask for the feature.
 */
export function missing(why: string): Missing {
  return { missing: why };
}

/** Returns why the engine lacks a feature, or `undefined` if it has the feature. */
export function whyMissing(features: Features, name: FeatureName): string | undefined {
  const feature = features[name];
  return feature === true ? undefined : feature.missing;
}
