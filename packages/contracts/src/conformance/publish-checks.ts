import type { TopicSettings } from '../broker.ts';
import { TooLargeError } from '../contract-errors.ts';
import type { NewEvent } from '../envelope.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { type Check, checksOf, consumer, note, payloads, storyOf } from './stage.ts';

const check = checksOf(['broker']);

export const publishChecks: readonly Check[] = [
  check('keeps a batch whole', [], async (stage) => {
    const topic = await stage.topic();
    const wanted = Array.from({ length: 25 }, (_, index) => `event ${index}`);
    const ids = await stage.publish(topic, wanted);
    expectLike(new Set(ids).size, 25, 'each event has an id of its own');
    const given = payloads(await stage.take(topic, 25));
    expectLike(new Set(given), new Set(wanted), 'what was published is given');
    await stage.expectNothing(topic, 'nothing is given twice');
  }),

  check('keeps a batch whole and in order', ['arrivalOrder'], async (stage) => {
    const topic = await stage.topic();
    const wanted = Array.from({ length: 25 }, (_, index) => `event ${index}`);
    await stage.publish(topic, wanted);
    expectLike(payloads(await stage.take(topic, 25)), wanted, 'what was published is given in that order');
  }),

  check('keeps everything that a producer gives', [], async (stage) => {
    const topic = await stage.topic();
    const given = {
      ...{
        payload: '{"a":1}',
        type: 'order.placed',
        key: 'k1',
        tenant: 't1',
        headers: { 'x-trace': 'abc', 'x-b': 'ä' },
      },
      ...{ correlationId: 'c1', idempotencyKey: 'i1' },
    };
    const [published] = await stage.broker.publish(topic, [given]);
    const delivery = await stage.takeOne(topic);
    expectLike(delivery, { ...given, id: published!.id, topic, originTopic: topic }, 'the delivery');
    expectLike(
      delivery,
      { attempt: 1, attempts: 0, deaths: 0, suspect: false, story: [] },
      'a first delivery',
    );
  }),

  check('keeps headers and origin over a retry', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a'], {
      headers: { 'x-trace': 'abc' },
      key: 'k',
      tenant: 't',
      correlationId: 'c',
    });
    const first = await stage.takeOne(topic);
    await stage.settle(stage.retry(first, 1));
    await stage.pass(2);
    const { headers, key, tenant, correlationId, originTopic, firstSeenAt, idempotencyKey } = first;
    const kept = { headers, key, tenant, correlationId, originTopic, firstSeenAt, idempotencyKey };
    expectLike(await stage.takeOne(topic), kept, 'the second delivery');
    expectLike(headers, { 'x-trace': 'abc' }, 'the headers');
  }),

  check('keeps text as text and bytes as bytes', [], async (stage) => {
    const topic = await stage.topic();
    const bytes = Uint8Array.from([0, 255, 10, 13, 128]);
    await stage.broker.publish(topic, [{ payload: 'zwölf \u{1f980}' }, { payload: bytes }, { payload: '' }]);
    const taken = payloads(await stage.take(topic, 3));
    const [text, empty] = taken
      .filter((payload) => typeof payload === 'string')
      .toSorted()
      .toReversed();
    const binary = taken.find((payload) => typeof payload !== 'string');
    expectLike(text, 'zwölf \u{1f980}', 'text');
    ensure(binary instanceof Uint8Array, 'bytes come back as bytes');
    expectLike(Array.from(binary), Array.from(bytes), 'bytes');
    expectLike(empty, '', 'nothing at all');
  }),

  check('refuses oversized events by name, and stores nothing of the batch', [], async (stage) => {
    const topic = await stage.topic();
    const { payloadBytesMax, headersBytesMax } = stage.broker.limits;
    const large = 'x'.repeat(payloadBytesMax + 1);
    const batches = [
      [{ payload: 'a' }, { payload: large }],
      [{ payload: 'a' }, { payload: 'b', headers: { big: 'x'.repeat(headersBytesMax) } }],
    ];
    for (const batch of batches) {
      await expectRejection(
        stage.broker.publish(topic, batch),
        new TooLargeError('', 0, 0).code,
        'too large',
      );
    }
    await stage.expectNothing(topic, 'nothing of a refused batch is given');
  }),

  check('refuses values of a wrong type by name, and stores nothing of the batch', [], async (stage) => {
    const topic = await stage.topic();
    const wrong: object[] = [
      { payload: 5 },
      ...['key', 'tenant', 'type', 'correlationId', 'idempotencyKey'].flatMap((name) => [
        { [name]: 17 },
        { [name]: null },
        { [name]: {} },
        { [name]: '' },
        { [name]: 'a\0b' },
      ]),
      ...[5, null, ['a'], { a: 5 }, { a: null }].map((headers) => ({ headers })),
      ...['1s', null, Number.NaN, -1].flatMap((time) => [{ dueAt: time }, { patienceMs: time }]),
      ...[
        5,
        null,
        {},
        { originTopic: 'a', firstSeenAt: Number.NaN },
        { originTopic: 'a\0b', firstSeenAt: 1 },
      ].map((past) => ({ past })),
    ];
    for (const each of wrong) {
      const batch = [{ payload: 'a' }, { payload: 'b', ...each }] as readonly NewEvent[];
      const published = (async () => stage.broker.publish(topic, batch))();
      await expectRejection(published, 'HOLDFAST_OPTIONS', JSON.stringify(each));
    }
    await stage.expectNothing(topic, 'nothing of a refused batch is given');
  }),

  check('refuses a topic without a name, and settings that it does not know', [], async (stage) => {
    const wrong = [{ ordering: 'time' }, { keepSettledMs: -1 }, { keepSettledMs: Number.NaN }];
    for (const settings of wrong as Partial<TopicSettings>[]) {
      const declared = (async () => stage.broker.declare(stage.name('odd'), settings))();
      await expectRejection(declared, 'HOLDFAST_OPTIONS', JSON.stringify(settings));
    }
    for (const name of ['', null, 5, 'a\0b'] as string[]) {
      const declared = (async () => stage.broker.declare(name))();
      await expectRejection(declared, 'HOLDFAST_OPTIONS', `the name ${name}`);
    }
  }),

  check('refuses a topic that was never declared', [], async (stage) => {
    const { broker } = stage;
    expectLike(await broker.publish(await stage.topic(), []), [], 'nothing, to a topic that is there');
    await expectRejection(broker.publish(stage.name('unknown'), []), 'HOLDFAST_TOPIC', 'nothing at all');
    await expectRejection(
      stage.publish(stage.name('unknown'), ['a']),
      'HOLDFAST_TOPIC',
      'publishing to an unknown topic',
    );
  }),

  check('refuses another ordering while a topic holds events', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a'], { key: 'k' });
    expectLike(await stage.broker.declare(topic), { ordering: 'key' }, 'declaring again says what holds');
    await expectRejection(
      stage.broker.declare(topic, { ordering: 'none' }),
      'HOLDFAST_TOPIC',
      'another ordering',
    );
  }),

  check('never gives up an order by key, even if the topic is empty', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await expectRejection(
      stage.broker.declare(topic, { ordering: 'none' }),
      'HOLDFAST_TOPIC',
      'none instead of key',
    );
    expectLike(await stage.broker.declare(topic), { ordering: 'key' }, 'it keeps its order');
  }),

  check('stores an event once, however often it is published', ['publishOnce'], async (stage) => {
    const topic = await stage.topic();
    const event = { id: '01890000-0000-7000-8000-000000000001', payload: 'a' };
    expectLike(await stage.broker.publish(topic, [event]), [{ id: event.id, duplicate: false }], 'the first');
    expectLike(await stage.broker.publish(topic, [event]), [{ id: event.id, duplicate: true }], 'the second');
    await stage.takeOne(topic);
    await stage.expectNothing(topic, 'there is only one');
  }),

  check('leases no event before it is due', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['later'], { delayMs: 4 * stage.unitMs });
    await stage.publish(topic, ['at'], { dueAt: stage.harness.clock.epochMs() + 4 * stage.unitMs });
    await stage.publish(topic, ['now']);
    expectLike(payloads(await stage.take(topic, 1)), ['now'], 'only what is due');
    await stage.pass(2);
    await stage.expectNothing(topic, 'it is not due');
    await stage.pass(3);
    expectLike(
      new Set(payloads(await stage.take(topic, 2))),
      new Set(['later', 'at']),
      'what has fallen due',
    );
  }),

  check('leases events in the order in which they are due', ['anyDelay'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['second'], { delayMs: 2 * stage.unitMs });
    await stage.publish(topic, ['first'], { delayMs: 1 * stage.unitMs });
    await stage.pass(3);
    expectLike(payloads(await stage.take(topic, 2, { limit: 1 })), ['first', 'second'], 'by due time');
  }),

  check('keeps delays in the store, not in the process', ['durable', 'reopen'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['retried']);
    await stage.settle(stage.retry(await stage.takeOne(topic), 2));
    await stage.publish(topic, ['delayed'], { delayMs: 2 * stage.unitMs });
    await stage.reopen();
    await stage.expectNothing(topic, 'a restart makes nothing due');
    await stage.pass(3);
    const given = new Set(payloads(await stage.take(topic, 2)));
    expectLike(given, new Set(['retried', 'delayed']), 'delayed events survive their process');
  }),

  check('says how much patience is left', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['patient'], { patienceMs: 100 * stage.unitMs });
    await stage.pass(1);
    const { patienceLeftMs } = await stage.takeOne(topic);
    ensure(patienceLeftMs <= 99 * stage.unitMs && patienceLeftMs > 50 * stage.unitMs, 'it shrinks with time');
    await stage.publish(topic, ['endless']);
    expectLike((await stage.takeOne(topic)).patienceLeftMs, Infinity, 'no patience given is no limit');
    await stage.publish(topic, ['spent'], { patienceMs: stage.unitMs });
    await stage.pass(2);
    expectLike(
      (await stage.takeOne(topic)).patienceLeftMs,
      0,
      'an event whose customer has gone is given, and says so',
    );
  }),

  check('parks with reason, message, stop, final attempt, story and consumer', [], async (stage) => {
    const topic = await stage.topic();
    const [id] = await stage.publish(topic, ['bad'], { headers: { 'x-trace': 'abc' }, key: 'k' });
    await stage.settle(stage.retry(await stage.takeOne(topic), 0));
    await stage.settle(stage.park(await stage.takeOne(topic)));
    const parked = await stage.parked(topic, id!);
    expectLike(
      parked,
      {
        ...{ id, payload: 'bad', headers: { 'x-trace': 'abc' }, key: 'k', originTopic: topic },
        diagnosis: {
          ...{ reason: 'TypeError', message: 'no street', stop: 'attempts_exhausted', finalAttempt: 2 },
          error: { fingerprint: note.fingerprint },
          story: storyOf(2),
          consumer,
        },
      },
      'the parked event',
    );
    await stage.expectNothing(topic, 'it is parked');
  }),

  check('rings the doorbell when something may be due', ['doorbell'], async (stage) => {
    const topic = await stage.topic();
    let rings = 0;
    const leave = stage.broker.doorbell(topic, () => {
      rings += 1;
    });
    await stage.publish(topic, ['a']);
    for (let asks = 0; asks < 20 && rings === 0; asks++) await stage.pass(0.1);
    ensure(rings > 0, 'a publish rings');
    leave();
    const before = rings;
    await stage.publish(topic, ['b']);
    await stage.pass(1);
    expectLike(rings, before, 'no ring after the doorbell was ended');
  }),
];
