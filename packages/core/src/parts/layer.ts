import type { Plan } from '../policy/plan.ts';
import type { Story } from '../report/story.ts';
import { attemptRun, type Ending, type Failure } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';

/** Runs the next inner layer, or the work. `options` replace those of the caller. */
export type Next<T> = (options: RunOptions) => Promise<Ending<T>>;

/**
 * A layer of the operation ring: it is around the whole work, with its waits and retries. Layers are few and optional, so
 * they are promises of endings instead of steps of the state machine; a policy without layers pays nothing for them.
 */
export interface Layer {
  /** Outermost first. 1: mode, because observed work must not use the other layers. 2: fallback. 3: cache. */
  readonly order: 1 | 2 | 3;
  around<T>(operation: Operation<T>, options: RunOptions, next: Next<T>): Promise<Ending<T>>;
}

/** Runs `operation` through the layers of `plan`, outermost first. */
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

/** Adds a layer by its `order`, whatever the order of the parts. */
export function addLayer(plan: Plan, layer: Layer): void {
  plan.layers.push(layer);
  plan.layers.sort((a, b) => a.order - b.order);
  plan.runLayers = runLayers;
}

/** The ending of a run that a layer ends early. */
export function failure(error: unknown, story: Story): Failure<never> {
  return { ok: false, thrown: true, error, value: undefined, story };
}
