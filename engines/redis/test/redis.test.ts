import { Cluster, type Redis } from 'ioredis';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { openRedis } from '../src/index.ts';

const redis = await service('redis');
const cluster = await ownService('redis', {
  settings: {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-announce-ip': '127.0.0.1',
  },
});
let number = 0;
afterAll(async () => {
  if (cluster.missing === undefined) await cluster.stop();
});

function open() {
  const engine = openRedis({
    url: redis.missing === undefined ? redis.url : '',
    prefix: `redis-${process.pid}-${number++}:`,
  });
  return Object.assign(engine, { [Symbol.asyncDispose]: () => engine.close() });
}

const claim = { scope: 'tenant', key: 'k', fingerprint: 'body', leaseMs: 10_000 };

describe.skipIf(redis.missing)(titled('Redis', redis), () => {
  test('every key has a time to live', async () => {
    await using engine = open();
    const { ledger, rateLimits, client } = engine;
    const [begun] = await ledger.begin([
      { ...claim, liveMax: 5 },
      { ...claim, key: 'other' },
    ]);
    if (begun?.kind !== 'acquired') throw new Error(`The key was to be had, got ${begun?.kind}.`);
    await ledger.complete([{ hold: begun.hold, record: 'done', keepMs: 5_000 }]);
    await ledger.mark([{ handler: 'h', eventId: 'e' }]);
    await rateLimits.take([[{ key: 'rate', ratePerMs: 0.001, burst: 5 }]]);
    const keys = await client.keys(`redis-${process.pid}-${number - 1}:*`);
    expect(keys).toHaveLength(6);
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0);
  });

  test('a completion that is sent twice, as after a lost connection, took once and is told so twice', async () => {
    await using engine = open();
    const { ledger } = engine;
    const [begun] = await ledger.begin([claim]);
    if (begun?.kind !== 'acquired') throw new Error(`The key was to be had, got ${begun?.kind}.`);
    const completion = { hold: begun.hold, record: 'done', keepMs: 5_000 };
    const settled = await ledger.complete([completion, completion]);
    expect(settled.map(({ took }) => took)).toEqual([true, true]);
    const forged = { ...completion, hold: { ...begun.hold, token: 'another' } };
    expect(await ledger.complete([forged])).toMatchObject([{ took: false, because: 'lease_lost' }]);
  });

  test('a commit is refused: no transaction could hold it', async () => {
    await using engine = open();
    const hold = { ...claim, token: 'any' };
    const commit = () => 'record';
    await expect(engine.ledger.complete([{ hold, record: undefined, keepMs: 1, commit }])).rejects.toThrow(
      'sharedTransaction: a script of Redis cannot run the code of a handler',
    );
  });

  test('a released key leaves the count of its scope', async () => {
    await using engine = open();
    const { ledger } = engine;
    const [begun] = await ledger.begin([{ ...claim, liveMax: 1 }]);
    if (begun?.kind !== 'acquired') throw new Error(`The key was to be had, got ${begun?.kind}.`);
    const other = { ...claim, key: 'other', liveMax: 1 };
    expect(await ledger.begin([other])).toEqual([{ kind: 'full' }]);
    await ledger.release([begun.hold]);
    expect(await ledger.begin([other])).toMatchObject([{ kind: 'acquired' }]);
  });
});

test('a misspelt option is refused', () => {
  const options = { url: 'redis://localhost', keyPrefix: 'shop:' };
  expect(() => openRedis(options)).toThrow('keyPrefix: not an option');
});

test('an address is needed', () => {
  expect(() => openRedis({})).toThrow(
    'url: expected an address such as "redis://localhost:6379", or a client',
  );
});

describe.skipIf(cluster.missing)(titled('A cluster of Redis', cluster), () => {
  test('takes batches whose keys are in many slots, and requests whose limits share a tag', async () => {
    if (cluster.missing !== undefined) return;
    const one = openRedis({ url: cluster.url });
    await (one.client as Redis).call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await expect
      .poll(() => (one.client as Redis).call('CLUSTER', 'INFO'), { timeout: 10_000 })
      .toContain('cluster_state:ok');
    await one.close();
    const { hostname, port } = new URL(cluster.url);
    const client = new Cluster([{ host: hostname, port: Number(port) }]);
    onTestFinished(() => client.disconnect());

    const { ledger, rateLimits } = openRedis({ client });
    const claims = ['a', 'b', 'c'].map((scope) => ({ ...claim, scope, liveMax: 2 }));
    expect((await ledger.begin(claims)).map(({ kind }) => kind)).toEqual([
      'acquired',
      'acquired',
      'acquired',
    ]);
    const limits = (key: string) =>
      ['minute', 'hour'].map((name) => ({ key: `{${key}}${name}`, ratePerMs: 1e-3, burst: 1 }));
    const answers = await rateLimits.take([limits('x'), limits('y'), limits('x')]);
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  });
});
