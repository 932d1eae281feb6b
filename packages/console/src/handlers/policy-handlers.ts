import { type Control, controlId } from '@holdfast/contracts';
import { policyOf } from 'holdfast';
import { explain } from 'holdfast/explain';
import { lint } from 'holdfast/lint';
import type { z } from 'zod';
import type { DeepReadonly } from '../api/routes.ts';
import type { policyRoutes, policyState } from '../api/steering.ts';
import type { ConsoleEngine } from '../console-options.ts';
import type { HandlerContext, Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';
import type { ObservedPolicy, Observer } from '../watch/observer.ts';
import { plain } from './parked-handlers.ts';
import { controlOf } from './topic-handlers.ts';

type ShownPolicy = DeepReadonly<z.infer<typeof policyState>>;

export interface PolicySettings {
  readonly engine: ConsoleEngine;
  readonly observer: Observer;
}

export function policyHandlers({
  engine: { controls },
  observer,
}: PolicySettings): Handlers<keyof typeof policyRoutes> {
  async function policyNamed(name: string): Promise<{ now: number; policy: ObservedPolicy }> {
    const { now, policies } = await observer.policies();
    const policy = policies.find((each) => each.name === name);
    if (policy) return { now, policy };
    throw new Problem('unknown', `No process that reports has a policy "${name}".`);
  }

  /**
   * Sets a control (such as a breaker that is forced open). With `isLifted`, it removes the control, and the
   * policy decides itself again.
   */
  async function steer(
    control: Control,
    isLifted: boolean,
    { forMs, why }: { readonly forMs?: number | undefined; readonly why: string },
    context: HandlerContext,
  ) {
    const act = context.act(why);
    if (isLifted) await controls.lift(controlId(control), act);
    else await controls.impose(control, act, forMs);
    await observer.refresh();
    const found = (await observer.fleet()).controls.find(({ id }) => id === controlId(control));
    return found ? { control: controlOf(found) } : {};
  }

  return {
    async 'GET /policies'() {
      const { now, policies } = await observer.policies();
      return { now, asOf: now, items: policies.map(shownPolicy) };
    },

    async 'GET /policies/:policy'({ path }) {
      const { now, policy } = await policyNamed(path.policy);
      // Only policies of this process have a document. Reports of other processes do not contain it.
      const own = policyOf(path.policy);
      if (!own) return { now, policy: shownPolicy(policy) };
      const explanation = explain(own);
      return {
        ...{ now, policy: shownPolicy(policy), document: own.spec, explanation: String(explanation) },
        lint: lint(own).map(({ severity, sentence, fix }) => ({
          level: severity,
          says: `${sentence} ${fix}`,
        })),
        delays: explanation.delays.map(({ afterAttempt, leastMs, mostMs }) => ({
          ...{ attempt: afterAttempt, leastMs, mostMs },
        })),
      };
    },

    async 'POST /policies/:policy/breaker'({ path: { policy }, body: { target, to, ...body } }, context) {
      await policyNamed(policy);
      const state = to === 'auto' ? 'open' : to;
      const control = { kind: 'breaker', policy, ...(target !== undefined && { target }), state } as const;
      return steer(control, to === 'auto', body, context);
    },

    async 'POST /policies/:policy/retries'({ path: { policy }, body: { to, ...body } }, context) {
      await policyNamed(policy);
      return steer({ kind: 'retries', policy, state: 'off' }, to === 'on', body, context);
    },

    async 'POST /policies/:policy/mode'({ path: { policy }, body: { to, ...body } }, context) {
      await policyNamed(policy);
      const mode = to === 'auto' ? 'enforce' : to;
      return steer({ kind: 'mode', policy, mode }, to === 'auto', body, context);
    },
  };
}

function shownPolicy({ name, states, strips, controls }: ObservedPolicy): ShownPolicy {
  const counters: Record<string, unknown> = {};
  for (const state of states)
    for (const [key, value] of Object.entries(state.counters))
      if (typeof value === 'number') counters[key] = Number(counters[key] ?? 0) + value;
      else if (typeof value === 'object' && value !== null)
        counters[key] = summed(counters[key] as Record<string, number> | undefined, value as never);
  const operations = Number(counters.operations ?? 0);
  const load = operations > 0 ? Number(counters.attempts ?? 0) / operations : 1;
  return {
    name,
    processes: new Set(states.map(({ process }) => process)).size,
    killSwitch: states.some(({ killSwitch }) => killSwitch),
    enforcedShare: Math.min(...states.map(({ enforcedShare = 1 }) => enforcedShare)),
    counters: { ...counters, loadMultiplication: load },
    loadMultiplication: load,
    targets: states.flatMap(({ process, targets }) =>
      targets.map((target) =>
        plain({
          ...target,
          process,
          latencyMs: undefined,
          p50: target.latencyMs?.p50,
          p99: target.latencyMs?.p99,
          strip: strips.get(`${process} ${target.target}`) ?? [],
        }),
      ),
    ) as ShownPolicy['targets'],
    controls: controls.map(controlOf),
  };
}

function summed(
  known: Record<string, number> | undefined,
  more: Record<string, number>,
): Record<string, number> {
  const total = { ...known };
  for (const [name, count] of Object.entries(more)) total[name] = (total[name] ?? 0) + count;
  return total;
}
