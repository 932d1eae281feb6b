import type { Plan } from '../policy/plan.ts';
import type { Story } from '../report/story.ts';
import { attemptRun, type Ending, type Failure } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';

/** Runs the next inner layer (such as the cache), or the operation itself, with these options. */
export type Next<T> = (options: RunOptions) => Promise<Ending<T>>;

/**
 * A layer is code that wraps the whole work with its retries, such as the cache. A policy without layers is
 * not slowed down by this code.
 */
export interface Layer {
  /**
   * The position, outermost first. 1: mode, because observed work must not use the other layers. 2: fallback.
   * 3: cache.
   */
  readonly order: 1 | 2 | 3;
  around<T>(operation: Operation<T>, options: RunOptions, next: Next<T>): Promise<Ending<T>>;
}

/** Runs `operation` inside the layers of a compiled policy (such as the cache), outermost layer first. */
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

export function addLayer(plan: Plan, layer: Layer): void {
  plan.layers.push(layer);
  plan.layers.sort((a, b) => a.order - b.order);
  plan.runLayers = runLayers;
}

/** Makes the result of a run that a layer (such as the cache) ends with an error. */
export function failure(error: unknown, story: Story): Failure<never> {
  return { ok: false, thrown: true, error, value: undefined, story };
}
