import type { Duration } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';

export interface Stoppable {
  stop(options?: { readonly grace?: Duration }): Promise<void>;
}

export interface DrainOptions {
  /** SIGTERM and SIGINT unless given. */
  readonly signals?: readonly NodeJS.Signals[] | undefined;
  /** How long handlers may take; each consumer's own unless given. */
  readonly grace?: Duration | undefined;
  /** Called when all have stopped: to close the engine, the server. The process then ends by itself, or here. */
  readonly then?: ((signal: NodeJS.Signals) => void | Promise<void>) | undefined;
}

const known = Object.fromEntries(['signals', 'grace', 'then'].map((name) => [name, true]));

/** Stops consumers when the process is asked to end. Returns the way to undo it. A second signal ends the process as always. */
export function drainOnSignals(consumers: readonly Stoppable[], options: DrainOptions = {}): () => void {
  refuseUnknown(known, options);
  const { signals = ['SIGTERM', 'SIGINT'], grace, then } = options;
  const undo = () => {
    for (const signal of signals) process.off(signal, drain);
  };
  function drain(signal: NodeJS.Signals): void {
    undo();
    const stopped = consumers.map((each) => each.stop(grace === undefined ? {} : { grace }));
    // What fails here surfaces as an unhandled rejection: a process that cannot end well must not seem to.
    void Promise.all(stopped).then(() => then?.(signal));
  }
  for (const signal of signals) process.on(signal, drain);
  return undo;
}
