import { z } from 'zod';
import { listOf, pageQuery, route, why } from './route.ts';

const windows = ['15m', '1h', '24h'] as const;

/** A problem that needs a person. */
export const need = z.object({
  kind: z.string(),
  state: z.enum(['ok', 'waiting', 'retrying', 'parked', 'refused']),
  title: z.string(),
  /** One sentence with the measured number and its limit. */
  says: z.string(),
  /** For example `/parked?group=4f1d`. */
  link: z.string(),
  button: z.string(),
  command: z.string(),
});

const figure = z.object({
  name: z.enum(['retryRate', 'successAfterRetry', 'load', 'parked', 'oldestDue', 'breakersOpen']),
  value: z.number(),
  of: z.number().optional(),
  says: z.string(),
  link: z.string(),
  /** The oldest value is first; null: unknown at that time. */
  points: z.array(z.number().nullable()),
});

/** The results of all work in the time window. Each call or event counts once. */
const lens = z.object({
  total: z.number(),
  slices: z.array(
    z.object({
      name: z.enum(['okAtOnce', 'okAfterRetry', 'retrying', 'waiting', 'parked', 'refused']),
      count: z.number(),
      says: z.string(),
      link: z.string(),
    }),
  ),
});

export const overview = z.object({
  now: z.number(),
  /** When this console started to observe the store (epoch ms). Figures before that time are unknown. */
  since: z.number(),
  headline: z.string(),
  summary: z.string(),
  needs: z.array(need),
  good: z.array(z.string()),
  figures: z.array(figure),
  lens,
  /** The numbers that the navigation shows beside the names of screens. */
  badges: z.object({ parked: z.number(), paused: z.number(), breakersOpen: z.number(), replays: z.number() }),
  store: z.object({ name: z.string(), engine: z.string(), durability: z.string(), answersInMs: z.number() }),
});

const auditEntry = z.object({
  id: z.string(),
  at: z.number(),
  who: z.string(),
  why: z.string(),
  what: z.string(),
  subjects: z.array(z.string()),
  count: z.number(),
  undoes: z.string().optional(),
  undoneBy: z.string().optional(),
  canUndo: z.boolean(),
});

const session = z.object({ who: z.string(), role: z.enum(['view', 'operate']), endsAt: z.number() });

/** The optional parts that this console was started with. A screen without its part says how to enable it. */
const parts = z.object({
  assemblies: z.boolean(),
  gateway: z.boolean(),
  simulator: z.boolean(),
  demo: z.boolean(),
});

export const generalRoutes = {
  'POST /session': route({
    summary: 'Signs in with the token of the printed link',
    role: 'none',
    body: z.object({ token: z.string().max(512), who: z.string().trim().min(1).max(100) }).strict(),
    answer: session,
  }),
  'GET /session': route({
    summary: 'Who is signed in',
    answer: session.extend({ parts, version: z.string() }),
  }),
  'DELETE /session': route({ summary: 'Signs out', answer: z.object({ signedOut: z.boolean() }) }),
  'GET /healthz': route({
    summary: 'Whether the store answers',
    role: 'none',
    answer: z.object({ status: z.enum(['pass', 'fail']) }),
  }),
  'GET /overview': route({
    summary: 'Is anything wrong, and what is to be done?',
    query: z.object({ window: z.enum(windows).default('1h') }).strict(),
    answer: overview,
  }),
  'GET /series': route({
    summary: 'Figures over time, at most 300 points each',
    query: z.object({ of: z.string().max(200), window: z.enum(windows).default('1h') }).strict(),
    answer: z.object({
      now: z.number(),
      stepMs: z.number(),
      series: z.array(z.object({ name: z.string(), points: z.array(z.number().nullable()) })),
    }),
  }),
  'GET /live': route({
    summary: 'What changes, as server-sent events',
    query: z.object({ of: z.string().max(500).optional(), window: z.enum(windows).default('1h') }).strict(),
    kind: 'events',
  }),
  'GET /audit': route({
    summary: 'Who did what, and why; the latest first',
    query: z
      .object({
        ...pageQuery,
        who: z.string().optional(),
        what: z.string().optional(),
        of: z.string().optional(),
        from: z.coerce.number().optional(),
        to: z.coerce.number().optional(),
      })
      .strict(),
    answer: listOf(auditEntry),
  }),
  'POST /audit/:id/undo': route({
    summary: 'Undoes an act, as long as that is possible',
    role: 'operate',
    path: z.object({ id: z.string() }),
    body: z.object({ why }).strict(),
    answer: z.object({ undone: z.string() }),
  }),
};
