import {
  type AuditEntry,
  type EarlierParking,
  type Edit,
  editDiff,
  type ParkedEvent,
  type ParkedFilter,
  type ParkedSummary,
  type Payload,
  subject,
  whyMissing,
} from '@holdfast/contracts';
import { covered, differences, newJsonMistake, withPayloadField } from '@holdfast/events';
import { stopSentences } from 'holdfast/explain';
import type { z } from 'zod';
import type { parkedEvent, parkedRoutes, shownPayload } from '../api/parked.ts';
import type { DeepReadonly } from '../api/routes.ts';
import type { ConsoleEngine, PayloadCheck } from '../console-options.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';
import type { Observer } from '../watch/observer.ts';
import { parkedFilter } from './parked-filter.ts';

type ShownEvent = DeepReadonly<z.infer<typeof parkedEvent>>;
type ShownPayload = DeepReadonly<z.infer<typeof shownPayload>>;

/** Of a larger payload, the answer contains only the beginning. */
const shownBytesMax = 256 * 1024;
/**
 * A text search reads at most this many events for one page. `looked` in the answer is the number of events
 * read.
 */
const lookMax = 20_000;
const recentMs = 3e5;
const actsShown = 50;
const headersCompared = 10;
const bucketLengths = [1e3, 5e3, 15e3, 6e4, 3e5, 9e5, 36e5, 216e5, 864e5, 6048e5];
const mask = '[redacted]';

export interface ParkedSettings {
  readonly engine: ConsoleEngine;
  readonly observer: Observer;
  /** Names of fields that are hidden in every topic. */
  readonly redact: readonly string[];
  readonly checks: Readonly<Record<string, PayloadCheck>>;
}

export function parkedHandlers({
  engine,
  observer,
  redact,
  checks,
}: ParkedSettings): Handlers<keyof typeof parkedRoutes> {
  const { triage, audit, broker } = engine;

  async function eventOf(id: string): Promise<ParkedEvent> {
    const event = await triage.get(id);
    if (event) return event;
    const { items } = await audit.list({ subject: subject('event', id) }, { limit: 1 });
    const last = items[0];
    throw new Problem(
      'unknown',
      last
        ? `Event ${id} is no longer here; the last thing done to it was "${last.what}" by ${last.who}.`
        : `There is no parked event ${id}.`,
    );
  }

  /** The fields to hide: those of the option `redact`, and those that consumers of the topic name. */
  async function coveredNames(topic: string): Promise<readonly string[]> {
    const { consumers } = await observer.fleet();
    const named = consumers.filter((each) => each.topic === topic).flatMap((each) => each.redact ?? []);
    return [...new Set([...redact, ...named])];
  }

  async function shown(event: ParkedEvent, isUncovered: boolean): Promise<ShownEvent> {
    const names = isUncovered ? [] : await coveredNames(event.topic);
    const { payload, original, diagnosis, earlier, ...rest } = covered(event, names);
    const { items: acts } = await audit.list({ subject: subject('event', event.id) }, { limit: actsShown });
    return {
      ...plain(rest),
      payload: payloadOf(payload),
      covered: [...names],
      ...(original && { original: { headers: original.headers, payload: payloadOf(original.payload) } }),
      parkedRuns: [...earlier, { ...diagnosis, parkedAt: event.parkedAt, replay: event.replay }].map(runOf),
      ...(await behindOf(event)),
      acts: acts.map(({ id, at, who, why, what }: AuditEntry) => ({ id, at, who, why, what })),
    };
  }

  /** How many later events of its key wait for this event, at most 200. Some engines do not let them wait. */
  async function behindOf({ topic, key }: ParkedEvent): Promise<{ behind?: number }> {
    if (key === undefined || whyMissing(engine.features, 'parkedHoldsKey') !== undefined) return {};
    // The topic of a parked event may not exist. In this case, no event waits in it.
    if (!(await broker.topics()).includes(topic)) return {};
    const { items } = await broker.waiting(topic, { limit: 200 }, { state: 'behind', key });
    return { behind: items.length };
  }

  /** Returns two fields of the latest event. This event serves as an example for its group. */
  async function latestOf(filter: ParkedFilter): Promise<{ stop?: string; removedInMs?: number }> {
    const latest = (await triage.list(filter, { limit: 1 })).items[0];
    return latest ? { stop: latest.stop, removedInMs: latest.removedInMs } : {};
  }

  /** Returns the names of the headers to compare: at most 10 of the headers of the latest event. */
  async function headerNames(filter: ParkedFilter): Promise<string[]> {
    const latest = (await triage.list(filter, { limit: 1 })).items[0];
    const event = latest && (await triage.get(latest.id));
    return Object.keys(event?.headers ?? {}).slice(0, headersCompared);
  }

  /** Returns the shortest bucket that divides the time since the first event into at most 100 buckets. */
  async function fittingBucketMs(filter: ParkedFilter, now: number): Promise<number> {
    const hour = filter.from ?? (await triage.histogram(filter, 36e5))[0]?.at ?? now;
    // Below 2 h, buckets of one hour are too coarse. Find the first event with buckets of 15 s instead.
    const isShort = filter.from === undefined && now - hour < 72e5;
    const first = isShort ? ((await triage.histogram(filter, 15e3))[0]?.at ?? hour) : hour;
    const spanMs = Math.min(filter.to ?? now, now) - first;
    return bucketLengths.find((each) => spanMs / each <= 100) ?? bucketLengths.at(-1)!;
  }

  return {
    async 'GET /parked'({ query: { limit, cursor, ...words } }) {
      const filter = parkedFilter(words);
      const now = await observer.now();
      const page = await triage.list(filter, { limit, lookMax, ...(cursor !== undefined && { cursor }) });
      const count = filter.text === undefined ? await triage.count(filter) : page.items.length;
      return { ...listAnswer(now, page, summaryOf), count };
    },

    async 'GET /parked/groups'({ query: { limit, cursor, by, ...words } }) {
      const filter = parkedFilter(words);
      const now = await observer.now();
      if (by !== 'error') {
        const { items, others } = await triage.breakdown(filter, by, limit);
        return { now, asOf: now, items: items.map(plain), others };
      }
      const page = await triage.groups(filter, { limit, ...(cursor !== undefined && { cursor }) });
      const items = await Promise.all(
        page.items.map(async ({ fingerprint, ...group }) => ({
          ...group,
          topics: [...group.topics],
          value: fingerprint,
          recent:
            group.lastAt < now - recentMs
              ? 0
              : await triage.count({ ...filter, fingerprint, from: now - recentMs }),
          ...(await latestOf({ ...filter, fingerprint })),
        })),
      );
      return { ...listAnswer(now, { ...page, items }, (item) => item), others: 0 };
    },

    async 'GET /parked/histogram'({ query: { bucketMs, ...words } }) {
      const now = await observer.now();
      const filter = parkedFilter(words);
      const chosenMs = bucketMs ?? (await fittingBucketMs(filter, now));
      return { now, bucketMs: chosenMs, buckets: [...(await triage.histogram(filter, chosenMs))] };
    },

    async 'GET /parked/differences'({ query }) {
      const filter = parkedFilter(query);
      const found = await differences(triage, filter, { headers: await headerNames(filter) });
      return {
        items: found.map(({ by, value, share, otherShare, count }) => ({
          by: typeof by === 'string' ? by : `header ${by.header}`,
          ...(value !== undefined && { value }),
          ...{ share, otherShare, count },
        })),
      };
    },

    async 'GET /parked/:id'({ path: { id } }) {
      const event = await eventOf(id);
      const answer = { now: await observer.now(), event: await shown(event, false) };
      return new Response(JSON.stringify(answer), {
        headers: { 'content-type': 'application/json', etag: `"${event.version}"` },
      });
    },

    async 'POST /parked/:id/uncover'({ path: { id }, body: { why } }, { act }) {
      const event = await eventOf(id);
      await audit.record({ ...act(why), what: 'uncover', subjects: [subject('event', id)] });
      return { now: await observer.now(), event: await shown(event, true) };
    },

    async 'GET /parked/:id/payload'({ path: { id } }) {
      const event = await eventOf(id);
      const { payload } = covered(event, await coveredNames(event.topic));
      const bytes = typeof payload === 'string' ? Buffer.from(payload) : Buffer.from(payload);
      return new Response(bytes, {
        headers: {
          'content-type': 'application/octet-stream',
          'content-disposition': 'attachment; filename="payload"',
        },
      });
    },

    async 'PATCH /parked/:id'({ path: { id }, body }, { act, request }) {
      const event = await eventOf(id);
      const version = body.version ?? etagOf(request);
      const names = await coveredNames(event.topic);
      const edit = editOf(event, body, names);
      const after = { payload: edit.payload ?? event.payload, headers: edit.headers ?? event.headers };
      const changes = editDiff(event, after).map(plain);
      const issues = await issuesOf(checks[event.topic], after.payload);
      if (body.dry) return { changes, issues, version: event.version };
      const reason = act(body.why);
      if (issues.length > 0)
        throw new Problem('does-not-fit', `The payload does not fit: ${issues[0]}.`, {
          issues: issues.map((message) => ({ path: 'payload', message })),
        });
      if (changes.length === 0) throw new Problem('does-not-fit', 'Nothing would change.');
      if (version !== undefined && version !== event.version)
        throw new Problem(
          'changed',
          `Event ${id} has version ${event.version}, and you have seen ${version}.`,
          {
            edits: covered(event, names).edits.slice(-1),
          },
        );
      const edited = await triage.edit(id, { ...edit, version: event.version }, reason);
      if (!edited) throw new Problem('unknown', `There is no parked event ${id}.`);
      return { changes, issues, version: edited.version };
    },
  };
}

export function listAnswer<Item, Shown>(
  now: number,
  page: { readonly items: readonly Item[]; readonly cursor?: string | undefined; readonly looked?: number },
  show: (item: Item) => Shown,
): { now: number; asOf: number; items: Shown[]; cursor?: string; looked?: number } {
  const { items, cursor, looked } = page;
  return {
    ...{ now, asOf: now, items: items.map(show) },
    ...(cursor !== undefined && { cursor }),
    ...(looked !== undefined && { looked }),
  };
}

/** An operator can repair the cause and replay the event, so one sentence is different. */
const sentencesForOperators = {
  ...stopSentences,
  not_retryable: 'this kind of error is not retried by itself; replay after the cause is repaired',
};

function runOf(run: EarlierParking) {
  const stopSays = Object.hasOwn(sentencesForOperators, run.stop)
    ? sentencesForOperators[run.stop as keyof typeof sentencesForOperators]
    : undefined;
  return plain({ ...run, stopSays });
}

function summaryOf(summary: ParkedSummary) {
  return plain(summary);
}

/** Removes the fields that are `undefined`, as JSON does. */
export function plain<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}

function payloadOf(payload: Payload): ShownPayload {
  if (typeof payload === 'string') {
    const bytes = Buffer.byteLength(payload);
    const isCut = bytes > shownBytesMax;
    return { encoding: 'utf8', text: isCut ? payload.slice(0, shownBytesMax) : payload, bytes, isCut };
  }
  const isCut = payload.length > shownBytesMax;
  const shown = isCut ? payload.subarray(0, shownBytesMax) : payload;
  return { encoding: 'base64', text: Buffer.from(shown).toString('base64'), bytes: payload.length, isCut };
}

interface EditBody {
  readonly payload?: string | undefined;
  readonly encoding: 'utf8' | 'base64';
  readonly asText: boolean;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly set?: Readonly<Record<string, unknown>> | undefined;
}

function editOf(event: ParkedEvent, body: EditBody, names: readonly string[]): Edit {
  const { payload, encoding, headers, set } = body;
  if (payload !== undefined && set) throw new Problem('bad-question', 'Give payload or set, not both.');
  if (payload === undefined && !set && !headers)
    throw new Problem('bad-question', 'Give payload, headers or set: what is to change?');
  const isMasked = (text: string) => names.length > 0 && text.includes(mask);
  if (isMasked(payload ?? '') || Object.values(headers ?? {}).some(isMasked))
    throw new Problem('does-not-fit', `Some fields still are ${mask}: uncover the event before you edit it.`);
  let changed: Payload | undefined =
    payload === undefined || encoding === 'utf8' ? payload : new Uint8Array(Buffer.from(payload, 'base64'));
  const mistake = changed === undefined || body.asText ? undefined : newJsonMistake(event.payload, changed);
  if (mistake !== undefined)
    throw new Problem(
      'does-not-fit',
      `The payload is not JSON: ${mistake}. If that is meant, give asText: true.`,
    );
  for (const [path, value] of Object.entries(set ?? {}))
    changed = withPayloadField(changed ?? event.payload, path, value);
  return { ...(changed !== undefined && { payload: changed }), ...(headers && { headers }) };
}

/** Returns the version of the event that the user has edited, from the header `If-Match`. */
function etagOf(request: Request): number | undefined {
  const given = request.headers.get('if-match');
  if (given === null) return undefined;
  const version = /^"(\d+)"$/.exec(given.trim())?.[1];
  if (version !== undefined) return Number(version);
  throw new Problem('bad-question', `If-Match: expected the ETag of the event, got ${given.slice(0, 50)}.`);
}

async function issuesOf(check: PayloadCheck | undefined, payload: Payload): Promise<string[]> {
  if (!check) return [];
  return [...(await check(payload))];
}
