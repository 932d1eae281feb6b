import {
  type Begun,
  type Completion,
  clampMs,
  commitFailed,
  type Hold,
  LEASE_LOST,
  type Ledger,
  type Payload,
  type ProcessedMark,
  type SettlementResult,
  TOOK,
} from '@holdfast/contracts';
import { comparableText } from './column-values.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { payloadColumns, payloadOf } from './payload-columns.ts';

const dayMs = 24 * 60 * 60 * 1000;

const beginText =
  'SELECT place, kind, token, attempt, record, record_bytes FROM {schema}.begin_keys($1, $2, $3, $4, $5, $6, $7)';
const held = `k.scope = g.scope AND k.key = g.key AND k.token = g.token AND NOT done AND lease_ends_at > {schema}.now_ms()`;
const given = 'unnest($1::text[], $2::text[], $3::bigint[]) AS g(scope, key, token)';
const releaseText = `DELETE FROM {schema}.ledger_key k USING ${given} WHERE ${held} RETURNING k.token`;
/** A key must not be removed before its lease ends, so `removed_at` may grow, too. */
const extendText = `UPDATE {schema}.ledger_key k SET lease_ends_at = until, removed_at = greatest(removed_at, until)
  FROM ${given}, (SELECT {schema}.now_ms() + ceil($4::double precision)::bigint) AS l(until) WHERE ${held} RETURNING k.token`;
const purgeText = `DELETE FROM {schema}.ledger_key WHERE scope = $1 AND (done OR lease_ends_at <= {schema}.now_ms()) RETURNING 1`;
const lockText = `SELECT 1 FROM {schema}.ledger_key k, ${given} WHERE ${held} FOR UPDATE OF k`;
const completeText = `UPDATE {schema}.ledger_key k SET done = true, record = g.record, record_bytes = g.bytes,
    removed_at = {schema}.now_ms() + ceil(g.keep)::bigint
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::double precision[])
    AS g(scope, key, token, record, bytes, keep)
  WHERE k.scope = g.scope AND k.key = g.key AND k.token = g.token AND NOT done AND ($7 OR lease_ends_at > {schema}.now_ms())
  RETURNING k.token`;
const marked = 'unnest($1::text[], $2::text[]) WITH ORDINALITY AS m(handler, id, place)';
const markText = `INSERT INTO {schema}.mark SELECT id, m.handler, {schema}.now_ms()
  FROM ${marked} ORDER BY id COLLATE "C", m.handler COLLATE "C" ON CONFLICT DO NOTHING RETURNING handler, event_id`;
/** The lower and upper bounds of `event_id` let PostgreSQL skip partitions. */
const isMarkedText = `SELECT handler, event_id FROM {schema}.mark WHERE event_id = ANY ($1) AND handler = ANY ($2)
  AND event_id BETWEEN (SELECT min(id COLLATE "C") FROM unnest($1::text[]) AS i(id))
    AND (SELECT max(id COLLATE "C") FROM unnest($1::text[]) AS i(id))`;

/** The first byte of `record_bytes`: 1 for a text with NUL, 0 for bytes. */
const textFlag = 1;

export function postgresLedger(database: Database): Ledger<PostgresTransaction> {
  async function completeWithCommit(completion: Completion<PostgresTransaction>): Promise<SettlementResult> {
    const { hold, commit } = completion;
    return database.transaction(async (tx) => {
      if ((await database.rowsWithin(tx, lockText, holdColumns([hold]))).length === 0) return LEASE_LOST;
      await tx.query('SAVEPOINT holdfast_effect');
      try {
        const record = await commit!(tx);
        // The row is locked, so no other process can take over the key, even if the lease has ended.
        await database.rowsWithin(tx, completeText, [
          ...completionColumns([{ ...completion, record }]),
          true,
        ]);
        return TOOK;
      } catch (error) {
        await tx.query('ROLLBACK TO SAVEPOINT holdfast_effect');
        return commitFailed(error);
      }
    });
  }

  async function completePlain(
    completions: readonly Completion<PostgresTransaction>[],
  ): Promise<SettlementResult[]> {
    if (completions.length === 0) return [];
    const completed = tokensOf(await database.rows(completeText, [...completionColumns(completions), false]));
    // If the batch has a key twice, only its first completion succeeds.
    return completions.map(({ hold }) => (completed.delete(tokenOf(hold)) ? TOOK : LEASE_LOST));
  }

  return {
    async begin(claims) {
      if (claims.length === 0) return [];
      const rows = await database.rows(beginText, [
        claims.map(({ scope }) => comparableText(scope)),
        claims.map(({ key }) => comparableText(key)),
        claims.map(({ fingerprint }) => comparableText(fingerprint)),
        claims.map(({ leaseMs }) => clampMs(leaseMs)),
        claims.map(({ whenLost }) => whenLost === 'takeOver'),
        claims.map(({ keepMs = dayMs }) => clampMs(keepMs)),
        claims.map(({ liveMax = Infinity }) => (liveMax === Infinity ? null : liveMax)),
      ]);
      const begun: Begun[] = [];
      for (const row of rows) begun[(row[0] as number) - 1] = begunOf(row, claims[(row[0] as number) - 1]!);
      return begun;
    },

    async complete(completions) {
      if (!completions.some(({ commit }) => commit)) return completePlain(completions);
      const settled: SettlementResult[] = [];
      for (const completion of completions) {
        if (completion.commit) settled.push(await completeWithCommit(completion));
        else settled.push(...(await completePlain([completion])));
      }
      return settled;
    },

    async release(holds) {
      const released = tokensOf(await database.rows(releaseText, holdColumns(holds)));
      // If the batch has a key twice, only its first result is true.
      return holds.map((hold) => released.delete(tokenOf(hold)));
    },

    async extend(holds, leaseMs) {
      const rows = await database.rows(extendText, [...holdColumns(holds), clampMs(leaseMs)]);
      const extended = tokensOf(rows);
      return holds.map((hold) => extended.has(tokenOf(hold)));
    },

    async purge(scope) {
      return (await database.rows(purgeText, [comparableText(scope)])).length;
    },

    async mark(marks) {
      const rows = await database.rows(markText, markColumns(marks));
      const fresh = new Set(rows.map(([handler, id]) => `${handler}\0${id}`));
      // If the batch has a mark twice, only the first one is new.
      return marks.map(({ handler, eventId }) => fresh.delete(`${handler}\0${eventId}`));
    },

    async isMarked(marks) {
      if (marks.length === 0) return [];
      const handlers = [...new Set(marks.map(({ handler }) => handler))];
      const rows = await database.rows(isMarkedText, [marks.map(({ eventId }) => eventId), handlers]);
      if (rows.length === 0) return marks.map(() => false);
      const found = new Set(rows.map(([handler, id]) => `${handler}\0${id}`));
      return marks.map(({ handler, eventId }) => found.has(`${handler}\0${eventId}`));
    },
  };
}

function begunOf(
  [, kind, token, attempt, record, bytes]: Row,
  { scope, key }: { scope: string; key: string },
): Begun {
  switch (kind) {
    case 'acquired':
      return { kind, hold: { scope, key, token: String(token) }, attempt: attempt as number };
    case 'running':
      return { kind, retryAfterMs: token as number };
    case 'done':
      return { kind, record: recordOf(record, bytes) };
    default:
      return { kind: kind as 'mismatch' | 'unknown' | 'full' };
  }
}

function completionColumns(completions: readonly Completion<PostgresTransaction>[]): unknown[] {
  const records = completions.map(({ record }) => recordColumns(record));
  return [
    ...holdColumns(completions.map(({ hold }) => hold)),
    records.map(([record]) => record),
    records.map(([, bytes]) => bytes),
    completions.map(({ keepMs }) => clampMs(keepMs)),
  ];
}

function recordColumns(record: Payload | undefined): unknown[] {
  if (record === undefined) return [null, null];
  const { body, bytes, bytesAreText } = payloadColumns(record);
  return [body, bytes && Buffer.concat([Buffer.of(bytesAreText ? textFlag : 0), bytes])];
}

function recordOf(record: unknown, bytes: unknown): Payload | undefined {
  if (record === null && bytes === null) return undefined;
  const flagged = bytes as Uint8Array | null;
  return payloadOf(record, flagged?.subarray(1), flagged?.[0] === textFlag);
}

/** Returns `undefined` for a token that this engine cannot have created. */
function tokenOf({ token }: Hold): number | undefined {
  const number = Number(token);
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

function holdColumns(holds: readonly Hold[]): unknown[] {
  return [
    holds.map(({ scope }) => comparableText(scope)),
    holds.map(({ key }) => comparableText(key)),
    holds.map((hold) => tokenOf(hold) ?? 0),
  ];
}

function tokensOf(rows: readonly Row[]): Set<unknown> {
  return new Set(rows.map(([token]) => token));
}

function markColumns(marks: readonly ProcessedMark[]): unknown[] {
  return [marks.map(({ handler }) => handler), marks.map(({ eventId }) => eventId)];
}
