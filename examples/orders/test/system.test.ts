import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ownService, titled } from '../../../scripts/services/service.ts';
import { brokers } from '../src/system/open-store.ts';

const script = path.join(import.meta.dirname, '..', 'src', 'system.ts');

/** The whole system as a process of its own, and a way to ask its console. */
async function start(store: string, ...args: string[]) {
  const child = spawn(
    process.execPath,
    ['--conditions=holdfast-source', script, '--store', store, '--port', '0', ...args],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      // The client of SQS wants some keys, and a server on loopback takes any.
      env: { ...process.env, AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' },
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const output = { text: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    output.text += chunk.toString();
  });
  const linkOf = () => /^http:\/\/localhost:\d+\/#token=\S+$/m.exec(output.text)?.[0];
  await expect.poll(linkOf, { timeout: 15_000 }).toBeDefined();
  const [url = '', token = ''] = linkOf()!.split('#token=');
  async function ask(route: string, body?: object) {
    const [method = 'GET', place = ''] = route.split(' ');
    const response = await fetch(`${url}api/v1${place}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return response.json();
  }
  return { child, output, url, ask };
}

async function stop(child: ChildProcess): Promise<number | null> {
  child.kill('SIGINT');
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

async function tempStore(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-system-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return path.join(folder, 'shop.db');
}

test('the tour: payment is broken, orders are parked, mended and replayed; the next start goes on', async () => {
  const store = await tempStore();
  const shop = await start(store);
  expect(await (await fetch(shop.url)).text()).toContain('<title>Holdfast console</title>');
  await expect.poll(async () => (await shop.ask('GET /gateway')).state.workers.length).toBe(1);

  await shop.ask('POST /demo/faults/rejects', { isOn: true });
  const parked = async () => (await shop.ask('GET /parked')).count as number;
  await expect.poll(parked, { timeout: 10_000 }).toBeGreaterThan(2);
  await shop.ask('POST /demo/faults/rejects', { isOn: false });
  const body = { filter: { topic: ['orders'] }, canary: 0, why: 'payment is mended' };
  const { operation } = await shop.ask('POST /replays', body);
  await expect
    .poll(async () => (await shop.ask(`GET /replays/${operation.id}`)).operation.stage, { timeout: 15_000 })
    .toBe('done');
  const { steps } = await shop.ask('GET /demo');
  expect(steps.at(-1)).toMatchObject({ title: 'Replay the group.', isDone: true });
  const programs = async () => (await shop.ask('GET /assemblies')).counts;
  await expect.poll(programs, { timeout: 10_000 }).toMatchObject([{ name: 'fulfil-order' }]);
  expect(await stop(shop.child)).toBe(0);
  expect(shop.output.text).toContain('Drained: what was not done waits in the store.');

  const again = await start(store);
  expect((await again.ask(`GET /replays/${operation.id}`)).operation.stage).toBe('done');
  expect(await stop(again.child)).toBe(0);
}, 60_000);

test('sells some orders and ends, if that is asked for', async () => {
  const { child, output } = await start(await tempStore(), '--once', '--orders', '20');
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(0);
  expect(output.text).toContain('All is done or parked.');
}, 60_000);

test.for(brokers)(
  'sells on %s, with the URL of its server',
  { timeout: 240_000 },
  async (engine, { skip }) => {
    const server = await ownService(engine === 'sqs' ? 'elasticmq' : engine);
    if (server.missing !== undefined) return skip(titled(engine, server));
    try {
      const args = ['--engine', engine, '--brokers', server.url, '--once', '--orders', '20'];
      const { child, output } = await start(await tempStore(), ...args);
      const [code] = (await once(child, 'exit')) as [number | null];
      expect(code).toBe(0);
      expect(output.text).toContain('20 sold, 20 charged');
    } finally {
      await server.stop();
    }
  },
);

test.each([
  [['--engine', 'rabbit'], '--engine wants one of kafka, rabbitmq, sqs, nats, redis, got "rabbit".'],
  [['--port', 'x'], '--port wants a number from 0 to 65535, got "x".'],
  [['--orders', '0'], '--orders wants a number above zero, got "0".'],
])('says what is wrong with %j', async (args, sentence) => {
  const child = spawn(process.execPath, ['--conditions=holdfast-source', script, ...args]);
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const [code] = (await once(child, 'exit')) as [number];
  expect(code).toBe(2);
  expect(said).toContain(sentence);
});
