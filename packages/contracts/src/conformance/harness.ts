import type { Clock } from 'holdfast';
import type { Engine } from '../engine.ts';

/** One engine for one check, on storage (or under a `prefix`) that no other check uses. */
export interface Harness<Tx = unknown> {
  readonly engine: Engine<Tx>;
  /** The clock of the engine, or the closest one that a test can read. */
  readonly clock: Clock;
  /** Lets `ms` of the engine's time pass: moves a virtual clock, or really waits. */
  passTime(ms: number): Promise<void>;
  /**
   * The unit of all delays and leases in checks; 1000 unless given. With real waits, choose the shortest time in which a few
   * operations are surely done. An engine whose delays have steps must be set up with steps of one unit.
   */
  readonly unitMs?: number;
  /** A prefix of the names of topics, keys and scopes. */
  readonly prefix?: string;
  /** Opens the same storage as another process would. The first engine is not closed, and may have crashed. */
  reopen?(): Promise<Engine<Tx>>;
  /** Simulates a crash of the engine that was opened last: after `writes` more durable writes, all further ones reject. */
  dieAfterWrites?(writes: number): void;
  /** For engines with a shared transaction: makes an effect inside it, and tells whether the effect exists. */
  readonly effect?: {
    write(tx: Tx, name: string): void | Promise<void>;
    isThere(name: string): Promise<boolean>;
  };
  dispose(): Promise<void>;
}
