import { breakdownProperties } from '@holdfast/contracts';
import { z } from 'zod';
import { listOf, pageQuery, route, texts, why } from './route.ts';

const statuses = ['parked', 'replaying', 'resolved', 'discarded'] as const;

const properties = {
  topic: texts.optional(),
  type: texts.optional(),
  key: texts.optional(),
  tenant: texts.optional(),
  reason: texts.optional(),
  stop: texts.optional(),
  /** A fingerprint: all parked events with the same error have the same one. */
  group: texts.optional(),
  consumer: texts.optional(),
  /** A header as `name:value`. The first colon ends the name. */
  header: texts.optional(),
};

const excluded = Object.fromEntries(
  Object.entries(properties).map(([name, value]) => [`-${name}`, value]),
) as { [Name in keyof typeof properties as `-${Name}`]: (typeof properties)[Name] };

/** The fields of a filter. A minus before the name means "not". */
const filterWords = {
  ...properties,
  ...excluded,
  id: texts.optional(),
  status: z
    .union([z.enum(statuses), z.array(z.enum(statuses))])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .optional(),
  replayedBy: z.string().optional(),
  /** Selects events that were parked at this time or later (epoch ms of the store's clock). */
  from: z.coerce.number().optional(),
  /** Selects events that were parked before this time (epoch ms of the store's clock). */
  to: z.coerce.number().optional(),
  text: z.string().max(200).optional(),
};
export const filter = z.object(filterWords).strict();
export type Filter = z.infer<typeof filter>;

const ids = z.object({ id: z.string().min(1).max(512) });

export const attempt = z.object({
  attempt: z.number(),
  at: z.number(),
  tookMs: z.number(),
  class: z.string(),
  errorType: z.string(),
  errorMessage: z.string(),
  verdict: z.string(),
  because: z.string(),
  delayMs: z.number().optional(),
  owner: z.string().optional(),
});

const errorNote = z.object({
  type: z.string(),
  message: z.string(),
  code: z.string().optional(),
  stack: z.string().optional(),
  causes: z
    .array(z.object({ type: z.string(), message: z.string(), code: z.string().optional() }))
    .optional(),
  fingerprint: z.string(),
});

const parkedSummary = z.object({
  id: z.string(),
  topic: z.string(),
  type: z.string().optional(),
  key: z.string().optional(),
  tenant: z.string().optional(),
  status: z.enum(statuses),
  parkedAt: z.number(),
  parkings: z.number(),
  operation: z.string().optional(),
  replayedBy: z.string().optional(),
  version: z.number(),
  reason: z.string(),
  message: z.string(),
  stop: z.string(),
  finalAttempt: z.number(),
  consumer: z.string().optional(),
  fingerprint: z.string(),
  removedInMs: z.number(),
  edited: z.boolean(),
});

/** A payload as it is shown: text unchanged, bytes as base64. Above 256 KiB, only its beginning. */
export const shownPayload = z.object({
  encoding: z.enum(['utf8', 'base64']),
  text: z.string(),
  bytes: z.number(),
  isCut: z.boolean(),
});

const parking = z.object({
  parkedAt: z.number(),
  replay: z.string().optional(),
  reason: z.string(),
  message: z.string(),
  stop: z.string(),
  /** What `stop` means, in a sentence; absent if the handler chose its own word for `stop`. */
  stopSays: z.string().optional(),
  finalAttempt: z.number(),
  consumer: z.string().optional(),
  error: errorNote.optional(),
  story: z.array(attempt),
});

const change = z.object({ path: z.string(), before: z.string().optional(), after: z.string().optional() });

export const parkedEvent = z.object({
  id: z.string(),
  topic: z.string(),
  originTopic: z.string(),
  type: z.string().optional(),
  key: z.string().optional(),
  tenant: z.string().optional(),
  correlationId: z.string(),
  idempotencyKey: z.string(),
  firstSeenAt: z.number(),
  expiresAt: z.number().optional(),
  status: z.enum(statuses),
  parkedAt: z.number(),
  parkings: z.number(),
  removedAt: z.number(),
  operation: z.string().optional(),
  replayedBy: z.string().optional(),
  version: z.number(),
  headers: z.record(z.string(), z.string()),
  payload: shownPayload,
  /** Names of fields whose values are hidden. Users with the role `operate` can show them. */
  covered: z.array(z.string()),
  original: z.object({ payload: shownPayload, headers: z.record(z.string(), z.string()) }).optional(),
  /** Each time that the event was parked, the earliest first. The last one is the current one. */
  parkedRuns: z.array(parking),
  edits: z.array(z.object({ who: z.string(), why: z.string(), at: z.number(), changes: z.array(change) })),
  discarded: z.object({ who: z.string(), why: z.string(), at: z.number() }).optional(),
  /** How many later events of the same key wait for this event. */
  behind: z.number().optional(),
  /** What people did to this event. The latest act is first. */
  acts: z.array(
    z.object({ id: z.string(), at: z.number(), who: z.string(), why: z.string(), what: z.string() }),
  ),
});

export const parkedGroup = z.object({
  /** The value that all events of the group share; absent: these events have no such property. */
  value: z.string().optional(),
  count: z.number(),
  /** Only for groups by error: the reason of the latest event. */
  reason: z.string().optional(),
  message: z.string().optional(),
  firstAt: z.number().optional(),
  lastAt: z.number().optional(),
  topics: z.array(z.string()).optional(),
  /** How many events of the group were parked in the last 5 minutes. */
  recent: z.number().optional(),
  /**
   * `stop` and `removedInMs` are those of the latest event. The store removes that event after `removedInMs`.
   */
  stop: z.string().optional(),
  removedInMs: z.number().optional(),
});

const edit = z
  .object({
    payload: z.string().optional(),
    /** `base64` is for binary payloads. */
    encoding: z.enum(['utf8', 'base64']).default('utf8'),
    /** True: the new payload need not be JSON, although the old one was. */
    asText: z.boolean().default(false),
    headers: z.record(z.string(), z.string()).optional(),
    /** New values by path, such as `payload.lines.0.price`. */
    set: z.record(z.string(), z.unknown()).optional(),
    why: why.optional(),
    /** The version of the event that the user has edited. The header `If-Match` can say it instead. */
    version: z.number().int().optional(),
    dry: z.boolean().default(false),
  })
  .strict();

export const parkedRoutes = {
  'GET /parked': route({
    summary: 'Parked events, the latest first',
    query: z.object({ ...filterWords, ...pageQuery }).strict(),
    answer: listOf(parkedSummary).extend({ count: z.number() }),
  }),
  'GET /parked/groups': route({
    summary: 'Parked events by what a person would call the same, the largest group first',
    query: z
      .object({
        ...filterWords,
        ...pageQuery,
        by: z
          .enum(['error', ...breakdownProperties.filter((each) => each !== 'fingerprint')])
          .default('error'),
      })
      .strict(),
    answer: listOf(parkedGroup).extend({ others: z.number() }),
  }),
  'GET /parked/histogram': route({
    summary: 'When events were parked; without `bucketMs` the buckets fit the time between the first and now',
    query: z.object({ ...filterWords, bucketMs: z.coerce.number().int().min(1000).optional() }).strict(),
    answer: z.object({
      now: z.number(),
      bucketMs: z.number(),
      buckets: z.array(z.object({ at: z.number(), count: z.number() })),
    }),
  }),
  'GET /parked/differences': route({
    summary: 'What these events have in common that the others of their topics do not',
    query: z.object(filterWords).strict(),
    answer: z.object({
      items: z.array(
        z.object({
          by: z.string(),
          value: z.string().optional(),
          share: z.number(),
          otherShare: z.number(),
          count: z.number(),
        }),
      ),
    }),
  }),
  'GET /parked/:id': route({
    summary: 'One parked event, with its story; its ETag is its version',
    path: ids,
    answer: z.object({ now: z.number(), event: parkedEvent }),
  }),
  'POST /parked/:id/uncover': route({
    summary: 'The event with all fields shown; this is written to the audit log',
    role: 'operate',
    path: ids,
    body: z.object({ why }).strict(),
    answer: z.object({ now: z.number(), event: parkedEvent }),
  }),
  'GET /parked/:id/payload': route({
    summary: 'The payload as a file; the fields that are covered are left out for those who may only look',
    path: ids,
    kind: 'file',
  }),
  'PATCH /parked/:id': route({
    summary: 'Edits payload or headers; `dry` only gives the differences and what the schema has against it',
    role: 'operate',
    path: ids,
    body: edit,
    answer: z.object({ changes: z.array(change), issues: z.array(z.string()), version: z.number() }),
  }),
};
