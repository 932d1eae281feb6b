import type { Audit } from './audit.ts';
import type { Broker } from './broker.ts';
import type { Controls } from './controls.ts';
import type { Features } from './features.ts';
import type { Journal } from './journal.ts';
import type { Ledger } from './ledger.ts';
import type { Presence } from './presence.ts';
import type { RateLimits } from './rate-limits.ts';
import type { Triage } from './triage.ts';

/**
 * One data store. It implements some or all of the contracts, for example `broker`, `ledger`, `triage` and
 * `rateLimits`.
 */
export interface Engine<Tx = unknown> {
  /** For example `sqlite` or `postgres`. */
  readonly name: string;
  /**
   * What stored data survives. `none`: it is lost when the process ends. `process`: it survives a killed
   * process. `power`: it also survives a power cut.
   */
  readonly durability: 'none' | 'process' | 'power';
  readonly features: Features;
  readonly broker?: Broker<Tx>;
  readonly ledger?: Ledger<Tx>;
  readonly triage?: Triage;
  readonly rateLimits?: RateLimits;
  /** Stores assemblies (work in several steps). */
  readonly journal?: Journal<Tx>;
  /** The same controls as `broker.controls`. */
  readonly controls?: Controls;
  readonly audit?: Audit;
  readonly presence?: Presence;
  /**
   * Removes at most `limit` expired entries and returns how many. `maintenance` of `@holdfast/events` calls
   * it regularly.
   */
  sweep(limit: number): Promise<number>;
  close(): Promise<void>;
}
