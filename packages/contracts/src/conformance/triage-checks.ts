import { errorNote } from '../error-note.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import type { Edit } from '../triage.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { act, type Check, checksOf, note, type Stage } from './stage.ts';

const check = checksOf(['triage']);

/** Checks of how operators find, group, edit and discard parked events. */
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
      audit: async () => stage.triage.audit(page),
      replays: async () => stage.triage.replays.list(page),
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
    const { items } = await stage.triage.audit({ limit: 1 });
    expectLike(items, [{ what: 'edit', subjects: [id], ...act }], 'the audit log');
    const nameless = stage.triage.edit(id, { payload: '' }, { who: 'ada', why: ' ' });
    await expectRejection(nameless, 'HOLDFAST_TRIAGE_NO_REASON', 'an edit without a reason');
  }),

  check('discards with a reason, and restores', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id)]);
    const nameless = stage.triage.discard([id], { who: '', why: 'x' });
    await expectRejection(nameless, 'HOLDFAST_TRIAGE_NO_REASON', 'a discard without a person');
    expectLike(await stage.triage.discard([id, 'unknown'], act), [true, false], 'the discard');
    expectLike(await stage.triage.discard([id], act), [false], 'only once');
    expectLike(await stage.triage.get(id), { status: 'discarded', discarded: act }, 'it is still there');
    expectLike(await stage.triage.restore([id], act), [true], 'the undo');
    expectLike(await stage.triage.get(id), { status: 'parked', discarded: undefined }, 'as before');
  }),

  check('counts down retention, and never removes in silence', [], async (stage) => {
    const [short, kept] = [stage.name('event'), stage.name('event')];
    await stage.triage.put([short, kept].map((id) => stage.newlyParked(id, { keepMs: 4 * stage.unitMs })));
    await stage.pass(1);
    const { items } = await stage.triage.list({ ids: [short] }, { limit: 1 });
    ensure(items[0]!.removedInMs <= 3 * stage.unitMs && items[0]!.removedInMs > 0, 'the countdown');
    for (const wrong of [Number.NaN, -1, '5' as unknown as number]) {
      const keeping = (async () => stage.triage.keep([kept], wrong, act))();
      await expectRejection(keeping, 'HOLDFAST_OPTIONS', `keeping for ${wrong}`);
    }
    expectLike(await stage.triage.keep([kept], 100 * stage.unitMs, act), [true], 'keeping longer');
    await stage.pass(4);
    await stage.engine.sweep(1000);
    expectLike(await stage.triage.get(short), undefined, 'its time was over');
    expectLike(await stage.triage.get(kept), { status: 'parked' }, 'this one was kept');
    const entries = (await stage.triage.audit({ limit: 50 })).items;
    const removal = entries.find(({ what, subjects }) => what === 'retention' && subjects.includes(short));
    ensure(removal, 'the audit log says what retention removed');
  }),

  check('says who did what, when and why', [], async (stage) => {
    const id = stage.name('event');
    const rule = { name: stage.name('rule'), filter: { reason: 'TypeError' }, action: 'notify' } as const;
    await stage.triage.put([stage.newlyParked(id)]);
    await stage.triage.discard([id], act);
    await stage.triage.restore([id], act);
    await stage.triage.setRule(rule, act);
    const { items } = await stage.triage.audit({ limit: 3 });
    expectLike(
      items.map(({ what, who, why, subjects, count }) => ({ what, who, why, subjects, count })),
      [
        { what: 'rule_set', ...act, subjects: [rule.name], count: 1 },
        { what: 'restore', ...act, subjects: [id], count: 1 },
        { what: 'discard', ...act, subjects: [id], count: 1 },
      ],
      'the latest first',
    );
    ensure(
      items.every(({ at }) => at > 0),
      'each with its time',
    );
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
    expectLike(await stage.triage.keep([id], Infinity, act), [true], 'kept');
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

/**
 * Parks `count` events for a tenant that no other event has, so that a filter by this tenant selects exactly these
 * events.
 */
export async function parkMany(
  stage: Stage,
  count: number,
): Promise<{ ids: string[]; filter: ParkedFilter }> {
  const tenant = stage.name('tenant');
  const ids = Array.from({ length: count }, () => stage.name('event'));
  await stage.triage.put(ids.map((id) => stage.newlyParked(id, { tenant })));
  return { ids, filter: { tenant } };
}
