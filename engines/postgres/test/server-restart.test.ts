import type { Delivery } from '@holdfast/contracts';
import { openPostgres, type PostgresTransaction } from '@holdfast/postgres';
import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { ownService, titled } from '../../../scripts/services/service.ts';

const server = await ownService('postgres');
/** A test that is tried once more begins with tables of its own. */
let tries = 0;

/** Connections from before a restart fail once. */
async function untilBack<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      expect(error).toMatchObject({ code: 'HOLDFAST_POSTGRES_UNAVAILABLE' });
    }
  }
}

describe.skipIf(server.missing)(titled('a server that is restarted', server), () => {
  afterAll(async () => {
    if (server.missing === undefined) await server.stop();
  });

  test('loses nothing under load, and nothing is done twice', { timeout: 60_000 }, async () => {
    if (server.missing !== undefined) return;
    const schema = `busy_${++tries}`;
    const engine = await openPostgres({ url: server.url, schema, connectionsMax: 6 });
    const admin = new pg.Pool({ connectionString: server.url, max: 1 });
    admin.on('error', () => {});
    await admin.query(`CREATE TABLE ${schema}.effect (id text NOT NULL)`);
    await engine.broker.declare('busy');
    const codes = new Set<unknown>();
    const published: string[] = [];
    let isRestarting = true;

    /** As a caller does: what could not be reached is asked again. */
    async function persist<T>(call: () => Promise<T>): Promise<T> {
      for (;;) {
        try {
          return await call();
        } catch (error) {
          codes.add((error as { code?: unknown }).code);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    }

    const publisher = (async () => {
      for (let batch = 0; isRestarting || batch < 20; batch++) {
        const events = Array.from({ length: 5 }, (_, n) => ({ id: `event-${batch}-${n}`, payload: 'x' }));
        await persist(() => engine.broker.publish('busy', events));
        published.push(...events.map(({ id }) => id));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    const commit = (id: string) => async (tx: PostgresTransaction) => {
      await tx.query(`INSERT INTO ${schema}.effect VALUES ($1)`, [id]);
    };
    const worker = async (owner: string, suspects: boolean) => {
      for (;;) {
        const request = { owner, limit: 10, leaseMs: 2000, suspects };
        const { deliveries } = await persist(() => engine.broker.lease('busy', request));
        await persist(() =>
          engine.broker.settle(
            deliveries.map(({ lease, id }) => ({
              lease,
              kind: 'ack',
              marks: ['view@1'],
              commit: commit(id),
            })),
          ),
        );
        if (deliveries.length > 0 || isRestarting) continue;
        const { ready, leased, suspect } = await persist(() => engine.broker.counts('busy'));
        if (ready + leased + suspect === 0) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    const workers = [worker('w1', false), worker('w2', false), worker('w3', true)];

    for (const how of ['kill', 'stop', 'kill'] as const) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      await server.restart(how);
    }
    isRestarting = false;
    await Promise.all([publisher, ...workers]);

    const { rows } = await admin.query(`SELECT id FROM ${schema}.effect ORDER BY id`);
    expect(rows.map(({ id }) => id)).toEqual(published.toSorted());
    expect([...codes]).toEqual(['HOLDFAST_POSTGRES_UNAVAILABLE']);
    await admin.end();
    await engine.close();
  });

  test('may take back a lease, and then whoever had it settles nothing', { timeout: 60_000 }, async () => {
    if (server.missing !== undefined) return;
    const engine = await openPostgres({ url: server.url, schema: 'fences', connectionsMax: 2 });
    const { broker } = engine;
    await broker.declare('orders');
    const effects: string[] = [];
    const ack = ({ lease, id }: Delivery, who: string) =>
      broker.settle([
        { lease, kind: 'ack', marks: ['h@1'], commit: () => void effects.push(`${id} by ${who}`) },
      ]);

    for (let round = 0; round < 3; round++) {
      const id = `event ${round}`;
      await broker.publish('orders', [{ id, payload: '1' }]);
      const request = { owner: 'w', limit: 1, leaseMs: 60_000 };
      const [before] = (await broker.lease('orders', request)).deliveries;
      await server.restart('kill');
      const [after] = (await untilBack(() => broker.lease('orders', request))).deliveries;
      const [settled] = await ack(before!, 'the first');
      // It is in one group: in the first, if the crash came after the disk had the lease.
      expect(settled!.took).toBe(after === undefined);
      if (after) expect(await ack(after, 'the second')).toMatchObject([{ took: true, repeated: false }]);
      expect(effects.splice(0)).toEqual([`${id} by ${after ? 'the second' : 'the first'}`]);
    }
    expect((await broker.waiting('orders', { limit: 9 })).items).toEqual([]);
    await engine.close();
  });

  test('rings again when it is back', { timeout: 60_000 }, async () => {
    if (server.missing !== undefined) return;
    const [sleeper, publisher] = await Promise.all([
      openPostgres({ url: server.url, schema: 'bells' }),
      openPostgres({ url: server.url, schema: 'bells' }),
    ]);
    await sleeper.broker.declare('quiet');
    const request = { owner: 'w', limit: 10, leaseMs: 1000 };
    let rings = 0;
    sleeper.broker.doorbell('quiet', () => {
      rings += 1;
    });
    // Someone who found nothing is someone to be woken.
    await sleeper.broker.lease('quiet', request);
    await expect.poll(() => rings).toBeGreaterThan(0);

    await server.restart('kill');

    // It rings by itself when it listens again, for what it may have missed.
    const before = rings;
    await expect.poll(() => rings, { timeout: 15_000 }).toBeGreaterThan(before);
    // Who is rung looks; what the server knew of who sleeps may have gone with it.
    await sleeper.broker.lease('quiet', request);
    const heard = rings;
    await publisher.broker.publish('quiet', [{ payload: 'wake up' }]);
    await expect.poll(() => rings, { timeout: 5000 }).toBeGreaterThan(heard);
    await Promise.all([sleeper.close(), publisher.close()]);
  });
});
