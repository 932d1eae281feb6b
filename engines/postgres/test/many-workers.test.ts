import type { PostgresEngine } from '@holdfast/postgres';
import { afterAll, describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { newGround } from './postgres-harness.ts';

const postgres = await service('postgres');

describe.skipIf(postgres.missing)(titled('many workers', postgres), () => {
  const ground = newGround(postgres.missing === undefined ? postgres.url : '');
  afterAll(() => ground.clear());

  test('share a topic without giving an event to two', async () => {
    const workers = await Promise.all(Array.from({ length: 6 }, () => ground.open({ connectionsMax: 1 })));
    await workers[0]!.broker.declare('shared');
    const ids = await publish(workers[0]!, 'shared', 600, () => undefined);

    const done = (await Promise.all(workers.map((worker) => work(worker, 'shared', 7)))).flat();

    expect(done.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(await workers[0]!.broker.counts('shared')).toMatchObject({ ready: 0, leased: 0, suspect: 0 });
  });

  test('keep the order of every key, with publishers who race them', async () => {
    const workers = await Promise.all(Array.from({ length: 4 }, () => ground.open({ connectionsMax: 2 })));
    await workers[0]!.broker.declare('ordered', { ordering: 'key' });
    let isPublished = false;
    // One publisher a key, so that there is an order to keep; keys run empty again and again.
    const publishing = Promise.all(
      ['a', 'b', 'c'].map(async (key, index) => {
        for (let n = 0; n < 60; n++) await publish(workers[index]!, 'ordered', 1 + (n % 3), () => key);
      }),
    ).then(() => {
      isPublished = true;
    });
    const seen: { key: string | undefined; payload: unknown }[] = [];
    await Promise.all(
      workers.map(async (worker, index) => {
        while (!isPublished || (await worker.broker.counts('ordered')).ready > 0) {
          const runs = await work(worker, 'ordered', 4, index % 2 === 0 ? 3 : 1, (delivery) =>
            seen.push(delivery),
          );
          if (runs.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        }
      }),
    );
    await publishing;
    // What was promoted after the last look.
    await work(workers[0]!, 'ordered', 10, 1, (delivery) => seen.push(delivery));

    for (const wanted of ['a', 'b', 'c']) {
      const numbers = seen.filter(({ key }) => key === wanted).map(({ payload }) => Number(payload));
      expect(numbers).toEqual(numbers.toSorted((one, two) => one - two));
      expect(numbers).toHaveLength(120);
    }
    const { rows } = await ground.admin.query(
      `SELECT count(*)::int AS left FROM ${ground.schema}.active_key`,
    );
    expect(rows[0].left).toBe(0);
  });

  test('an event that is given back alone leaves the rest of its group as it was', async () => {
    const engine = await ground.open();
    await engine.broker.declare('parts');
    await publish(engine, 'parts', 3, () => undefined);
    const { deliveries } = await engine.broker.lease('parts', { owner: 'w', limit: 3, leaseMs: 100 });
    const [one, two, three] = deliveries.map(({ lease }) => lease);
    expect(await engine.broker.extend([two!], 60_000)).toEqual([true]);
    await new Promise((resolve) => setTimeout(resolve, 150));

    const settled = await engine.broker.settle(
      [one, two, three].map((lease) => ({ lease: lease!, kind: 'ack' })),
    );

    expect(settled.map(({ took }) => took)).toEqual([false, true, false]);
    expect(await engine.broker.counts('parts')).toMatchObject({ suspect: 2, leased: 0 });
  });
});

let published = 0;

async function publish(
  engine: PostgresEngine,
  topic: string,
  count: number,
  keyOf: () => string | undefined,
) {
  const key = keyOf();
  const events = Array.from({ length: count }, () => ({
    payload: String(++published),
    ...(key !== undefined && { key }),
  }));
  return (await engine.broker.publish(topic, events)).map(({ id }) => id);
}

/** Until nothing is given. */
async function work(
  engine: PostgresEngine,
  topic: string,
  limit: number,
  runMax = 1,
  note: (delivery: { key: string | undefined; payload: unknown }) => void = () => {},
) {
  const done: { id: string }[] = [];
  for (;;) {
    const { deliveries } = await engine.broker.lease(topic, { owner: 'w', limit, leaseMs: 60_000, runMax });
    if (deliveries.length === 0) return done;
    // Before they are settled: then the next of the key may be anywhere.
    for (const delivery of deliveries) note(delivery);
    await engine.broker.settle(deliveries.map(({ lease }) => ({ lease, kind: 'ack' })));
    done.push(...deliveries);
  }
}
