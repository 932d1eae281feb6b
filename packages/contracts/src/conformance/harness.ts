import type { Clock } from 'holdfast';
import type { Engine } from '../engine.ts';

/** One engine set up for one check, on storage that no other check uses (or under a `prefix` that none does). */
export interface Harness<Tx = unknown> {
  readonly engine: Engine<Tx>;
  /** The engine's time, as well as it can be read from here. */
  readonly clock: Clock;
  /** Lets so much of the engine's time pass: a virtual clock moved, or a real wait. */
  passTime(ms: number): Promise<void>;
  /**
   * The unit in which checks think: delays and leases are a few of it. With real waits, the shortest time in which a few
   * operations are surely done; 1000 unless given. An engine whose delays have steps is set up with steps of one unit.
   */
  readonly unitMs?: number;
  /** Put before the names of topics, keys and scopes. */
  readonly prefix?: string;
  /** Opens the same storage as another process would. The first engine is not closed, and may be dead. */
  reopen?(): Promise<Engine<Tx>>;
  /** The process that was opened last dies after so many more durable writes: the next one, and all later ones, reject. */
  dieAfterWrites?(writes: number): void;
  /** For engines with a shared transaction: an effect that handlers could make, and whether it is there. */
  readonly effect?: {
    write(tx: Tx, name: string): void | Promise<void>;
    isThere(name: string): Promise<boolean>;
  };
  dispose(): Promise<void>;
}
