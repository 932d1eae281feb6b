import { DeleteQueueCommand, ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { type Carrier, type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import type { Harness } from '@holdfast/contracts/conformance';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { sleep, systemClock } from 'holdfast';
import type { SqsHandle } from '../src/held-messages.ts';
import { sqsCarrier } from '../src/sqs-carrier.ts';
import { readSqsOptions } from '../src/sqs-options.ts';

/** ElasticMQ takes any credentials. */
export const access = {
  region: 'elasticmq',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
} as const;

/** SQS counts in whole seconds. */
const unitMs = 1000;

let number = 0;

/** Engines on one server, under a prefix of their own. `hasStore`: with a store in memory, which outlives an engine. */
export async function sqsHarness(endpoint: string, hasStore: boolean): Promise<Harness> {
  const prefix = `t${process.pid}-${number++}-`;
  const storage = new MemoryStorage();
  const opened: Carrier<SqsHandle>[] = [];
  let writesLeft = Infinity;
  let kill = () => {};

  function open(): CarrierEngine {
    let isDead = false;
    const client = new SQSClient({ ...access, endpoint });
    const cut = () => Promise.reject(new Error('the process has died'));
    kill = () => Object.assign(client, { send: cut });
    const write = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const store = hasStore ? memoryEngine({ storage, beforeWrite: write }) : undefined;
    const { settings, rest } = readSqsOptions({
      ...{ client, prefix, store, visibility: 2 * unitMs, prefetchMax: 2000 },
      // The server answers requests of a process that has died: what they take comes again after `visibility`.
      waitTime: '1s',
    });
    const carrier = sqsCarrier(settings);
    opened.push(carrier);
    const mortal: Carrier<SqsHandle> = {
      ...carrier,
      async send(...message) {
        write();
        return carrier.send(...message);
      },
      async done(handles) {
        write();
        return carrier.done(handles);
      },
    };
    return carrierEngine(mortal, { ...rest, durability: 'power' });
  }

  return {
    engine: open(),
    clock: systemClock,
    unitMs,
    passTime: (ms) => sleep(systemClock, ms),
    async reopen() {
      // The first process ends without a word.
      kill();
      void opened.at(-1)!.close();
      writesLeft = Infinity;
      return open();
    },
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    async dispose() {
      await opened.at(-1)!.close();
      await removeQueues(endpoint, prefix);
    },
  };
}

export async function removeQueues(endpoint: string, prefix: string): Promise<void> {
  const client = new SQSClient({ ...access, endpoint });
  const { QueueUrls = [] } = await client.send(new ListQueuesCommand({ QueueNamePrefix: prefix }));
  await Promise.all(QueueUrls.map((QueueUrl) => client.send(new DeleteQueueCommand({ QueueUrl }))));
  client.destroy();
}
