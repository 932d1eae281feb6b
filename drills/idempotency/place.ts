export type KilledEngine = 'sqlite' | 'postgres' | 'redis';

/** Where a service keeps its keys and its effects. */
export interface Place {
  readonly engine: KilledEngine;
  /** A file, or a URL. */
  readonly address: string;
  /** Where effects are written that no transaction holds. */
  readonly effects: string;
  readonly leaseMs: number;
}
