/** `true`, or why not: one clause that completes "skipped:", as `missing('tiers have fixed delays')`. */
export type Feature = true | Missing;

export interface Missing {
  readonly missing: string;
}

/** What engines differ in. Whatever is not here every engine does. */
export interface Features {
  /** Broker: topics can keep order by key. */
  readonly ordering: Feature;
  /** Broker: a parked event can keep its key waiting. */
  readonly parkedHoldsKey: Feature;
  /** Broker: any delay, to the millisecond; otherwise a delay is lengthened to the next step the engine has. */
  readonly anyDelay: Feature;
  /** Broker: an event whose id is in the store is not stored again. */
  readonly publishOnce: Feature;
  /** Broker: a batch is stored whole or not at all. */
  readonly atomicPublish: Feature;
  /** Broker: retries have a share of their own. */
  readonly retriesShare: Feature;
  /**
   * Broker: tells events that were in hand when a process died, counts how often, and hands them out alone. Without it they
   * come back like any other, and a lease of suspects gives nothing.
   */
  readonly suspects: Feature;
  /** Broker: waiting events can be listed and retried now. */
  readonly waitingList: Feature;
  /** Broker: holds back one tenant or key while the rest flows. */
  readonly quarantine: Feature;
  /** Broker: controls are stored, and reach every process. Without it they hold in the process that imposed them. */
  readonly sharedControls: Feature;
  /** Broker: rings when something may be due. */
  readonly doorbell: Feature;
  /** Broker: settled events can be kept and read back. */
  readonly retention: Feature;
  /** Broker and Ledger: marks are written with the settlement, or not at all. */
  readonly marksWithSettlement: Feature;
  /** Broker and Ledger: `commit(tx)` runs inside the settlement's transaction. */
  readonly sharedTransaction: Feature;
  /** Broker and Triage: the Triage of this engine is the parking lot, and a settlement feeds it. */
  readonly parksInTriage: Feature;
  /** All: what was answered survives the process. */
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

/** Why the engine lacks it; `undefined` when it has it. */
export function whyMissing(features: Features, name: FeatureName): string | undefined {
  const feature = features[name];
  return feature === true ? undefined : feature.missing;
}
