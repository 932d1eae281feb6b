import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { printedInReadme, startExample, temporaryFolder } from '../../../scripts/examples/start-example.ts';
import { service, titled } from '../../../scripts/services/service.ts';

const elasticmq = await service('elasticmq');

describe.skipIf(elasticmq.missing)(titled('on SQS', elasticmq), () => {
  test('an order is retried, another is parked and replayed, as the README shows', async () => {
    const example = await startExample('sqs-consumer', {
      SQS_ENDPOINT: elasticmq.missing === undefined ? elasticmq.url : '',
      STORE_FILE: path.join(await temporaryFolder(), 'shipping.db'),
      // Other runs on this server have queues of their own.
      TOPIC: `example-${process.pid}-${Date.now().toString(36)}`,
    });
    expect([await example.ended, example.output()]).toEqual([0, expect.any(String)]);
    // A standard queue delivers in any order, so the order of the lines is not given.
    const lines = (text: string) => text.trim().split('\n').sort();
    expect(lines(example.output())).toEqual(lines(await printedInReadme('sqs-consumer')));
  }, 60_000);
});
