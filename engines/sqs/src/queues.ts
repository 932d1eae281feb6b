import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  type QueueAttributeName,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { TopicError, type TopicSettings } from '@holdfast/contracts';
import type { QueueName } from '@holdfast/contracts/carrier';
import { nameLengthMax, type QueueNames } from './queue-names.ts';
import { awsErrorName, SqsError } from './sqs-errors.ts';

export interface QueueSettings {
  readonly client: SQSClient;
  readonly names: QueueNames;
  readonly hasStore: boolean;
  readonly createQueues: boolean;
  readonly visibilitySeconds: number;
  readonly retentionSeconds: number;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface Queue {
  readonly name: string;
  readonly url: string;
  readonly isFifo: boolean;
}

/**
 * These attributes switch on the high throughput of FIFO queues: the request quota applies to each message
 * group.
 */
const fifoAttributes = {
  FifoQueue: 'true',
  DeduplicationScope: 'messageGroup',
  FifoThroughputLimit: 'perMessageGroupId',
};

/** Finds and creates the queues of topics. */
export class Queues {
  readonly #settings: QueueSettings;
  readonly #known = new Map<string, Queue>();

  constructor(settings: QueueSettings) {
    this.#settings = settings;
  }

  /**
   * Creates the queues that are missing. With a store there is no retry queue, because retries wait in the
   * store.
   */
  async ensure(topic: string, { ordering = 'none' }: Partial<TopicSettings>): Promise<TopicSettings> {
    const isFifo = ordering === 'key';
    const before = await this.find(topic, 'hot');
    if (before && before.isFifo !== isFifo)
      throw new TopicError(
        topic,
        `is the ${before.isFifo ? 'FIFO' : 'standard'} queue ${before.name}, and SQS cannot change that: delete the queue, or use another topic`,
      );
    if (!before) await this.#create(topic, 'hot', isFifo);
    if (this.#settings.hasStore) return { ordering, keepSettledMs: 0 };
    const retry = await this.find(topic, 'retry');
    if (retry) await this.#assertNoRedrive(topic, retry);
    else await this.#create(topic, 'retry', false);
    return { ordering, keepSettledMs: 0 };
  }

  async find(topic: string, queue: QueueName): Promise<Queue | undefined> {
    const known = this.#known.get(keyOf(topic, queue));
    if (known) return known;
    const { names, hasStore } = this.#settings;
    const [standard, fifo] = await Promise.all([
      this.#get(names.nameOf(topic, queue), false),
      queue === 'hot' ? this.#get(names.nameOf(topic, queue, true), true) : undefined,
    ]);
    if (standard && fifo && hasStore)
      throw new TopicError(topic, `has two queues, ${standard.name} and ${fifo.name}: delete one of them`);
    if (!standard && fifo && !hasStore)
      throw new TopicError(
        topic,
        `is the FIFO queue ${fifo.name}: give a store, which keeps the order of keys`,
      );
    const found = hasStore ? (fifo ?? standard) : standard;
    if (found) this.#known.set(keyOf(topic, queue), found);
    return found;
  }

  async need(topic: string, queue: QueueName): Promise<Queue> {
    const found = await this.find(topic, queue);
    if (!found)
      throw new TopicError(topic, `has no queue ${this.#settings.names.nameOf(topic, queue)} on SQS`);
    return found;
  }

  /**
   * Removes a queue from the cache, because SQS said that it does not exist. The next `find` asks SQS again.
   */
  forget(queue: Queue): void {
    for (const [key, known] of this.#known) if (known === queue) this.#known.delete(key);
  }

  async topics(): Promise<string[]> {
    const { client, names } = this.#settings;
    const topics = new Set<string>();
    let token: string | undefined;
    do {
      const page = await client.send(
        new ListQueuesCommand({
          ...(names.prefix !== '' && { QueueNamePrefix: names.prefix }),
          ...{ MaxResults: 1000, NextToken: token },
        }),
      );
      for (const url of page.QueueUrls ?? []) {
        const topic = names.topicOf(url.slice(url.lastIndexOf('/') + 1));
        if (topic !== undefined) topics.add(topic);
      }
      token = page.NextToken;
    } while (token !== undefined);
    return [...topics];
  }

  async attributes(queue: Queue, wanted: readonly QueueAttributeName[]): Promise<Record<string, string>> {
    const { Attributes = {} } = await this.#settings.client.send(
      new GetQueueAttributesCommand({ QueueUrl: queue.url, AttributeNames: [...wanted] }),
    );
    return Attributes as Record<string, string>;
  }

  async #get(name: string, isFifo: boolean): Promise<Queue | undefined> {
    if (name.length > nameLengthMax) return undefined;
    try {
      const { QueueUrl } = await this.#settings.client.send(new GetQueueUrlCommand({ QueueName: name }));
      return { name, url: QueueUrl!, isFifo };
    } catch (error) {
      if (awsErrorName(error) === 'QueueDoesNotExist') return undefined;
      throw error;
    }
  }

  async #create(topic: string, queue: QueueName, isFifo: boolean): Promise<void> {
    const { client, names, createQueues } = this.#settings;
    const name = names.nameOf(topic, queue, isFifo);
    if (name.length > nameLengthMax)
      throw new TopicError(
        topic,
        `needs the queue ${name}, and SQS takes ${nameLengthMax} characters for its name`,
      );
    const attributes = this.#attributesFor(isFifo);
    const denied = (why: string, cause?: unknown) => {
      const command = `aws sqs create-queue --queue-name ${name} --attributes '${JSON.stringify(attributes)}'`;
      return new SqsError('REFUSED', `there is no queue ${name}, and ${why}: run ${command}`, cause);
    };
    if (!createQueues) throw denied('createQueues is false');
    try {
      const { QueueUrl } = await client.send(
        new CreateQueueCommand({ QueueName: name, Attributes: attributes }),
      );
      this.#known.set(keyOf(topic, queue), { name, url: QueueUrl!, isFifo });
    } catch (error) {
      if (/^AccessDenied/.test(awsErrorName(error))) throw denied('this process may not create it', error);
      // Another process has created the queue meanwhile, with other attributes.
      const made = awsErrorName(error) === 'QueueNameExists' ? await this.#get(name, isFifo) : undefined;
      if (!made) throw error;
      this.#known.set(keyOf(topic, queue), made);
    }
  }

  #attributesFor(isFifo: boolean): Record<string, string> {
    const { visibilitySeconds, retentionSeconds, attributes } = this.#settings;
    return {
      VisibilityTimeout: String(visibilitySeconds),
      MessageRetentionPeriod: String(retentionSeconds),
      ...(isFifo && fifoAttributes),
      ...attributes,
    };
  }

  /**
   * Refuses a redrive policy on the retry queue. A retry with a delay above 15 minutes is received several
   * times before it is due. SQS would count these receives, and move the retry to the dead-letter queue.
   */
  async #assertNoRedrive(topic: string, retry: Queue): Promise<void> {
    const { RedrivePolicy } = await this.attributes(retry, ['RedrivePolicy']);
    if (RedrivePolicy)
      throw new TopicError(
        topic,
        `has a redrive policy on ${retry.name} (${RedrivePolicy}), which counts deliveries of retries that are not due yet, and would move them away: remove it`,
      );
  }
}

function keyOf(topic: string, queue: QueueName): string {
  return `${queue} ${topic}`;
}
