import { snooze } from '@holdfast/events';
import { forceBreaker } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
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

describe.each(['forced open', 'open'])(
  'a breaker that is %s, of a policy that the consumer does not name',
  (how) => {
    test('parks no healthy event, however many snoozes and attempts there are', async () => {
      const { name, service, calls, done, pass, start, publish, parked } = await outageStage();
      const { openBreaker, state } = await start({
        dependsOn: [],
        snoozesMax: 5,
        policy: { attempts: 3, backoff: { base: '50ms', factor: 1 } },
      });
      await publish(1);
      await pass('1s');
      if (how === 'open') {
        service.isDown = true;
        await openBreaker();
      } else forceBreaker(name, 'open');
      await publish(55, 0, 1);
      // A breaker that opened by itself lets a call through after a time; that call fails, and counts.
      await pass(how === 'open' ? '4s' : '1h');
      expect(await parked()).toEqual({});
      expect(calls.length).toBeLessThan(56 * 100);
      service.isDown = false;
      forceBreaker(name, 'auto');
      await pass('10m');
      expect(done.toSorted()).toEqual(idsFrom(0, 56));
      expect(state().counters).toMatchObject({ parked: 0 });
    });
  },
);

test('waits for an open breaker do not use up the snoozes of a handler', async () => {
  const { name, done, pass, start, publish, parked } = await outageStage();
  let snoozes = 0;
  await start({
    dependsOn: [],
    snoozesMax: 3,
    policy: { attempts: 1 },
    handle: async (_event, pay) => {
      await pay();
      return snoozes++ < 3 ? snooze('1s') : undefined;
    },
  });
  await publish(1);
  await pass('100ms');
  forceBreaker(name, 'open');
  await pass('10m');
  forceBreaker(name, 'auto');
  await pass('10m');
  expect(await parked()).toEqual({});
  expect(done).toHaveLength(4);
});

test('a policy that nobody has is told once, and in the state', async () => {
  const { name, pass, start, publish, done } = await outageStage();
  const warnings: string[] = [];
  const hear = ({ message }: Error) => warnings.push(message);
  process.on('warning', hear);
  onTestFinished(() => void process.off('warning', hear));
  const misspelt = `${name}s`;
  const { state } = await start({ dependsOn: [name, misspelt] });
  expect(state()).toMatchObject({ unknownDependencies: [misspelt] });
  await publish(3);
  await pass('1s');
  expect(done).toHaveLength(3);
  await expect
    .poll(() => warnings)
    .toEqual([
      `consumer "orders" depends on the policy "${misspelt}", and no policy of this process has that name; did you mean "${name}"?`,
    ]);
});
