import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { sleep, systemClock } from 'holdfast';
import { afterAll, describe, expect, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { ackOf, closeEngines, newPrefix, openEngine, retryOf, take } from './test-engines.ts';

const elasticmq = await service('elasticmq');
const endpoint = elasticmq.missing === undefined ? elasticmq.url : 'http://localhost:9324';
const worker = fileURLToPath(new URL('worker-process.ts', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));

afterAll(closeEngines, 30_000);

function startWorker(...args: string[]): ChildProcess {
  const options = ['--conditions=holdfast-source', '--no-warnings', worker, ...args];
  return spawn(process.execPath, options, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
}

/** What a worker said of its events, until it ended. */
async function linesOf(child: ChildProcess): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout!)) lines.push(line);
  return lines;
}

function idsOf(lines: readonly string[], what: string): string[] {
  return lines.filter((line) => line.startsWith(`${what} `)).map((line) => line.slice(what.length + 1));
}

describe.skipIf(elasticmq.missing).concurrent(titled('a worker', elasticmq), { timeout: 60_000 }, () => {
  test.for(['arrival', 'handler', 'effect', 'between', 'done'] as const)(
    'that is killed at the point "%s" loses nothing, and what it had done does not come again',
    async (point) => {
      const prefix = newPrefix(endpoint);
      const engine = openEngine(endpoint, { prefix });
      await engine.broker.declare('orders');
      const ids = Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? `${index}r` : `${index}a`));
      await engine.broker.publish(
        'orders',
        ids.map((id) => ({ id, payload: id })),
      );
      const child = startWorker(endpoint, prefix, point);
      const exited = once(child, 'exit');
      const lines = await linesOf(child);
      expect((await exited)[1]).toBe('SIGKILL');

      const done = idsOf(lines, 'done');
      const effects = idsOf(lines, 'effect');
      const copies = new Map<string, number[]>();
      // Killed between the retry and the delete: both messages come.
      const twice = point === 'between' ? effects.at(-1) : undefined;
      const missing = () =>
        ids.filter((id) => !done.includes(id) && (copies.get(id)?.length ?? 0) < (id === twice ? 2 : 1));
      const endsAt = systemClock.now() + 20_000;
      // What was in its hands comes after `visibility`, and with it everything has come.
      while (missing().length > 0 && systemClock.now() < endsAt) {
        const some = await take(engine, 'orders', 20, 500);
        for (const { id, attempt } of some) copies.set(id, [...(copies.get(id) ?? []), attempt].toSorted());
        await engine.broker.settle(some.map(ackOf));
      }
      expect(missing()).toEqual([]);
      expect([...copies.keys()].filter((id) => done.includes(id))).toEqual([]);
      // Only its last effect can be repeated.
      const settled = [...done, ...idsOf(lines, 'retried')];
      expect(effects.filter((id) => !settled.includes(id)).length).toBeLessThanOrEqual(1);
      for (const id of idsOf(lines, 'retried')) expect(copies.get(id) ?? []).not.toContain(1);
      if (twice !== undefined) expect(copies.get(twice)).toEqual([1, 2]);
    },
  );

  test('that was stopped for longer than visibility settles nothing, and the other one does', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix });
    await engine.broker.declare('orders');
    await engine.broker.publish('orders', [{ id: '1a', payload: 'a' }]);
    const child = startWorker(endpoint, prefix, 'wait');
    const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
    try {
      expect((await lines.next()).value).toBe('begun 1a');
      child.kill('SIGSTOP');
      const [held] = await take(engine, 'orders', 1);
      expect(held).toMatchObject({ id: '1a', attempt: 1 });
      child.kill('SIGCONT');
      child.stdin!.write('settle\n');
      expect((await lines.next()).value).toBe('effect 1a');
      expect((await lines.next()).value).toBe('lease_lost 1a');
      expect(await engine.broker.settle([ackOf(held!)])).toMatchObject([{ took: true }]);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

const own = await ownService('elasticmq');

describe.skipIf(own.missing)(titled('a server that restarts under load', own), () => {
  afterAll(async () => {
    if (own.missing === undefined) await own.stop();
  }, 60_000);

  test('loses nothing, and readers go on by themselves', { timeout: 120_000 }, async () => {
    if (own.missing !== undefined) return;
    const engine = openEngine(own.url, { timeout: '2s' });
    await engine.broker.declare('orders');
    const published: string[] = [];
    const acked = new Set<string>();
    // The server may have deleted these, and died before it could answer.
    const unanswered = new Set<string>();
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
        await patiently(() => engine.broker.publish('orders', [{ id, payload: id }]));
        published.push(id);
        await sleep(systemClock, 20);
      }
    };
    const consume = async (until: () => boolean) => {
      while (!until()) {
        // A call that fails half-way has leased events that nobody settles: they come again when their leases end.
        const deliveries = await patiently(() => take(engine, 'orders', 20, 200, 5000));
        const isRetried = deliveries.map(({ id, attempt }) => attempt === 1 && id.endsWith('7'));
        const results = await patiently(() =>
          engine.broker
            .settle(deliveries.map((each, index) => (isRetried[index] ? retryOf(each, 200) : ackOf(each))))
            .catch((error) => {
              for (const [index, { id }] of deliveries.entries()) if (!isRetried[index]) unanswered.add(id);
              throw error;
            }),
        );
        for (const [index, { id }] of deliveries.entries())
          if (results[index]!.took && !isRetried[index]) acked.add(id);
      }
    };
    const endsAt = systemClock.now() + 90_000;
    const moreDone = async () => {
      const before = acked.size;
      while (acked.size < before + 20 && systemClock.now() < endsAt) await sleep(systemClock, 50);
    };
    const producing = produce();
    const consuming = consume(
      () =>
        systemClock.now() > endsAt ||
        (isOver && published.every((id) => acked.has(id) || unanswered.has(id))),
    );
    for (const how of ['kill', 'stop'] as const) {
      await moreDone();
      await own.restart(how);
    }
    await moreDone();
    // Calls that wait for the server end with an answer, not with this test.
    isOver = true;
    await producing;
    await consuming;
    await engine.close();

    expect(published.filter((id) => !acked.has(id) && !unanswered.has(id))).toEqual([]);
    expect(unanswered.size).toBeLessThanOrEqual(40);
    expect(published.length).toBeGreaterThan(60);
  });
});
