import { setTimeout as pause } from 'node:timers/promises';
import type { Delivery, Settlement } from '@holdfast/contracts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { openRedis } from '../src/index.ts';

const redis = await service('redis');
const url = redis.missing === undefined ? redis.url : '';
const act = { who: 'ada', why: 'a test' };
const error = { type: 'E', message: 'no', fingerprint: 'f' };
let number = 0;

const key = fc.constantFrom('a', 'b', undefined);
const kinds = ['ack', 'discard', 'retry', 'free', 'snooze', 'return', 'park', 'block', 'requeue'] as const;
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('publish' as const), key, delayMs: fc.constantFrom(0, 0, 1e6) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('lease' as const),
      limit: fc.integer({ min: 1, max: 4 }),
      runMax: fc.integer({ min: 1, max: 3 }),
      isShort: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(9),
      kind: fc.constantFrom(...kinds),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('suspect', 'retryNow', 'unblock', 'hold', 'release', 'replay'),
    }),
  },
);

function settlementOf({ lease }: Delivery, kind: (typeof kinds)[number]): Settlement<never> {
  switch (kind) {
    case 'ack':
    case 'return':
      return { lease, kind };
    case 'discard':
      return { lease, kind, because: 'unwanted' };
    case 'retry':
    case 'free':
      return { lease, kind: 'retry', delayMs: 0, error, story: [], holdsKey: kind === 'retry' };
    case 'snooze':
      return { lease, kind, delayMs: 1e6 };
    case 'park':
    case 'block':
      return { lease, kind: 'park', stop: 'poison', story: [], holdsKey: kind === 'block' };
    case 'requeue':
      return { lease, kind: 'reroute', to: lease.topic };
  }
}

describe.skipIf(redis.missing)(titled('Whatever is done to events', redis), () => {
  test('each of them is in one place, until it is settled', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
        const prefix = `invariants-${process.pid}-${number++}:`;
        const { broker, client, close } = openRedis({ url, prefix });
        const topic = 'orders';
        const open = new Set<string>();
        const blocking = new Map<string, string | undefined>();
        let held: Delivery[] = [];
        await broker.declare(topic, { ordering: 'key' });
        const lease = async (request: object) => {
          const given = await broker.lease(topic, { owner: 'w', limit: 1, leaseMs: 60_000, ...request });
          for (const { id } of given.deliveries) expect(held.map((each) => each.id)).not.toContain(id);
          return given.deliveries;
        };
        for (const each of steps) {
          switch (each.do) {
            case 'publish': {
              const { delayMs } = each;
              const event = { payload: 'x', delayMs, tenant: 't', ...(each.key && { key: each.key }) };
              for (const { id } of await broker.publish(topic, [event])) open.add(id);
              break;
            }
            case 'lease': {
              const { limit, runMax, isShort } = each;
              const given = await lease({ limit, runMax, ...(isShort && { leaseMs: 0 }) });
              // The lease of a dead process: it ends at once, in whole milliseconds.
              if (isShort) await pause(2);
              else held.push(...given);
              break;
            }
            case 'suspect':
              held.push(...(await lease({ suspects: true })));
              break;
            case 'settle': {
              const delivery = held[each.which % Math.max(1, held.length)];
              if (!delivery) break;
              held = held.filter((other) => other !== delivery);
              const [settled] = await broker.settle([settlementOf(delivery, each.kind)]);
              expect(settled?.took).toBe(true);
              const { items } = await broker.waiting(topic, { limit: 1000 }, { state: 'blocking' });
              if (items.some(({ id }) => id === delivery.id)) blocking.set(delivery.id, delivery.key);
              else if (['ack', 'discard', 'park', 'block'].includes(each.kind)) open.delete(delivery.id);
              break;
            }
            case 'retryNow':
              await broker.retryNow(topic, [...open], act);
              break;
            case 'unblock': {
              const answers = await broker.unblock(topic, [...open], act);
              expect(answers.filter(Boolean)).toHaveLength(blocking.size);
              for (const id of blocking.keys()) open.delete(id);
              blocking.clear();
              break;
            }
            case 'replay':
              for (const id of blocking.keys()) {
                expect(await broker.publish(topic, [{ id, payload: 'y' }])).toEqual([
                  { id, duplicate: false },
                ]);
                blocking.delete(id);
              }
              break;
            case 'hold':
              await broker.controls.impose({ kind: 'quarantine', topic, tenant: 't' }, act);
              break;
            case 'release':
              await broker.controls.lift(`quarantine:${topic}:tenant:t`, act);
          }
          const counts = await broker.counts(topic);
          const { ready, delayed, behind, suspect, leased } = counts;
          expect(leased).toBe(held.length);
          expect(counts.blocking).toBe(blocking.size);
          expect(ready + delayed + behind + counts.held + suspect + leased + counts.blocking).toBe(open.size);
          expect(await broker.due(topic, [])).toEqual([ready + delayed + behind + counts.held + suspect]);
          for (const order of ['published', 'due'] as const) {
            const { items } = await broker.waiting(topic, { limit: 1000 }, { order });
            expect(new Set(items.map(({ id }) => id))).toEqual(open);
            for (const state of [
              'ready',
              'delayed',
              'behind',
              'held',
              'suspect',
              'leased',
              'blocking',
            ] as const)
              expect([state, items.filter((item) => item.state === state).length]).toEqual([
                state,
                counts[state],
              ]);
          }
        }
        const left = await client.keys(`${prefix}*`);
        await client.unlink(left);
        await close();
      }),
      { numRuns: 40 },
    );
  });
});
