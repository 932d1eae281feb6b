import { type Control, controlId, topicOf } from '../controls.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { act, type Check, checksOf, payloads, storyOf } from './stage.ts';

const check = checksOf(['broker']);

/** Checks key order, the share of retries, suspects (events whose lease expired), controls and lists. */
export const flowChecks: readonly Check[] = [
  check(
    'keeps later events of a key behind one that is leased, and leases other keys',
    ['ordering'],
    async (stage) => {
      const topic = await stage.topic({ ordering: 'key' });
      await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
      await stage.publish(topic, ['b1'], { key: 'b' });
      await stage.publish(topic, ['loose']);
      const heads = await stage.take(topic, 3, { limit: 10 });
      expectLike(new Set(payloads(heads)), new Set(['a1', 'b1', 'loose']), 'heads and loose events');
      await stage.expectNothing(topic, 'a2 waits for a1');
      await stage.ack(heads.find(({ payload }) => payload === 'a1')!);
      expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'then a2');
    },
  ),

  check('keeps later events of a key behind one that waits for its retry', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.settle(stage.retry(await stage.takeOne(topic), 3));
    await stage.publish(topic, ['a3'], { key: 'a' });
    await stage.publish(topic, ['b1'], { key: 'b' });
    expectLike(payloads(await stage.lease(topic)), ['b1'], 'only the other key flows');
    await stage.pass(4);
    for (const payload of ['a1', 'a2', 'a3']) {
      const head = await stage.takeOne(topic);
      expectLike(head.payload, payload, 'the order of publication');
      await stage.ack(head);
    }
  }),

  check('keeps a key waiting for an event whose process died', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    const given = [...(await stage.lease(topic)), ...(await stage.lease(topic, { suspects: true }))];
    expectLike(payloads(given), ['a1'], 'the head comes first');
  }),

  check('gives a run of one key together and in order', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2', 'a3', 'a4'], { key: 'a' });
    await stage.publish(topic, ['b1'], { key: 'b' });
    const given = await stage.lease(topic, { runMax: 3 });
    const run = given.filter(({ key }) => key === 'a');
    expectLike(payloads(run), ['a1', 'a2', 'a3'].slice(0, run.length), 'a run from the head on');
    ensure(run.length > 0 && run.length <= 3, 'at most runMax');
    await stage.settle(
      stage.retry(run[0]!, 2),
      ...run.slice(1).map(({ lease }) => ({ lease, kind: 'return' as const })),
    );
    expectLike(
      (await stage.lease(topic, { runMax: 3 })).filter(({ key }) => key === 'a'),
      [],
      'the tail is behind its head again',
    );
    await stage.pass(3);
    const next = (await stage.lease(topic, { runMax: 4 })).filter(({ key }) => key === 'a');
    expectLike(payloads(next), ['a1', 'a2', 'a3', 'a4'].slice(0, next.length), 'the same order as before');
  }),

  check('lets a key flow past a retry that does not hold it', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.settle({ ...stage.retry(await stage.takeOne(topic), 2), holdsKey: false });
    expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'a2 need not wait');
    await stage.pass(3);
    expectLike(payloads(await stage.take(topic, 1)), ['a1'], 'and a1 is not lost');
  }),

  check('lets a key flow past a parked event', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.settle(stage.park(await stage.takeOne(topic)));
    expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'parking releases the key');
  }),

  check(
    'keeps a key waiting for a parked event that holds it',
    ['ordering', 'parkedHoldsKey'],
    async (stage) => {
      const topic = await stage.topic({ ordering: 'key' });
      const [id] = await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
      await stage.settle({ ...stage.park(await stage.takeOne(topic)), holdsKey: true });
      await stage.expectNothing(topic, 'a2 waits for triage');
      await stage.broker.publish(topic, [{ id: id!, payload: 'a1, replayed', key: 'a' }]);
      const replayed = await stage.takeOne(topic);
      expectLike(replayed.payload, 'a1, replayed', 'the replay has its old place');
      await stage.settle({ ...stage.park(replayed), holdsKey: true });
      expectLike(await stage.broker.unblock(topic, [id!, 'unknown'], act), [true, false], 'unblocking');
      expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'the key flows without it');
    },
  ),

  check(
    'keeps a key waiting for the replay of a parked event, even under another key',
    ['ordering', 'parkedHoldsKey'],
    async (stage) => {
      const topic = await stage.topic({ ordering: 'key' });
      const [id] = await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
      await stage.settle({ ...stage.park(await stage.takeOne(topic)), holdsKey: true });
      await stage.broker.publish(topic, [{ id: id!, payload: 'a1, replayed', key: 'b' }]);
      const replayed = await stage.takeOne(topic);
      expectLike(replayed, { payload: 'a1, replayed', key: 'a' }, 'its place is in the line of its key');
      await stage.expectNothing(topic, 'a2 waits for it');
      await stage.ack(replayed);
      expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'and is not lost');
    },
  ),

  check(
    'does not let retries starve first tries, nor the other way round',
    ['retriesShare'],
    async (stage) => {
      const topic = await stage.topic();
      await stage.publish(
        topic,
        Array.from({ length: 20 }, () => 'retry'),
      );
      const failed = await stage.take(topic, 20);
      await stage.settle(...failed.map((delivery) => stage.retry(delivery, 0)));
      await stage.pass(1);
      await stage.publish(
        topic,
        Array.from({ length: 20 }, () => 'first'),
      );
      // Wait until all events have arrived: a server that pushes events may deliver the first one alone.
      await stage.pass(0.1);
      const given = payloads(await stage.lease(topic, { limit: 10, retriesShare: 0.3 }));
      const firsts = given.filter((payload) => payload === 'first').length;
      ensure(firsts >= 7, `first tries have 7 places of 10, got ${firsts}`);
      ensure(given.length - firsts >= 1, 'retries have places, too');
      const rest = await stage.lease(topic, { limit: 40, retriesShare: 0.3 });
      expectLike(rest.length, 40 - given.length, 'what one leaves free the other takes');
    },
  ),

  check('hands out a suspect alone, and counts deaths', ['suspects'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['innocent', 'killer']);
    const unharmed = await stage.broker.lease(topic, { owner: 'w', limit: 0, leaseMs: stage.unitMs });
    expectLike(unharmed.suspects, 0, 'before anyone died');
    await stage.take(topic, 2, { leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    await stage.publish(topic, ['other']);
    const ordinary = await stage.broker.lease(topic, { owner: 'w', limit: 10, leaseMs: 50 * stage.unitMs });
    expectLike(payloads(ordinary.deliveries), ['other'], 'an ordinary lease has no suspects');
    ensure(ordinary.suspects > 0, 'it says that there are some');
    for (let death = 1; death < 3; death++) {
      const alone = await stage.lease(topic, { suspects: true, limit: 10, leaseMs: 2 * stage.unitMs });
      expectLike(alone.length, 1, 'one suspect, alone');
      expectLike(
        alone[0],
        { suspect: true, deaths: alone[0]!.payload === 'killer' ? death : 1 },
        'its deaths',
      );
      if (alone[0]!.payload === 'innocent') {
        await stage.ack(alone[0]!);
        death -= 1;
      } else await stage.pass(3);
    }
    const left = await stage.lease(topic, { suspects: true });
    ensure(left.length === 1, 'the killer is still there');
  }),

  check('does not take a suspect into a run', ['suspects', 'ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2', 'a3'], { key: 'a' });
    const inHand = await stage.lease(topic, { runMax: 2, leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    const head = await stage.takeOne(topic, { suspects: true });
    expectLike(head.payload, 'a1', 'the head comes first');
    await stage.settle(stage.retry(head, 0));
    const run = payloads(await stage.lease(topic, { runMax: 3 }));
    // If a2 was leased before, it is a suspect (its lease expired), so a1 is leased alone. Otherwise both may
    // be leased together.
    expectLike(run, inHand.length > 1 ? ['a1'] : ['a1', 'a2', 'a3'].slice(0, run.length), 'the head alone');
  }),

  check('clears a suspect that was settled', ['suspects'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    await stage.settle(stage.retry(await stage.takeOne(topic, { suspects: true }), 0));
    expectLike(
      await stage.takeOne(topic),
      { suspect: false, deaths: 0, attempt: 2 },
      'an event like any other',
    );
  }),

  check('leases nothing of a paused topic until it is resumed', [], async (stage) => {
    const topic = await stage.topic();
    const other = await stage.topic();
    await stage.publish(topic, ['a']);
    await stage.publish(other, ['b']);
    const pause = { kind: 'pause', topic } as const;
    const { id } = await stage.broker.controls.impose(pause, act);
    expectLike(id, controlId(pause), 'the id is made of what it is about');
    await stage.expectNothing(topic, 'it is paused');
    expectLike(payloads(await stage.take(other, 1)), ['b'], 'other topics flow');
    expectLike(await stage.broker.controls.lift(id, act), true, 'it can be lifted');
    expectLike(await stage.broker.controls.lift(id, act), false, 'once');
    expectLike(payloads(await stage.take(topic, 1)), ['a'], 'resumed');
  }),

  check('refuses a control with a wrong name or duration, and imposes nothing', [], async (stage) => {
    const topic = await stage.topic();
    const { controls } = stage.broker;
    const wrong: [Control, number?][] = [
      [{ kind: 'pause', topic: 'a\0b' }],
      [{ kind: 'quarantine', topic, tenant: 'a\0b' }],
      [{ kind: 'quarantine', topic, key: 'a\0b' }],
      [{ kind: 'pause', topic }, Number.NaN],
      [{ kind: 'pause', topic }, -1],
    ];
    for (const [control, forMs] of wrong) {
      const imposed = (async () => controls.impose(control, act, forMs))();
      await expectRejection(imposed, 'HOLDFAST_OPTIONS', `${JSON.stringify(control)} for ${forMs}`);
    }
    await stage.publish(topic, ['a']);
    expectLike(payloads(await stage.take(topic, 1)), ['a'], 'it flows');
  }),

  check('keeps controls for every process', ['sharedControls', 'reopen'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    const { id } = await stage.broker.controls.impose({ kind: 'pause', topic }, act);
    await stage.reopen();
    await stage.expectNothing(topic, 'another process has paused it');
    await stage.broker.controls.lift(id, act);
    expectLike(payloads(await stage.take(topic, 1)), ['a'], 'and this one resumed it');
  }),

  check('says in every lease which controls are in force', [], async (stage) => {
    const topic = await stage.topic();
    const { controls } = stage.broker;
    const ask = async () =>
      (await stage.broker.lease(topic, { owner: 'w', limit: 1, leaseMs: 1000 })).controlsVersion;
    const before = await ask();
    const standing = await controls.impose({ kind: 'concurrency', topic, concurrencyMax: 2 }, act);
    const during = await ask();
    ensure(during > before, 'imposing is seen');
    const sheet = await controls.active();
    expectLike(sheet.version, during, 'the sheet has the version that leases tell');
    expectLike(
      sheet.controls.filter(({ control }) => topicOf(control) === topic),
      [{ id: standing.id, control: { concurrencyMax: 2 }, act }],
      'who, why and what',
    );
    await controls.impose({ kind: 'concurrency', topic, concurrencyMax: 5 }, act, stage.unitMs);
    const changed = await ask();
    ensure(changed > during, 'changing is seen');
    await stage.pass(2);
    ensure((await ask()) > changed, 'ending by itself is seen');
    const left = (await controls.active()).controls.filter(({ control }) => topicOf(control) === topic);
    expectLike(left, [], 'it has ended');
  }),

  check(
    'holds the events of a quarantined tenant or key, and lets the rest flow',
    ['quarantine'],
    async (stage) => {
      const topic = await stage.topic();
      await stage.publish(topic, ['t'], { tenant: 'acme' });
      await stage.publish(topic, ['k'], { key: 'k7' });
      await stage.publish(topic, ['free'], { tenant: 'other', key: 'k8' });
      const byTenant = await stage.broker.controls.impose({ kind: 'quarantine', topic, tenant: 'acme' }, act);
      const byKey = await stage.broker.controls.impose({ kind: 'quarantine', topic, key: 'k7' }, act);
      expectLike(payloads(await stage.lease(topic)), ['free'], 'only the rest flows');
      await stage.broker.controls.lift(byTenant.id, act);
      expectLike(payloads(await stage.take(topic, 1)), ['t'], 'the tenant is released');
      await stage.broker.controls.lift(byKey.id, act);
      expectLike(payloads(await stage.take(topic, 1)), ['k'], 'the key is released');
    },
  ),

  check(
    'leases held events as soon as their quarantine has ended by itself',
    ['quarantine'],
    async (stage) => {
      const topic = await stage.topic();
      await stage.publish(topic, ['a'], { key: 'k7' });
      await stage.broker.controls.impose({ kind: 'quarantine', topic, key: 'k7' }, act, 2 * stage.unitMs);
      await stage.expectNothing(topic, 'it is held');
      await stage.pass(3);
      expectLike(payloads(await stage.lease(topic)), ['a'], 'by the next lease');
    },
  ),

  check('ends a run before an event that a quarantine holds', ['quarantine', 'ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1'], { key: 'a', tenant: 'other' });
    await stage.publish(topic, ['a2'], { key: 'a', tenant: 'acme' });
    const { id } = await stage.broker.controls.impose({ kind: 'quarantine', topic, tenant: 'acme' }, act);
    const run = await stage.lease(topic, { runMax: 5 });
    expectLike(payloads(run), ['a1'], 'its tenant is held, whoever is before it');
    await stage.ack(run[0]!);
    await stage.expectNothing(topic, 'it is held at the head, too');
    await stage.broker.controls.lift(id, act);
    expectLike(payloads(await stage.take(topic, 1)), ['a2'], 'released');
  }),

  check('counts waiting events by state', ['waitingList', 'ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.publish(topic, ['later'], { delayMs: 10 * stage.unitMs });
    await stage.takeOne(topic);
    await stage.publish(topic, ['b', 'c']);
    await stage.pass(1);
    const counts = await stage.broker.counts(topic);
    expectLike(
      counts,
      { ready: 2, delayed: 1, behind: 1, leased: 1, held: 0, suspect: 0, blocking: 0 },
      'the counts',
    );
    ensure(counts.oldestReadyMs >= stage.unitMs, 'the lag is the age of the oldest');
    const { items } = await stage.broker.waiting(topic, { limit: 1 });
    ensure(counts.asOf > items[0]!.firstSeenAt, 'it says when they were counted');
  }),

  check('lists waiting events, and retries them now', ['waitingList'], async (stage) => {
    const topic = await stage.topic();
    const ids = await stage.publish(topic, ['a', 'b', 'c', 'd', 'e']);
    const first = await stage.takeOne(topic, { limit: 1 });
    await stage.settle(stage.retry(first, 20));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await stage.broker.waiting(topic, { limit: 2, ...(cursor !== undefined && { cursor }) });
      ensure(page.items.length <= 2, 'a page has at most its limit');
      for (const item of page.items) {
        seen.push(item.id);
        if (item.id !== first.id) expectLike(item, { state: 'ready', attempts: 0 }, 'one that was not tried');
        else expectLike(item, { state: 'delayed', attempts: 1, story: storyOf(1) }, 'the retried one');
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    expectLike(seen.toSorted(), ids.toSorted(), 'each once, none left out');
    expectLike(await stage.broker.retryNow(topic, [first.id, 'unknown'], act), [true, false], 'retry now');
    ensure(
      (await stage.take(topic, 5)).some(({ id }) => id === first.id),
      'it is due',
    );
  }),

  check(
    'continues a list after the last item of a page, even if that is gone',
    ['waitingList'],
    async (stage) => {
      const topic = await stage.topic();
      await stage.publish(topic, ['a', 'b', 'c', 'd']);
      const { items, cursor } = await stage.broker.waiting(topic, { limit: 2 });
      ensure(cursor !== undefined, 'there is another page');
      const gone = (await stage.take(topic, 4)).filter(({ id }) => items.some((item) => item.id === id));
      await stage.settle(...gone.map(({ lease }) => ({ lease, kind: 'ack' as const })));
      const rest = await stage.broker.waiting(topic, { limit: 9, cursor });
      expectLike(rest.items.length, 2, 'what was left');
      const strange = (async () => stage.broker.waiting(topic, { limit: 2, cursor: 'somewhere' }))();
      await expectRejection(strange, 'HOLDFAST_OPTIONS', 'a cursor that no page gave');
    },
  ),

  check('says when the next event falls due', ['anyDelay'], async (stage) => {
    const topic = await stage.topic();
    const ask = () => stage.broker.lease(topic, { owner: 'w', limit: 5, leaseMs: 50 * stage.unitMs });
    expectLike((await ask()).nextDueInMs, undefined, 'nothing waits');
    await stage.publish(topic, ['later'], { delayMs: 10 * stage.unitMs });
    const { nextDueInMs } = await ask();
    ensure(
      nextDueInMs !== undefined && nextDueInMs > 0 && nextDueInMs <= 10 * stage.unitMs,
      'in at most its delay',
    );
  }),

  check('keeps settled events for the declared time, to be read back', ['retention'], async (stage) => {
    const topic = await stage.topic({ keepSettledMs: 10 * stage.unitMs });
    await stage.publish(topic, ['a', 'b', 'c']);
    const [a, b, c] = await stage.take(topic, 3);
    await stage.settle(
      { lease: c!.lease, kind: 'ack' },
      { lease: a!.lease, kind: 'ack' },
      { lease: b!.lease, kind: 'discard', because: 'unwanted' },
    );
    const first = await stage.broker.history(topic, { limit: 2 });
    expectLike(
      first.items,
      [
        { payload: 'a', how: 'ack' },
        { payload: 'b', how: 'discard' },
      ],
      'in the order of publication',
    );
    ensure(first.cursor !== undefined, 'there is another page');
    const second = await stage.broker.history(topic, { limit: 2, cursor: first.cursor });
    expectLike(second, { items: [{ payload: 'c' }], cursor: undefined }, 'the last page');
    const { firstSeenAt } = c!;
    const since = await stage.broker.history(topic, { limit: 9, from: firstSeenAt, to: firstSeenAt + 1 });
    ensure(
      since.items.some(({ payload }) => payload === 'c'),
      'from its time on',
    );
    const none = await stage.broker.history(topic, { limit: 9, to: a!.firstSeenAt });
    expectLike(none.items, [], 'before the first there is none');
    const later = await stage.broker.history(topic, { limit: 9, from: firstSeenAt + 1 });
    expectLike(later.items, [], 'after the last there is none');
    await stage.pass(11);
    await stage.engine.sweep(1000);
    expectLike((await stage.broker.history(topic, { limit: 9 })).items, [], 'they have outlived their time');
  }),
];
