import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { foreignProgram, pythonClients } from '../../../scripts/services/foreign-clients.ts';
import { service, titled } from '../../../scripts/services/service.ts';
import { KafkaClient } from '../src/kafka-client.ts';
import { readOptions } from '../src/kafka-options.ts';
import { closeEngines, newName, openEngine, parkOf, take } from './test-engines.ts';

const kafka = await service('kafka');
const url = kafka.missing === undefined ? kafka.url : 'kafka://localhost:9092';
const address = url.replace('kafka://', '');
const run = promisify(execFile);

const kcat = kafka.missing === undefined ? foreignProgram('kcat', '-V') : kafka;
const python = kafka.missing === undefined ? await pythonClients() : kafka;
const runPython = (...args: string[]) =>
  run('python3', ['-c', ...args], { env: 'env' in python ? python.env : {} });

afterAll(closeEngines);

describe.skipIf(kcat.missing)(titled('kcat', kcat), { timeout: 30_000 }, () => {
  test('its events come with key, headers and text', async () => {
    const topic = newName('orders');
    const engine = openEngine(url, { group: newName('g') });
    await engine.broker.declare(topic);
    const sent = run('kcat', [
      '-P',
      '-b',
      address,
      '-t',
      topic,
      '-k',
      'kä',
      '-H',
      'x=ü',
      '-H',
      'x=last',
      '-H',
      'none',
    ]);
    sent.child.stdin!.end('{"order":1}');
    await sent;

    const [event] = await take(engine, topic, 1);
    expect(event).toMatchObject({
      ...{ payload: '{"order":1}', key: 'kä', headers: { x: 'last', none: '' }, attempt: 1 },
      id: `${topic}/0/0`,
      originTopic: topic,
    });
  });

  test('it reads parked events, with what happened in their headers', async () => {
    const topic = newName('orders');
    const engine = openEngine(url, { group: newName('g') });
    await engine.broker.declare(topic);
    await engine.broker.publish(topic, [{ id: 'e1', payload: 'a', key: 'k', headers: { trace: 'ü' } }]);
    await engine.broker.settle((await take(engine, topic, 1)).map(parkOf));

    const { stdout } = await run('kcat', ['-C', '-b', address, '-t', `${topic}.dlq`, '-e', '-q', '-J']);
    const { key, payload, headers } = JSON.parse(stdout);
    const named = Object.fromEntries(
      Array.from({ length: headers.length / 2 }, (_, index) => headers.slice(2 * index, 2 * index + 2)),
    );
    expect({ key, payload }).toEqual({ key: 'k', payload: 'a' });
    expect(named).toMatchObject({
      ...{ 'event-id': 'e1', trace: 'ü', 'origin-topic': topic, 'dlq-reason': 'TypeError' },
      ...{
        'dlq-message': 'no street',
        'dlq-stop': 'attempts_exhausted',
        'dlq-consumer': 'shipping',
        'final-attempt': '1',
      },
    });
    expect(Number(named['first-seen-ts'])).toBeGreaterThan(0);
  });
});

const pythonProduces = `
import sys
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers=sys.argv[1])
producer.send(sys.argv[2], key=b'k', value=b'\\xff\\x00', headers=[('n', b'1'), ('raw', b'\\xff\\xfe')])
producer.send(sys.argv[2], key=b'gone', value=None)
producer.flush()
`;

const pythonConsumes = `
import json, sys
from kafka import KafkaConsumer
consumer = KafkaConsumer(sys.argv[2], bootstrap_servers=sys.argv[1], auto_offset_reset='earliest', consumer_timeout_ms=8000)
for message in consumer:
    headers = {name: value.decode() for name, value in message.headers}
    print(json.dumps({'key': message.key.decode(), 'value': message.value.decode(), 'headers': headers}))
    break
`;

describe.skipIf(python.missing)(titled('a Python client', python), { timeout: 60_000 }, () => {
  test('its bytes, tombstones and binary headers are read', async () => {
    const topic = newName('orders');
    const engine = openEngine(url, { group: newName('g') });
    await engine.broker.declare(topic);
    await runPython(pythonProduces, address, topic);

    const events = await take(engine, topic, 2);
    expect(events[0]).toMatchObject({ key: 'k', headers: { n: '1', raw: '//4=' } });
    expect([...(events[0]!.payload as Uint8Array)]).toEqual([0xff, 0]);
    expect(events[1]).toMatchObject({ key: 'gone', payload: '' });
  });

  test('it reads parked events', async () => {
    const topic = newName('orders');
    const engine = openEngine(url, { group: newName('g') });
    await engine.broker.declare(topic);
    await engine.broker.publish(topic, [{ id: 'e1', payload: 'ä', key: 'k' }]);
    await engine.broker.settle((await take(engine, topic, 1)).map(parkOf));

    const { stdout } = await runPython(pythonConsumes, address, `${topic}.dlq`);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ key: 'k', value: 'ä' },
      headers: { 'event-id': 'e1', 'dlq-reason': 'TypeError', 'final-attempt': '1' },
    });
  });
});

describe.skipIf(kafka.missing)(titled('a Spring consumer', kafka), { timeout: 30_000 }, () => {
  const int32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(value);
    return bytes;
  };
  const int64 = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt(value));
    return bytes;
  };

  test('what it parked is understood: origin, reason, message, attempts and time', async () => {
    const topic = newName('orders');
    const engine = openEngine(url, { group: newName('g') });
    await engine.broker.declare(topic);
    const client = new KafkaClient(readOptions({ url }).connection);
    const headers = {
      'kafka_dlt-original-topic': Buffer.from('orders'),
      'kafka_dlt-original-partition': int32(3),
      'kafka_dlt-original-offset': int64(17),
      'kafka_dlt-original-timestamp': int64(1_700_000_000_000),
      'kafka_dlt-exception-fqcn': Buffer.from(
        'org.springframework.kafka.listener.ListenerExecutionFailedException',
      ),
      'kafka_dlt-exception-cause-fqcn': Buffer.from('java.lang.IllegalStateException'),
      'kafka_dlt-exception-message': Buffer.from('x'.repeat(600)),
      'retry_topic-attempts': int32(4),
    };
    await client.produce([
      {
        ...{
          topic: `${topic}.dlq`,
          partition: 0,
          value: Buffer.from('a'),
          timestamp: BigInt(1_700_000_001_000),
        },
        headers: new Map(Object.entries(headers).map(([name, value]) => [Buffer.from(name), value])),
      },
    ]);
    await client.close();

    const [event] = await take(engine, `${topic}.dlq`, 1);
    expect(event).toMatchObject({
      ...{ payload: 'a', originTopic: 'orders', firstSeenAt: 1_700_000_000_000 },
      diagnosis: { reason: 'java.lang.IllegalStateException', message: 'x'.repeat(512), finalAttempt: 4 },
      headers: { 'kafka_dlt-original-partition': '3', 'kafka_dlt-original-offset': '17' },
    });
  });
});
