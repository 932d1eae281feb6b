import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { sleep, systemClock } from 'holdfast';
import { afterAll, describe, expect, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { ackOf, closeEngines, newName, openEngine, retryOf, take } from './test-engines.ts';

const kafka = await service('kafka');
const worker = fileURLToPath(new URL('worker-process.ts', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));

afterAll(closeEngines);

describe.skipIf(kafka.missing)(titled('workers that are killed', kafka), () => {
  const url = kafka.missing === undefined ? kafka.url : '';

  test('lose nothing, and what they had done does not come again', { timeout: 120_000 }, async () => {
    const [topic, group] = [newName('orders'), newName('g')];
    const engine = openEngine(url, { group, partitions: 2 });
    await engine.broker.declare(topic);
    const ids = Array.from({ length: 120 }, (_, index) => `e${index}`);
    await engine.broker.publish(
      topic,
      ids.map((id) => ({ id, payload: id, key: id })),
    );
    const done: string[] = [];
    for (let kills = 0; kills < 3; kills++) {
      const options = ['--conditions=holdfast-source', '--no-warnings', worker, url, group, topic];
      const child = spawn(process.execPath, options, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = once(child, 'exit');
      let seen = 0;
      for await (const line of createInterface(child.stdout)) {
        const [what, id] = line.split(' ');
        if (what !== 'done') continue;
        done.push(id!);
        seen += 1;
        // What it has begun then is unfinished.
        if (seen === 20) child.kill('SIGKILL');
      }
      await exited;
    }
    const left = (await take(engine, topic, ids.length - done.length, 10_000)).map(({ id }) => id);
    const more = await take(engine, topic, 1, 1000);

    expect(done).toHaveLength(new Set(done).size);
    // A worker may have been killed after the server had its commit, and before it could tell.
    const missing = ids.filter((id) => !done.includes(id) && !left.includes(id));
    expect(missing.length).toBeLessThanOrEqual(3);
    expect(left.filter((id) => done.includes(id))).toEqual([]);
    expect(more).toEqual([]);
  });
});

const own = await ownService('kafka');

describe.skipIf(own.missing)(titled('a server that is killed under load', own), () => {
  afterAll(async () => {
    if (own.missing === undefined) await own.stop();
  }, 60_000);

  test('loses nothing, and readers go on by themselves', { timeout: 180_000 }, async () => {
    if (own.missing !== undefined) return;
    const topic = newName('orders');
    const engine = openEngine(own.url, { group: newName('g'), partitions: 2 });
    await engine.broker.declare(topic);
    const published: string[] = [];
    const acked = new Set<string>();
    let isOver = false;
    const patiently = async <T>(call: () => Promise<T>): Promise<T> => {
      for (;;) {
        try {
          return await call();
        } catch (error) {
          if (isOver) throw error;
          await sleep(systemClock, 100);
        }
      }
    };
    const produce = async () => {
      for (let index = 0; !isOver; index++) {
        const id = `e${index}`;
        await patiently(() => engine.broker.publish(topic, [{ id, payload: id, key: id }]));
        published.push(id);
        await sleep(systemClock, 5);
      }
    };
    const consume = async (until: () => boolean) => {
      while (!until()) {
        // A call that fails half-way has leased events that nobody settles: they come again when their leases end.
        const deliveries = await patiently(() => take(engine, topic, 50, 200, 5000));
        const results = await patiently(() =>
          engine.broker.settle(
            deliveries.map((each) =>
              each.attempt === 1 && each.id.endsWith('7') ? retryOf(each, 200) : ackOf(each),
            ),
          ),
        );
        for (const [index, { id, attempt }] of deliveries.entries())
          if (results[index]!.took && (attempt > 1 || !id.endsWith('7'))) acked.add(id);
      }
    };
    const producing = produce();
    const endsAt = systemClock.now() + 120_000;
    const consuming = consume(
      () => systemClock.now() > endsAt || (isOver && published.every((id) => acked.has(id))),
    );
    for (const how of ['kill', 'stop'] as const) {
      const before = acked.size;
      while (acked.size < before + 50 && systemClock.now() < endsAt) await sleep(systemClock, 50);
      await own.restart(how);
    }
    const before = acked.size;
    while (acked.size < before + 50 && systemClock.now() < endsAt) await sleep(systemClock, 50);
    // Calls that wait for the server end with an answer, not with this test.
    isOver = true;
    await producing;
    await consuming;

    expect(published.filter((id) => !acked.has(id))).toEqual([]);
    expect(published.length).toBeGreaterThan(100);
  });
});
