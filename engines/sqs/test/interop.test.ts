import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { memoryEngine } from '@holdfast/contracts/memory';
import { afterAll, describe, expect, test } from 'vitest';
import { pythonClients } from '../../../scripts/services/foreign-clients.ts';
import { service, titled } from '../../../scripts/services/service.ts';
import { ackOf, closeEngines, newPrefix, openEngine, parkOf, take } from './test-engines.ts';

const elasticmq = await service('elasticmq');
const endpoint = elasticmq.missing === undefined ? elasticmq.url : 'http://localhost:9324';
const run = promisify(execFile);

const boto3 = elasticmq.missing === undefined ? await pythonClients() : elasticmq;

afterAll(closeEngines, 30_000);

const connects = `
import boto3, json, sys
sqs = boto3.client('sqs', endpoint_url=sys.argv[1], region_name='elasticmq', aws_access_key_id='x', aws_secret_access_key='x')
url = sqs.get_queue_url(QueueName=sys.argv[2])['QueueUrl']
`;

const sends = `${connects}
print(sqs.send_message(QueueUrl=url, MessageBody='größe \\U0001f980', MessageAttributes={
  'trace': {'DataType': 'String', 'StringValue': 'ü'},
  'count': {'DataType': 'Number', 'StringValue': '3'},
  'raw': {'DataType': 'Binary', 'BinaryValue': b'\\xff\\xfe'},
})['MessageId'])
`;

const sendsInGroup = `${connects}
for body in ['first', 'second']:
  sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId='customer-7', MessageDeduplicationId=body)
`;

const receives = `${connects}
for _ in range(10):
  got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2, MessageAttributeNames=['All'])
  for message in got.get('Messages', []):
    attributes = {name: value['StringValue'] for name, value in message['MessageAttributes'].items()}
    print(json.dumps({'body': message['Body'], 'attributes': attributes, 'headers': json.loads(attributes['holdfast'])}))
  if got.get('Messages'):
    break
`;

describe.skipIf(boto3.missing).concurrent(titled('boto3', boto3), { timeout: 60_000 }, () => {
  const python = async (program: string, queue: string) =>
    (
      await run('python3', ['-c', program, endpoint, queue], { env: 'env' in boto3 ? boto3.env : {} })
    ).stdout.trim();

  test('its messages come with text and attributes, under the id of the message', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix });
    await engine.broker.declare('orders.new');
    const id = await python(sends, `${prefix}orders__new`);
    const [event] = await take(engine, 'orders.new', 1);
    expect(event).toMatchObject({
      ...{ id, payload: 'größe \u{1f980}', attempt: 1, originTopic: 'orders.new', key: undefined },
      headers: { trace: 'ü', count: '3', raw: '//4=' },
    });
  });

  test('its groups are keys', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix, store: memoryEngine() });
    await engine.broker.declare('orders', { ordering: 'key' });
    await python(sendsInGroup, `${prefix}orders.fifo`);
    const [first] = await take(engine, 'orders', 1);
    expect(first).toMatchObject({ payload: 'first', key: 'customer-7' });
    await engine.broker.settle([ackOf(first!)]);
    expect(await take(engine, 'orders', 1)).toMatchObject([{ payload: 'second', key: 'customer-7' }]);
  });

  test('it reads parked events, with what happened in their headers', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix });
    await engine.broker.declare('orders');
    await engine.broker.publish('orders', [
      { id: 'e1', payload: 'größe', key: 'k', headers: { trace: 'ü\0', empty: '' } },
    ]);
    await engine.broker.settle((await take(engine, 'orders', 1)).map(parkOf));
    const { body, headers, attributes } = JSON.parse(await python(receives, `${prefix}orders__dlq`));
    expect(body).toBe('größe');
    expect(Object.keys(attributes)).toEqual(['holdfast']);
    expect(headers).toMatchObject({
      ...{ 'event-id': 'e1', 'event-key': 'k', trace: 'ü\0', empty: '', 'origin-topic': 'orders' },
      ...{
        'dlq-reason': 'TypeError',
        'dlq-message': 'no street',
        'dlq-consumer': 'shipping',
        'final-attempt': '1',
      },
    });
  });

  test('it reads bytes as base64, and is told so', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix });
    await engine.broker.declare('orders');
    await engine.broker.publish('orders', [{ id: 'e1', payload: new Uint8Array([255, 0]) }]);
    const { body, attributes } = JSON.parse(await python(receives, `${prefix}orders`));
    expect([...Buffer.from(body, 'base64')]).toEqual([255, 0]);
    expect(attributes['holdfast-body']).toBe('base64');
  });
});
