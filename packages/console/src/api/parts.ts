import { assemblyStates } from '@holdfast/contracts';
import { z } from 'zod';
import { attempt } from './parked.ts';
import { durationMs, listOf, pageQuery, route, why } from './route.ts';

const id = z.object({ id: z.string().min(1).max(512) });

const assemblySummary = z.object({
  id: z.string(),
  name: z.string(),
  version: z.number(),
  state: z.enum(assemblyStates),
  isStopping: z.boolean(),
  tenant: z.string().optional(),
  key: z.string().optional(),
  queue: z.string().optional(),
  acceptedAt: z.number(),
  expiresAt: z.number().optional(),
  endedAt: z.number().optional(),
  dueAt: z.number().optional(),
  says: z.string().optional(),
});

const assemblyStep = z.object({
  path: z.string(),
  kind: z.string(),
  state: z.string(),
  order: z.number(),
  attempts: z.number(),
  at: z.number(),
  dueAt: z.number().optional(),
  result: z.string().optional(),
  error: z.string().optional(),
  because: z.string().optional(),
  story: z.array(attempt).optional(),
});

export const assemblyRoutes = {
  'GET /assemblies': route({
    summary: 'Assemblies, those that were accepted last come first',
    query: z
      .object({
        ...pageQuery,
        state: z.enum(assemblyStates).optional(),
        name: z.string().optional(),
        tenant: z.string().optional(),
        key: z.string().optional(),
        group: z.string().optional(),
      })
      .strict(),
    answer: listOf(assemblySummary).extend({
      counts: z.array(
        z
          .object({ name: z.string(), version: z.number() })
          .extend(
            Object.fromEntries(assemblyStates.map((state) => [state, z.number()])) as Record<
              (typeof assemblyStates)[number],
              z.ZodNumber
            >,
          ),
      ),
      groups: z.array(
        z.object({
          name: z.string(),
          because: z.string(),
          fingerprint: z.string().optional(),
          count: z.number(),
          latestId: z.string(),
          message: z.string(),
        }),
      ),
    }),
  }),
  'GET /assemblies/:id': route({
    summary: 'One assembly: its steps, its patience, and what the customer sees',
    path: id,
    answer: z.object({
      now: z.number(),
      assembly: assemblySummary,
      input: z.string(),
      result: z.string().optional(),
      /** The status text that the customer sees. */
      customer: z.string(),
      steps: z.array(assemblyStep),
      signals: z.array(z.object({ number: z.number(), name: z.string(), at: z.number() })),
      acts: z.array(z.object({ who: z.string(), why: z.string(), at: z.number(), what: z.string() })),
    }),
  }),
  'POST /assemblies/:id/resume': route({
    summary: 'Lets a parked assembly go on from the step that failed',
    role: 'operate',
    path: id,
    body: z.object({ acceptChange: z.boolean().optional(), why }).strict(),
    answer: z.object({ resumed: z.boolean() }),
  }),
  'PATCH /assemblies/:id': route({
    summary: 'Changes the input, or the results of steps: those count as done',
    role: 'operate',
    path: id,
    body: z
      .object({
        input: z.unknown().optional(),
        results: z.record(z.string(), z.unknown()).optional(),
        why,
      })
      .strict(),
    answer: z.object({ changed: z.boolean() }),
  }),
  'POST /assemblies/:id/cancel': route({
    summary: 'Stops an assembly and compensates what it has done, also after its end',
    role: 'operate',
    path: id,
    body: z.object({ why }).strict(),
    answer: z.object({ requested: z.boolean() }),
  }),
};

/** The unchanged answer of a gateway's admin API. */
const gatewayAnswer = z.record(z.string(), z.unknown());
const instance = z.object({ upstream: z.string(), instance: z.string() });

export const gatewayRoutes = {
  'GET /gateway': route({
    summary: 'Upstreams, instances, and the file in force',
    answer: z.object({ state: gatewayAnswer, config: z.unknown() }),
  }),
  'GET /gateway/requests': route({
    summary: 'The latest requests that were not answered by the first attempt',
    answer: z.object({ stories: z.array(gatewayAnswer) }),
  }),
  'GET /gateway/requests/:id': route({
    summary: 'Why a request was retried',
    path: id,
    answer: gatewayAnswer,
  }),
  'POST /gateway/upstreams/:upstream/:instance/drain': route({
    summary: 'Sends no new requests to an instance',
    role: 'operate',
    path: instance,
    body: z.object({ why }).strict(),
    answer: gatewayAnswer,
  }),
  'POST /gateway/upstreams/:upstream/:instance/resume': route({
    summary: 'Sends requests to an instance again',
    role: 'operate',
    path: instance,
    body: z.object({ why }).strict(),
    answer: gatewayAnswer,
  }),
  'POST /gateway/breakers': route({
    summary: 'Keeps breakers of the gateway open or closed, or lets them decide again',
    role: 'operate',
    body: z
      .object({
        policy: z.string(),
        target: z.string().optional(),
        to: z.enum(['open', 'closed', 'auto']),
        why,
      })
      .strict(),
    answer: gatewayAnswer,
  }),
  'POST /gateway/reload': route({
    summary: 'Reads the file again; a bad one changes nothing',
    role: 'operate',
    body: z.object({ why }).strict(),
    answer: gatewayAnswer,
  }),
};

export const simulatorRun = z.object({
  id: z.string(),
  scenario: z.string(),
  /** The policy document, as YAML or JSON. */
  policy: z.string(),
  state: z.enum(['running', 'done', 'failed', 'cancelled']),
  /** The share of the run that is done, from 0 to 1. */
  progress: z.number(),
  startedAt: z.number(),
  endedAt: z.number().optional(),
  error: z.string().optional(),
  rows: z
    .array(
      z.object({
        name: z.string(),
        verdict: z.string(),
        figures: z.record(z.string(), z.number()),
        /** Successful calls per second, over the time of the scenario. */
        goodput: z.array(z.number()),
        /** Calls per second that reached the server, over the time of the scenario. */
        load: z.array(z.number()),
      }),
    )
    .optional(),
  command: z.string(),
});

export const simulatorRoutes = {
  'GET /simulator': route({
    summary: 'The storms there are, and the latest runs',
    answer: z.object({
      scenarios: z.array(z.object({ name: z.string(), summary: z.string() })),
      runs: z.array(simulatorRun),
    }),
  }),
  'POST /simulator/runs': route({
    summary: 'Tries a policy in a storm; at most two runs at once',
    role: 'operate',
    body: z.object({ scenario: z.string().max(200), policy: z.string().max(20_000) }).strict(),
    answer: z.object({ run: simulatorRun }),
    status: 202,
  }),
  'GET /simulator/runs/:id': route({
    summary: 'One run',
    path: id,
    answer: z.object({ run: simulatorRun }),
  }),
  'DELETE /simulator/runs/:id': route({
    summary: 'Ends a run before its time',
    role: 'operate',
    path: id,
    answer: z.object({ cancelled: z.boolean() }),
  }),
};

const demoState = z.object({
  faults: z.array(z.object({ name: z.string(), says: z.string(), isOn: z.boolean() })),
  step: z.number(),
  steps: z.array(z.object({ title: z.string(), says: z.string(), isDone: z.boolean(), link: z.string() })),
});

export const demoRoutes = {
  'GET /demo': route({ summary: 'The guided tour: which faults are on', answer: demoState }),
  'POST /demo/faults/:name': route({
    summary: 'Turns a fault of the demo on or off',
    role: 'operate',
    path: z.object({ name: z.string().max(100) }),
    body: z.object({ isOn: z.boolean(), forMs: durationMs.optional() }).strict(),
    answer: demoState,
  }),
};
