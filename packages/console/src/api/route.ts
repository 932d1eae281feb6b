import { z } from 'zod';

/**
 * Who may call a route. `none`: everybody. `view`: signed-in users. `operate`: users who may change things.
 */
export type Role = 'none' | 'view' | 'operate';

/**
 * One route of the API. Its schemas check requests, give the page its types, and make the OpenAPI document.
 */
export interface Route<
  Path extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly summary: string;
  readonly role: Role;
  /** The parts of the path that begin with a colon. */
  readonly path: Path;
  readonly query: Query;
  readonly body: Body;
  readonly answer: Answer;
  readonly status: 200 | 202;
  /** `events` is a stream of server-sent events. */
  readonly kind: 'json' | 'events' | 'file';
}

const nothing = z.object({});

interface Given<
  Path extends z.ZodObject,
  Query extends z.ZodObject,
  Body extends z.ZodType,
  Answer extends z.ZodType,
> {
  readonly summary: string;
  readonly role?: Role;
  readonly path?: Path;
  readonly query?: Query;
  readonly body?: Body;
  readonly answer?: Answer;
  readonly status?: 200 | 202;
  readonly kind?: 'json' | 'events' | 'file';
}

export function route<
  Path extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body extends z.ZodType = z.ZodUndefined,
  Answer extends z.ZodType = z.ZodUndefined,
>(given: Given<Path, Query, Body, Answer>): Route<Path, Query, Body, Answer> {
  return {
    summary: given.summary,
    role: given.role ?? 'view',
    path: given.path ?? (nothing as unknown as Path),
    query: given.query ?? (nothing as unknown as Query),
    body: given.body ?? (z.undefined() as unknown as Body),
    answer: given.answer ?? (z.undefined() as unknown as Answer),
    status: given.status ?? 200,
    kind: given.kind ?? 'json',
  };
}

/** A query parameter that may occur once or several times. The result is always a list. */
export const texts = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (Array.isArray(value) ? value : [value]));

export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(1000).optional(),
};

/** `now` is the time of the store. `asOf` is the time at which the items were counted. Both are epoch ms. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    now: z.number(),
    asOf: z.number(),
    items: z.array(item),
    cursor: z.string().optional(),
    /** If the search stopped before the end of the list: how many items it read. */
    looked: z.number().optional(),
  });
}

/**
 * The reason that the user gives for an act (such as a replay). The name of the user comes from the session.
 */
export const why = z.string().trim().min(1, 'a reason is needed').max(1000);

export const durationMs = z
  .number()
  .int()
  .positive()
  .max(365 * 864e5);
