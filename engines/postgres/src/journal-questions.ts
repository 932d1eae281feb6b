import { type Journal, numberIn, type ProgramCounts, placeIn, type QueueLimits } from '@holdfast/contracts';
import { storableText } from './column-values.ts';
import type { Database, PostgresTransaction } from './database.ts';
import {
  assembliesText,
  assemblyOf,
  conditionsOf,
  signalOf,
  signalsText,
  stateOf,
  stepOf,
  stepsText,
} from './journal-rows.ts';

const countsText = `SELECT p.name, p.version, a.state, l.seq IS NOT NULL, count(*) FROM {schema}.assembly a
  JOIN {schema}.assembly_program p ON p.program = a.program LEFT JOIN {schema}.assembly_lease l ON l.seq = a.seq
  GROUP BY 1, 2, 3, 4 ORDER BY 1, 2`;
const parkedGroupsText = `WITH one AS (
    SELECT a.seq, a.id, p.name, a.parked::json AS parked FROM {schema}.assembly_parked k JOIN {schema}.assembly a ON a.seq = k.seq
    JOIN {schema}.assembly_program p ON p.program = a.program
    WHERE a.state = 1 AND NOT EXISTS (SELECT 1 FROM {schema}.assembly_lease l WHERE l.seq = a.seq)
  ) SELECT name, parked ->> 'because', parked -> 'error' ->> 'fingerprint', count(*), (array_agg(id ORDER BY seq DESC))[1],
    (array_agg(parked ->> 'message' ORDER BY seq DESC))[1]
  FROM one GROUP BY 1, 2, 3 ORDER BY count(*) DESC, max(seq) LIMIT $1`;
const queuesText = `SELECT q.name, q.limits::text, (SELECT count(*) FROM {schema}.assembly_lease l WHERE l.queue = q.queue AND l.queue > 0),
    (SELECT count(*) FROM {schema}.assembly_due d WHERE d.line IN (q.queue, -q.queue)) FROM {schema}.assembly_queue q ORDER BY q.queue`;

type Questions = Pick<
  Journal<PostgresTransaction>,
  'get' | 'steps' | 'signals' | 'list' | 'counts' | 'parkedGroups' | 'queues'
>;

/** The part of the journal that only reads: what people and the console ask about assemblies. */
export function journalQuestions(database: Database): Questions {
  return {
    async get(ids) {
      const rows = await database.rows(`${assembliesText} WHERE a.id = ANY ($1)`, [ids.map(storableText)]);
      const stored = new Map(rows.map((row) => assemblyOf(row).stored).map((each) => [each.id, each]));
      return ids.map((id) => stored.get(id));
    },

    async steps(id, { limit, cursor }) {
      const [order, path] = cursor === undefined ? [0, ''] : placeIn(cursor);
      const rows = await database.rows(stepsText, [storableText(id), order, path, limit + 1]);
      const items = rows.slice(0, limit).map(stepOf);
      const last = items.at(-1);
      return {
        items,
        cursor: last && rows.length > limit ? JSON.stringify([last.order, last.path]) : undefined,
      };
    },

    async signals(id, after = 0) {
      return (await database.rows(signalsText, [storableText(id), after])).map(signalOf);
    },

    async list(filter, { limit, cursor }) {
      const values: unknown[] = [
        cursor === undefined ? Number.MAX_SAFE_INTEGER : numberIn(cursor),
        limit + 1,
      ];
      const where = conditionsOf(filter, values);
      const text = `${assembliesText} WHERE a.seq < $1${where} ORDER BY a.seq DESC LIMIT $2`;
      const rows = (await database.search(text, values)).map(assemblyOf);
      const items = rows.slice(0, limit);
      return {
        items: items.map(({ stored }) => stored),
        cursor: rows.length > limit ? String(items.at(-1)?.seq) : undefined,
      };
    },

    async counts() {
      const counts = new Map<string, Record<string, unknown>>();
      for (const [name, version, state, isLeased, count] of await database.rows(countsText)) {
        const of = `${name}@${version}`;
        const which = stateOf(state as number, isLeased as boolean);
        const none = { waiting: 0, running: 0, parked: 0, done: 0, stopped: 0 };
        const known = counts.get(of) ?? { name, version, ...none };
        counts.set(of, { ...known, [which]: Number(known[which]) + (count as number) });
      }
      return [...counts.values()] as unknown as ProgramCounts[];
    },

    async parkedGroups(limit) {
      const rows = await database.rows(parkedGroupsText, [limit]);
      return rows.map(([name, because, fingerprint, count, latestId, message]) => ({
        name: name as string,
        because: because as string,
        fingerprint: (fingerprint as string | null) ?? undefined,
        count: count as number,
        latestId: latestId as string,
        message: message as string,
      }));
    },

    async queues() {
      return (await database.rows(queuesText)).map(([name, text, leased, waiting]) => ({
        name: name as string,
        limits: JSON.parse(text as string) as QueueLimits,
        leased: leased as number,
        waiting: waiting as number,
      }));
    },
  };
}
