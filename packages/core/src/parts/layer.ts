import type { Plan } from '../policy/plan.ts';
import type { Story } from '../report/story.ts';
import { attemptRun, type Ending, type Failure } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';

/** Runs the next inner layer, or the work itself. `options` replace the options of the caller. */
export type Next<T> = (options: RunOptions) => Promise<Ending<T>>;

/**
 * A layer encloses the whole work with its waits and retries, such as a cache. Layers are few and optional, so they are
 * async functions and not steps of the state machine `Work`; a policy without layers pays nothing for them.
 */
export interface Layer {
  /**
   * The position, 1 is outermost. 1: mode, because observed work must not use the other layers. 2: fallback. 3: cache.
   */
  readonly order: 1 | 2 | 3;
  around<T>(operation: Operation<T>, options: RunOptions, next: Next<T>): Promise<Ending<T>>;
}

/** Runs `operation` through the layers of `plan`, the compiled policy, outermost first. */
export function runLayers<T>(
  plan: Plan,
  operation: Operation<T>,
  options: RunOptions = {},
): Promise<Ending<T>> {
  const enter = (depth: number, current: RunOptions): Promise<Ending<T>> => {
    const layer = plan.layers[depth];
    return layer
      ? layer.around(operation, current, (changed) => enter(depth + 1, changed))
      : attemptRun(plan, operation, current);
  };
  return enter(0, options);
}

/** Adds a layer at the position that its `order` gives. */
export function addLayer(plan: Plan, layer: Layer): void {
  plan.layers.push(layer);
  plan.layers.sort((a, b) => a.order - b.order);
  plan.runLayers = runLayers;
}

/** Creates the ending of a run that a layer ends early. */
export function failure(error: unknown, story: Story): Failure<never> {
  return { ok: false, thrown: true, error, value: undefined, story };
}
