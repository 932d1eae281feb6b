import { describe, expect, test } from 'vitest';
import { idsFrom, outageStage, type Store } from './outage-stage.ts';

interface Shape {
  readonly keys: number;
  readonly events: number;
  readonly concurrency: number;
}

const shapes: readonly (readonly [title: string, shape: Shape])[] = [
  ['no order, one handler at once', { keys: 0, events: 60, concurrency: 1 }],
  ['no order, ten handlers at once', { keys: 0, events: 60, concurrency: 10 }],
  ['no order, a single event', { keys: 0, events: 1, concurrency: 10 }],
  ['one key, one handler at once', { keys: 1, events: 20, concurrency: 1 }],
  ['one key, ten handlers at once', { keys: 1, events: 20, concurrency: 10 }],
  ['two keys', { keys: 2, events: 20, concurrency: 10 }],
  ['many keys, one handler at once', { keys: 30, events: 90, concurrency: 1 }],
  ['many keys, forty handlers at once', { keys: 30, events: 90, concurrency: 40 }],
];

describe.each<Store>(['memory', 'sqlite'])('an outage, on %s', (store) => {
  describe.each(shapes)('%s', (_title, { keys, events, concurrency }) => {
    test.each(['2m', '2h'] as const)(
      'of %s costs no event anything',
      { timeout: 60_000 },
      async (duration) => {
        const { service, calls, done, pass, start, publish, charges, parked } = await outageStage(store);
        const orders = await start({ concurrency });
        service.isDown = true;
        await publish(events, keys);
        // Until the breaker has opened, attempts are counted as always.
        await pass('20s');
        expect(orders.state().status).toBe('dependency_down');
        const before = await charges();
        const probesBefore = calls.length;

        await pass(duration);
        expect(await charges()).toEqual(before);
        expect(await parked()).toEqual({});
        expect(calls.length).toBeGreaterThan(probesBefore);

        service.isDown = false;
        await pass('3m');
        expect(done.toSorted()).toEqual(idsFrom(0, events));
        for (let key = 0; key < keys; key++) {
          const ofKey = done.filter((id) => Number(id.slice(1)) % keys === key);
          expect(ofKey).toEqual(ofKey.toSorted());
        }
        expect(orders.state().counters).toMatchObject({ parked: 0, snoozed: 0 });
      },
    );
  });
});
