import type { Broker } from './broker.ts';
import type { Features } from './features.ts';
import type { Ledger } from './ledger.ts';
import type { RateLimits } from './rate-limits.ts';
import type { Triage } from './triage.ts';

/** What one store offers. It has the contracts that suit it; those it has work together where the features say so. */
export interface Engine<Tx = unknown> {
  /** `sqlite`, `postgres`. */
  readonly name: string;
  /** What an answer survives: nothing, a killed process, or a power cut. */
  readonly durability: 'none' | 'process' | 'power';
  readonly features: Features;
  readonly broker?: Broker<Tx>;
  readonly ledger?: Ledger<Tx>;
  readonly triage?: Triage;
  readonly rateLimits?: RateLimits;
  /**
   * Removes what has outlived its time: settled events, keys, marks, parked events. At most so many, so that it never takes
   * long; says how many. To be called now and then by those who have the engine open.
   */
  sweep(limit: number): Promise<number>;
  close(): Promise<void>;
}
