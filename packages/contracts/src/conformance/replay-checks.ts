import { advanceReplay, defaultReplay, stopReplay } from '../advance-replay.ts';
import type { Act } from '../controls.ts';
import type { NewEvent } from '../envelope.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import type { ReplayOperation, ReplayRequest } from '../triage.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { act, type Check, checksOf, type Stage } from './stage.ts';
import { parkMany } from './triage-checks.ts';

const check = checksOf(['triage']);

/** Checks of replays: operations that survive a crash and release each event once. */
export const replayChecks: readonly Check[] = [
  check('refuses to replay everything', [], async (stage) => {
    for (const filter of [{}, { status: 'parked' as const }, { text: '' }]) {
      const begun = stage.triage.replays.begin({ ...defaultReplay, filter }, act);
      await expectRejection(begun, 'HOLDFAST_TRIAGE_EMPTY_FILTER', 'an empty filter');
    }
  }),

  check('refuses a filter that it does not understand, also of a rule', [], async (stage) => {
    const wrong = [null, { fingerPrint: 'a' }, { ids: 'a' }, { topic: null }, { from: Number.NaN }];
    for (const filter of wrong as ParkedFilter[]) {
      const begun = (async () => stage.triage.replays.begin({ ...defaultReplay, filter }, act))();
      await expectRejection(begun, 'HOLDFAST_OPTIONS', JSON.stringify(filter));
      const set = (async () => stage.triage.setRule({ name: 'odd', action: 'discard', filter }, act))();
      await expectRejection(set, 'HOLDFAST_OPTIONS', `a rule with ${JSON.stringify(filter)}`);
    }
  }),

  check('refuses an act without a person or a reason', [], async (stage) => {
    for (const by of [null, {}, { who: 'ann' }, { who: ' ', why: 'because' }, { who: 5, why: 5 }] as Act[]) {
      const discarded = (async () => stage.triage.discard(['a'], by))();
      await expectRejection(discarded, 'HOLDFAST_TRIAGE_NO_REASON', JSON.stringify(by));
    }
  }),

  check('replays each event once, under its own id, and tracks it to the end', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 12);
    const replay = await begin(stage, { filter, canary: 2, canaryMs: 0 });
    const topics: string[] = [];
    const released = await run(stage, replay.id, async (events, topic) => {
      topics.push(topic);
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    });
    expectLike(released.map(({ id }) => id).toSorted(), ids.toSorted(), 'each once');
    expectLike(new Set(topics), new Set([stage.newlyParked('').topic]), 'to where they came from');
    expectLike(released[0]?.past, { replay: replay.id, firstSeenAt: 1 }, 'with their past');
    const counts = { selected: 12, released: 12, succeeded: 12, failedAgain: 0 };
    expectLike(await stage.triage.replays.get(replay.id), { stage: 'done', counts }, 'the operation');
    expectLike(await stage.triage.get(ids[0]!), { status: 'resolved', operation: undefined }, 'an event');
  }),

  check('remembers a request without limits', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 2);
    const unlimited = { ...filter, from: -Infinity, to: Infinity };
    const replay = await begin(stage, { filter: unlimited, canary: 0, rate: Infinity });
    const released = await run(stage, replay.id, async (events) => {
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    });
    expectLike(released.map(({ id }) => id).toSorted(), ids.toSorted(), 'all of them, at once');
  }),

  check('gives an event to one operation only', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 4);
    const first = await begin(stage, { filter: { ids: ids.slice(0, 3) } });
    const second = await begin(stage, { filter });
    expectLike(await stage.triage.replays.select(first.id, 100), 3, 'the first has three');
    expectLike(
      await stage.triage.count({ ...filter, isFree: true }),
      1,
      'a dry run tells what a second would have',
    );
    expectLike(await stage.triage.replays.select(second.id, 100), 1, 'one is left for the second');
    expectLike(await stage.triage.replays.select(first.id, 100), 0, 'selecting again finds nothing new');
    const busy = stage.triage.edit(ids[0]!, { payload: 'x' }, act);
    await expectRejection(busy, 'HOLDFAST_TRIAGE_BUSY', 'an edit under way');
    expectLike(await stage.triage.discard([ids[0]!], act), [false], 'nor can it be discarded');
  }),

  check('lets one of two processes move an operation', [], async (stage) => {
    const { filter } = await parkMany(stage, 1);
    const { id, version } = await begin(stage, { filter });
    const moves = [1, 2].map(() => stage.triage.replays.move(id, version, { stage: 'releasing' }));
    expectLike((await Promise.all(moves)).filter((moved) => moved !== undefined).length, 1, 'one was first');
    expectLike(
      await stage.triage.replays.move(id, version, { stage: 'done' }),
      undefined,
      'a version that is past',
    );
    expectLike(
      await stage.triage.replays.get(id),
      { stage: 'releasing', version: version + 1 },
      'what came of it',
    );
  }),

  check('parks an event again whose replay failed, and counts it', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 1);
    const replay = await begin(stage, { filter, canary: 0 });
    await run(stage, replay.id, ([event]) => {
      const { tenant } = filter;
      return stage.triage.put([
        stage.newlyParked(event!.id!, { replay: replay.id, ...(tenant && { tenant }) }),
      ]);
    });
    expectLike(
      (await stage.triage.replays.get(replay.id))?.counts,
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
    const replay = await begin(stage, { filter, canary: 2, canaryMs: 0 });
    const released = await run(stage, replay.id, (events) => failAgain(stage, replay.id, events));
    expectLike(released.length, 2, 'only the canary was released');
    expectLike(await stage.triage.replays.get(replay.id), { stage: 'stopped' }, 'the operation');
    const statuses = await Promise.all(ids.map((id) => stage.triage.get(id)));
    ensure(
      statuses.every((event) => event?.status === 'parked' && !event.operation),
      'all are parked and free',
    );
  }),

  check('watches the canary for canaryMs', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 4);
    const canaryMs = 5 * stage.unitMs;
    const replay = await begin(stage, { filter, canary: 2, canaryMs, rate: 1e6 });
    const { clock } = stage.harness;
    const releasedAt: number[] = [];
    await run(stage, replay.id, async (events) => {
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
    const { endedAt, startedAt } = (await stage.triage.replays.get(replay.id))!;
    ensure(endedAt !== undefined && endedAt >= startedAt + canaryMs, 'the operation says when it ended');
    expectLike(await stopReplay(stage.triage, replay.id, act), false, 'what is over cannot be stopped');
  }),

  check('stops by itself when replays fail again', [], async (stage) => {
    const { filter } = await parkMany(stage, 300);
    const replay = await begin(stage, { filter, canary: 0, rate: 50 });
    const released = await run(stage, replay.id, (events) => failAgain(stage, replay.id, events));
    ensure(released.length < 300, 'it does not go on to the end');
    expectLike(await stage.triage.replays.get(replay.id), { stage: 'stopped' }, 'the operation');
  }),

  check('stops when an operator asks, and records who did', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    const replay = await begin(stage, { filter, canary: 0 });
    await stage.triage.replays.select(replay.id, 100);
    expectLike(await stopReplay(stage.triage, replay.id, act), true, 'it stops');
    expectLike(await run(stage, replay.id, async () => {}), [], 'nothing more is released');
    expectLike(
      await stage.triage.get(ids[0]!),
      { status: 'parked', operation: undefined },
      'an event is free again',
    );
    const { items } = await stage.triage.audit({ limit: 5 });
    ensure(
      items.some(({ what, who }) => what === 'replay_stopped' && who === act.who),
      'the audit log says who',
    );
  }),

  check('releases no faster than its rate', [], async (stage) => {
    const { filter } = await parkMany(stage, 30);
    const perUnit = 5;
    const replay = await begin(stage, { filter, canary: 0, rate: (perUnit * 1000) / stage.unitMs });
    const { clock } = stage.harness;
    const started = clock.epochMs();
    let early = 0;
    let count = 0;
    await run(stage, replay.id, async (events) => {
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
        const replay = await begin(stage, { filter, canary: 0, rate: 1e6 });
        const released = new Set<string>();
        const note = async (events: readonly NewEvent[]) => {
          for (const { id } of events) released.add(id!);
        };
        const resolveAll = () =>
          stage.triage.resolve([...released].map((id) => ({ id, operation: replay.id })));
        stage.harness.dieAfterWrites!(writes);
        for (let steps = 0; steps < 4; steps++) {
          await advanceReplay(stage.triage, replay.id, stage.harness.clock, (_, events) =>
            note(events),
          ).catch(() => {});
        }
        await stage.reopen();
        await resolveAll();
        await run(stage, replay.id, (events) => note(events).then(resolveAll));
        expectLike([...released].toSorted(), ids.toSorted(), `${writes} writes: each was released`);
        const counts = { selected: 3, released: 3, succeeded: 3, failedAgain: 0 };
        expectLike(await stage.triage.replays.get(replay.id), { stage: 'done', counts }, 'and counted once');
      }
    },
  ),

  check('goes on after a crash, and releases none twice', ['durable', 'reopen'], async (stage) => {
    const { ids, filter } = await parkMany(stage, 12);
    const replay = await begin(stage, { filter, canary: 0, rate: 1e6, outstandingMax: 4 });
    const released: string[] = [];
    const once = async (events: readonly NewEvent[]) => {
      released.push(...events.map(({ id }) => id!));
      await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation: replay.id })));
    };
    for (let crashes = 0; crashes < 6; crashes++) {
      await advanceReplay(stage.triage, replay.id, stage.harness.clock, (_, events) => once(events));
      await stage.reopen();
      await stage.pass(0.1);
    }
    await run(stage, replay.id, once);
    expectLike(released.toSorted(), ids.toSorted(), 'each once');
  }),
];

/** For engines whose broker reports to the triage whether a replayed event succeeded. */
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
          const replay = await begin(stage, { filter: { ids: [id!] } });
          await stage.triage.replays.select(replay.id, 1);
          // The event is in the topic already: a producer or an earlier replay has published it.
          await stage.publish(topic, ['a'], { id: id! });
          const held = isLeased ? await stage.takeOne(topic) : undefined;
          await stage.triage.replays.release(replay.id, 1, (to, events) => stage.broker.publish(to, events));
          const delivery = held ?? (await stage.takeOne(topic));
          await stage.settle(ends === 'park' ? stage.park(delivery) : { lease: delivery.lease, kind: ends });
          const [succeeded, failedAgain] = ends === 'ack' ? [1, 0] : [0, 1];
          const { counts } = (await stage.triage.replays.get(replay.id))!;
          expectLike(counts, { released: 1, succeeded, failedAgain }, `${ends}, leased: ${isLeased}`);
          const left = { status: ends === 'ack' ? 'resolved' : 'parked', operation: undefined };
          expectLike(await stage.triage.get(id!), left, 'the event');
        }
      }
    },
  ),
];

function begin(stage: Stage, request: Partial<ReplayRequest>): Promise<ReplayOperation> {
  return stage.triage.replays.begin({ ...defaultReplay, filter: {}, ...request }, act);
}

/**
 * More steps than a replay of a few hundred events needs. If a replay takes more steps, the check fails instead of
 * running forever.
 */
const stepsMax = 2000;

/** Performs the steps of a replay until it has ended. Returns what the replay released. */
async function run(
  stage: Stage,
  id: string,
  publish: (events: readonly NewEvent[], topic: string) => Promise<unknown>,
): Promise<NewEvent[]> {
  const released: NewEvent[] = [];
  for (let steps = 0; steps < stepsMax; steps++) {
    const step = await advanceReplay(stage.triage, id, stage.harness.clock, async (topic, events) => {
      released.push(...events);
      await publish(events, topic);
    });
    if (step?.waitMs === undefined) return released;
    if (step.waitMs > 0) await stage.harness.passTime(step.waitMs);
  }
  const { stage: at, counts } = (await stage.triage.replays.get(id))!;
  throw new Error(`the replay does not come to an end: ${at}, ${JSON.stringify(counts)}`);
}

async function failAgain(stage: Stage, operation: string, events: readonly NewEvent[]): Promise<void> {
  await stage.triage.put(
    events.map(({ id, tenant }) =>
      stage.newlyParked(id!, { replay: operation, tenant: tenant ?? undefined }),
    ),
  );
}
