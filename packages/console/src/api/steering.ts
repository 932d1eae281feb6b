import { waitingStates } from '@holdfast/contracts';
import { z } from 'zod';
import { filter } from './parked.ts';
import { durationMs, listOf, pageQuery, route, texts, why } from './route.ts';

const topicPath = z.object({ topic: z.string().min(1).max(512) });

export const control = z.object({
  id: z.string(),
  kind: z.string(),
  /** The topic or the policy that the control (such as a pause) applies to. */
  about: z.string(),
  target: z.string().optional(),
  says: z.string(),
  who: z.string(),
  why: z.string(),
  since: z.number(),
  until: z.number().optional(),
  /** For a policy: how many processes obey the control, cannot obey it, or have not read it yet. */
  heard: z.object({ obeyed: z.number(), notObeyed: z.number(), notHeard: z.number() }).optional(),
});

export const consumerState = z.object({
  process: z.string(),
  name: z.string(),
  topic: z.string(),
  status: z.string(),
  concurrency: z.number(),
  running: z.number(),
  queued: z.number(),
  waitsFor: z.array(z.string()),
  paused: z.boolean(),
  counters: z.record(z.string(), z.unknown()),
});

export const topicState = z.object({
  topic: z.string(),
  counts: z.record(z.enum(waitingStates), z.number()),
  oldestReadyMs: z.number(),
  nextDueInMs: z.number().optional(),
  parked: z.number(),
  asOf: z.number(),
  controls: z.array(control),
  consumers: z.array(consumerState),
  /**
   * The policies whose circuit breakers admit no call now. The consumers wait for them: meanwhile, they
   * handle no events and use up no attempts.
   */
  waitsFor: z.array(z.string()),
});

const waiting = z.object({
  id: z.string(),
  type: z.string().optional(),
  key: z.string().optional(),
  tenant: z.string().optional(),
  firstSeenAt: z.number(),
  state: z.enum(waitingStates),
  dueAt: z.number(),
  attempts: z.number(),
  snoozes: z.number(),
  deaths: z.number(),
  lastError: z.string().optional(),
  owner: z.string().optional(),
});

const imposed = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('pause'), topic: z.string(), only: z.literal('retries').optional() }).strict(),
  z
    .object({
      kind: z.literal('quarantine'),
      topic: z.string(),
      tenant: z.string().optional(),
      key: z.string().optional(),
    })
    .strict(),
  z.object({ kind: z.literal('skip'), topic: z.string(), eventId: z.string() }).strict(),
  z
    .object({ kind: z.literal('reroute'), topic: z.string(), to: z.string(), type: z.string().optional() })
    .strict(),
  z
    .object({ kind: z.literal('concurrency'), topic: z.string(), concurrencyMax: z.number().int().min(0) })
    .strict(),
]);

const eventIds = z.object({ ids: z.array(z.string()).min(1).max(200), why }).strict();

export const topicRoutes = {
  'GET /topics': route({ summary: 'All topics', answer: listOf(topicState) }),
  'GET /topics/:topic': route({
    summary: 'One topic',
    path: topicPath,
    answer: z.object({ now: z.number(), topic: topicState }),
  }),
  'GET /topics/:topic/waiting': route({
    summary: 'Unfinished events, those that are due first come first',
    path: topicPath,
    query: z
      .object({
        ...pageQuery,
        state: texts.optional(),
        key: z.string().optional(),
        tenant: z.string().optional(),
      })
      .strict(),
    answer: listOf(waiting),
  }),
  'GET /topics/:topic/due': route({
    summary: 'How many events are due when; `bounds` are ms from now',
    path: topicPath,
    query: z.object({ bounds: z.string().max(500).optional() }).strict(),
    answer: z.object({ now: z.number(), bounds: z.array(z.number()), counts: z.array(z.number()) }),
  }),
  'POST /topics/:topic/waiting/retry': route({
    summary: 'Makes delayed events due now',
    role: 'operate',
    path: topicPath,
    body: eventIds,
    answer: z.object({ changed: z.number() }),
  }),
  'POST /topics/:topic/waiting/unblock': route({
    summary: 'Later events of the same key no longer wait for these parked events',
    role: 'operate',
    path: topicPath,
    body: eventIds,
    answer: z.object({ changed: z.number() }),
  }),
  'GET /controls': route({ summary: 'What operators have set', answer: listOf(control) }),
  'PUT /controls': route({
    summary: 'Sets a control, or replaces the one about the same thing',
    role: 'operate',
    body: z.object({ control: imposed, forMs: durationMs.optional(), why }).strict(),
    answer: z.object({ control }),
  }),
  'DELETE /controls/:id': route({
    summary: 'Removes a control',
    role: 'operate',
    path: z.object({ id: z.string() }),
    body: z.object({ why }).strict(),
    answer: z.object({ removed: z.boolean() }),
  }),
  'GET /consumers': route({ summary: 'Consumers of all processes', answer: listOf(consumerState) }),
  'GET /processes': route({
    summary: 'Processes that report to this store',
    answer: listOf(
      z.object({
        id: z.string(),
        service: z.string(),
        host: z.string(),
        pid: z.number(),
        version: z.string(),
        startedAt: z.number(),
        heardAt: z.number(),
        policies: z.number(),
        consumers: z.number(),
        leftOut: z.number(),
      }),
    ),
  }),
};

const rule = z.object({
  name: z.string(),
  filter: z.string(),
  action: z.enum(['replay', 'discard', 'notify']),
  afterMs: z.number(),
});
const rulePath = z.object({ name: z.string().min(1).max(200) });

export const ruleRoutes = {
  'GET /rules': route({ summary: 'What happens to newly parked events by itself', answer: listOf(rule) }),
  'PUT /rules/:name': route({
    summary: 'Sets a rule; `dry` only counts what it would match now',
    role: 'operate',
    path: rulePath,
    body: z
      .object({
        filter,
        action: z.enum(['replay', 'discard', 'notify']),
        afterMs: z.number().int().min(0).default(0),
        why: why.optional(),
        dry: z.boolean().default(false),
      })
      .strict(),
    answer: z.object({ matches: z.number() }),
  }),
  'DELETE /rules/:name': route({
    summary: 'Removes a rule',
    role: 'operate',
    path: rulePath,
    body: z.object({ why }).strict(),
    answer: z.object({ removed: z.boolean() }),
  }),
};

const target = z.object({
  target: z.string().nullable(),
  process: z.string(),
  inFlight: z.number(),
  queued: z.number().optional(),
  breaker: z.string().optional(),
  breakerForMs: z.number().optional(),
  breakerBecause: z.string().optional(),
  admitsInMs: z.number().nullable().optional(),
  forced: z.object({ state: z.enum(['open', 'closed']), because: z.string().optional() }).optional(),
  window: z.object({ calls: z.number(), failures: z.number(), slow: z.number() }).optional(),
  tokens: z.number().optional(),
  tokensMax: z.number().optional(),
  p50: z.number().optional(),
  p99: z.number().optional(),
  /** The states of the circuit breaker over the last 15 minutes, as [start time in epoch ms, state]. */
  strip: z.array(z.tuple([z.number(), z.string()])),
});

export const policyState = z.object({
  name: z.string(),
  processes: z.number(),
  killSwitch: z.boolean(),
  /** The policy is enforced for this share of all calls, from 0 to 1. It only observes the rest. */
  enforcedShare: z.number(),
  counters: z.record(z.string(), z.unknown()),
  loadMultiplication: z.number(),
  targets: z.array(target),
  controls: z.array(control),
});

const policyPath = z.object({ policy: z.string().min(1).max(512) });
const forced = { forMs: durationMs.optional(), why };

export const policyRoutes = {
  'GET /policies': route({ summary: 'Policies of all processes', answer: listOf(policyState) }),
  'GET /policies/:policy': route({
    summary: 'One policy: its state, and what its document means where a process of this console has it',
    path: policyPath,
    answer: z.object({
      now: z.number(),
      policy: policyState,
      document: z.unknown().optional(),
      explanation: z.string().optional(),
      lint: z.array(z.object({ level: z.string(), says: z.string() })).optional(),
      /** The shortest and the longest delay before each retry, in ms. */
      delays: z.array(z.object({ attempt: z.number(), leastMs: z.number(), mostMs: z.number() })).optional(),
    }),
  }),
  'POST /policies/:policy/breaker': route({
    summary: 'Keeps a breaker open or closed, or lets it decide again',
    role: 'operate',
    path: policyPath,
    body: z
      .object({ target: z.string().optional(), to: z.enum(['open', 'closed', 'auto']), ...forced })
      .strict(),
    answer: z.object({ control: control.optional() }),
  }),
  'POST /policies/:policy/retries': route({
    summary: 'Switches retries off or on',
    role: 'operate',
    path: policyPath,
    body: z.object({ to: z.enum(['off', 'on']), ...forced }).strict(),
    answer: z.object({ control: control.optional() }),
  }),
  'POST /policies/:policy/mode': route({
    summary: 'Lets a policy act, or only observe',
    role: 'operate',
    path: policyPath,
    body: z.object({ to: z.enum(['enforce', 'observe', 'auto']), ...forced }).strict(),
    answer: z.object({ control: control.optional() }),
  }),
};
