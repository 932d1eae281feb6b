import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { printedInReadme, startExample, temporaryFolder } from '../../../scripts/examples/start-example.ts';
import { service, titled } from '../../../scripts/services/service.ts';

const kafka = await service('kafka');

describe.skipIf(kafka.missing)(titled('on Kafka', kafka), () => {
  test('an order is retried, another is parked and replayed, as the README shows', async () => {
    const example = await startExample('kafka-consumer', {
      KAFKA_URL: kafka.missing === undefined ? kafka.url : '',
      STORE_FILE: path.join(await temporaryFolder(), 'shipping.db'),
      // Other runs on this server have topics of their own.
      TOPIC: `example-${process.pid}-${Date.now().toString(36)}`,
    });
    expect([await example.ended, example.output()]).toEqual([0, expect.any(String)]);
    // Partitions are read at the same time, so the order of the lines is not given.
    const lines = (text: string) => text.trim().split('\n').sort();
    expect(lines(example.output())).toEqual(lines(await printedInReadme('kafka-consumer')));
  }, 60_000);
});
