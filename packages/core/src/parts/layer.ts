import type { Plan } from '../policy/plan.ts';
import type { Story } from '../report/story.ts';
import { attemptRun, type Ending, type Failure } from '../run/promise-driver.ts';
import type { Operation, RunOptions } from '../run/run-options.ts';

/** Runs what is inside a layer. Options given here replace the caller's. */
export type Next<T> = (options: RunOptions) => Promise<Ending<T>>;

/**
 * A layer of the operation ring: it stands around the whole work, its waits and retries included. Layers are
 * few and optional, so they speak in endings and not in steps; nothing of them is paid for where none is used.
 */
export interface Layer {
  /** Outermost first: mode 1, as what is only observed must not meet the others; fallback 2, cache 3. */
  readonly order: 1 | 2 | 3;
  around<T>(operation: Operation<T>, options: RunOptions, next: Next<T>): Promise<Ending<T>>;
}

/** Runs `operation` through the layers of `plan`, outermost first. */
export function runLayers<T>(
  plan: Plan,
  operation: Operation<T>,
  options: RunOptions = {},
): Promise<Ending<T>> {
  const enter = (depth: number, asked: RunOptions): Promise<Ending<T>> => {
    const layer = plan.layers[depth];
    return layer
      ? layer.around(operation, asked, (changed) => enter(depth + 1, changed))
      : attemptRun(plan, operation, asked);
  };
  return enter(0, options);
}

/** Adds a layer in its place: the order of the ring is fixed, whatever the order of the parts. */
export function addLayer(plan: Plan, layer: Layer): void {
  plan.layers.push(layer);
  plan.layers.sort((a, b) => a.order - b.order);
  plan.runLayers = runLayers;
}

/** The ending of a run that a layer cuts short. */
export function failure(error: unknown, story: Story): Failure<never> {
  return { ok: false, thrown: true, error, value: undefined, story };
}
