import { advanceOperation, setRate, stopOperation } from '../advance-operation.ts';
import type { NewEvent } from '../envelope.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { beginReplay, failAgain, operate, parkMany, replay as replayAll, runToEnd } from './run-operation.ts';
import { act, type Check, checksOf } from './stage.ts';

const check = checksOf(['triage']);

/** Checks that a replay survives a crash and publishes each event once. */
export const replayChecks: readonly Check[] = [
  check('replays each event once, under its own id, and tracks it to the end', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 12);
    const replay = await beginReplay(stage, { filter, canary: 2, canaryMs: 0 });
    const topics: string[] = [];
    const released = await runToEnd(stage, replay.id, async (events, topic) => {
      topics.push(topic);
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    });
    expectLike(released.map(({ id }) => id).toSorted(), ids.toSorted(), 'each once');
    expectLike(new Set(topics), new Set([stage.newlyParked('').topic]), 'to where they came from');
    expectLike(released[0]?.past, { replay: replay.id, firstSeenAt: 1 }, 'with their past');
    const counts = { selected: 12, released: 12, succeeded: 12, failedAgain: 0 };
    expectLike(await stage.triage.operations.get(replay.id), { stage: 'done', counts }, 'the operation');
    expectLike(await stage.triage.get(ids[0]!), { status: 'resolved', operation: undefined }, 'an event');
  }),

  check('remembers a request without limits', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 2);
    const unlimited = { ...filter, from: -Infinity, to: Infinity };
    const replay = await beginReplay(stage, { filter: unlimited, canary: 0, rate: Infinity });
    const released = await runToEnd(stage, replay.id, async (events) => {
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    });
    expectLike(released.map(({ id }) => id).toSorted(), ids.toSorted(), 'all of them, at once');
  }),

  check('gives an event to one operation only', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 4);
    const first = await beginReplay(stage, { filter: { ids: ids.slice(0, 3) } });
    const second = await beginReplay(stage, { filter });
    expectLike(await stage.triage.operations.select(first.id, 100), 3, 'the first has three');
    expectLike(
      await stage.triage.count({ ...filter, isFree: true }),
      1,
      'a dry run tells what a second would have',
    );
    expectLike(await stage.triage.operations.select(second.id, 100), 1, 'one is left for the second');
    expectLike(await stage.triage.operations.select(first.id, 100), 0, 'selecting again finds nothing new');
    const busy = stage.triage.edit(ids[0]!, { payload: 'x' }, act);
    await expectRejection(busy, 'HOLDFAST_TRIAGE_BUSY', 'an edit under way');
  }),

  check('lets one of two processes move an operation', [], async (stage) => {
    const { filter } = await parkMany(stage, 1);
    const { id, version } = await beginReplay(stage, { filter });
    const moves = [1, 2].map(() => stage.triage.operations.move(id, version, { stage: 'releasing' }));
    expectLike((await Promise.all(moves)).filter((moved) => moved !== undefined).length, 1, 'one was first');
    expectLike(
      await stage.triage.operations.move(id, version, { stage: 'done' }),
      undefined,
      'a version that is past',
    );
    expectLike(
      await stage.triage.operations.get(id),
      { stage: 'releasing', version: version + 1 },
      'what came of it',
    );
  }),

  check('parks an event again whose replay failed, and counts it', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 1);
    const replay = await beginReplay(stage, { filter, canary: 0 });
    await runToEnd(stage, replay.id, ([event]) => {
      const { tenant } = filter;
      return stage.triage.put([
        stage.newlyParked(event!.id!, { replay: replay.id, ...(tenant && { tenant }) }),
      ]);
    });
    expectLike(
      (await stage.triage.operations.get(replay.id))?.counts,
      { succeeded: 0, failedAgain: 1 },
      'counted',
    );
    expectLike(
      await stage.triage.get(ids[0]!),
      { status: 'parked', parkings: 2, operation: undefined },
      'parked again',
    );
  }),

  check('stops when the canary fails, and gives back the rest', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 10);
    const replay = await beginReplay(stage, { filter, canary: 2, canaryMs: 0 });
    const released = await runToEnd(stage, replay.id, (events) => failAgain(stage, replay.id, events));
    expectLike(released.length, 2, 'only the canary was released');
    expectLike(await stage.triage.operations.get(replay.id), { stage: 'stopped' }, 'the operation');
    const statuses = await Promise.all(ids.map((id) => stage.triage.get(id)));
    ensure(
      statuses.every((event) => event?.status === 'parked' && !event.operation),
      'all are parked and free',
    );
  }),

  check('watches the canary for canaryMs', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 4);
    const canaryMs = 5 * stage.unitMs;
    const replay = await beginReplay(stage, { filter, canary: 2, canaryMs, rate: 1e6 });
    const { clock } = stage.harness;
    const releasedAt: number[] = [];
    await runToEnd(stage, replay.id, async (events) => {
      for (const _ of events) releasedAt.push(clock.epochMs());
      const told = await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
      expectLike(
        told,
        events.map(() => true),
        'each success is news',
      );
    });
    ensure(releasedAt[2]! - releasedAt[1]! >= canaryMs, 'the rest waits until the canary was watched');
    expectLike(
      await stage.triage.resolve([{ id: ids[0]!, operation: replay.id }]),
      [false],
      'the second time changes nothing',
    );
    const { endedAt, startedAt } = (await stage.triage.operations.get(replay.id))!;
    ensure(endedAt !== undefined && endedAt >= startedAt + canaryMs, 'the operation says when it ended');
    expectLike(await stopOperation(stage.triage, replay.id, act), false, 'what is over cannot be stopped');
  }),

  check('stops by itself when replays fail again', [], async (stage) => {
    const { filter } = await parkMany(stage, 300);
    const replay = await beginReplay(stage, { filter, canary: 0, rate: 50 });
    const released = await runToEnd(stage, replay.id, (events) => failAgain(stage, replay.id, events));
    ensure(released.length < 300, 'it does not go on to the end');
    const stopped = await stage.triage.operations.get(replay.id);
    expectLike(stopped, { stage: 'stopped', stopped: 'too many failed again' }, 'the operation');
  }),

  check('stops when an operator asks', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    const replay = await beginReplay(stage, { filter, canary: 0 });
    await stage.triage.operations.select(replay.id, 100);
    expectLike(await stopOperation(stage.triage, replay.id, act), true, 'it stops');
    expectLike(await runToEnd(stage, replay.id, async () => {}), [], 'nothing more is released');
    expectLike(
      await stage.triage.get(ids[0]!),
      { status: 'parked', operation: undefined },
      'an event is free again',
    );
  }),

  check('changes the rate of a replay while it runs', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 6);
    const slow = 0.001;
    const { id } = await beginReplay(stage, { filter, canary: 0, rate: slow });
    const step = () => advanceOperation(stage.triage, id, stage.harness.clock, async () => {});
    for (let steps = 0; steps < 5; steps++) await step();
    expectLike((await step())?.operation, { stage: 'releasing', counts: { released: 0 } }, 'it is slow');
    expectLike(await setRate(stage.triage, id, 1e6, act), true, 'it can be faster');
    expectLike((await stage.triage.operations.get(id))?.request, { rate: 1e6, filter }, 'the new rate');
    const released = await runToEnd(stage, id);
    expectLike(released.map((event) => event.id).toSorted(), ids.toSorted(), 'each once');
    expectLike(await setRate(stage.triage, id, 5, act), false, 'it is over');
    expectLike(await setRate(stage.triage, 'unknown', 5, act), false, 'there is no such replay');
    const kept = await stage.triage.operations.begin({ kind: 'keep', filter, keepMs: 1e9 }, act);
    expectLike(await setRate(stage.triage, kept.id, 5, act), false, 'a keep has no rate');
    const running = await beginReplay(stage, { filter });
    for (const rate of [0, -1, Number.NaN]) {
      const moved = (async () => stage.triage.operations.move(running.id, 1, { rate }))();
      await expectRejection(moved, 'HOLDFAST_OPTIONS', `a rate of ${rate}`);
    }
  }),

  check('lists the events of a replay with their outcome', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 4);
    const unused = await beginReplay(stage, { filter });
    await stage.triage.operations.select(unused.id, 100);
    await stopOperation(stage.triage, unused.id, act);
    await runToEnd(stage, unused.id);
    expectLike((await stage.triage.get(ids[0]!))?.replayedBy, undefined, 'it was not published again');
    const { id } = await replayAll(stage, filter, (each) => each === ids[0]);
    const listed = async (status: 'parked' | 'resolved' | 'replaying') => {
      const { items } = await stage.triage.list({ replayedBy: id, status }, { limit: 100 });
      return items.map((item) => ({ id: item.id, replayedBy: item.replayedBy }));
    };
    expectLike(await listed('parked'), [{ id: ids[0], replayedBy: id }], 'failed again');
    expectLike(
      new Set((await listed('resolved')).map((each) => each.id)),
      new Set(ids.slice(1)),
      'succeeded',
    );
    expectLike(await listed('replaying'), [], 'none is on its way');
    const later = await beginReplay(stage, { filter, canary: 0, rate: 1e6 });
    await stage.triage.operations.select(later.id, 100);
    await stage.triage.operations.release(later.id, 100, async () => {});
    expectLike(
      await stage.triage.get(ids[0]!),
      { status: 'replaying', replayedBy: later.id, operation: later.id },
      'from the release on',
    );
    await stage.triage.resolve([{ id: ids[0]!, operation: later.id }]);
    await operate(stage, { kind: 'keep', filter: { ids, status: 'resolved' }, keepMs: 1e9 });
    expectLike(await stage.triage.get(ids[0]!), { replayedBy: later.id, status: 'resolved' }, 'it stays');
    expectLike(await stage.triage.count({ replayedBy: id, status: 'resolved' }), 3, 'the others stay, too');
  }),

  check('releases no faster than its rate', [], async (stage) => {
    const { filter } = await parkMany(stage, 30);
    const perUnit = 5;
    const replay = await beginReplay(stage, { filter, canary: 0, rate: (perUnit * 1000) / stage.unitMs });
    const { clock } = stage.harness;
    const started = clock.epochMs();
    let early = 0;
    let count = 0;
    await runToEnd(stage, replay.id, async (events) => {
      count += events.length;
      const units = (clock.epochMs() - started + 1000) / stage.unitMs;
      if (count > units * perUnit + 1) early += 1;
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    });
    expectLike([count, early], [30, 0], 'all of them, none too early');
  }),

  check(
    'loses nothing of a replay when it dies between two writes',
    ['durable', 'reopen', 'dieAfterWrites'],
    async (stage) => {
      for (let writes = 0; writes < 6; writes++) {
        const { ids, filter } = await parkMany(stage, 3);
        const replay = await beginReplay(stage, { filter, canary: 0, rate: 1e6 });
        const released = new Set<string>();
        const note = async (events: readonly NewEvent[]) => {
          for (const { id } of events) released.add(id!);
        };
        const resolveAll = () =>
          stage.triage.resolve([...released].map((id) => ({ id, operation: replay.id })));
        stage.harness.dieAfterWrites!(writes);
        for (let steps = 0; steps < 4; steps++) {
          await advanceOperation(stage.triage, replay.id, stage.harness.clock, (_, events) =>
            note(events),
          ).catch(() => {});
        }
        await stage.reopen();
        await resolveAll();
        await runToEnd(stage, replay.id, (events) => note(events).then(resolveAll));
        expectLike([...released].toSorted(), ids.toSorted(), `${writes} writes: each was released`);
        const counts = { selected: 3, released: 3, succeeded: 3, failedAgain: 0 };
        expectLike(
          await stage.triage.operations.get(replay.id),
          { stage: 'done', counts },
          'and counted once',
        );
      }
    },
  ),

  check('goes on after a crash, and releases none twice', ['durable', 'reopen'], async (stage) => {
    const { ids, filter } = await parkMany(stage, 12);
    const replay = await beginReplay(stage, { filter, canary: 0, rate: 1e6, outstandingMax: 4 });
    const released: string[] = [];
    const once = async (events: readonly NewEvent[]) => {
      released.push(...events.map(({ id }) => id!));
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    };
    for (let crashes = 0; crashes < 6; crashes++) {
      await advanceOperation(stage.triage, replay.id, stage.harness.clock, (_, events) => once(events));
      await stage.reopen();
      await stage.pass(0.1);
    }
    await runToEnd(stage, replay.id, once);
    expectLike(released.toSorted(), ids.toSorted(), 'each once');
  }),
];

const settled = checksOf(['broker', 'triage']);

export const settledReplayChecks: readonly Check[] = [
  settled(
    'counts the outcome of an event that was in the topic when its replay published it',
    ['parksInTriage', 'publishOnce'],
    async (stage) => {
      for (const isLeased of [false, true]) {
        for (const ends of ['ack', 'park'] as const) {
          const topic = await stage.topic();
          const [id] = await stage.publish(topic, ['a']);
          await stage.settle(stage.park(await stage.takeOne(topic)));
          const replay = await beginReplay(stage, { filter: { ids: [id!] } });
          await stage.triage.operations.select(replay.id, 1);
          // Publish the event before its replay does, as a producer could have done.
          await stage.publish(topic, ['a'], { id: id! });
          const held = isLeased ? await stage.takeOne(topic) : undefined;
          await stage.triage.operations.release(replay.id, 1, (to, events) =>
            stage.broker.publish(to, events),
          );
          const delivery = held ?? (await stage.takeOne(topic));
          await stage.settle(ends === 'park' ? stage.park(delivery) : { lease: delivery.lease, kind: ends });
          const [succeeded, failedAgain] = ends === 'ack' ? [1, 0] : [0, 1];
          const { counts } = (await stage.triage.operations.get(replay.id))!;
          expectLike(counts, { released: 1, succeeded, failedAgain }, `${ends}, leased: ${isLeased}`);
          const left = { status: ends === 'ack' ? 'resolved' : 'parked', operation: undefined };
          expectLike(await stage.triage.get(id!), left, 'the event');
        }
      }
    },
  ),
];
