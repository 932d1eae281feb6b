import type { Message } from '@holdfast/contracts/carrier';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import type { SqsHandle } from '../src/held-messages.ts';
import { openSqs } from '../src/index.ts';
import { sqsCarrier } from '../src/sqs-carrier.ts';
import { readSqsOptions, type SqsOptions } from '../src/sqs-options.ts';
import { awsError, fakeSqs } from './fake-sqs.ts';

const hourMs = 3_600_000;

function message(payload: string, more: Partial<Message> = {}): Message {
  return { dedupId: payload, headers: { 'event-id': payload }, payload, key: undefined, delayMs: 0, ...more };
}

function setup(answers: Parameters<typeof fakeSqs>[0] = {}, options: SqsOptions = {}) {
  const clock = virtualClock();
  const sqs = fakeSqs(answers);
  const errors: unknown[] = [];
  const { settings } = readSqsOptions({
    ...{ client: sqs.client, clock, onError: (error: unknown) => errors.push(error), ...options },
  });
  const carrier = sqsCarrier(settings);
  const queue = { name: 'orders', url: 'url/orders', isFifo: false };
  const handleOf = (name: string, lost: SqsHandle[] = []): SqsHandle => ({
    ...{ queue, receipt: name, since: clock.now() },
    listener: { arrived() {}, lost: (handles) => lost.push(...handles) },
  });
  return { clock, carrier, errors, handleOf, ...sqs };
}

describe('a hold', () => {
  test('is extended for 12 hours in all, then it is lost, and said to be', async () => {
    const { clock, carrier, errors, handleOf, inputs } = setup();
    const lost: SqsHandle[] = [];
    const handle = handleOf('a', lost);
    await clock.advance(12 * hourMs - 31_000);
    await carrier.keep!([handle]);
    expect(inputs('ChangeMessageVisibilityBatch').at(-1)!.Entries).toMatchObject([{ VisibilityTimeout: 30 }]);
    expect(lost).toEqual([]);
    await clock.advance(2000);
    await carrier.keep!([handle]);
    expect(lost).toEqual([handle]);
    expect(inputs('ChangeMessageVisibilityBatch')).toHaveLength(1);
    expect(errors).toMatchObject([
      {
        code: 'HOLDFAST_SQS_HELD_TOO_LONG',
        message:
          'SQS holds a message for at most 12 hours: 1 of orders are lost to this process, and come again',
      },
    ]);
  });

  test('that SQS refuses is lost, and the others are kept', async () => {
    const { carrier, handleOf, inputs } = setup({
      ChangeMessageVisibilityBatch: ({ Entries }) => ({
        Failed: Entries!
          .filter(({ ReceiptHandle }) => ReceiptHandle === 'b')
          .map(({ Id }) => ({
            ...{ Id, SenderFault: true, Code: 'ReceiptHandleIsInvalid' },
          })),
      }),
    });
    const lost: SqsHandle[] = [];
    const handles = ['a', 'b', 'c'].map((name) => handleOf(name, lost));
    await carrier.keep!(handles);
    expect(lost).toEqual([handles[1]]);
    expect(inputs('ChangeMessageVisibilityBatch')).toHaveLength(1);
  });

  test('of a message that is due later lasts until then, and at most 12 hours', async () => {
    const { clock, carrier, handleOf, inputs } = setup();
    const [soon, late] = [handleOf('soon'), handleOf('late')];
    await clock.advance(5000);
    carrier.later!(soon, 1001);
    carrier.later!(late, 100 * hourMs);
    await clock.advance(1);
    expect(inputs('ChangeMessageVisibilityBatch')).toMatchObject([
      {
        Entries: [
          { ReceiptHandle: 'soon', VisibilityTimeout: 2 },
          { ReceiptHandle: 'late', VisibilityTimeout: 12 * 3600 - 5 },
        ],
      },
    ]);
  });
});

describe('a delay', () => {
  test('is whole seconds, rounded up, and at most 15 minutes of them are given to SQS', async () => {
    const { carrier, inputs } = setup();
    await carrier.send(
      'orders',
      'retry',
      [0, 1, 1000, 1001, 899_001, hourMs].map((delayMs) => message('a', { delayMs })),
    );
    const [{ QueueUrl, Entries }] = inputs('SendMessageBatch') as [
      { QueueUrl: string; Entries: { DelaySeconds?: number }[] },
    ];
    expect(QueueUrl).toBe('url/orders-retry');
    expect(Entries.map(({ DelaySeconds = 0 }) => DelaySeconds)).toEqual([0, 1, 1, 2, 900, 900]);
  });
});

describe('a batch', () => {
  test('that fails for some is repeated for those, with a delay', async () => {
    const failures = new Map([
      ['b', 2],
      ['d', 1],
    ]);
    const { clock, carrier, inputs } = setup({
      SendMessageBatch: ({ Entries }) => ({
        Failed: Entries!.flatMap(({ Id, MessageBody }) => {
          const left = failures.get(MessageBody as string) ?? 0;
          failures.set(MessageBody as string, left - 1);
          return left > 0 ? [{ Id, SenderFault: false, Code: 'InternalError' }] : [];
        }),
      }),
    });
    const sending = carrier.send(
      'orders',
      'hot',
      ['a', 'b', 'c', 'd'].map((name) => message(name)),
    );
    await clock.advance('1s');
    await sending;
    const bodies = inputs('SendMessageBatch').map(({ Entries }) =>
      Entries!.map(({ MessageBody }) => MessageBody).join(''),
    );
    expect(bodies).toEqual(['abcd', 'bd', 'b']);
  });

  test('that fails for the same one again and again is refused, with the reason', async () => {
    const { clock, carrier, inputs } = setup({
      SendMessageBatch: () => ({
        Failed: [{ Id: '0', SenderFault: false, Code: 'InternalError', Message: 'oh' }],
      }),
    });
    const sending = carrier.send('orders', 'hot', [message('a'), message('b')]);
    const refused = expect(sending).rejects.toThrow(
      'SQS refused 1 of 2 messages to orders: InternalError oh',
    );
    await clock.advance('5s');
    await refused;
    expect(inputs('SendMessageBatch')).toHaveLength(4);
  });

  test('of a FIFO queue has each group once, and the next of a group waits for the one before', async () => {
    const { carrier, inputs } = setup(
      { GetQueueUrl: ({ QueueName }) => queueUrl(QueueName, ['orders.fifo']) },
      fifo,
    );
    await carrier.send(
      ...(['orders', 'hot'] as const),
      ['a1', 'b1', 'a2', 'c1', 'a3'].map((name) => message(name, { key: name[0] })),
    );
    const bodies = inputs('SendMessageBatch').map(({ Entries }) =>
      Entries!.map(({ MessageBody }) => MessageBody),
    );
    expect(bodies).toEqual([['a1', 'b1', 'c1'], ['a2'], ['a3']]);
    const groups = inputs('SendMessageBatch').map(({ Entries }) => Entries![0]!.MessageGroupId);
    expect(new Set(groups)).toHaveLength(1);
    expect(groups[0]).toMatch(/^[\w-]{43}$/);
  });

  test('of copies has the same deduplication ids when it is sent again, one of new events has others', async () => {
    const { carrier, inputs } = setup(
      { GetQueueUrl: ({ QueueName }) => queueUrl(QueueName, ['orders.fifo']) },
      fifo,
    );
    const copy = message('copy', { dedupId: 'message-1>' });
    for (let times = 0; times < 2; times++) await carrier.send('orders', 'hot', [copy, message('new')]);
    const ids = inputs('SendMessageBatch').map(({ Entries }) =>
      Entries!.map((entry) => entry.MessageDeduplicationId),
    );
    expect(ids[0]![0]).toBe(ids[1]![0]);
    expect(ids[0]![1]).not.toBe(ids[1]![1]);
  });

  test('of deletes says which were refused, and rejects if the server failed', async () => {
    const failed = { SenderFault: true };
    const { clock, carrier, handleOf } = setup({
      DeleteMessageBatch: ({ Entries }) => ({
        Failed: Entries!
          .filter(({ ReceiptHandle }) => ReceiptHandle === 'b')
          .map(({ Id }) => ({
            ...{ Id, Code: 'ReceiptHandleIsInvalid', ...failed },
          })),
      }),
    });
    expect(await carrier.done(['a', 'b', 'c'].map((name) => handleOf(name)))).toEqual([true, false, true]);
    failed.SenderFault = false;
    const deleting = expect(carrier.done(['a', 'b'].map((name) => handleOf(name)))).rejects.toThrow(
      'did not delete',
    );
    await clock.advance('5s');
    await deleting;
  });
});

const fifo = { store: {} } as SqsOptions;

function queueUrl(name: unknown, existing: readonly string[]): unknown {
  if (!existing.includes(name as string)) throw awsError('QueueDoesNotExist', 'there is none');
  return undefined;
}

describe('receiving', () => {
  test('says that SQS has too many messages in flight, and goes on later', async () => {
    let isFull = true;
    const { clock, carrier, errors, inputs } = setup({
      ReceiveMessage: () => {
        if (isFull) throw awsError('OverLimit', 'too many');
        return { Messages: [{ MessageId: 'm1', ReceiptHandle: 'r1', Body: 'a' }] };
      },
    });
    const arrived: unknown[] = [];
    const intake = carrier.open('orders', 'hot', { arrived: (some) => arrived.push(...some), lost() {} });
    intake.credit(1);
    await clock.advance('1s');
    expect(arrived).toEqual([]);
    expect(errors).toMatchObject([{ code: 'HOLDFAST_SQS_IN_FLIGHT_FULL', message: /120,000.*give a store/ }]);
    isFull = false;
    await clock.advance('10s');
    expect(arrived).toMatchObject([{ messageId: 'm1', payload: 'a' }]);
    // All credit is used.
    const asked = inputs('ReceiveMessage').length;
    await clock.advance('1m');
    expect(inputs('ReceiveMessage')).toHaveLength(asked);
    await carrier.close();
    expect(clock.pendingTimers).toBe(0);
  });

  test('asks with one request while there is nothing, and with several while there is much', async () => {
    let waiting = 0;
    const { clock, carrier, inputs } = setup({
      ReceiveMessage: ({ MaxNumberOfMessages, WaitTimeSeconds }) => {
        const count = Math.min(waiting, MaxNumberOfMessages as number);
        waiting -= count;
        if (count === 0 && (WaitTimeSeconds as number) > 0) return 'waits';
        const Messages = Array.from({ length: count }, (_, index) => ({
          ...{ MessageId: `m${waiting}-${index}`, ReceiptHandle: 'r', Body: 'a' },
        }));
        return { Messages };
      },
    });
    let arrived = 0;
    const listener = { arrived: (some: readonly unknown[]) => (arrived += some.length), lost() {} };
    const intake = carrier.open('orders', 'hot', listener);
    intake.credit(25);
    await intake.look();
    await clock.advance('10s');
    const waits = inputs('ReceiveMessage').map(({ WaitTimeSeconds }) => WaitTimeSeconds);
    expect(waits).toEqual([0, 20]);
    const closing = carrier.close();
    await clock.advance('1s');
    await closing;

    waiting = 100;
    const busy = carrier.open('orders', 'hot', listener);
    busy.credit(95);
    await busy.look();
    expect(arrived).toBe(95);
    expect(waiting).toBe(5);
  });
});

test('the command to run is in the error, if queues may not be created', async () => {
  const { client } = fakeSqs({
    GetQueueUrl: ({ QueueName }) => queueUrl(QueueName, []),
    CreateQueue: () => {
      throw awsError('AccessDenied', 'not you');
    },
  });
  await expect(openSqs({ client, visibility: '1m' }).broker.declare('orders.new')).rejects.toThrow(
    `there is no queue orders__new, and this process may not create it: run aws sqs create-queue --queue-name orders__new --attributes '{"VisibilityTimeout":"60","MessageRetentionPeriod":"1209600"}'`,
  );
});
