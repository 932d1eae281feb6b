import { randomUUID } from 'node:crypto';
import type { Clock } from 'holdfast';
import type { z } from 'zod';
import type { simulatorRoutes, simulatorRun } from '../api/parts.ts';
import type { DeepReadonly } from '../api/routes.ts';
import type { SimulatorPart } from '../console-options.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';
import { plain } from './parked-handlers.ts';

type Run = DeepReadonly<z.infer<typeof simulatorRun>>;

const runningMax = 2;
const runsMax = 20;

export interface SimulatorSettings {
  readonly part: SimulatorPart | undefined;
  readonly clock: Clock;
}

/** At most two simulations run at a time. The last 20 runs are kept. */
export function simulatorHandlers({ part, clock }: SimulatorSettings): Handlers<
  keyof typeof simulatorRoutes
> & {
  close(): void;
} {
  const runs = new Map<string, Run>();
  const controllers = new Map<string, AbortController>();

  function given(): SimulatorPart {
    if (part) return part;
    throw new Problem('feature-missing', 'This console was started without a simulator.');
  }

  function change(id: string, changes: Partial<Run>): void {
    const run = runs.get(id);
    if (run?.state === 'running') runs.set(id, { ...run, ...plain(changes) });
  }

  function runOf(id: string): Run {
    const run = runs.get(id);
    if (run) return run;
    throw new Problem('unknown', `There is no run ${id}; the last ${runsMax} are kept.`);
  }

  return {
    'GET /simulator'() {
      const scenarios = given()
        .scenarios()
        .map((each) => ({ ...each }));
      return { scenarios, runs: [...runs.values()].reverse() };
    },

    'POST /simulator/runs'({ body: { scenario, policy } }) {
      const simulator = given();
      if (!simulator.scenarios().some(({ name }) => name === scenario))
        throw new Problem('unknown', `There is no scenario "${scenario}".`);
      if (controllers.size >= runningMax)
        throw new Problem('slow-down', `${runningMax} runs are at work; wait for one, or cancel it.`, {}, 5);
      const id = randomUUID();
      const controller = new AbortController();
      controllers.set(id, controller);
      const command = `holdfast simulate ${scenario} --policy policy.yaml`;
      const run: Run = {
        ...{ id, scenario, policy, command, state: 'running', progress: 0 },
        startedAt: clock.epochMs(),
      };
      runs.set(id, run);
      if (runs.size > runsMax) runs.delete(runs.keys().next().value!);
      const onProgress = (progress: number) => change(id, { progress });
      simulator
        .run(scenario, policy, { signal: controller.signal, onProgress })
        .then(
          (rows) => change(id, { state: 'done', progress: 1, rows, endedAt: clock.epochMs() }),
          (error: unknown) =>
            change(id, {
              state: controller.signal.aborted ? 'cancelled' : 'failed',
              endedAt: clock.epochMs(),
              error: (error as Error).message,
            }),
        )
        .finally(() => controllers.delete(id));
      return { run };
    },

    'GET /simulator/runs/:id'({ path: { id } }) {
      given();
      return { run: runOf(id) };
    },

    'DELETE /simulator/runs/:id'({ path: { id } }) {
      given();
      const { state } = runOf(id);
      controllers.get(id)?.abort(new Error('cancelled'));
      return { cancelled: state === 'running' };
    },

    close() {
      for (const controller of controllers.values()) controller.abort(new Error('the console was closed'));
    },
  };
}
