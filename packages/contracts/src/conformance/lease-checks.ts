import type { Settlement } from '../broker.ts';
import { errorNote } from '../error-note.ts';
import { LEASE_LOST, TOOK } from '../settlement-result.ts';
import { ensure, expectLike } from './assertions.ts';
import { act, type Check, checksOf, note, payloads, storyOf } from './stage.ts';

const check = checksOf(['broker']);

export const leaseChecks: readonly Check[] = [
  check('leases an event to one consumer only', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(
      topic,
      Array.from({ length: 20 }, (_, index) => `${index}`),
    );
    const hands = await Promise.all(
      ['a', 'b', 'c', 'd'].map((owner) => stage.lease(topic, { owner, limit: 8 })),
    );
    const ids = [...hands.flat(), ...(await stage.lease(topic))].map(({ id }) => id);
    expectLike(ids.length, new Set(ids).size, 'events given to two at once make this differ');
    await stage.expectNothing(topic, 'all are leased');
  }),

  check('leases at most bytesMax, and at least one event', [], async (stage) => {
    const topic = await stage.topic();
    const sent = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(1000));
    await stage.publish(topic, sent);
    const given: unknown[] = [];
    for (const [bytesMax, most] of [
      [2500, 2],
      [10, 1],
    ] as const) {
      const request = { owner: 'worker-1', limit: 100, leaseMs: 50 * stage.unitMs, bytesMax };
      const { deliveries, nextDueInMs } = await stage.broker.lease(topic, request);
      ensure(
        deliveries.length > 0 && deliveries.length <= most,
        `${bytesMax} bytes are 1 to ${most} events, got ${deliveries.length}`,
      );
      // An engine on a message queue does not know when its next event is due: `undefined` is allowed.
      ensure((nextDueInMs ?? 0) === 0, `the rest is due now, got ${nextDueInMs}`);
      given.push(...payloads(deliveries));
    }
    given.push(...payloads(await stage.take(topic, sent.length - given.length)));
    expectLike(given.toSorted(), sent, 'all are given');
    if (stage.engine.features.arrivalOrder === true) expectLike(given, sent, 'in their order');
  }),

  check('ends the run of a key where its bytes end', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    const sent = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(1000));
    await stage.publish(topic, sent, { key: 'one' });
    const given: unknown[] = [];
    for (let asks = 0; asks < sent.length && given.length < sent.length; asks++) {
      const run = await stage.lease(topic, { runMax: 10, bytesMax: 2500 });
      ensure(run.length > 0 && run.length <= 2, `2500 bytes are 1 or 2 events, got ${run.length}`);
      await stage.expectNothing(topic, 'the rest waits behind the run');
      given.push(...payloads(run));
      for (const delivery of run) await stage.ack(delivery);
    }
    expectLike(given, sent, 'all are given, in their order');
  }),

  check('leases an unsettled event again when its lease has ended', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const first = await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
    await stage.expectNothing(topic, 'it is leased');
    await stage.pass(3);
    const second = await again(stage, topic);
    ensure(second.lease.token !== first.lease.token, 'each lease has a token of its own');
    expectLike(second, { id: first.id, attempt: 1 }, 'it is the same event, and no attempt was settled');
  }),

  check('changes nothing for a settlement under a lost lease', [], async (stage) => {
    const topic = await stage.topic();
    const other = await stage.topic();
    const kinds: ((lease: Settlement['lease']) => Settlement)[] = [
      (lease) => ({ lease, kind: 'ack' }),
      (lease) => ({ lease, kind: 'retry', delayMs: 0, error: note, story: [] }),
      (lease) => ({ lease, kind: 'snooze', delayMs: 0 }),
      (lease) => ({ lease, kind: 'return' }),
      (lease) => ({ lease, kind: 'park', stop: 'poison', story: storyOf(1) }),
      (lease) => ({ lease, kind: 'discard', because: 'unwanted' }),
      (lease) => ({ lease, kind: 'reroute', to: other }),
    ];
    for (const settlement of kinds) {
      await stage.publish(topic, ['a']);
      const zombie = await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
      await stage.pass(3);
      const holder = await again(stage, topic);
      await stage.expectLost(settlement(zombie.lease));
      await stage.expectNothing(topic, 'it is still in the new hands');
      const both = await stage.broker.settle([settlement(zombie.lease), stage.retry(holder, 0)]);
      expectLike(both, [LEASE_LOST, TOOK], 'nor in a batch with the good one');
      const retried = await stage.takeOne(topic);
      expectLike(retried, { attempt: 2 }, 'it is what the good one made of it');
      await stage.ack(retried);
    }
    await stage.expectNothing(other, 'nothing was rerouted');
  }),

  check(
    'settles an event once under a lease, also while others of that lease are unsettled',
    [],
    async (stage) => {
      const firsts: ((lease: Settlement['lease']) => Settlement)[] = [
        (lease) => ({ lease, kind: 'retry', delayMs: 0, error: note, story: [] }),
        (lease) => ({ lease, kind: 'snooze', delayMs: 0 }),
        (lease) => ({ lease, kind: 'return' }),
      ];
      for (const first of firsts) {
        const topic = await stage.topic();
        await stage.publish(topic, ['a', 'b', 'c']);
        const [a, b, c] = await stage.take(topic, 3);
        await stage.settle(first(a!.lease));
        await stage.expectLost({ lease: a!.lease, kind: 'ack' });
        const acks = [a!, b!].map(({ lease }): Settlement => ({ lease, kind: 'ack' }));
        expectLike(await stage.broker.settle(acks), [LEASE_LOST, TOOK], 'nor beside one that is leased');
        const again = await stage.takeOne(topic);
        expectLike(again, { id: a!.id }, 'what was settled first holds');
        await stage.expectLost({ lease: a!.lease, kind: 'ack' });
        await stage.settle({ lease: again.lease, kind: 'ack' }, { lease: c!.lease, kind: 'ack' });
      }
    },
  ),

  check('keeps a lease that is extended', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const held = await stage.takeOne(topic, { leaseMs: 4 * stage.unitMs });
    for (let beat = 0; beat < 3; beat++) {
      await stage.pass(2);
      expectLike(await stage.broker.extend([held.lease], 4 * stage.unitMs), [true], 'the heartbeat counts');
    }
    await stage.expectNothing(topic, 'it is still leased');
    await stage.ack(held);
  }),

  check('changes nothing for a heartbeat under a lost lease', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const zombie = await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    const holder = await again(stage, topic, 3 * stage.unitMs);
    expectLike(await stage.broker.extend([zombie.lease], 50 * stage.unitMs), [false], 'a zombie gets false');
    await stage.pass(4);
    await again(stage, topic);
    await stage.expectLost({ lease: holder.lease, kind: 'ack' });
  }),

  check('extends a lease however often it is named, and none of another topic', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const held = await stage.takeOne(topic);
    const { lease } = held;
    const longMs = 50 * stage.unitMs;
    expectLike(await stage.broker.extend([lease, lease], longMs), [true, true], 'it is leased');
    for (const other of [stage.name('unknown'), await stage.topic()])
      expectLike(
        await stage.broker.extend([{ ...lease, topic: other }], 1),
        [false],
        `nothing of ${other} is`,
      );
    await stage.pass(1);
    await stage.ack(held);
  }),

  check('settles a whole batch and returns a result for each', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(
      topic,
      Array.from({ length: 25 }, (_, index) => `${index}`),
    );
    const held = await stage.take(topic, 25, { leaseMs: 5 * stage.unitMs });
    const settled = await stage.broker.settle([
      ...held.map(({ lease }): Settlement => ({ lease, kind: 'ack' })),
      { lease: { ...held[0]!.lease, token: 'nonsense' }, kind: 'ack' },
    ]);
    expectLike(
      settled.map(({ took }) => took),
      [...held.map(() => true), false],
      'one answer for each, in the order given',
    );
    await stage.pass(6);
    await stage.expectNothing(topic, 'all of them are done, the last ones too');
  }),

  check('settles different kinds in one batch', [], async (stage) => {
    const topic = await stage.topic();
    const ids = await stage.publish(topic, ['done', 'again', 'bad', 'unwanted']);
    const held = await stage.take(topic, 4);
    const of = (payload: string) => held.find((delivery) => delivery.payload === payload)!;
    await stage.settle(
      { lease: of('done').lease, kind: 'ack' },
      stage.retry(of('again'), 0),
      stage.park(of('bad')),
      { lease: of('unwanted').lease, kind: 'discard', because: 'a duplicate' },
    );
    expectLike(payloads(await stage.take(topic, 1)), ['again'], 'only the retried one is left');
    await stage.expectNothing(topic, 'the others are settled');
    ensure(await stage.parked(topic, ids[2]!), 'the bad one is parked');
  }),

  check('retries after the delay, with one attempt more, its error and its story', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    await stage.settle(stage.retry(await stage.takeOne(topic), 3));
    await stage.pass(1);
    await stage.expectNothing(topic, 'its delay is not over');
    await stage.pass(3);
    expectLike(
      await stage.takeOne(topic),
      {
        ...{ attempt: 2, attempts: 1, snoozes: 0, nextDelayMs: 3 * stage.unitMs, suspect: false },
        ...{ lastError: note, story: storyOf(1) },
      },
      'the second delivery',
    );
  }),

  check('snoozes without an attempt', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const { lease } = await stage.takeOne(topic);
    await stage.settle({ lease, kind: 'snooze', delayMs: 2 * stage.unitMs });
    await stage.expectNothing(topic, 'it sleeps');
    await stage.pass(3);
    expectLike(await stage.takeOne(topic), { attempt: 1, snoozes: 1 }, 'after the snooze');
  }),

  check('takes a returned event as if it had never been leased', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const { lease } = await stage.takeOne(topic);
    await stage.settle({ lease, kind: 'return' });
    expectLike(await stage.takeOne(topic), { attempt: 1, snoozes: 0, deaths: 0 }, 'at once, and unchanged');
  }),

  check('reroutes to the end of another topic, with its past', [], async (stage) => {
    const topic = await stage.topic();
    const other = await stage.topic();
    const [id] = await stage.publish(topic, ['a'], { headers: { 'x-trace': 'abc' } });
    await stage.settle(stage.retry(await stage.takeOne(topic), 0));
    const { lease, firstSeenAt } = await stage.takeOne(topic);
    await stage.settle({ lease, kind: 'reroute', to: other });
    await stage.expectNothing(topic, 'it has gone');
    const moved = {
      id,
      topic: other,
      originTopic: topic,
      firstSeenAt,
      attempt: 1,
      headers: { 'x-trace': 'abc' },
      lastError: note,
      story: storyOf(1),
    };
    expectLike(await stage.takeOne(other), moved, 'the rerouted event');
  }),

  check('keeps an event that was to be rerouted to an unknown topic', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const held = await stage.takeOne(topic);
    const [settled] = await stage.broker.settle([
      { lease: held.lease, kind: 'reroute', to: stage.name('unknown') },
    ]);
    expectLike(settled, { took: false, because: 'topic_unknown' }, 'the answer');
    await stage.ack(held);
  }),

  check(
    'loses nothing when it dies between two writes',
    ['durable', 'reopen', 'dieAfterWrites'],
    async (stage) => {
      const topic = await stage.topic();
      const other = await stage.topic();
      for (let writes = 0; writes < 4; writes++) {
        for (const kind of ['retry', 'snooze', 'park', 'reroute'] as const) {
          const [id] = await stage.publish(topic, [kind]);
          const held = await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
          const { lease } = held;
          const settlements: Record<typeof kind, Settlement> = {
            retry: stage.retry(held, 0),
            snooze: { lease, kind: 'snooze', delayMs: 0 },
            park: stage.park(held),
            reroute: { lease, kind: 'reroute', to: other },
          };
          stage.harness.dieAfterWrites!(writes);
          await stage.broker.settle([settlements[kind]]).catch(() => {});
          await stage.reopen();
          await stage.pass(3);
          const parked = await stage.parked(topic, id!);
          const left = [...(await all(stage, topic)), ...(await all(stage, other))];
          ensure(
            parked || left.some((delivery) => delivery.id === id),
            `${kind}, ${writes} writes: the event is somewhere`,
          );
          await stage.settle(...left.map(({ lease }): Settlement => ({ lease, kind: 'ack' })));
        }
      }
    },
  ),

  check('settles an event whatever characters its error has, and those beside it', [], async (stage) => {
    // A NUL, a lone surrogate, and an emoji where error messages are cut (512 characters).
    for (const message of ['a\0b', 'a\ud800b', `${'a'.repeat(511)}\u{1f600}`]) {
      const topic = await stage.topic();
      await stage.publish(topic, ['odd', 'plain']);
      const [odd, plain] = await stage.take(topic, 2);
      const error = errorNote(new Error(message));
      await stage.settle({ ...stage.park(odd!), stop: message, error }, { lease: plain!.lease, kind: 'ack' });
      const { diagnosis } = (await stage.parked(topic, odd!.id)) ?? {};
      ensure(diagnosis?.message.startsWith('a') && diagnosis.stop.startsWith('a'), 'as much as can be told');
    }
  }),

  check('accepts infinite times', ['anyDelay'], async (stage) => {
    const keepSettledMs = stage.engine.features.retention === true ? Infinity : 0;
    const topic = await stage.topic({ keepSettledMs });
    await stage.publish(topic, ['done', 'parked', 'retried'], { patienceMs: Number.MAX_VALUE });
    await stage.publish(topic, ['never'], { delayMs: Number.MAX_VALUE });
    await stage.publish(topic, ['never'], { dueAt: Number.MAX_VALUE });
    const [done, parked, retried] = await stage.take(topic, 3, { leaseMs: Infinity });
    expectLike(await stage.broker.extend([done!.lease], Infinity), [true], 'it is extended');
    await stage.settle(
      { lease: done!.lease, kind: 'ack' },
      { ...stage.park(parked!), keepMs: Infinity },
      { ...stage.retry(retried!, 0), delayMs: Number.MAX_VALUE },
    );
    await stage.expectNothing(topic, 'the rest is never due');
    await stage.publish(topic, ['held']);
    await stage.broker.controls.impose({ kind: 'pause', topic }, act, Infinity);
    await stage.expectNothing(topic, 'it is paused for ever');
  }),

  check('knows after a restart what is leased', ['portableLeases', 'durable', 'reopen'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const held = await stage.takeOne(topic);
    await stage.reopen();
    await stage.expectNothing(topic, 'another process has it');
    await stage.ack(held);
  }),
];

type Stage = Parameters<Check['run']>[0];

/** Leases an event again after its lease expired. Some engines need `suspects: true` for it. */
async function again(stage: Stage, topic: string, leaseMs = 50 * stage.unitMs) {
  const suspects = stage.engine.features.suspects === true;
  return stage.takeOne(topic, { owner: 'worker-2', leaseMs, ...(suspects && { suspects }) });
}

async function all(stage: Stage, topic: string) {
  const ready = await stage.lease(topic);
  const suspects =
    stage.engine.features.suspects === true ? await stage.lease(topic, { suspects: true }) : [];
  return [...ready, ...suspects];
}
