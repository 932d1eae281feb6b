import { describe, expect, test } from 'vitest';
import { brokerNames } from '../../../drills/events/open-broker.ts';
import { killsAndRestarts } from '../../../drills/events-kill.ts';
import { ownService, titled } from '../../../scripts/services/service.ts';

const timeout = 240_000;

/** The long trials, shortened: the first points of the plan are those where the most is at risk. */
describe.each(brokerNames)('%s, under drill', (name) => {
  test('processes are killed, then the broker: nothing is lost, out of order, or made again after it was done', {
    timeout,
  }, async ({ skip }) => {
    const server = await ownService(name === 'sqs' ? 'elasticmq' : name);
    if (server.missing !== undefined) return skip(titled(name, server));
    try {
      const counts = await killsAndRestarts(name, 4, server, 1);
      expect(counts).toMatchObject({ lost: 0, repeated: 0, outOfOrder: 0, restarts: 1 });
      expect(counts.kills).toBeGreaterThanOrEqual(4);
      expect(counts.events).toBeGreaterThan(0);
    } finally {
      await server.stop();
    }
  });
});
