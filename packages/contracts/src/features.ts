/** `true`, or the reason why not, worded to follow "skipped:", as in `missing('tiers have fixed delays')`. */
export type Feature = true | Missing;

export interface Missing {
  readonly missing: string;
}

/** What engines differ in. Everything else in the contracts is supported by every engine. */
export interface Features {
  /** Broker: topics can keep order by key. */
  readonly ordering: Feature;
  /** Broker: a parked event can keep its key waiting. */
  readonly parkedHoldsKey: Feature;
  /** Broker: any delay, to the millisecond. Without it, a delay is lengthened to the next step that the engine has. */
  readonly anyDelay: Feature;
  /** Broker: an event whose id is in the store is not stored again. */
  readonly publishOnce: Feature;
  /** Broker: a batch is stored whole or not at all. */
  readonly atomicPublish: Feature;
  /** Broker: a share of each lease can be reserved for retries. */
  readonly retriesShare: Feature;
  /**
   * Broker: detects events that were leased when a process died, counts how often, and leases them alone. Without it they are
   * leased like any other event, and a lease of suspects returns nothing.
   */
  readonly suspects: Feature;
  /** Broker: waiting events can be listed and retried now. */
  readonly waitingList: Feature;
  /** Broker: can hold back one tenant or key while other events are leased. */
  readonly quarantine: Feature;
  /** Broker: controls are stored, and reach every process. Without it they apply only in the process that imposed them. */
  readonly sharedControls: Feature;
  /** Broker: rings when an event may be due. */
  readonly doorbell: Feature;
  /** Broker: settled events can be kept and read back. */
  readonly retention: Feature;
  /** Broker and Ledger: marks are written with the settlement, or not at all. */
  readonly marksWithSettlement: Feature;
  /** Broker and Ledger: `commit(tx)` runs inside the settlement's transaction. */
  readonly sharedTransaction: Feature;
  /** Broker and Triage: the triage of this engine is the parking lot, and settlements write to it. */
  readonly parksInTriage: Feature;
  /** All: what was stored survives the process. */
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

/** The reason why the engine lacks a feature; `undefined` when it has it. */
export function whyMissing(features: Features, name: FeatureName): string | undefined {
  const feature = features[name];
  return feature === true ? undefined : feature.missing;
}
