import type { Broker } from './broker.ts';
import type { Features } from './features.ts';
import type { Ledger } from './ledger.ts';
import type { RateLimits } from './rate-limits.ts';
import type { Triage } from './triage.ts';

/** One data store. It implements some or all of the contracts below; `features` tells what it supports. */
export interface Engine<Tx = unknown> {
  /** For example `sqlite` or `postgres`. */
  readonly name: string;
  /**
   * What stored data survives. `none`: data is lost at the end of the process. `process`: data survives a killed
   * process. `power`: data also survives a power cut.
   */
  readonly durability: 'none' | 'process' | 'power';
  readonly features: Features;
  readonly broker?: Broker<Tx>;
  readonly ledger?: Ledger<Tx>;
  readonly triage?: Triage;
  readonly rateLimits?: RateLimits;
  /**
   * Removes at most `limit` expired entries (settled events, idempotency keys, marks of handled events, parked events)
   * and returns how many it removed. Call it regularly in each process that uses the engine; `maintenance` of
   * `@holdfast/events` does that.
   */
  sweep(limit: number): Promise<number>;
  close(): Promise<void>;
}
