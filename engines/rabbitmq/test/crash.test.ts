import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { memoryEngine } from '@holdfast/contracts/memory';
import { sleep, systemClock } from 'holdfast';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { ackOf, closeEngines, newTopic, openEngine, retryOf, take } from './test-engines.ts';

const rabbitmq = await service('rabbitmq');
const worker = fileURLToPath(new URL('worker-process.ts', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));

afterAll(closeEngines, 30_000);

interface Worker {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly lines: Interface;
  /** Resolves with the next line that begins like this. */
  printed(start: string): Promise<string>;
  kill(): Promise<void>;
}

function startWorker(url: string, topic: string, mode: string): Worker {
  const options = ['--conditions=holdfast-source', '--no-warnings', worker, url, topic, mode];
  const child = spawn(process.execPath, options, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout);
  const exited = once(child, 'exit');
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  return {
    child,
    lines,
    kill,
    printed: (start) =>
      new Promise((resolve) => {
        lines.on('line', (line) => line.startsWith(start) && resolve(line));
      }),
  };
}

describe.skipIf(rabbitmq.missing)(titled('workers that are killed', rabbitmq), { timeout: 60_000 }, () => {
  const url = rabbitmq.missing === undefined ? rabbitmq.url : '';

  test('lose nothing, and what they had done does not come again', async () => {
    const topic = newTopic(url);
    const engine = openEngine(url);
    await engine.broker.declare(topic);
    const ids = Array.from({ length: 120 }, (_, index) => `e${index}`);
    await engine.broker.publish(
      topic,
      ids.map((id) => ({ id, payload: id })),
    );
    const done: string[] = [];
    for (let kills = 0; kills < 3; kills++) {
      const { lines, kill } = startWorker(url, topic, 'loop');
      let seen = 0;
      for await (const line of lines) {
        const [what, id] = line.split(' ');
        if (what !== 'done') continue;
        done.push(id!);
        seen += 1;
        // What it has begun then is unfinished.
        if (seen === 20) await kill();
      }
    }
    const left = (await take(engine, topic, ids.length - done.length, 5000)).map(({ id }) => id);
    const more = await take(engine, topic, 1, 500);

    expect(done).toHaveLength(new Set(done).size);
    // A worker may have been killed after the server had its acknowledgement, and before it could tell.
    const missing = ids.filter((id) => !done.includes(id) && !left.includes(id));
    expect(missing.length).toBeLessThanOrEqual(3);
    expect(left.filter((id) => done.includes(id))).toEqual([]);
    expect(more).toEqual([]);
  });

  test('in a handler, or after the effect: the event comes again at once', async () => {
    const topic = newTopic(url);
    const engine = openEngine(url);
    await engine.broker.declare(topic);
    await engine.broker.publish(topic, [{ id: 'e1', payload: 'a' }]);
    const holder = startWorker(url, topic, 'holds');
    await holder.printed('begun');
    await holder.kill();
    expect(await take(engine, topic, 1)).toMatchObject([{ id: 'e1', attempt: 1 }]);
  });

  test('between the retry and the acknowledgement: both come, and none is lost', async () => {
    const topic = newTopic(url);
    const engine = openEngine(url);
    await engine.broker.declare(topic);
    await engine.broker.publish(topic, [{ id: 'e1', payload: 'a' }]);
    const retrier = startWorker(url, topic, 'retries');
    await retrier.printed('sent');
    await retrier.kill();
    const both = await take(engine, topic, 2);
    expect(both.map(({ id, attempt }) => [id, attempt]).toSorted()).toEqual([
      ['e1', 1],
      ['e1', 2],
    ]);
  });

  test('only suspended, and then continued: its settlement is refused, and the other one stands', async () => {
    const topic = newTopic(url);
    const engine = openEngine(url);
    await engine.broker.declare(topic);
    await engine.broker.publish(topic, [{ id: 'e1', payload: 'a' }]);
    const zombie = startWorker(url, topic, 'holds');
    await zombie.printed('begun');
    zombie.child.kill('SIGSTOP');
    const [again] = await take(engine, topic, 1, 30_000);
    expect(again).toMatchObject({ id: 'e1', attempt: 1 });
    const refused = zombie.printed('lease_lost');
    zombie.child.kill('SIGCONT');
    zombie.child.stdin.write('settle\n');
    expect(await refused).toBe('lease_lost e1');
    expect(await engine.broker.settle([ackOf(again!)])).toMatchObject([{ took: true }]);
    expect(await take(engine, topic, 1, 500)).toEqual([]);
  });

  test('keep the order of keys, with a second process that takes over', async () => {
    // Nothing fails here, so nothing is in the store, and each process can have its own.
    const topic = newTopic(url);
    const engine = openEngine(url, { store: memoryEngine() });
    await engine.broker.declare(topic, { ordering: 'key' });
    const begun: string[] = [];
    const done = new Set<string>();
    const overtaken: string[] = [];
    const inHands: Set<string>[] = [];
    const start = async () => {
      const made = startWorker(url, topic, 'ordered');
      const inHand = new Set<string>();
      inHands.push(inHand);
      made.lines.on('line', (line) => {
        const [what, id = ''] = line.split(' ');
        if (what === 'done') done.add(id);
        if (what !== 'begun') return void inHand.delete(id);
        begun.push(id);
        const others = inHands.flatMap((each) => (each === inHand ? [] : [...each]));
        overtaken.push(...others.filter((other) => keyOf(other) === keyOf(id)));
        inHand.add(id);
      });
      await made.printed('ready');
      return { ...made, inHand };
    };
    const [first] = [await start(), await start()];
    const events = Array.from(
      { length: 200 },
      (_, index) => `k${index % 5}-${String(index).padStart(3, '0')}`,
    );
    for (const [index, id] of events.entries()) {
      await engine.broker.publish(topic, [{ id, payload: 'a', key: keyOf(id) }]);
      if (index !== 100) continue;
      await expect.poll(() => done.size, { timeout: 20_000 }).toBeGreaterThan(50);
      first.inHand.clear();
      await first.kill();
    }
    await expect.poll(() => begun.includes(events.at(-1)!), { timeout: 30_000 }).toBe(true);

    // No process had an event of a key in hand while another one had one, too.
    expect(overtaken).toEqual([]);
    // What was in hand when its process died may begin again. Nothing begins before what is in front of it.
    for (const key of ['k0', 'k1', 'k2', 'k3', 'k4']) {
      const inOrder = [...new Set(begun.filter((id) => keyOf(id) === key))];
      expect(inOrder).toEqual(events.filter((id) => keyOf(id) === key));
    }
  });
});

function keyOf(id: string): string {
  return id.split('-')[0]!;
}

// The server looks for late acknowledgements each minute, which is too long for a test.
process.env.RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS = '-rabbit channel_tick_interval 500';
const own = await ownService('rabbitmq', { settings: { consumer_timeout: '5000' } });
delete process.env.RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS;

describe.skipIf(own.missing)(titled('a server of its own', own), () => {
  afterAll(async () => {
    if (own.missing === undefined) await own.stop();
  }, 60_000);

  test('takes an event from a handler that is slower than consumer_timeout', {
    timeout: 60_000,
  }, async () => {
    if (own.missing !== undefined) return;
    const engine = openEngine(own.url);
    await engine.broker.declare('slow');
    await engine.broker.publish('slow', [{ id: 'e1', payload: 'a' }]);
    const [held] = await take(engine, 'slow', 1);
    await expect
      .poll(() => engine.broker.extend([held!.lease], 60_000), { timeout: 30_000, interval: 200 })
      .toEqual([false]);
    expect(await engine.broker.settle([ackOf(held!)])).toMatchObject([{ because: 'lease_lost' }]);
    const [again] = await take(engine, 'slow', 1);
    expect(again).toMatchObject({ id: 'e1' });
    expect(await engine.broker.settle([ackOf(again!)])).toMatchObject([{ took: true }]);
  });

  test('that is killed under load loses nothing, and consumers go on by themselves', {
    timeout: 180_000,
  }, async () => {
    if (own.missing !== undefined) return;
    const topic = newTopic(own.url);
    const engine = openEngine(own.url, { timeout: '3s' });
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
        await patiently(() => engine.broker.publish(topic, [{ id, payload: id }]));
        published.push(id);
        await sleep(systemClock, 5);
      }
    };
    const isRetried = (id: string, attempt: number) => attempt === 1 && id.endsWith('7');
    const consume = async (until: () => boolean) => {
      while (!until()) {
        const deliveries = await patiently(() => take(engine, topic, 50, 200));
        const results = await patiently(() =>
          engine.broker.settle(
            deliveries.map((each) => (isRetried(each.id, each.attempt) ? retryOf(each, 700) : ackOf(each))),
          ),
        );
        for (const [index, { id, attempt }] of deliveries.entries())
          if (results[index]!.took && !isRetried(id, attempt)) acked.add(id);
      }
    };
    const producing = produce();
    const endsAt = systemClock.now() + 120_000;
    const consuming = consume(
      () => systemClock.now() > endsAt || (isOver && published.every((id) => acked.has(id))),
    );
    const more = async (count: number) => {
      const before = acked.size;
      while (acked.size < before + count && systemClock.now() < endsAt) await sleep(systemClock, 50);
    };
    for (const how of ['stop', 'kill', 'kill'] as const) {
      // RabbitMQ 3.10 may lose a quorum queue for good if it is killed within a second of its declaration.
      await more(200);
      await own.restart(how);
    }
    await more(50);
    // Calls that wait for the server end with an answer, not with this test.
    isOver = true;
    await producing;
    await consuming;

    expect(published.filter((id) => !acked.has(id))).toEqual([]);
    expect(published.length).toBeGreaterThan(500);
  });
});
