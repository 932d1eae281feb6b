import type { Clock } from 'holdfast';
import type { Engine } from '../engine.ts';

/** What a conformance check needs: an engine on storage (or with a name `prefix`) that no other check uses. */
export interface Harness<Tx = unknown> {
  readonly engine: Engine<Tx>;
  /** The clock that the engine uses. If the engine's clock cannot be read, a clock that is close to it. */
  readonly clock: Clock;
  /** Lets `ms` pass for the engine: moves a virtual clock forward, or waits. */
  passTime(ms: number): Promise<void>;
  /**
   * The unit in ms of all delays and leases in checks; 1000 unless given. If `passTime` really waits, choose the
   * shortest time in which the engine surely completes a few operations. If the engine supports delays only in fixed
   * steps, configure steps of one unit.
   */
  readonly unitMs?: number;
  /** A prefix for the names of topics, keys and scopes. */
  readonly prefix?: string;
  /**
   * Opens a second engine on the same storage, as another process would. The first engine is not closed; it may have
   * crashed.
   */
  reopen?(): Promise<Engine<Tx>>;
  /** Simulates a crash of the engine that was opened last: after `writes` more successful writes, all writes reject. */
  dieAfterWrites?(writes: number): void;
  /**
   * For engines with the feature `sharedTransaction`: writes a test value within a transaction, and tells whether that
   * value is stored.
   */
  readonly effect?: {
    write(tx: Tx, name: string): void | Promise<void>;
    isThere(name: string): Promise<boolean>;
  };
  dispose(): Promise<void>;
}
