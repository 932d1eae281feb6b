import type { Settlement } from '../broker.ts';
import { LEASE_LOST, TOOK } from '../settlement-result.ts';
import { ensure, expectLike } from './assertions.ts';
import { type Check, checksOf } from './stage.ts';

const check = checksOf(['broker', 'ledger']);
const handler = 'view@1';

/**
 * Checks that a settlement stores its marks (records of handled events) and the writes of `commit`, or
 * neither.
 */
export const effectChecks: readonly Check[] = [
  check('writes marks with the settlement, or not at all', ['marksWithSettlement'], async (stage) => {
    const topic = await stage.topic();
    const [done, lost] = await stage.publish(topic, ['done', 'lost']);
    const [first, second] = await stage.take(topic, 2);
    const stale = { ...second!.lease, token: 'nonsense' };
    await stage.settle({ lease: first!.lease, kind: 'ack', marks: [handler] });
    await stage.expectLost({ lease: stale, kind: 'ack', marks: [handler] });
    const marks = [done, lost].map((eventId) => ({ handler, eventId: eventId! }));
    expectLike(await stage.ledger.isMarked(marks), [true, false], 'only what was settled is marked');
  }),

  check('writes no mark of a lost settlement beside the good one', ['marksWithSettlement'], async (stage) => {
    const topic = await stage.topic();
    const [eventId] = await stage.publish(topic, ['a']);
    const zombie = await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    const suspects = stage.engine.features.suspects === true;
    const holder = await stage.takeOne(topic, { ...(suspects && { suspects }) });
    const late: Settlement = { lease: zombie.lease, kind: 'ack', marks: [handler] };
    expectLike(await stage.broker.settle([late, stage.retry(holder, 0)]), [LEASE_LOST, TOOK], 'one is good');
    const marks = [{ handler, eventId: eventId! }];
    expectLike(await stage.ledger.isMarked(marks), [false], 'it is to be tried again');
  }),

  check(
    'never has a mark without its settlement after a crash, nor the other way round',
    ['marksWithSettlement', 'durable', 'reopen', 'dieAfterWrites'],
    async (stage) => {
      const topic = await stage.topic();
      for (let writes = 0; writes < 4; writes++) {
        const [eventId] = await stage.publish(topic, ['a']);
        const { lease } = await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
        stage.harness.dieAfterWrites!(writes);
        await stage.broker.settle([{ lease, kind: 'ack', marks: [handler] }]).catch(() => {});
        await stage.reopen();
        await stage.pass(3);
        const left = [...(await stage.lease(topic)), ...(await stage.lease(topic, { suspects: true }))];
        const [isMarked] = await stage.ledger.isMarked([{ handler, eventId: eventId! }]);
        expectLike(left.length, isMarked ? 0 : 1, `${writes} writes: marked ${isMarked}, so events left`);
        await stage.settle(
          ...left.map(({ lease }): Settlement => ({ lease, kind: 'discard', because: 'the end' })),
        );
      }
    },
  ),

  check(
    'makes an effect with its settlement, or not at all',
    ['sharedTransaction', 'effect'],
    async (stage) => {
      const { effect } = stage.harness;
      ensure(effect, 'the harness has an effect');
      const topic = await stage.topic();
      await stage.publish(topic, ['a', 'b', 'c']);
      const [a, b, c] = await stage.take(topic, 3);
      const commit = (name: string) => (tx: unknown) => effect.write(tx, name);
      const settled = await stage.broker.settle([
        { lease: a!.lease, kind: 'ack', marks: [handler], commit: commit('a') },
        {
          lease: b!.lease,
          kind: 'ack',
          marks: [handler],
          commit: (tx) => {
            const written = effect.write(tx, 'b');
            if (!written) throw new Error('too late');
            return written.then(() => {
              throw new Error('too late');
            });
          },
        },
        { lease: { ...c!.lease, token: 'nonsense' }, kind: 'ack', marks: [handler], commit: commit('c') },
      ]);
      expectLike(
        settled,
        [
          { took: true },
          { took: false, because: 'commit_failed', error: { message: 'too late' } },
          { took: false, because: 'lease_lost' },
        ],
        'one answer for each',
      );
      expectLike(
        [await effect.isThere('a'), await effect.isThere('b'), await effect.isThere('c')],
        [true, false, false],
        'the effects that are there',
      );
      const marks = [a, b, c].map((delivery) => ({ handler, eventId: delivery!.id }));
      expectLike(await stage.ledger.isMarked(marks), [true, false, false], 'the marks that are there');
      // The lease is still valid after a failed commit, so the event can be settled in another way.
      await stage.settle(stage.retry(b!, 0), { lease: c!.lease, kind: 'return' });
    },
  ),

  check('undoes each commit that fails, also one after the other', ['sharedTransaction'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['bad', 'bad too', 'good', 'bad at last']);
    const deliveries = await stage.take(topic, 4);
    const fail = () => {
      throw new Error('too late');
    };
    const settled = await stage.broker.settle(
      deliveries.map(({ lease, payload }) => ({
        ...{ lease, kind: 'ack', marks: [handler] },
        commit: payload === 'good' ? () => {} : fail,
      })),
    );
    expectLike(
      settled.map(({ because }) => because ?? 'took'),
      ['commit_failed', 'commit_failed', 'took', 'commit_failed'],
      'one answer for each',
    );
    const marks = deliveries.map(({ id }) => ({ handler, eventId: id }));
    // A failed commit must leave no mark. Otherwise the next attempt would be skipped.
    expectLike(await stage.ledger.isMarked(marks), [false, false, true, false], 'the marks that are there');
  }),

  check('publishes with a settlement, or not at all', ['sharedTransaction'], async (stage) => {
    const topic = await stage.topic();
    const next = await stage.topic();
    await stage.publish(topic, ['good', 'bad']);
    const [good, bad] = await stage.take(topic, 2);
    const publish = (tx: unknown, payload: string) => stage.broker.publishWithin(tx, next, [{ payload }]);
    const settled = await stage.broker.settle([
      { lease: good!.lease, kind: 'ack', commit: (tx) => quietly(publish(tx, 'follows')) },
      {
        lease: bad!.lease,
        kind: 'ack',
        commit: (tx) => {
          const published = publish(tx, 'does not follow');
          const fail = () => {
            throw new Error('too late');
          };
          return published instanceof Promise ? published.then(fail) : fail();
        },
      },
    ]);
    expectLike(settled, [{ took: true }, { took: false, because: 'commit_failed' }], 'one answer for each');
    expectLike((await stage.takeOne(next)).payload, 'follows', 'what was published with a settlement');
    await stage.expectNothing(next, 'what was undone');
  }),

  check('refuses an unknown topic to a publish with a settlement', ['sharedTransaction'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const { lease } = await stage.takeOne(topic);
    const commit = (tx: unknown) => quietly(stage.broker.publishWithin(tx, 'nowhere', [{ payload: 'b' }]));
    const [settled] = await stage.broker.settle([{ lease, kind: 'ack', commit }]);
    expectLike(settled, { because: 'commit_failed', error: { code: 'HOLDFAST_TOPIC' } }, 'why it failed');
  }),

  check('does not make an effect twice', ['sharedTransaction', 'effect'], async (stage) => {
    const { effect } = stage.harness;
    ensure(effect, 'the harness has an effect');
    const topic = await stage.topic();
    const [eventId] = await stage.publish(topic, ['a']);
    await stage.ledger.mark([{ handler, eventId: eventId! }]);
    const { lease } = await stage.takeOne(topic);
    const [settled] = await stage.broker.settle([
      { lease, kind: 'ack', marks: [handler], commit: (tx) => effect.write(tx, 'twice') },
    ]);
    expectLike(settled, { took: true, repeated: true }, 'it is settled, and repeated');
    expectLike(await effect.isThere('twice'), false, 'the effect was made before');
  }),
];

/**
 * For a promise, returns a promise without its result. For a plain value, returns nothing, because a
 * synchronous transaction cannot wait for a promise.
 */
function quietly(published: unknown): void | Promise<void> {
  if (published instanceof Promise) return published.then(() => {});
}
