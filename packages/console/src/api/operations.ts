import { z } from 'zod';
import { filter, parkedGroup } from './parked.ts';
import { durationMs, listOf, pageQuery, route, why } from './route.ts';

const id = z.object({ id: z.string().min(1).max(200) });

export const operation = z.object({
  id: z.string(),
  kind: z.enum(['replay', 'discard', 'restore', 'keep', 'undo']),
  stage: z.enum(['selecting', 'canary', 'releasing', 'tracking', 'applying', 'done', 'stopping', 'stopped']),
  who: z.string(),
  why: z.string(),
  startedAt: z.number(),
  endedAt: z.number().optional(),
  stopped: z.string().optional(),
  /** Who stopped the operation; absent: it stopped itself, or was not stopped. */
  stoppedBy: z.string().optional(),
  /** The filter of the operation as text, such as `topic=orders group=4f1d9ac0`. */
  filter: z.string(),
  command: z.string(),
  counts: z.object({
    selected: z.number(),
    released: z.number(),
    succeeded: z.number(),
    failedAgain: z.number(),
    changed: z.number(),
  }),
  /** How many events the preview showed to the user before the operation was started. */
  expected: z.number().optional(),
  rate: z.number().optional(),
  canary: z.number().optional(),
  /** The operation stops itself when a larger share of its latest events fails again. From 0 to 1. */
  stopAbove: z.number().optional(),
  outstandingMax: z.number().optional(),
  to: z.string().optional(),
  /** The estimated time until the end, in ms. */
  leftMs: z.number().optional(),
  /** The operation can be undone until this time (epoch ms); absent: it cannot be undone. */
  undoUntil: z.number().optional(),
});

/**
 * A check before an act (such as a replay), for example whether consumers run. `bad` is a warning; it does
 * not prevent the act.
 */
export const check = z.object({
  name: z.string(),
  state: z.enum(['good', 'bad', 'unknown']),
  says: z.string(),
});

/**
 * What an act (such as a replay) would do. The act sends the same `asOf`, so that it leaves out events that
 * are parked later.
 */
const preview = z.object({
  count: z.number(),
  asOf: z.number(),
  checks: z.array(check),
  topics: z.array(z.object({ topic: z.string(), count: z.number() })),
  command: z.string(),
  undoUntil: z.number().optional(),
});

const selection = {
  filter,
  /**
   * The time of the preview that the user has seen (epoch ms). Events that were parked later are left out.
   */
  asOf: z.number().optional(),
  expected: z.number().int().min(0).optional(),
};

const started = z.object({ operation: operation.optional(), preview: preview.optional() });

const replay = z
  .object({
    ...selection,
    rate: z.number().positive().max(100_000).optional(),
    canary: z.number().int().min(0).max(10_000).optional(),
    canaryMs: durationMs.optional(),
    stopAbove: z.number().min(0).max(1).optional(),
    to: z.string().max(512).optional(),
    why: why.optional(),
    dry: z.boolean().default(false),
  })
  .strict();

const changeMany = z.object({ ...selection, why: why.optional(), dry: z.boolean().default(false) }).strict();

export const operationRoutes = {
  'GET /replays': route({
    summary: 'Replays, the latest first; `kind=all` lists discards, keeps and undos as well',
    query: z
      .object({
        ...pageQuery,
        kind: z.enum(['replay', 'all']).default('replay'),
        unfinished: z.stringbool().optional(),
      })
      .strict(),
    answer: listOf(operation),
  }),
  'GET /replays/:id': route({
    summary: 'One operation, with the groups of what failed again',
    path: id,
    answer: z.object({ now: z.number(), operation, failedAgain: z.array(parkedGroup) }),
  }),
  'POST /replays': route({
    summary: 'Publishes parked events again: a canary first, then the rest at a rate',
    role: 'operate',
    body: replay,
    answer: started,
    status: 202,
  }),
  'PATCH /replays/:id': route({
    summary: 'Changes the rate of a replay while it runs',
    role: 'operate',
    path: id,
    body: z.object({ rate: z.number().positive().max(100_000), why }).strict(),
    answer: z.object({ operation }),
  }),
  'POST /replays/:id/stop': route({
    summary: 'Stops an operation; what was not published stays parked',
    role: 'operate',
    path: id,
    body: z.object({ why }).strict(),
    answer: z.object({ operation }),
  }),
  'POST /discards': route({
    summary: 'Gives parked events up; they can be restored while they are kept',
    role: 'operate',
    body: changeMany,
    answer: started,
    status: 202,
  }),
  'POST /restores': route({
    summary: 'Takes discarded events back into the parking lot',
    role: 'operate',
    body: changeMany,
    answer: started,
    status: 202,
  }),
  'POST /keeps': route({
    summary: 'Keeps parked events for longer',
    role: 'operate',
    body: changeMany.extend({ forMs: durationMs }).strict(),
    answer: started,
    status: 202,
  }),
};
