import type { Broker } from './broker.ts';
import type { Features } from './features.ts';
import type { Ledger } from './ledger.ts';
import type { RateLimits } from './rate-limits.ts';
import type { Triage } from './triage.ts';

/** One store. It implements the contracts that suit it; `features` say which of them work together. */
export interface Engine<Tx = unknown> {
  /** `sqlite`, `postgres`. */
  readonly name: string;
  /** What a stored write survives: `process` means a killed process, `power` a power cut. */
  readonly durability: 'none' | 'process' | 'power';
  readonly features: Features;
  readonly broker?: Broker<Tx>;
  readonly ledger?: Ledger<Tx>;
  readonly triage?: Triage;
  readonly rateLimits?: RateLimits;
  /**
   * Removes expired entries: settled events, keys, marks, parked events. Removes at most `limit`, so that it never takes long, and
   * returns how many. To be called now and then in each process that uses the engine; `maintenance` of `@holdfast/events` does.
   */
  sweep(limit: number): Promise<number>;
  close(): Promise<void>;
}
