import type { Clock } from 'holdfast';
import type { Engine } from '../engine.ts';

/**
 * The engine to test, and what a check needs to control it. Each check gets its own storage or its own
 * `prefix`.
 */
export interface Harness<Tx = unknown> {
  readonly engine: Engine<Tx>;
  /** The clock of the engine, or a clock that shows nearly the same time. */
  readonly clock: Clock;
  /** Makes `ms` pass for the engine: it advances a virtual clock, or waits. */
  passTime(ms: number): Promise<void>;
  /**
   * The length of one time unit of the checks, in ms; 1000 by default. With a real clock, it must be long
   * enough for a few operations.
   */
  readonly unitMs?: number;
  /** A prefix for the names of topics, keys and scopes. */
  readonly prefix?: string;
  /**
   * Opens a second engine on the same storage, as another process would. Without the feature
   * `portableLeases`, the first engine must close, because it would keep events that it has fetched.
   */
  reopen?(): Promise<Engine<Tx>>;
  /** Simulates a crash: after `writes` more writes, every write rejects. */
  dieAfterWrites?(writes: number): void;
  /**
   * Lets checks see whether a transaction was committed. `write` writes a test value within `tx`; `isThere`
   * says whether it is stored.
   */
  readonly effect?: {
    write(tx: Tx, name: string): void | Promise<void>;
    isThere(name: string): Promise<boolean>;
  };
  dispose(): Promise<void>;
}
