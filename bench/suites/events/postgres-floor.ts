import { timeOrderedId } from '@holdfast/contracts';
import { systemClock, systemRandom } from 'holdfast';
import pg from 'pg';
import { type Contestant, rateOf } from './event-case.ts';
import { latencyAt } from './idle-latency.ts';
import { type Load, payload } from './through-consumer.ts';

/** Two connections claim at once: with one, the server would wait for us half of the time. */
const workers = 2;

/** What one would write by hand: a table, an index of what is due, and the rows of what was processed. */
async function open(url: string, name: string) {
  const pool = new pg.Pool({ connectionString: url, max: workers });
  await pool.query(`
    CREATE TABLE ${name} (
      id bigserial PRIMARY KEY, event_id text COLLATE "C", payload text NOT NULL, run_at timestamptz NOT NULL, state int NOT NULL,
      lease_until timestamptz, lane text COLLATE "C");
    CREATE INDEX ON ${name} (run_at, id) WHERE state = 0;
    CREATE INDEX ON ${name} (lane, id) WHERE lane IS NOT NULL;
    CREATE TABLE ${name}_processed (event_id text COLLATE "C" PRIMARY KEY);
    ALTER TABLE ${name} SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)`);
  return {
    pool,
    newId: timeOrderedId(systemClock, systemRandom),
    insert: `INSERT INTO ${name} (event_id, payload, run_at, state) SELECT id, body, now(), 0
      FROM unnest($1::text[], $2::text[]) AS g(id, body)`,
    /** A follower: an event of its key is stored already, or comes earlier in the batch. */
    insertByKey: `INSERT INTO ${name} (event_id, payload, run_at, lane, state) SELECT id, body, now(), lane,
        CASE WHEN row_number() OVER (PARTITION BY lane ORDER BY place) > 1 OR EXISTS (SELECT FROM ${name} m WHERE m.lane = g.lane)
          THEN 2 ELSE 0 END
      FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS g(id, body, lane, place) ORDER BY place`,
    claim: `UPDATE ${name} SET state = 1, lease_until = now() + interval '30 s' WHERE id = ANY (ARRAY(
        SELECT id FROM ${name} WHERE state = 0 AND run_at <= now() ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED))
      RETURNING id, event_id, payload, lane`,
    remove: `WITH gone AS (DELETE FROM ${name} WHERE id = ANY ($1) AND state = 1 RETURNING event_id)
      INSERT INTO ${name}_processed SELECT event_id FROM gone ON CONFLICT DO NOTHING`,
    promote: `UPDATE ${name} m SET state = 0 FROM unnest($1::text[]) AS l(lane), LATERAL (
        SELECT id FROM ${name} WHERE lane = l.lane ORDER BY id LIMIT 1) AS next WHERE m.id = next.id`,
  };
}

interface Claimed {
  readonly id: string;
  readonly lane: string | null;
}

/** Batched insert, claim, processed row and delete. By key, only the head can be claimed, and its removal promotes the next one. */
export async function bareQueue(
  url: string,
  name: string,
  { events, batch, key }: Load,
): Promise<Contestant> {
  const { pool, newId, insert, insertByKey, claim, remove, promote } = await open(url, name);

  async function publish(at: number): Promise<void> {
    const ids = Array.from({ length: batch }, newId);
    const payloads = ids.map(() => payload);
    if (!key) await pool.query({ name: 'insert', text: insert, values: [ids, payloads] });
    else {
      const lanes = ids.map((_, index) => key(at + index));
      await pool.query({ name: 'insert', text: insertByKey, values: [ids, payloads, lanes] });
    }
  }

  async function work(claimed: { count: number }): Promise<void> {
    const client = await pool.connect();
    while (claimed.count < events) {
      const { rows } = await client.query<Claimed>({ name: 'claim', text: claim, values: [batch] });
      claimed.count += rows.length;
      if (rows.length === 0) continue;
      await client.query('BEGIN');
      await client.query({ name: 'remove', text: remove, values: [rows.map(({ id }) => id)] });
      if (key) await client.query({ name: 'promote', text: promote, values: [rows.map(({ lane }) => lane)] });
      await client.query('COMMIT');
    }
    client.release();
  }

  return {
    round: () =>
      rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) await publish(at);
        const claimed = { count: 0 };
        await Promise.all(Array.from({ length: workers }, () => work(claimed)));
      }),
    close: () => pool.end(),
  };
}

/** Insert, then claim, each with its commit: the lower bound of the latency. */
export async function bareLatency(url: string, name: string, share: number): Promise<Contestant> {
  const { pool, newId, insert, claim, remove } = await open(url, name);
  return {
    round: () =>
      latencyAt(share, async () => {
        const before = performance.now();
        await pool.query({ name: 'insert', text: insert, values: [[newId()], [payload]] });
        const { rows } = await pool.query<Claimed>({ name: 'claim', text: claim, values: [1] });
        const took = performance.now() - before;
        await pool.query({ name: 'remove', text: remove, values: [rows.map(({ id }) => id)] });
        return took;
      }),
    close: () => pool.end(),
  };
}
