import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { pythonClients } from '../../../scripts/services/foreign-clients.ts';
import { service, titled } from '../../../scripts/services/service.ts';
import { closeEngines, newTopic, openEngine, parkOf, take } from './test-engines.ts';

const rabbitmq = await service('rabbitmq');
const url = rabbitmq.missing === undefined ? rabbitmq.url : 'amqp://localhost:5672';
const run = promisify(execFile);

const pika = rabbitmq.missing === undefined ? await pythonClients() : rabbitmq;
const runPython = (...args: string[]) =>
  run('python3', ['-c', ...args], { env: 'env' in pika ? pika.env : {} });

afterAll(closeEngines, 30_000);

const connects = `
import datetime, json, sys
import pika
connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1] + '/%2F'))
channel = connection.channel()
`;

const produces = `${connects}
channel.confirm_delivery()
headers = {'n': 1, 'yes': True, 'none': None, 'ü': 'ö', 'raw': b'\\xff', 'table': {'a': [1, 'b']},
           'at': datetime.datetime.fromtimestamp(1700000000, datetime.timezone.utc)}
properties = pika.BasicProperties(message_id='m1', type='placed', correlation_id='c1', timestamp=1700000000, headers=headers)
channel.basic_publish('', sys.argv[2], 'zwölf'.encode(), properties)
channel.basic_publish('', sys.argv[2], b'\\xff\\x00')
channel.basic_publish('', sys.argv[2], b'', pika.BasicProperties(headers={'event-key': 'k', 'event-id': 'mine'}))
connection.close()
`;

const consumes = `${connects}
method, properties, body = channel.basic_get(sys.argv[2], auto_ack=True)
print(json.dumps({'id': properties.message_id, 'mode': properties.delivery_mode, 'headers': properties.headers, 'body': body.decode()}))
connection.close()
`;

describe.skipIf(pika.missing)(titled('pika', pika), { timeout: 30_000 }, () => {
  test('its events come with properties, headers of any type, bytes and nothing', async () => {
    const topic = newTopic(url);
    const engine = openEngine(url);
    await engine.broker.declare(topic);
    await runPython(produces, url, topic);

    const [text, bytes, empty] = await take(engine, topic, 3);
    expect(text).toMatchObject({
      ...{ id: 'm1', payload: 'zwölf', type: 'placed', correlationId: 'c1', attempt: 1 },
      ...{ originTopic: topic, firstSeenAt: 1_700_000_000_000 },
    });
    expect(text!.headers).toEqual({
      ...{ n: '1', yes: 'true', none: '', ü: 'ö', raw: '/w==' },
      ...{ table: '{"a":[1,"b"]}', at: '1700000000' },
    });
    expect(bytes).toMatchObject({ payload: new Uint8Array([255, 0]), headers: {} });
    expect(empty).toMatchObject({ id: 'mine', key: 'k', payload: '' });
  });

  test('it reads events, and parked ones with what happened in their headers', async () => {
    const topic = newTopic(url);
    const engine = openEngine(url);
    await engine.broker.declare(topic);
    const event = { id: 'e1', payload: 'zwölf', key: 'k', headers: { trace: 'ü' } };
    await engine.broker.publish(topic, [event]);
    const [published] = [JSON.parse((await runPython(consumes, url, topic)).stdout)];
    expect(published).toMatchObject({
      ...{ id: 'e1', mode: 2, body: 'zwölf' },
      headers: { 'event-id': 'e1', 'event-key': 'k', trace: 'ü' },
    });

    await engine.broker.publish(topic, [event]);
    await engine.broker.settle((await take(engine, topic, 1)).map(parkOf));
    const { stdout } = await runPython(consumes, url, `${topic}.dlq`);
    const { body, headers } = JSON.parse(stdout);
    expect(body).toBe('zwölf');
    expect(headers).toMatchObject({
      ...{ 'event-id': 'e1', trace: 'ü', 'origin-topic': topic, 'dlq-reason': 'TypeError' },
      ...{ 'dlq-message': 'no street', 'dlq-stop': 'attempts_exhausted', 'dlq-consumer': 'shipping' },
      'final-attempt': '1',
    });
    expect(Number(headers['first-seen-ts'])).toBeGreaterThan(0);
  });
});
