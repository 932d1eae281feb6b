import { defaultReplay, stopOperation } from '../advance-operation.ts';
import type { Act } from '../controls.ts';
import type { ChangeRequest, OperationRequest } from '../operations.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { beginReplay, operate, parkMany, replay, runToEnd } from './run-operation.ts';
import { act, type Check, checksOf } from './stage.ts';

const check = checksOf(['triage']);

/** Checks of discard, restore, keep and undo, and of what all kinds of operations have in common. */
export const operationChecks: readonly Check[] = [
  check('refuses to change everything', [], async (stage) => {
    const empty: ParkedFilter[] = [
      {},
      { status: 'parked' },
      { text: '' },
      { isFree: true },
      { headers: {} },
      { not: { topic: 'orders' } },
    ];
    for (const filter of empty) {
      for (const request of everyKind(filter)) {
        const begun = (async () => stage.triage.operations.begin(request, act))();
        const what = `${request.kind} of ${JSON.stringify(filter)}`;
        await expectRejection(begun, 'HOLDFAST_TRIAGE_EMPTY_FILTER', what);
      }
    }
  }),

  check('refuses a filter that it does not understand, also of a rule', [], async (stage) => {
    const wrong = [
      ...[null, { fingerPrint: 'a' }, { ids: 'a' }, { topic: null }, { from: Number.NaN }],
      ...[{ topic: ['a', 5] }, { topic: 'a', not: { ids: ['a'] } }, { topic: 'a', not: 'b' }],
      ...[{ topic: 'a', status: 'odd' }, { headers: { a: 5 } }, { headers: ['a'] }],
    ];
    for (const filter of wrong as ParkedFilter[]) {
      for (const request of everyKind(filter)) {
        const begun = (async () => stage.triage.operations.begin(request, act))();
        await expectRejection(begun, 'HOLDFAST_OPTIONS', `${request.kind} of ${JSON.stringify(filter)}`);
      }
      const set = (async () => stage.triage.setRule({ name: 'odd', action: 'discard', filter }, act))();
      await expectRejection(set, 'HOLDFAST_OPTIONS', `a rule with ${JSON.stringify(filter)}`);
    }
  }),

  check('refuses an act without a person or a reason', [], async (stage) => {
    for (const by of [null, {}, { who: 'ann' }, { who: ' ', why: 'because' }, { who: 5, why: 5 }] as Act[]) {
      for (const request of everyKind({ ids: ['a'] })) {
        const begun = (async () => stage.triage.operations.begin(request, by))();
        await expectRejection(begun, 'HOLDFAST_TRIAGE_NO_REASON', JSON.stringify(by));
      }
    }
  }),

  check('refuses an operation that it does not understand', [], async (stage) => {
    const { filter } = await parkMany(stage, 1);
    const begin = (request: object, id?: string) => async () =>
      stage.triage.operations.begin({ filter, ...request } as OperationRequest, act, id);
    const wrong = {
      'an unknown kind': begin({ kind: 'mend' }),
      'a keep without a time': begin({ kind: 'keep' }),
      'a keep for NaN ms': begin({ kind: 'keep', keepMs: Number.NaN }),
      'a keep for -1 ms': begin({ kind: 'keep', keepMs: -1 }),
      'an undo of nothing': begin({ kind: 'undo' }),
      'a rate of 0': begin({ ...defaultReplay, rate: 0 }),
      'no outstanding events': begin({ ...defaultReplay, outstandingMax: 0 }),
      'an empty id': begin({ kind: 'discard' }, ''),
      'an id with NUL': begin({ kind: 'discard' }, 'a\0b'),
    };
    for (const [what, ask] of Object.entries(wrong)) await expectRejection(ask(), 'HOLDFAST_OPTIONS', what);
    expectLike(await stage.triage.count(filter), 1, 'nothing was changed');
  }),

  check('discards in steps, and counts what it has changed', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 5);
    const request = { kind: 'discard', filter, expected: 5 } as const;
    const { id } = await stage.triage.operations.begin(request, act);
    const state = () => stage.triage.operations.get(id);
    expectLike(await state(), { id, request, act, stage: 'applying', counts: { changed: 0 } }, 'at first');
    expectLike(await stage.triage.operations.apply(id, 2), 2, 'a step');
    expectLike(await state(), { stage: 'applying', counts: { changed: 2 }, endedAt: undefined }, 'progress');
    expectLike(await stage.triage.count(filter), 3, 'the rest is still parked');
    await runToEnd(stage, id);
    expectLike(await state(), { stage: 'done', counts: { changed: 5 }, stopped: undefined }, 'the end');
    const { startedAt, endedAt } = (await state())!;
    ensure(endedAt !== undefined && endedAt >= startedAt, 'it says when it ended');
    for (const each of ids) {
      const event = await stage.triage.get(each);
      expectLike(event, { status: 'discarded', discarded: act, operation: undefined }, 'an event');
      ensure(event!.discarded!.at >= startedAt, 'it says when it was discarded');
    }
    expectLike(await stage.triage.operations.apply(id, 2), 0, 'there are no more');
  }),

  check('restores what was discarded, whatever status the filter names', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    await operate(stage, { kind: 'discard', filter: { ids: ids.slice(0, 2) } });
    const restored = await operate(stage, { kind: 'restore', filter: { ...filter, status: 'parked' } });
    expectLike(restored, { stage: 'done', counts: { changed: 2 } }, 'the operation');
    for (const id of ids)
      expectLike(await stage.triage.get(id), { status: 'parked', discarded: undefined }, 'as before');
  }),

  check('keeps events until keepMs after the operation began', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    const keepMs = 1000 * stage.unitMs;
    const { id, startedAt } = await stage.triage.operations.begin({ kind: 'keep', filter, keepMs }, act);
    await stage.pass(1);
    expectLike(await stage.triage.operations.apply(id, 2), 2, 'a step');
    await stage.pass(1);
    await runToEnd(stage, id);
    expectLike((await stage.triage.operations.get(id))?.counts, { changed: 3 }, 'each once');
    for (const each of ids)
      expectLike(
        await stage.triage.get(each),
        { removedAt: startedAt + keepMs, status: 'parked' },
        'an event',
      );
    const unlimited = await operate(stage, { kind: 'keep', filter, keepMs: Infinity });
    expectLike(unlimited.counts.changed, 3, 'kept without an end');
  }),

  check('covers only events that were parked before it began', [], async (stage) => {
    for (const kind of ['discard', 'keep', 'replay'] as const) {
      const { ids, filter } = await parkMany(stage, 2);
      const request = everyKind(filter).find((each) => each.kind === kind)!;
      const { id } = await stage.triage.operations.begin(request, act);
      await stage.pass(1);
      const later = stage.newlyParked(stage.name('event'), { tenant: filter.tenant });
      await stage.triage.put([later]);
      const parked = await stage.triage.get(later.id);
      await runToEnd(stage, id);
      const { counts } = (await stage.triage.operations.get(id))!;
      expectLike(kind === 'replay' ? counts.released : counts.changed, ids.length, `${kind}: how many`);
      expectLike(await stage.triage.get(later.id), parked, `${kind}: what was parked later`);
    }
  }),

  check('covers only events that were parked before the end of its filter', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 2);
    const { parkedAt } = (await stage.triage.get(ids[0]!))!;
    await stage.pass(1);
    await stage.triage.put([stage.newlyParked(stage.name('event'), { tenant: filter.tenant })]);
    await stage.pass(1);
    const discarded = await operate(stage, { kind: 'discard', filter: { ...filter, to: parkedAt + 1 } });
    expectLike(discarded.counts.changed, 2, 'those that a count at that time has seen');
    expectLike(await stage.triage.count(filter), 1, 'one is left');
  }),

  check('begins once, however often the same id is given', [], async (stage) => {
    const { filter } = await parkMany(stage, 2);
    const id = stage.name('operation');
    const first = await stage.triage.operations.begin({ kind: 'discard', filter }, act, id);
    expectLike(first, { id, request: { kind: 'discard' } }, 'the id that was given');
    const other = { kind: 'keep', filter, keepMs: 5 } as const;
    const again = await stage.triage.operations.begin(other, { ...act, who: 'bob' }, id);
    expectLike(again, { id, act, request: { kind: 'discard' }, version: 1 }, 'the stored one');
    await runToEnd(stage, id);
    const ended = await stage.triage.operations.begin({ kind: 'discard', filter }, act, id);
    expectLike(ended, { stage: 'done', counts: { changed: 2 } }, 'also when it is over');
    const { items } = await stage.triage.operations.list({}, { limit: 1000 });
    expectLike(items.filter((each) => each.id === id).length, 1, 'in the list once');
  }),

  check('leaves the events of a replay alone', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    const busy = await beginReplay(stage, { filter: { ids: [ids[0]!] } });
    await stage.triage.operations.select(busy.id, 1);
    const kept = await stage.triage.get(ids[0]!);
    const keep = await operate(stage, { kind: 'keep', filter, keepMs: 1e9 });
    const discard = await operate(stage, { kind: 'discard', filter });
    expectLike([keep.counts.changed, discard.counts.changed], [2, 2], 'the others');
    expectLike(await stage.triage.get(ids[0]!), kept, 'the event of the replay');
    await runToEnd(stage, busy.id);
    expectLike(await stage.triage.get(ids[0]!), { status: 'resolved' }, 'and its replay went on');
  }),

  check('changes each event once, even if it is changed back meanwhile', [], async (stage) => {
    const { filter } = await parkMany(stage, 4);
    const { id } = await stage.triage.operations.begin({ kind: 'discard', filter }, act);
    await stage.triage.operations.apply(id, 2);
    const restored = await operate(stage, { kind: 'restore', filter });
    expectLike(restored.counts.changed, 2, 'somebody restores the first two');
    await runToEnd(stage, id);
    expectLike((await stage.triage.operations.get(id))?.counts.changed, 4, 'each was changed once');
    expectLike(await stage.triage.count(filter), 2, 'and the restored ones stay');
  }),

  check('undoes a discard, a restore and a keep by their ids', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    const { removedAt } = (await stage.triage.get(ids[0]!))!;
    const undo = async (of: string) => {
      const undone = await operate(stage, { kind: 'undo', of });
      expectLike(undone, { stage: 'done', counts: { changed: 3 } }, 'the undo');
    };
    const discard = await operate(stage, { kind: 'discard', filter });
    await undo(discard.id);
    for (const id of ids)
      expectLike(await stage.triage.get(id), { status: 'parked', discarded: undefined }, 'not discarded');
    await operate(stage, { kind: 'discard', filter });
    const restore = await operate(stage, { kind: 'restore', filter });
    await undo(restore.id);
    for (const id of ids)
      expectLike(await stage.triage.get(id), { status: 'discarded', discarded: act }, 'not restored');
    await operate(stage, { kind: 'restore', filter });
    const keep = await operate(stage, { kind: 'keep', filter, keepMs: 1000 });
    await undo(keep.id);
    for (const id of ids) expectLike(await stage.triage.get(id), { removedAt }, 'kept as long as before');
  }),

  check('undoes in steps', [], async (stage) => {
    const { filter } = await parkMany(stage, 5);
    const discard = await operate(stage, { kind: 'discard', filter });
    const { id } = await stage.triage.operations.begin({ kind: 'undo', of: discard.id }, act);
    const steps = [];
    for (let left = 4; left > 0; left--) steps.push(await stage.triage.operations.apply(id, 2));
    expectLike(steps, [2, 2, 1, 0], 'two at a time');
    expectLike(await stage.triage.count(filter), 5, 'all are parked again');
  }),

  check('leaves alone in an undo what was changed since', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 4);
    await operate(stage, { kind: 'discard', filter });
    const restore = await operate(stage, { kind: 'restore', filter });
    const later = await operate(stage, { kind: 'keep', filter: { ids: [ids[0]!] }, keepMs: 1e9 });
    await replay(stage, { ids: [ids[1]!, ids[2]!] }, (id) => id === ids[1]);
    const undone = await operate(stage, { kind: 'undo', of: restore.id });
    expectLike(undone.counts.changed, 1, 'only the event that nobody has changed since');
    const statuses = await Promise.all(ids.map(async (id) => (await stage.triage.get(id))?.status));
    expectLike(
      statuses,
      ['parked', 'parked', 'resolved', 'discarded'],
      'kept, failed again, resolved, undone',
    );
    const { counts } = await operate(stage, { kind: 'undo', of: later.id });
    expectLike(counts.changed, 1, 'the later operation can still be undone');
  }),

  check('refuses to undo twice, or what cannot be undone', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 2);
    const running = await stage.triage.operations.begin({ kind: 'discard', filter }, act);
    const refused = async (of: string, what: string) => {
      const begun = (async () => stage.triage.operations.begin({ kind: 'undo', of }, act))();
      await expectRejection(begun, 'HOLDFAST_TRIAGE_NOT_UNDOABLE', what);
    };
    await refused(running.id, 'an operation that has not ended');
    await runToEnd(stage, running.id);
    const undo = await stage.triage.operations.begin({ kind: 'undo', of: running.id }, act);
    await refused(running.id, 'what is being undone');
    await runToEnd(stage, undo.id);
    await refused(running.id, 'what was undone');
    await refused(undo.id, 'an undo');
    await refused('unknown', 'an unknown operation');
    const replayed = await replay(stage, filter);
    await refused(replayed.id, 'a replay');
    const again = await stage.triage.operations.begin({ kind: 'undo', of: running.id }, act, undo.id);
    expectLike(again, { id: undo.id, stage: 'done' }, 'the same undo again is no second one');
    expectLike(await stage.triage.get(ids[0]!), { status: 'resolved' }, 'nothing was changed');
  }),

  check('stops a change in the middle, and what it has changed stays', [], async (stage) => {
    const { filter } = await parkMany(stage, 5);
    const { id } = await stage.triage.operations.begin({ kind: 'discard', filter }, act);
    await stage.triage.operations.apply(id, 2);
    expectLike(await stopOperation(stage.triage, id, act), true, 'it stops');
    expectLike(await stopOperation(stage.triage, id, act), false, 'once');
    expectLike(await stage.triage.operations.apply(id, 2), 0, 'nothing more is changed');
    await runToEnd(stage, id);
    const stopped = await stage.triage.operations.get(id);
    expectLike(stopped, { stage: 'stopped', stopped: act.why, counts: { changed: 2 } }, 'the operation');
    ensure(stopped?.endedAt !== undefined, 'it has ended');
    expectLike(await stage.triage.count(filter), 3, 'the rest is parked');
    expectLike((await operate(stage, { kind: 'undo', of: id })).counts.changed, 2, 'and it can be undone');
    expectLike(await stage.triage.count(filter), 5, 'all are parked');
  }),

  check('lists operations by kind, and those that have not ended', [], async (stage) => {
    const { filter } = await parkMany(stage, 1);
    const begun: string[] = [];
    for (const request of [...everyKind(filter), ...everyKind(filter)]) {
      // These ids sort in the opposite order, because the engine must sort by time.
      const id = `${String.fromCharCode(122 - begun.length)}-${stage.name('operation')}`;
      begun.unshift((await stage.triage.operations.begin(request, act, id)).id);
      await stage.pass(0.1);
    }
    const listed = async (question: object, limit = 1000): Promise<string[]> => {
      const ids: string[] = [];
      let cursor: string | undefined;
      do {
        const request = { limit, ...(cursor !== undefined && { cursor }) };
        const page = await stage.triage.operations.list(question, request);
        ensure(page.items.length <= limit, 'a page has at most its limit');
        ids.push(...page.items.map(({ id }) => id).filter((id) => begun.includes(id)));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return ids;
    };
    expectLike(await listed({}, 3), begun, 'the latest first, in pages');
    const kinds = everyKind(filter).map(({ kind }) => kind);
    for (const [index, kind] of kinds.toReversed().entries())
      expectLike(await listed({ kind }), [begun[index], begun[index + kinds.length]], `of kind ${kind}`);
    await runToEnd(stage, begun[0]!);
    expectLike(await listed({ unfinished: true }), begun.slice(1), 'one has ended');
    expectLike(await listed({ unfinished: false }), begun, 'all of them');
  }),

  check(
    'does each change once when it dies in the middle of an operation',
    ['durable', 'reopen', 'dieAfterWrites'],
    async (stage) => {
      for (let writes = 0; writes < 4; writes++) {
        for (const kind of ['discard', 'restore', 'keep', 'undo'] as const) {
          const { filter } = await parkMany(stage, 5);
          const [discard, restore, keep] = changesOf(filter);
          let request: ChangeRequest = { discard, restore, keep, undo: discard }[kind];
          if (kind === 'restore' || kind === 'undo') {
            const { id } = await operate(stage, discard);
            if (kind === 'undo') request = { kind: 'undo', of: id };
          }
          const { id } = await stage.triage.operations.begin(request, act);
          stage.harness.dieAfterWrites!(writes);
          for (let steps = 0; steps < 4; steps++) await stage.triage.operations.apply(id, 2).catch(() => {});
          await stage.reopen();
          await runToEnd(stage, id);
          const done = { stage: 'done', counts: { changed: 5 } };
          expectLike(await stage.triage.operations.get(id), done, `${kind}, ${writes} writes`);
          const status = kind === 'discard' ? 'discarded' : 'parked';
          expectLike(await stage.triage.count({ ...filter, status }), 5, `${kind}: the events`);
        }
      }
    },
  ),
];

function everyKind(filter: ParkedFilter): OperationRequest[] {
  return [...changesOf(filter), { ...defaultReplay, filter, canary: 0, rate: Infinity }];
}

function changesOf(filter: ParkedFilter): [ChangeRequest, ChangeRequest, ChangeRequest] {
  return [
    { kind: 'discard', filter },
    { kind: 'restore', filter },
    { kind: 'keep', filter, keepMs: 1e9 },
  ];
}
