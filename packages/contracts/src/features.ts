/** `true`: the engine has the feature. Otherwise, `missing` says why not. */
export type Feature = true | Missing;

/** Says that an engine lacks a feature, and why, in a sentence for people. */
export interface Missing {
  readonly missing: string;
}

/** The optional abilities of engines. Every engine supports the rest of the contracts. */
export interface Features {
  /** Broker: while nothing fails, events are leased in the order of publication. */
  readonly arrivalOrder: Feature;
  /** Broker: in a topic with `ordering: 'key'`, events of one key are handled in the order of publication. */
  readonly ordering: Feature;
  /** Broker: later events of a key can wait for a parked event of that key. */
  readonly parkedHoldsKey: Feature;
  /** Broker: delays are exact to the millisecond. Without this feature, delays are rounded up. */
  readonly anyDelay: Feature;
  /** Broker: an event is not stored twice under one id. */
  readonly publishOnce: Feature;
  /** Broker: a publish of several events stores all of them or none. */
  readonly atomicPublish: Feature;
  /**
   * Broker: leases are stored. So every process knows which events are leased, and can settle an event with its lease.
   */
  readonly portableLeases: Feature;
  /** Broker: a part of each lease can be reserved for retries (`retriesShare`). */
  readonly retriesShare: Feature;
  /**
   * Broker: detects suspects (events whose lease expired because a process died or hung) and leases them alone. Without
   * this feature, suspects are leased like other events.
   */
  readonly suspects: Feature;
  /** Broker: waiting events can be listed, and delayed events can be made due now. */
  readonly waitingList: Feature;
  /** Broker: the events of one tenant or key can be held back. */
  readonly quarantine: Feature;
  /** Broker: operators' controls apply in every process. Without this feature, they apply only in one process. */
  readonly sharedControls: Feature;
  /** Broker: notifies consumers of due events. Without this feature, consumers poll. */
  readonly doorbell: Feature;
  /** Broker: acknowledged and discarded events can be kept and read later (`history`). */
  readonly retention: Feature;
  /**
   * Broker and ledger: a settlement and its marks are written in one transaction. A mark records that a handler has
   * handled an event.
   */
  readonly marksWithSettlement: Feature;
  /** Broker and ledger: `commit(tx)` runs in the transaction that settles the event. */
  readonly sharedTransaction: Feature;
  /** Broker and triage: parked events go directly to the triage of the same engine. */
  readonly parksInTriage: Feature;
  /** All contracts: stored data survives the end of the process. */
  readonly durable: Feature;
}

/** Everything that an engine may lack. */
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

/** The name of something that an engine may lack. */
export type FeatureName = (typeof featureNames)[number];

/** Says that an engine lacks a feature. The reason is shown to whoever asks for the feature. */
export function missing(why: string): Missing {
  return { missing: why };
}

/** Returns why the engine lacks a feature, or `undefined` if it has the feature. */
export function whyMissing(features: Features, name: FeatureName): string | undefined {
  const feature = features[name];
  return feature === true ? undefined : feature.missing;
}
