import type { NewEvent } from '../envelope.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { act, type Check, checksOf, note, payloads, type Stage, storyOf } from './stage.ts';

const check = checksOf(['broker']);

/**
 * Checks of events that move here from another broker. They keep their attempts, and wait for earlier events
 * of their key.
 */
export const moveChecks: readonly Check[] = [
  check('keeps the attempts of an event that moves here', [], async (stage) => {
    const topic = await stage.topic();
    const moved = { attempts: 2, snoozes: 1, nextDelayMs: 7, lastError: note, story: storyOf(2) };
    const past = { originTopic: 'elsewhere', firstSeenAt: 1, moved };
    await stage.publish(topic, ['a'], { past });
    const first = await stage.takeOne(topic);
    const kept = {
      ...moved,
      attempt: 3,
      originTopic: 'elsewhere',
      firstSeenAt: 1,
      deaths: 0,
      suspect: false,
    };
    expectLike(first, kept, 'the delivery');
    await stage.settle({ ...stage.retry(first, 0), story: storyOf(3) });
    expectLike(
      await stage.takeOne(topic),
      { attempts: 3, snoozes: 1, story: storyOf(3) },
      'and goes on counting',
    );
  }),

  check('takes a moved event for a retry', ['retriesShare'], async (stage) => {
    const topic = await stage.topic();
    const past = { originTopic: topic, firstSeenAt: 1, moved: { attempts: 1 } };
    await stage.publish(topic, ['retry', 'retry', 'retry', 'retry'], { past });
    await stage.publish(topic, ['first', 'first', 'first', 'first']);
    const given = payloads(await stage.lease(topic, { limit: 4, retriesShare: 0.25 }));
    ensure(given.filter((payload) => payload === 'first').length === 3, 'first tries have 3 places of 4');
  }),

  check('refuses attempts that cannot be, and stores nothing of the batch', [], async (stage) => {
    const topic = await stage.topic();
    const wrong: object[] = [
      ...[{ attempts: -1 }, { attempts: 1.5 }, { snoozes: '1' }, { nextDelayMs: Number.NaN }],
      ...[{ lastError: 'no street' }, { story: {} }, { blocking: true }],
    ];
    for (const moved of [5, null, ...wrong]) {
      const past = { originTopic: topic, firstSeenAt: 1, moved };
      const batch = [{ payload: 'a' }, { payload: 'b', past }] as readonly NewEvent[];
      const published = (async () => stage.broker.publish(topic, batch))();
      await expectRejection(published, 'HOLDFAST_OPTIONS', JSON.stringify(moved));
    }
    await stage.expectNothing(topic, 'nothing of a refused batch is given');
  }),

  check('lets a key flow past a moved event that does not hold it', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    const past = { originTopic: topic, firstSeenAt: 1, moved: { attempts: 1, holdsKey: false } };
    await stage.publish(topic, ['a1'], { key: 'a', delayMs: 2 * stage.unitMs, past });
    await stage.publish(topic, ['a2'], { key: 'a' });
    expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'a2 need not wait');
    await stage.pass(3);
    expectLike(await stage.takeOne(topic), { payload: 'a1', key: 'a' }, 'and a1 is not lost');
  }),

  check(
    'keeps a key waiting for an event that moves here parked',
    ['ordering', 'parkedHoldsKey'],
    async (stage) => {
      const topic = await stage.topic({ ordering: 'key' });
      const past = { originTopic: topic, firstSeenAt: 1, moved: { attempts: 5, blocking: true } };
      const [id] = await stage.publish(topic, ['a1'], { key: 'a', past });
      await stage.publish(topic, ['a2'], { key: 'a' });
      await stage.expectNothing(topic, 'a2 waits for triage');
      await stage.broker.publish(topic, [{ id: id!, payload: 'a1, replayed', key: 'a' }]);
      const replayed = await stage.takeOne(topic);
      expectLike(replayed, { payload: 'a1, replayed', attempt: 1 }, 'the replay has its old place');
      await stage.settle({ ...stage.park(replayed), holdsKey: true });
      expectLike(await stage.broker.unblock(topic, [id!], act), [true], 'unblocking');
      expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'the key flows without it');
    },
  ),

  check('stores only events whose key is busy', ['ordering', 'publishBehind'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1'], { key: 'a', delayMs: 2 * stage.unitMs });
    const behind = await publishBehind(stage, topic, [
      { payload: 'a2', key: 'a' },
      { payload: 'b1', key: 'b' },
      { payload: 'loose' },
      { payload: 'a3', key: 'a' },
    ]);
    expectLike(behind, [true, false, false, true], 'which were stored');
    await stage.expectNothing(topic, 'a2 and a3 wait for a1, and the others are not here');
    await stage.pass(3);
    for (const payload of ['a1', 'a2', 'a3']) {
      const head = await stage.takeOne(topic);
      expectLike(head.payload, payload, 'the order in which they came');
      expectLike(
        await publishBehind(stage, topic, [{ payload: 'x', key: 'b' }]),
        [false],
        'another key is free',
      );
      await stage.ack(head);
    }
    expectLike(await publishBehind(stage, topic, [{ payload: 'a4', key: 'a' }]), [false], 'the key is free');
    await stage.expectNothing(topic, 'nothing was stored');
  }),

  check(
    'takes a key for busy until its last event is settled',
    ['ordering', 'publishBehind'],
    async (stage) => {
      const topic = await stage.topic({ ordering: 'key' });
      await stage.publish(topic, ['a1'], { key: 'a' });
      const held = await stage.takeOne(topic);
      const behind = { id: '01890000-0000-7000-8000-00000000000b', payload: 'a2', key: 'a' };
      expectLike(await publishBehind(stage, topic, [behind]), [true], 'a1 is leased');
      await stage.ack(held);
      expectLike(await publishBehind(stage, topic, [behind]), [true], 'it is here already');
      const next = await stage.takeOne(topic);
      expectLike(next.payload, 'a2', 'and given');
      await stage.ack(next);
      await stage.expectNothing(topic, 'once');
      expectLike(await publishBehind(stage, topic, [behind]), [false], 'what is settled is forgotten');
    },
  ),

  check(
    'takes an event behind a parked one that blocks its key, and its replay in its place',
    ['ordering', 'parkedHoldsKey', 'publishBehind'],
    async (stage) => {
      const topic = await stage.topic({ ordering: 'key' });
      const [id] = await stage.publish(topic, ['a1'], { key: 'a' });
      await stage.settle({ ...stage.park(await stage.takeOne(topic)), holdsKey: true });
      const behind = [
        { payload: 'a2', key: 'a' },
        { id: id!, payload: 'a1, replayed', key: 'a' },
      ];
      expectLike(await publishBehind(stage, topic, behind), [true, true], 'both are stored');
      for (const payload of ['a1, replayed', 'a2']) {
        const head = await stage.takeOne(topic);
        expectLike(head.payload, payload, 'the replay comes first');
        await stage.ack(head);
      }
    },
  ),

  check('stores nothing behind a key of an unknown topic', ['ordering', 'publishBehind'], async (stage) => {
    const unknown = stage.name('unknown');
    const behind = (async () => publishBehind(stage, unknown, [{ payload: 'a', key: 'a' }]))();
    await expectRejection(behind, 'HOLDFAST_TOPIC', 'an unknown topic');
  }),
];

function publishBehind(
  stage: Stage,
  topic: string,
  events: readonly NewEvent[],
): Promise<readonly boolean[]> {
  const { broker } = stage;
  ensure(broker.publishBehind, 'the broker can keep the retries of another broker');
  return broker.publishBehind(topic, events);
}
