import type { Duration } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';

/** Anything that `drainOnSignals` can stop: a consumer, or another object with a `stop` method. */
export interface Stoppable {
  stop(options?: { readonly grace?: Duration }): Promise<void>;
}

/** The options of `drainOnSignals`. */
export interface DrainOptions {
  /** The signals (sent to the process) that stop the consumers. Default: `SIGTERM`, `SIGINT`. */
  readonly signals?: readonly NodeJS.Signals[] | undefined;
  /**
   * How long running handlers may continue before they are aborted. Default: the `grace` of each consumer.
   */
  readonly grace?: Duration | undefined;
  /** Called when all consumers have stopped. Close the engine and the server here. Default: none. */
  readonly then?: ((signal: NodeJS.Signals) => void | Promise<void>) | undefined;
}

const known = Object.fromEntries(['signals', 'grace', 'then'].map((name) => [name, true]));

/**
 * Stops consumers when the process receives a termination signal. A second signal ends the process
 * immediately. Returns a function that removes the signal listeners.
 */
export function drainOnSignals(consumers: readonly Stoppable[], options: DrainOptions = {}): () => void {
  assertKnownFields(known, options);
  const { signals = ['SIGTERM', 'SIGINT'], grace, then } = options;
  const undo = () => {
    for (const signal of signals) process.off(signal, drain);
  };
  function drain(signal: NodeJS.Signals): void {
    undo();
    const stopped = consumers.map((each) => each.stop(grace === undefined ? {} : { grace }));
    // Errors are not caught: if `then` throws, the unhandled rejection ends the process with an error code.
    void Promise.all(stopped).then(() => then?.(signal));
  }
  for (const signal of signals) process.on(signal, drain);
  return undo;
}
