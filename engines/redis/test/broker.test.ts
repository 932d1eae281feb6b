import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Delivery, Engine, Settlement } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { Cluster, type Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { openRedis, type RedisOptions } from '../src/index.ts';

const redis = await service('redis');
const url = redis.missing === undefined ? redis.url : '';
const act = { who: 'ada', why: 'a test' };
let number = 0;

function open(options: Partial<RedisOptions> = {}) {
  const engine = openRedis({ url, prefix: `broker-${process.pid}-${number++}:`, ...options });
  onTestFinished(() => engine.close());
  return engine;
}

const request = { owner: 'w', limit: 100, leaseMs: 20_000 };
const ack = ({ lease }: Delivery): Settlement<never> => ({ lease, kind: 'ack' });
const park = ({ lease }: Delivery): Settlement<never> => ({ lease, kind: 'park', stop: 'poison', story: [] });
const payloads = (deliveries: readonly Delivery[]) => deliveries.map(({ payload }) => payload);

describe.skipIf(redis.missing)(titled('The broker of Redis', redis), () => {
  test('stores nothing of a batch twice, also if one batch names an id twice', async () => {
    const { broker } = open();
    await broker.declare('orders');
    const events = ['a', 'b', 'a'].map((id) => ({ id, payload: id }));
    const published = await broker.publish('orders', events);
    expect(published.map(({ duplicate }) => duplicate)).toEqual([false, false, true]);
    expect(payloads((await broker.lease('orders', request)).deliveries)).toEqual(['a', 'b']);
  });

  test('handles batches that are larger than what Lua can unpack', async () => {
    const { broker } = open();
    await broker.declare('orders');
    const events = Array.from({ length: 10_000 }, (_, index) => ({ payload: `${index}` }));
    await broker.publish('orders', events);
    const { deliveries } = await broker.lease('orders', { ...request, limit: 10_000 });
    expect(payloads(deliveries)).toEqual(payloads(events as unknown as Delivery[]));
    const leases = deliveries.map(({ lease }) => lease);
    expect(new Set(await broker.extend(leases, 20_000))).toEqual(new Set([true]));
    const settled = await broker.settle(deliveries.map(ack));
    expect(settled.filter(({ took }) => took)).toHaveLength(10_000);
    expect(await broker.counts('orders')).toMatchObject({ ready: 0, leased: 0 });
  });

  test('leaves nothing behind when all events are settled, whatever they went through', async () => {
    const { broker, client } = open();
    const prefix = `broker-${process.pid}-${number - 1}:`;
    await broker.declare('orders', { ordering: 'key' });
    const before = await client.keys(`${prefix}*`);
    await broker.publish('orders', [
      { payload: '1', key: 'a' },
      { payload: '2', key: 'a', delayMs: 1 },
      { payload: '3', key: 'b', tenant: 't' },
    ]);
    const quarantine = { kind: 'quarantine', topic: 'orders', tenant: 't' } as const;
    const { id } = await broker.controls.impose(quarantine, act);
    const error = { type: 'E', message: '', fingerprint: 'f' };
    const [first] = (await broker.lease('orders', request)).deliveries;
    await broker.settle([{ lease: first!.lease, kind: 'retry', delayMs: 0, error, story: [] }]);
    await broker.controls.lift(id, act);
    for (let left = 3; left > 0; ) {
      const { deliveries } = await broker.lease('orders', request);
      left -= deliveries.length;
      await broker.settle(deliveries.map(ack));
    }
    const after = (await client.keys(`${prefix}*`)).filter((key) => !/:last:|\{controls\}/.test(key));
    expect(after.toSorted()).toEqual(before.filter((key) => !key.includes('{controls}')).toSorted());
  });

  test('parks once when it dies between the triage and Redis', async () => {
    const store = memoryEngine();
    let dies = true;
    const triage = {
      ...store.triage,
      async put(events: Parameters<typeof store.triage.put>[0]) {
        const answer = await store.triage.put(events);
        if (dies) throw new Error('the process died');
        return answer;
      },
    };
    const { broker } = open({ store: { ...store, triage } as Engine });
    await broker.declare('orders');
    const [published] = await broker.publish('orders', [{ payload: 'bad' }]);
    const [first] = (await broker.lease('orders', request)).deliveries;
    await expect(broker.settle([park(first!)])).rejects.toThrow('the process died');
    expect(await store.triage.get(published!.id)).toMatchObject({ payload: 'bad', parkings: 1 });
    expect(await broker.counts('orders')).toMatchObject({ leased: 1 });
    dies = false;
    expect(await broker.settle([park(first!)])).toMatchObject([{ took: true }]);
    expect(await store.triage.get(published!.id)).toMatchObject({ status: 'parked', parkings: 1 });
    expect(await broker.counts('orders')).toMatchObject({ leased: 0, ready: 0, suspect: 0 });
  });

  test('has one copy of an event that was rerouted twice, because its process died between the two topics', async () => {
    const { broker } = open();
    await broker.declare('orders');
    await broker.declare('slow');
    const [published] = await broker.publish('orders', [{ payload: 'a' }]);
    const [held] = (await broker.lease('orders', request)).deliveries;
    // What the first of the two writes leaves.
    await broker.publish('slow', [{ id: published!.id, payload: 'a' }]);
    const reroute: Settlement<never> = { lease: held!.lease, kind: 'reroute', to: 'slow' };
    expect(await broker.settle([reroute])).toMatchObject([{ took: true }]);
    expect(await broker.counts('orders')).toMatchObject({ leased: 0, ready: 0 });
    expect(await broker.counts('slow')).toMatchObject({ ready: 1 });
  });

  test('goes to the end of its own topic when it is rerouted there', async () => {
    const { broker } = open();
    await broker.declare('orders');
    await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    const [a] = (await broker.lease('orders', { ...request, limit: 1 })).deliveries;
    await broker.settle([{ lease: a!.lease, kind: 'reroute', to: 'orders' }]);
    expect(payloads((await broker.lease('orders', request)).deliveries)).toEqual(['b', 'a']);
  });

  test('gives the same events again if the answer to a lease was lost on its way', async () => {
    const { port } = new URL(url);
    let swallows = false;
    const proxy = net.createServer((caller) => {
      const server = net.connect(Number(port), '127.0.0.1');
      caller.pipe(server);
      server.on('data', (answer) => {
        if (!swallows) return void caller.write(answer);
        swallows = false;
        caller.destroy();
        server.destroy();
      });
      for (const socket of [caller, server]) socket.on('error', () => {});
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onTestFinished(() => void proxy.close());
    const { port: ownPort } = proxy.address() as net.AddressInfo;
    const { broker } = open({ url: `redis://127.0.0.1:${ownPort}` });
    await broker.declare('orders');
    await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    await broker.lease('orders', { ...request, limit: 0 });
    swallows = true;
    const { deliveries } = await broker.lease('orders', request);
    expect(swallows).toBe(false);
    expect(payloads(deliveries)).toEqual(['a', 'b']);
    expect(await broker.settle(deliveries.map(ack))).toMatchObject([{ took: true }, { took: true }]);
  });

  test('refuses what it cannot do, with the reason', async () => {
    const { broker } = open();
    await expect(broker.declare('orders', { keepSettledMs: 1000 })).rejects.toThrow(
      'retention: settled events would fill the memory of Redis',
    );
    await expect(broker.history('orders', { limit: 1 })).rejects.toThrow('retention');
    expect(() => broker.publishWithin(undefined as never, 'orders', [])).toThrow('sharedTransaction');
    await broker.declare('orders');
    await broker.publish('orders', [{ payload: 'a' }]);
    const [held] = (await broker.lease('orders', request)).deliveries;
    const commit = () => {};
    expect(await broker.settle([{ lease: held!.lease, kind: 'ack', commit }])).toMatchObject([
      { took: false, because: 'commit_failed', error: { code: 'HOLDFAST_FEATURE_MISSING' } },
    ]);
    expect(await broker.settle([ack(held!)])).toMatchObject([{ took: true }]);
    const undo = broker.retryNow('orders', ['a'], { ...act, undoes: 'x' });
    await expect(undo).rejects.toThrow('there is no audit entry x');
  });

  test('loses nothing, settles nothing twice and keeps the order when workers are killed', {
    timeout: 60_000,
  }, async () => {
    const { broker, client } = open();
    const prefix = `broker-${process.pid}-${number - 1}:`;
    await broker.declare('jobs', { ordering: 'key' });
    const events = Array.from({ length: 600 }, (_, index) => ({
      payload: String(Math.floor(index / 10)).padStart(3, '0'),
      key: `k${index % 10}`,
    }));
    await broker.publish('jobs', events);
    const workers = new Set<ChildProcess>();
    let owners = 0;
    const start = () => {
      const file = fileURLToPath(new URL('./broker-worker.ts', import.meta.url));
      const args = ['--conditions=holdfast-source', '--no-warnings', file, url, prefix, `w${owners++}`];
      workers.add(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }));
    };
    onTestFinished(() => {
      for (const worker of workers) worker.kill('SIGKILL');
    });
    const handled = () => client.llen(`${prefix}effects`);
    const unsettled = () => client.zcard(`${prefix}topic:{jobs}:order`);
    start();
    start();
    for (let kills = 0; kills < 6; kills++) {
      const before = await handled();
      while ((await handled()) < before + 20 && (await unsettled()) > 0) await pause(10);
      const [victim] = workers;
      workers.delete(victim!);
      victim!.kill('SIGKILL');
      start();
    }
    while ((await unsettled()) > 0) await pause(20);
    const effects = await client.lrange(`${prefix}effects`, 0, -1);
    const seen = [...new Set(effects)];
    expect(seen).toHaveLength(600);
    const settled = await client.lrange(`${prefix}settled`, 0, -1);
    expect(new Set(settled).size).toBe(settled.length);
    for (let key = 0; key < 10; key++) {
      const ofKey = seen.filter((effect) => effect.startsWith(`k${key} `));
      expect(ofKey).toEqual(ofKey.toSorted());
    }
  });
});

const own = await ownService('redis');

describe.skipIf(own.missing)(titled('A Redis that is killed and restarted', own), () => {
  test('has everything that it had promised, with its log of writes', { timeout: 60_000 }, async () => {
    if (own.missing !== undefined) return;
    onTestFinished(() => own.stop());
    const { broker } = open({ url: own.url });
    await broker.declare('orders');
    const published: string[] = [];
    const done: string[] = [];
    for (let restarts = 0; restarts < 3; restarts++) {
      const events = Array.from({ length: 50 }, (_, index) => ({ payload: `${restarts}-${index}` }));
      published.push(...(await broker.publish('orders', events)).map(({ id }) => id));
      const { deliveries } = await broker.lease('orders', { ...request, limit: 30 });
      const settled = await broker.settle(deliveries.slice(0, 20).map(ack));
      expect(settled.every(({ took }) => took)).toBe(true);
      done.push(...deliveries.slice(0, 20).map(({ id }) => id));
      await own.restart(restarts % 2 === 0 ? 'kill' : 'stop');
      // Leases outlive a restart, too.
      const rest = await broker.settle(deliveries.slice(20).map(ack));
      expect(rest.every(({ took }) => took)).toBe(true);
      done.push(...deliveries.slice(20).map(({ id }) => id));
    }
    const { deliveries } = await broker.lease('orders', { ...request, limit: 1000 });
    done.push(...deliveries.map(({ id }) => id));
    expect(done.toSorted()).toEqual(published.toSorted());
  });

  test('refuses new events when its memory is full, and lets workers empty it', async () => {
    const small = await ownService('redis', {
      settings: { 'maxmemory-policy': 'noeviction', appendonly: 'no' },
    });
    if (small.missing !== undefined) return;
    onTestFinished(() => small.stop());
    const { broker, client } = open({ url: small.url });
    await broker.declare('orders');
    await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    await (client as Redis).config('SET', 'maxmemory', '1');
    await expect(broker.publish('orders', [{ payload: 'c' }])).rejects.toThrow('OOM');
    const { deliveries } = await broker.lease('orders', request);
    expect(payloads(deliveries)).toEqual(['a', 'b']);
    expect(await broker.settle(deliveries.map(ack))).toMatchObject([{ took: true }, { took: true }]);
    await (client as Redis).config('SET', 'maxmemory', '0');
    expect(await broker.counts('orders')).toMatchObject({ ready: 0, leased: 0 });
  });
});

const clusterSettings = {
  'cluster-enabled': 'yes',
  'cluster-config-file': 'nodes.conf',
  'cluster-announce-ip': '127.0.0.1',
};
const nodes = await Promise.all([1, 2, 3].map(() => ownService('redis', { settings: clusterSettings })));
const lacking = { missing: nodes.find(({ missing }) => missing !== undefined)?.missing };

describe.skipIf(lacking.missing)(titled('A cluster of three nodes', lacking), () => {
  test('carries topics on every node, with order, retries, parking, reroutes and controls', {
    timeout: 60_000,
  }, async () => {
    const urls = nodes.map((node) => (node.missing === undefined ? new URL(node.url) : new URL('redis://x')));
    onTestFinished(async () => {
      for (const node of nodes) if (node.missing === undefined) await node.stop();
    });
    const slots = [0, 5461, 10_923, 16_384];
    const admins = urls.map(({ href }) => open({ url: href }).client as Redis);
    for (const [index, admin] of admins.entries()) {
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', slots[index]!, slots[index + 1]! - 1);
      await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      if (index > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', urls[0]!.port);
    }
    for (const admin of admins)
      await expect
        .poll(() => admin.call('CLUSTER', 'INFO'), { timeout: 30_000 })
        .toMatch(/cluster_state:ok[\s\S]*cluster_known_nodes:3/);
    const client = new Cluster(urls.map(({ port }) => ({ host: '127.0.0.1', port: Number(port) })));
    onTestFinished(() => client.disconnect());
    const { broker, ledger, features } = open({ client });
    expect(features.marksWithSettlement).toMatchObject({ missing: expect.stringContaining('slot') });

    const topics = Array.from({ length: 12 }, (_, index) => `topic-${index}`);
    for (const topic of topics) await broker.declare(topic, { ordering: 'key' });
    expect(await broker.topics()).toEqual(topics.toSorted());
    for (const [index, topic] of topics.entries()) {
      const other = topics[(index + 1) % topics.length]!;
      await broker.publish(topic, [
        { payload: 'moved', key: 'm' },
        { payload: 'bad', key: 'a' },
        { payload: 'next', key: 'a' },
      ]);
      const { deliveries } = await broker.lease(topic, request);
      const of = (payload: string) => deliveries.find((delivery) => delivery.payload === payload)!;
      const settled = await broker.settle([
        { lease: of('moved').lease, kind: 'reroute', to: other },
        park(of('bad')),
      ]);
      expect(settled).toMatchObject([{ took: true }, { took: true }]);
      expect(payloads((await broker.lease(`${topic}.dlq`, request)).deliveries)).toEqual(['bad']);
      const { id } = await broker.controls.impose({ kind: 'pause', topic: other }, act);
      expect((await broker.lease(other, request)).deliveries).toEqual([]);
      await broker.controls.lift(id, act);
      const moved = (await broker.lease(other, request)).deliveries;
      expect(payloads(moved)).toContain('moved');
      await broker.settle([...moved, ...(await broker.lease(topic, request)).deliveries].map(ack));
    }
    for (const topic of topics) expect(await broker.counts(topic)).toMatchObject({ ready: 0, leased: 0 });
    expect(await ledger.mark([{ handler: 'h', eventId: 'e' }])).toEqual([true]);
  });
});
