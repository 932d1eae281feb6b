import { errorNote } from '../error-note.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import type { Edit } from '../triage.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { beginReplay, operate, replay, runToEnd } from './run-operation.ts';
import { act, type Check, checksOf, consumer, note, storyOf } from './stage.ts';

const check = checksOf(['triage']);

/**
 * Checks that operators can find, group, edit and discard parked events (events that wait for an operator).
 */
export const triageChecks: readonly Check[] = [
  check('keeps all of a parked event, and parks it once', [], async (stage) => {
    const event = stage.newlyParked(stage.name('event'), {
      headers: { 'x-trace': 'abc' },
      key: 'k',
      tenant: 't',
    });
    expectLike(await stage.triage.put([event]), [true], 'the first time');
    expectLike(await stage.triage.put([event]), [false], 'a repeat changes nothing');
    const { diagnosis, ...envelope } = event;
    const wanted = {
      ...envelope,
      status: 'parked',
      parkings: 1,
      operation: undefined,
      edits: [],
      original: undefined,
    };
    const got = await stage.triage.get(event.id);
    expectLike(got, wanted, 'the parked event');
    expectLike(got?.diagnosis, diagnosis, 'its diagnosis, with the story');
    expectLike(await stage.triage.get('unknown'), undefined, 'an unknown id');
  }),

  check('lists in pages, each event once, the latest first', [], async (stage) => {
    const ids: string[] = [];
    for (let index = 0; index < 7; index++) {
      const id = stage.name('event');
      ids.unshift(id);
      await stage.triage.put([stage.newlyParked(id, { tenant: 'pages' })]);
      await stage.pass(0.1);
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await stage.triage.list(
        { tenant: 'pages' },
        { limit: 3, ...(cursor !== undefined && { cursor }) },
      );
      ensure(page.items.length <= 3, 'a page has at most its limit');
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expectLike(seen, ids, 'none twice, none left out');
  }),

  check('refuses a cursor that no page gave', [], async (stage) => {
    const page = { limit: 3, cursor: 'somewhere' };
    const asked = {
      list: async () => stage.triage.list({}, page),
      groups: async () => stage.triage.groups({}, page),
      operations: async () => stage.triage.operations.list({}, page),
    };
    for (const [what, ask] of Object.entries(asked)) await expectRejection(ask(), 'HOLDFAST_OPTIONS', what);
  }),

  check('finds by every field of a filter', [], async (stage) => {
    const [wanted, other] = [stage.name('event'), stage.name('event')];
    const error = errorNote(new RangeError('Amount below ZERO'));
    const marked = { tenant: 'acme', key: 'k1', type: 'order.placed', topic: stage.name('topic') };
    await stage.triage.put([
      stage.newlyParked(wanted, marked, error),
      stage.newlyParked(other, { tenant: 'else' }),
    ]);
    const { parkedAt } = (await stage.triage.get(wanted))!;
    const both = [wanted, other];
    const filters: ParkedFilter[] = [
      { topic: marked.topic },
      { tenant: 'acme' },
      { key: 'k1' },
      { type: 'order.placed' },
      { ids: both, reason: 'RangeError' },
      { ids: both, fingerprint: error.fingerprint },
      { ids: both, text: 'below zero' },
      { ids: both, text: `"${wanted}"`.toUpperCase() },
      { ids: both, from: -Infinity, to: Infinity, key: 'k1' },
      { ids: [wanted], from: parkedAt, to: parkedAt + 1 },
      { ids: both, stop: 'attempts_exhausted', tenant: 'acme', status: 'parked' },
    ];
    for (const filter of filters) {
      const { items } = await stage.triage.list(filter, { limit: 10 });
      expectLike(
        items.map(({ id }) => id),
        [wanted],
        `by ${JSON.stringify(filter)}`,
      );
      expectLike(await stage.triage.count(filter), 1, 'the count');
    }
    for (const filter of [
      { ids: both, stop: 'poison' },
      { ids: both, status: 'discarded' as const },
      { ids: both, from: parkedAt + 1e9 },
      { ids: both, to: parkedAt },
    ]) {
      expectLike(await stage.triage.count(filter), 0, `none by ${JSON.stringify(filter)}`);
    }
  }),

  check('groups by fingerprint, the largest first', [], async (stage) => {
    const tenant = stage.name('tenant');
    const error = errorNote(new RangeError('below zero'));
    const small = [stage.newlyParked(stage.name('event'), { tenant }, error)];
    const large = [1, 2, 3].map(() => stage.newlyParked(stage.name('event'), { tenant }));
    await stage.triage.put([...small, ...large]);
    const first = await stage.triage.groups({ tenant }, { limit: 1 });
    expectLike(
      first.items,
      [{ fingerprint: note.fingerprint, reason: 'TypeError', count: 3 }],
      'the largest',
    );
    ensure(first.cursor !== undefined, 'there is another page');
    const second = await stage.triage.groups({ tenant }, { limit: 1, cursor: first.cursor });
    expectLike(
      second,
      { items: [{ fingerprint: error.fingerprint, count: 1 }], cursor: undefined },
      'the other',
    );
  }),

  check('refuses an edit that could not be published, and changes nothing', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id, { payload: 'a', headers: { a: '1' } })]);
    const wrong: object[] = [{ payload: 5 }, { headers: null }, { headers: { a: 5 } }];
    for (const edit of wrong as Edit[]) {
      const edited = (async () => stage.triage.edit(id, edit, act))();
      await expectRejection(edited, 'HOLDFAST_OPTIONS', JSON.stringify(edit));
    }
    const large = 'x'.repeat(8 * 1024 * 1024);
    for (const edit of [{ payload: large }, { headers: { large } }]) {
      await expectRejection(stage.triage.edit(id, edit, act), 'HOLDFAST_TOO_LARGE', 'too large');
    }
    expectLike(await stage.triage.get(id), { payload: 'a', headers: { a: '1' }, edits: [] }, 'the event');
  }),

  check('keeps the original and the difference of an edit', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([
      stage.newlyParked(id, { payload: '{"street":"","city":"Rome"}', headers: { a: '1' } }),
    ]);
    await stage.triage.edit(id, { payload: '{"street":"Via 1","city":"Rome"}' }, act);
    await stage.triage.edit(id, { headers: { a: '2' } }, act);
    expectLike(
      await stage.triage.get(id),
      {
        payload: '{"street":"Via 1","city":"Rome"}',
        headers: { a: '2' },
        original: { payload: '{"street":"","city":"Rome"}', headers: { a: '1' } },
        edits: [
          { ...act, changes: [{ path: 'payload.street', before: '""', after: '"Via 1"' }] },
          { ...act, changes: [{ path: 'headers.a', before: '"1"', after: '"2"' }] },
        ],
      },
      'the edited event',
    );
    expectLike(await stage.triage.edit('unknown', { payload: '' }, act), undefined, 'an unknown id');
    const nameless = stage.triage.edit(id, { payload: '' }, { who: 'ada', why: ' ' });
    await expectRejection(nameless, 'HOLDFAST_TRIAGE_NO_REASON', 'an edit without a reason');
  }),

  check('refuses an edit of a version that has changed since', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id, { payload: 'a' })]);
    const { version } = (await stage.triage.get(id))!;
    const edited = await stage.triage.edit(id, { payload: 'b', version }, act);
    ensure(edited!.version > version, 'an edit has a version of its own');
    const late = (async () => stage.triage.edit(id, { payload: 'c', version }, act))();
    await expectRejection(late, 'HOLDFAST_TRIAGE_CHANGED', 'the second of two editors');
    expectLike(await stage.triage.get(id), { payload: 'b', version: edited!.version }, 'the first has won');
    const { items } = await stage.triage.list({ ids: [id] }, { limit: 1 });
    expectLike(items, [{ version: edited!.version, edited: true }], 'lists tell the version');
    const unseen = await stage.triage.edit(id, { payload: 'd' }, act);
    expectLike(unseen, { payload: 'd' }, 'without a version, the last one wins');
    await replay(stage, { ids: [id] }, () => true);
    ensure((await stage.triage.get(id))!.version > unseen!.version, 'a parking is a change, too');
  }),

  check('keeps how an event was parked before: the first time and the last three', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id, {}, errorNote(new Error('time 1')))]);
    expectLike((await stage.triage.get(id))?.earlier, [], 'not before');
    const replays: (string | undefined)[] = [undefined];
    for (let time = 2; time <= 7; time++) {
      await stage.pass(0.1);
      const { id: operation } = await beginReplay(stage, { filter: { ids: [id] }, canary: 0, rate: 1e6 });
      replays.push(operation);
      const event = stage.newlyParked(id, { replay: operation }, errorNote(new RangeError(`time ${time}`)));
      await runToEnd(stage, operation, () => stage.triage.put([event]));
    }
    const event = (await stage.triage.get(id))!;
    expectLike(event, { parkings: 7, diagnosis: { message: 'time 7' }, replay: replays[6] }, 'the last time');
    expectLike(
      event.earlier.map(({ message, replay, consumer }) => ({ message, replay, consumer })),
      [1, 4, 5, 6].map((time) => ({ message: `time ${time}`, replay: replays[time - 1], consumer })),
      'the first time and the last three',
    );
    expectLike(event.earlier[0]!.story, storyOf(6), 'with their stories');
    const times = [...event.earlier, event].map(({ parkedAt }) => parkedAt);
    expectLike(
      times,
      times.toSorted((a, b) => a - b),
      'the earliest first',
    );
    ensure(times[0]! < times[1]!, 'each with its time');
  }),

  check('counts down retention, and keeps what is to be kept', [], async (stage) => {
    const [short, kept] = [stage.name('event'), stage.name('event')];
    await stage.triage.put([short, kept].map((id) => stage.newlyParked(id, { keepMs: 4 * stage.unitMs })));
    await stage.pass(1);
    const { items } = await stage.triage.list({ ids: [short] }, { limit: 1 });
    ensure(items[0]!.removedInMs <= 3 * stage.unitMs && items[0]!.removedInMs > 0, 'the countdown');
    await operate(stage, { kind: 'keep', filter: { ids: [kept] }, keepMs: 100 * stage.unitMs });
    await stage.pass(4);
    await stage.engine.sweep(1000);
    expectLike(await stage.triage.get(short), undefined, 'its time was over');
    expectLike(await stage.triage.get(kept), { status: 'parked' }, 'this one was kept');
  }),

  check('keeps rules, by name', [], async (stage) => {
    const rule = {
      name: stage.name('rule'),
      filter: { reason: 'TypeError' },
      action: 'replay',
      afterMs: 1000,
    } as const;
    const mine = async () => (await stage.triage.rules()).filter(({ name }) => name === rule.name);
    await stage.triage.setRule(rule, act);
    await stage.triage.setRule({ ...rule, action: 'discard' }, act);
    expectLike(await mine(), [{ ...rule, action: 'discard' }], 'the same name replaces');
    expectLike(await stage.triage.removeRule(rule.name, act), true, 'removed');
    expectLike(await mine(), [], 'gone');
  }),

  check('finds text in any case, and takes special characters literally', [], async (stage) => {
    const [wanted, other] = [stage.name('event'), stage.name('event')];
    const error = errorNote(new Error('Ёлка: 100%'));
    await stage.triage.put([
      stage.newlyParked(wanted, { payload: 'An Frau MÜLLER (a.b)', key: 'Čapek_1' }, error),
      stage.newlyParked(other, { payload: 'An Frau MULLER (aab)', key: 'Capek-1' }),
    ]);
    for (const text of ['müller (A.', 'čAPEK_', 'ёЛКА', '100%', 'Ü', '_']) {
      const { items } = await stage.triage.list({ ids: [wanted, other], text }, { limit: 10 });
      expectLike(
        items.map(({ id }) => id),
        [wanted],
        `found by ${text}`,
      );
    }
  }),

  check('keeps events without an end if told so', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id, { keepMs: Infinity })]);
    await operate(stage, { kind: 'keep', filter: { ids: [id] }, keepMs: Infinity });
    const beyond: ParkedFilter[] = [{ from: Infinity }, { to: -Infinity }, { from: Number.MAX_VALUE }];
    for (const filter of beyond)
      expectLike(await stage.triage.count({ ids: [id], ...filter }), 0, 'parked at no such time');
    expectLike(
      await stage.triage.count({ ids: [id], to: Number.MAX_VALUE }),
      1,
      'parked before the end of time',
    );
  }),

  check('remembers parked events after a restart', ['durable', 'reopen'], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id)]);
    await stage.triage.edit(id, { payload: 'mended' }, act);
    await stage.reopen();
    expectLike(await stage.triage.get(id), { payload: 'mended', edits: [act] }, 'with its edits');
  }),
];
