import type { WaitingQuestion } from '../broker.ts';
import { errorNote } from '../error-note.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import type { BreakdownBy } from '../triage.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { operate } from './run-operation.ts';
import { type act, type Check, checksOf, consumer, note, type Stage } from './stage.ts';

const check = checksOf(['triage']);

/** Checks of the queries that a console makes about parked events (set aside for an operator). */
export const questionChecks: readonly Check[] = [
  check('finds by lists of values', [], async (stage) => {
    const { ids, tenant, error } = await parkThree(stage);
    const [a, b, c] = ids;
    const found = finder(stage, ids);
    await found({ key: ['a', 'b', 'z'] }, [a, b]);
    await found({ type: ['placed', 'paid'] }, [a, b]);
    await found({ tenant: [tenant], reason: ['RangeError', 'TypeError'], key: ['b', 'c'] }, [b, c]);
    await found({ fingerprint: [error.fingerprint] }, [c]);
    await found({ stop: ['attempts_exhausted', 'poison'], topic: ['elsewhere'] }, []);
    await found({ key: [] }, []);
    await found({ ids, headers: { region: ['eu', 'us'] } }, [a, b]);
    await operate(stage, { kind: 'discard', filter: { ids: [a!] } });
    await found({ tenant, status: ['parked', 'discarded'] }, [a, b, c]);
    await found({ tenant, status: ['replaying', 'discarded'] }, [a]);
  }),

  check('leaves out events that not names', [], async (stage) => {
    const { ids, tenant } = await parkThree(stage);
    const [a, b, c] = ids;
    const found = finder(stage, ids);
    await found({ tenant, not: { key: 'a' } }, [b, c]);
    await found({ tenant, not: { key: ['a', 'b'] } }, [c]);
    await found({ tenant, not: { key: 'a', reason: 'RangeError' } }, [b]);
    await found({ tenant, not: { headers: { region: 'eu' } } }, [b, c]);
    await found({ tenant, not: { type: 'placed' } }, [b, c]);
    await found({ tenant, not: { consumer: 'billing' } }, [a, b]);
    await found({ tenant, not: {} }, [a, b, c]);
    await found({ tenant, key: ['a', 'b'], not: { headers: { region: ['us'] } } }, [a]);
  }),

  check('finds by headers and by the consumer', [], async (stage) => {
    const { ids, tenant } = await parkThree(stage);
    const [a, b, c] = ids;
    const found = finder(stage, ids);
    await found({ tenant, headers: { region: 'eu' } }, [a]);
    await found({ tenant, headers: { region: 'us', 'x "odd" \'name\'': '%_\\' } }, [b]);
    await found({ tenant, headers: { region: 'eu', 'x "odd" \'name\'': '%_\\' } }, []);
    await found({ tenant, headers: { REGION: 'eu' } }, []);
    await found({ tenant, headers: { toString: 'eu' } }, []);
    await found({ tenant, consumer }, [a, b]);
    await found({ tenant, consumer: 'billing' }, [c]);
    const { items } = await stage.triage.list({ ids: [c!] }, { limit: 1 });
    expectLike(items, [{ consumer: 'billing' }], 'lists name the consumer');
  }),

  check('counts by every property and by a header, the most frequent first', [], async (stage) => {
    const { ids, tenant, error } = await parkThree(stage);
    const { topic } = stage.newlyParked('');
    const expected: [BreakdownBy, (readonly [string | undefined, number])[]][] = [
      ['topic', [[topic, 3]]],
      ['tenant', [[tenant, 3]]],
      ['stop', [['attempts_exhausted', 3]]],
      ['status', [['parked', 3]]],
      [
        'reason',
        [
          [note.type, 2],
          [error.type, 1],
        ],
      ],
      [
        'fingerprint',
        [
          [note.fingerprint, 2],
          [error.fingerprint, 1],
        ],
      ],
      [
        'consumer',
        [
          [consumer, 2],
          ['billing', 1],
        ],
      ],
    ];
    for (const [by, values] of expected) {
      const items = values.map(([value, count]) => ({ value, count }));
      const counted = await stage.triage.breakdown({ tenant }, by, 10);
      expectLike(counted, { items, others: 0 }, `by ${JSON.stringify(by)}`);
    }
    const byKey = await stage.triage.breakdown({ tenant }, 'key', 2);
    expectLike(byKey, { items: [{ count: 1 }, { count: 1 }], others: 1 }, 'at most two values');
    const some: [BreakdownBy, string[]][] = [
      [{ header: 'region' }, ['eu', 'us']],
      ['type', ['paid', 'placed']],
    ];
    for (const [by, values] of some) {
      const { items } = await stage.triage.breakdown({ tenant }, by, 10);
      const counts = new Map(items.map(({ value, count }) => [value, count]));
      expectLike(
        [...values, undefined].map((value) => counts.get(value)),
        [1, 1, 1],
        `by ${JSON.stringify(by)}, also without one`,
      );
    }
    await operate(stage, { kind: 'discard', filter: { ids: [ids[0]!] } });
    const byStatus = await stage.triage.breakdown({ tenant, status: ['parked', 'discarded'] }, 'status', 10);
    const counted = [
      { value: 'parked', count: 2 },
      { value: 'discarded', count: 1 },
    ];
    expectLike(byStatus.items, counted, 'by status');
  }),

  check('counts by the time of parking', [], async (stage) => {
    const tenant = stage.name('tenant');
    const times: number[] = [];
    for (const size of [2, 1]) {
      const ids = Array.from({ length: size }, () => stage.name('event'));
      await stage.triage.put(ids.map((id) => stage.newlyParked(id, { tenant })));
      for (const id of ids) times.push((await stage.triage.get(id))!.parkedAt);
      await stage.pass(3);
    }
    const bucketMs = 2 * stage.unitMs;
    const counts = new Map<number, number>();
    for (const time of times) {
      const at = Math.floor(time / bucketMs) * bucketMs;
      counts.set(at, (counts.get(at) ?? 0) + 1);
    }
    const wanted = [...counts].map(([at, count]) => ({ at, count }));
    expectLike(await stage.triage.histogram({ tenant }, bucketMs), wanted, 'the buckets');
    const narrow = await stage.triage.histogram({ tenant, from: times[2]! }, bucketMs);
    expectLike(narrow, wanted.slice(-1), 'of a filter');
    expectLike(await stage.triage.histogram({ tenant: 'nobody' }, bucketMs), [], 'of nothing');
  }),

  check('says how far a search has looked', [], async (stage) => {
    const tenant = stage.name('tenant');
    const ids: string[] = [];
    for (let index = 0; index < 10; index++) {
      const id = stage.name('event');
      ids.push(id);
      const payload = index === 0 || index === 9 ? 'a needle' : 'hay';
      await stage.triage.put([stage.newlyParked(id, { tenant, payload })]);
      await stage.pass(0.1);
    }
    const filter = { tenant, text: 'needle' };
    const found: string[] = [];
    const looks: (number | undefined)[] = [];
    let cursor: string | undefined;
    do {
      const request = { limit: 5, lookMax: 3, ...(cursor !== undefined && { cursor }) };
      const page = await stage.triage.list(filter, request);
      found.push(...page.items.map(({ id }) => id));
      looks.push(page.looked);
      ensure(looks.length <= 1000, 'the search comes to an end');
      cursor = page.cursor;
    } while (cursor !== undefined);
    expectLike(found, [ids[9], ids[0]], 'each once, the latest first');
    ensure(looks[0] !== undefined, 'it says that it stopped before the end');
    ensure(
      looks.every((looked) => looked === undefined || (looked > 0 && looked <= 3)),
      'it looked at three events at most',
    );
    const whole = await stage.triage.list(filter, { limit: 5 });
    expectLike(whole, { items: [{ id: ids[9] }, { id: ids[0] }], looked: undefined }, 'without a limit');
  }),

  check('refuses a question that it does not understand', [], async (stage) => {
    const { triage } = stage;
    const filter = { tenant: 'a' };
    const wrong = {
      'an unknown property': async () => triage.breakdown(filter, 'colour' as BreakdownBy, 5),
      'a header without a name': async () => triage.breakdown(filter, {} as BreakdownBy, 5),
      'no values': async () => triage.breakdown(filter, 'topic', 0),
      'an unknown field': async () => triage.breakdown({ tenent: 'a' } as ParkedFilter, 'topic', 5),
      'buckets of 0 ms': async () => triage.histogram(filter, 0),
      'buckets of NaN ms': async () => triage.histogram(filter, Number.NaN),
      'an unknown status': async () => triage.histogram({ status: 'lost' } as unknown as ParkedFilter, 5),
    };
    for (const [what, ask] of Object.entries(wrong)) await expectRejection(ask(), 'HOLDFAST_OPTIONS', what);
  }),
];

const flow = checksOf(['broker']);

/** Checks of the queries about waiting events that a console makes. */
export const waitingQuestionChecks: readonly Check[] = [
  flow('lists waiting events by state, key and tenant', ['waitingList'], async (stage) => {
    const topic = await stage.topic();
    const [a] = await stage.publish(topic, ['a'], { key: 'k1', tenant: 't1' });
    const [b] = await stage.publish(topic, ['b'], { key: 'k2', tenant: 't1' });
    const [c] = await stage.publish(topic, ['c'], { key: 'k2', tenant: 't2', delayMs: 50 * stage.unitMs });
    const [d] = await stage.publish(topic, ['d']);
    const [leased] = await stage.take(topic, 1, { limit: 1 });
    const ready = [a, b, d].filter((id) => id !== leased!.id);
    const found = async (question: WaitingQuestion, ids: (string | undefined)[]) => {
      const { items } = await stage.broker.waiting(topic, { limit: 10 }, question);
      expectLike(items.map(({ id }) => id).toSorted(), ids.toSorted(), JSON.stringify(question));
    };
    await found({ state: 'delayed' }, [c]);
    await found({ state: 'leased' }, [leased!.id]);
    await found({ state: 'ready' }, ready);
    await found({ state: ['delayed', 'leased'] }, [c, leased!.id]);
    await found({ key: 'k2' }, [b, c]);
    await found({ tenant: 't1' }, [a, b]);
    await found({ key: 'k2', tenant: 't2', state: 'delayed' }, [c]);
    await found({ key: 'k1', tenant: 't2' }, []);
    await found({}, [a, b, c, d]);
    const paged: string[] = [];
    let cursor: string | undefined;
    do {
      const request = { limit: 1, ...(cursor !== undefined && { cursor }) };
      const page = await stage.broker.waiting(topic, request, { key: 'k2' });
      ensure(page.items.length <= 1, 'a page has at most its limit');
      paged.push(...page.items.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expectLike(paged, [b, c], 'in pages, in the order of publication');
  }),

  flow('lists waiting events by due time, in pages', ['waitingList', 'anyDelay'], async (stage) => {
    const topic = await stage.topic();
    const due: [number, string][] = [];
    for (const units of [300, 100, 200, 100, 400]) {
      const [id] = await stage.publish(topic, ['x'], { delayMs: units * stage.unitMs });
      due.push([units + due.length / 100, id!]);
    }
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const request = { limit: 2, ...(cursor !== undefined && { cursor }) };
      const page = await stage.broker.waiting(topic, request, { order: 'due' });
      listed.push(...page.items.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    const sorted = due.toSorted(([a], [b]) => a - b).map(([, id]) => id);
    expectLike(listed, sorted, 'what is due first comes first');
    const published = await stage.broker.waiting(topic, { limit: 9 }, { order: 'published' });
    const order = published.items.map(({ id }) => id);
    expectLike(
      order,
      due.map(([, id]) => id),
      'in the order of publication',
    );
    const strange = (async () => stage.broker.waiting(topic, { limit: 2, cursor: 'x' }, { order: 'due' }))();
    await expectRejection(strange, 'HOLDFAST_OPTIONS', 'a cursor that no page gave');
  }),

  flow('counts events by the time until they are due', ['waitingList', 'anyDelay'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['leased']);
    await stage.takeOne(topic);
    for (const units of [0, 0, 100, 300, 310, 1000])
      await stage.publish(topic, ['x'], { delayMs: units * stage.unitMs });
    const bounds = [20, 200, 400].map((units) => units * stage.unitMs);
    expectLike(await stage.broker.due(topic, bounds), [2, 1, 2, 1], 'between the bounds');
    expectLike(await stage.broker.due(topic, []), [6], 'without bounds');
    for (const wrong of [[5, 5], [10, 5], [Number.NaN], 'soon' as unknown as number[]]) {
      const asked = (async () => stage.broker.due(topic, wrong))();
      await expectRejection(asked, 'HOLDFAST_OPTIONS', `bounds ${wrong}`);
    }
  }),

  flow(
    'refuses a question about waiting events that it does not understand',
    ['waitingList'],
    async (stage) => {
      const topic = await stage.topic();
      const wrong: object[] = [
        { state: 'lost' },
        { state: ['ready', 5] },
        { key: 5 },
        { order: 'size' },
        { id: 'a' },
      ];
      for (const question of wrong) {
        const asked = (async () => stage.broker.waiting(topic, { limit: 5 }, question))();
        await expectRejection(asked, 'HOLDFAST_OPTIONS', JSON.stringify(question));
      }
      for (const by of [undefined, { who: '', why: 'x' }]) {
        const now = (async () => stage.broker.retryNow(topic, ['a'], by as typeof act))();
        await expectRejection(now, 'HOLDFAST_TRIAGE_NO_REASON', 'a retry without a reason');
      }
    },
  ),
];

async function parkThree(stage: Stage) {
  const tenant = stage.name('tenant');
  const ids = [1, 2, 3].map(() => stage.name('event'));
  const error = errorNote(new RangeError('below zero'));
  const odd = { region: 'us', 'x "odd" \'name\'': '%_\\' };
  const [a, b] = [
    stage.newlyParked(ids[0]!, { tenant, key: 'a', type: 'placed', headers: { region: 'eu' } }),
    stage.newlyParked(ids[1]!, { tenant, key: 'b', type: 'paid', headers: odd }),
  ];
  const c = stage.newlyParked(ids[2]!, { tenant, key: 'c' }, error);
  const billing = { ...c, diagnosis: { ...c.diagnosis, consumer: 'billing' } };
  await stage.triage.put([a, b, billing]);
  return { ids, tenant, error };
}

/** Returns a function that fails unless a filter finds exactly the expected events of `ids`. */
function finder(stage: Stage, ids: readonly string[]) {
  return async (filter: ParkedFilter, expected: readonly (string | undefined)[]) => {
    const { items } = await stage.triage.list(filter, { limit: 1000 });
    const found = items.map(({ id }) => id).filter((id) => ids.includes(id));
    expectLike(found.toSorted(), expected.toSorted(), `by ${JSON.stringify(filter)}`);
    const mine = { ...filter, ids: filter.ids ?? ids };
    expectLike(await stage.triage.count(mine), expected.length, `the count by ${JSON.stringify(filter)}`);
  };
}
