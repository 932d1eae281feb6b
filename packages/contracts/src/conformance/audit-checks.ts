import { setRate, stopOperation } from '../advance-operation.ts';
import type { AuditEntry, AuditQuestion, NewAuditEntry, Subject } from '../audit.ts';
import { subject } from '../audit.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { beginReplay, operate, parkMany, runToEnd } from './run-operation.ts';
import { act, type Check, checksOf, type Stage } from './stage.ts';

const check = checksOf(['audit']);

/** Checks of the audit log itself: `record`, `get` and `list`. */
export const auditChecks: readonly Check[] = [
  check('keeps an act as it was recorded', [], async (stage) => {
    const policy = subject('policy', stage.name('policy'));
    const gateway = subject('gateway', 'eu: 1');
    const before = { mode: 'enforce', targets: ['a', { b: null }] };
    const entry = { ...act, what: 'drain', subjects: [policy, gateway], before };
    const written = await stage.audit.record(entry);
    expectLike(written, { ...entry, count: 2, undoneBy: undefined }, 'the entry');
    ensure(written.at > 0, 'it has a time');
    expectLike(await stage.audit.get(written.id), written, 'the same by its id');
    expectLike(await list(stage, { subject: policy }), [written], 'the same in a list');
    expectLike(await stage.audit.get('unknown'), undefined, 'an unknown id');
    const counted = await stage.audit.record({ ...act, what: 'sign in', subjects: [policy], count: 7 });
    expectLike(counted, { count: 7, before: undefined }, 'more than it names');
  }),

  check('lists by person, act, subject and time, the latest first, in pages', [], async (stage) => {
    const who = stage.name('ada');
    const [a, b] = [subject('policy', stage.name('policy')), subject('topic', stage.name('topic'))];
    const written: AuditEntry[] = [];
    for (const [what, subjects] of [
      ['drain', [a]],
      ['reload', [a, b]],
      ['drain', [b]],
      ['resume', [b]],
    ] as const) {
      written.unshift(await stage.audit.record({ who, why: 'a test', what, subjects }));
      await stage.pass(0.2);
    }
    const [resume, drainB, reload, drainA] = written;
    await stage.audit.record({ ...act, who: stage.name('bob'), what: 'drain', subjects: [a] });
    const found = async (question: AuditQuestion, expected: readonly unknown[], limit?: number) => {
      expectLike(await list(stage, { who, ...question }, limit), expected, JSON.stringify(question));
    };
    await found({}, written);
    await found({}, written, 1);
    await found({}, written, 3);
    await found({ what: 'drain' }, [drainB, drainA]);
    await found({ what: ['drain', 'resume'] }, [resume, drainB, drainA]);
    await found({ subject: a }, [reload, drainA], 1);
    await found({ subject: b, what: 'drain' }, [drainB]);
    await found({ from: reload!.at }, [resume, drainB, reload]);
    await found({ to: reload!.at }, [drainA]);
    await found({ from: reload!.at, to: resume!.at, subject: a }, [reload]);
    const prefix = a.slice(0, -1) as Subject;
    await found({ subject: prefix }, []);
    expectLike((await list(stage, { subject: a })).length, 3, 'of everybody');
  }),

  check('keeps the first 100 subjects, and the number of all', [], async (stage) => {
    const subjects = Array.from({ length: 150 }, () => subject('event', stage.name('event')));
    const { id } = await stage.audit.record({ ...act, what: 'export', subjects });
    expectLike(await stage.audit.get(id), { subjects: subjects.slice(0, 100), count: 150 }, 'the entry');
    expectLike((await list(stage, { subject: subjects[99]! })).length, 1, 'found by the last one');
  }),

  check('refuses an entry or a question that is not well formed', [], async (stage) => {
    const who = stage.name('ada');
    const good: NewAuditEntry = { who, why: 'x', what: 'drain', subjects: ['gateway:a'] };
    const wrong: [object, string][] = [
      [{ who: ' ' }, 'HOLDFAST_TRIAGE_NO_REASON'],
      [{ why: '' }, 'HOLDFAST_TRIAGE_NO_REASON'],
      [{ what: '' }, 'HOLDFAST_OPTIONS'],
      [{ what: 'x'.repeat(101) }, 'HOLDFAST_OPTIONS'],
      [{ what: 'a\0b' }, 'HOLDFAST_OPTIONS'],
      [{ subjects: 'gateway:a' }, 'HOLDFAST_OPTIONS'],
      [{ subjects: ['gateway'] }, 'HOLDFAST_OPTIONS'],
      [{ subjects: ['gateway:'] }, 'HOLDFAST_OPTIONS'],
      [{ subjects: ['moon:a'] }, 'HOLDFAST_OPTIONS'],
      [{ subjects: ['gateway:a', 'gateway:\0'] }, 'HOLDFAST_OPTIONS'],
      [{ count: -1 }, 'HOLDFAST_OPTIONS'],
      [{ before: 'x'.repeat(16 * 1024) }, 'HOLDFAST_TOO_LARGE'],
      [{ undoes: 'unknown' }, 'HOLDFAST_TRIAGE_NOT_UNDOABLE'],
    ];
    for (const [fields, code] of wrong) {
      const recorded = (async () => stage.audit.record({ ...good, ...fields } as NewAuditEntry))();
      await expectRejection(recorded, code, JSON.stringify(fields).slice(0, 60));
    }
    expectLike(await list(stage, { who }), [], 'nothing was written');
    const questions: object[] = [
      { who: 5 },
      { what: [5] },
      { subject: 'a' },
      { from: Number.NaN },
      { why: 'x' },
    ];
    for (const question of questions) {
      const asked = (async () => stage.audit.list(question, { limit: 5 }))();
      await expectRejection(asked, 'HOLDFAST_OPTIONS', JSON.stringify(question));
    }
    const strange = (async () => stage.audit.list({}, { limit: 5, cursor: 'somewhere' }))();
    await expectRejection(strange, 'HOLDFAST_OPTIONS', 'a cursor that no page gave');
  }),

  check('notes an undone act on both entries, once', [], async (stage) => {
    const subjects = [subject('gateway', stage.name('gateway'))];
    const first = await stage.audit.record({ ...act, what: 'drain', subjects });
    const undo = await stage.audit.record({ ...act, what: 'reload', subjects, undoes: first.id });
    expectLike(undo, { undoes: first.id, undoneBy: undefined }, 'the act that undoes');
    expectLike(await stage.audit.get(undo.id), { undoes: first.id }, 'as it is stored');
    expectLike(await stage.audit.get(first.id), { undoneBy: undo.id, what: 'drain' }, 'the undone act');
    const again = (async () => stage.audit.record({ ...undo, undoes: first.id }))();
    await expectRejection(again, 'HOLDFAST_TRIAGE_NOT_UNDOABLE', 'a second undo');
    expectLike((await list(stage, { subject: subjects[0]! })).length, 2, 'nothing more was written');
    expectLike(await stage.audit.get(first.id), { undoneBy: undo.id }, 'the first undo counts');
    const redo = await stage.audit.record({ ...act, what: 'drain', subjects, undoes: undo.id });
    expectLike(await stage.audit.get(undo.id), { undoneBy: redo.id }, 'an undo can be undone');
  }),

  check('remembers entries after a restart', ['durable', 'reopen'], async (stage) => {
    const topic = subject('topic', stage.name('topic'));
    const first = await stage.audit.record({ ...act, what: 'drain', subjects: [topic] });
    await stage.reopen();
    await stage.pass(0.1);
    const second = await stage.audit.record({ ...act, what: 'drain', subjects: [topic], undoes: first.id });
    const listed = await list(stage, { subject: topic });
    expectLike(listed, [second, { ...first, undoneBy: second.id }], 'the latest first');
  }),
];

const triage = checksOf(['triage', 'audit']);
const controls = checksOf(['controls', 'audit']);
const broker = checksOf(['broker', 'audit']);
const journals = checksOf(['journal', 'audit']);

/** Checks that the engine writes every operator's change of its data to the audit log. */
export const actChecks: readonly Check[] = [
  triage('says who edited an event, and why', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id)]);
    await stage.triage.edit(id, { payload: 'mended' }, act);
    expectLike(
      await list(stage, { subject: subject('event', id) }),
      [{ ...act, what: 'edit', subjects: [subject('event', id)], count: 1 }],
      'the entry',
    );
    await stage.triage.edit('unknown', { payload: '' }, act);
    expectLike(await list(stage, { subject: 'event:unknown' }), [], 'no entry without a change');
  }),

  triage('says who began an operation of any kind, on which events', [], async (stage) => {
    const { ids, filter } = await parkMany(stage, 3);
    const entriesOf = (id: string) => list(stage, { subject: subject('operation', id) });
    const discard = await operate(stage, { kind: 'discard', filter, expected: 3 });
    const named = await operate(stage, { kind: 'restore', filter: { ids } });
    const keep = await operate(stage, { kind: 'keep', filter, keepMs: 1e9 });
    const undo = await operate(stage, { kind: 'undo', of: discard.id });
    const replay = await beginReplay(stage, { filter, expected: 3 });
    for (const [{ id }, what, count] of [
      [discard, 'discard', 3],
      [named, 'restore', 3],
      [keep, 'keep', 0],
      [undo, 'undo', 0],
      [replay, 'replay', 3],
    ] as const) {
      const subjects = what === 'restore' ? ids.map((each) => subject('event', each)) : [];
      const entry = { ...act, what, count, subjects: [subject('operation', id), ...subjects] };
      expectLike(await entriesOf(id), [entry], `one entry of the ${what}`);
    }
    expectLike(
      await list(stage, { subject: subject('event', ids[2]!) }),
      [{ what: 'restore' }],
      'of an event',
    );
    await stage.triage.operations.begin({ kind: 'discard', filter }, act, discard.id);
    expectLike((await entriesOf(discard.id)).length, 1, 'no second entry for the same id');
    const many = Array.from({ length: 200 }, () => stage.name('event'));
    const large = await stage.triage.operations.begin({ kind: 'discard', filter: { ids: many } }, act);
    const [entry] = await entriesOf(large.id);
    expectLike(
      entry,
      { subjects: [subject('operation', large.id)], count: 200 },
      'many ids are only counted',
    );
  }),

  triage('says who stopped an operation, and who changed its rate', [], async (stage) => {
    const { filter } = await parkMany(stage, 1);
    const { id } = await beginReplay(stage, { filter, rate: 20 });
    await setRate(stage.triage, id, 5, { who: 'bob', why: 'slower' });
    await stopOperation(stage.triage, id, act);
    await runToEnd(stage, id);
    const of = { subject: subject('operation', id) };
    const entries = [
      { ...act, what: 'operation_stopped', count: 1 },
      { who: 'bob', why: 'slower', what: 'operation_rate', before: { rate: 20 } },
      { what: 'replay' },
    ];
    expectLike(await list(stage, of), entries, 'the latest first, and nothing of the steps between');
  }),

  triage('says who set and removed a rule, with the rule before', [], async (stage) => {
    const rule = { name: stage.name('rule'), filter: { reason: 'TypeError' }, action: 'notify' } as const;
    const changed = { ...rule, action: 'discard' } as const;
    await stage.triage.setRule(rule, act);
    await stage.triage.setRule(changed, act);
    await stage.triage.removeRule(rule.name, act);
    expectLike(await stage.triage.removeRule(rule.name, act), false, 'it is gone');
    const subjects = [subject('rule', rule.name)];
    const entries = [
      { ...act, what: 'rule_removed', subjects, before: changed },
      { ...act, what: 'rule_set', subjects, before: rule },
      { ...act, what: 'rule_set', subjects, before: undefined },
    ];
    expectLike(await list(stage, { subject: subjects[0]! }), entries, 'the latest first');
  }),

  triage('never removes a parked event in silence', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id, { keepMs: stage.unitMs })]);
    await stage.pass(2);
    await stage.engine.sweep(1000);
    expectLike(await stage.triage.get(id), undefined, 'its time was over');
    const entries = await list(stage, { subject: subject('event', id) });
    expectLike(entries, [{ what: 'retention' }], 'the log says what retention removed');
  }),

  triage('undoes an act only once, and changes nothing if it cannot', [], async (stage) => {
    const id = stage.name('event');
    await stage.triage.put([stage.newlyParked(id, { payload: 'a' })]);
    await stage.triage.edit(id, { payload: 'b' }, act);
    const [entry] = await list(stage, { subject: subject('event', id) });
    const undo = { ...act, undoes: entry!.id };
    await stage.triage.edit(id, { payload: 'a' }, undo);
    const [undone, edited] = await list(stage, { subject: subject('event', id) });
    const before = await stage.triage.get(id);
    expectLike([undone, edited], [{ undoes: entry!.id }, { undoneBy: undone!.id }], 'on both entries');
    const filter = { ids: [id] };
    const rule = { name: stage.name('rule'), filter, action: 'notify' } as const;
    const acts = {
      edit: () => stage.triage.edit(id, { payload: 'c' }, undo),
      discard: () => stage.triage.operations.begin({ kind: 'discard', filter }, undo),
      rule: () => stage.triage.setRule(rule, undo),
      'an unknown entry': () => stage.triage.edit(id, { payload: 'c' }, { ...act, undoes: 'unknown' }),
    };
    for (const [what, ask] of Object.entries(acts))
      await expectRejection((async () => ask())(), 'HOLDFAST_TRIAGE_NOT_UNDOABLE', what);
    expectLike(await stage.triage.get(id), before, 'the event');
    ensure(!(await stage.triage.rules()).some(({ name }) => name === rule.name), 'there is no rule');
    expectLike((await list(stage, { subject: subject('event', id) })).length, 2, 'nor an entry');
  }),

  triage(
    'writes an act with its entry, or neither, when it dies',
    ['durable', 'reopen', 'dieAfterWrites'],
    async (stage) => {
      for (let writes = 0; writes < 3; writes++) {
        const id = stage.name('event');
        const operation = stage.name('operation');
        await stage.triage.put([stage.newlyParked(id)]);
        stage.harness.dieAfterWrites!(writes);
        await stage.triage.edit(id, { payload: 'mended' }, act).catch(() => {});
        const request = { kind: 'keep', filter: { tenant: 'nobody' }, keepMs: 1 } as const;
        await stage.triage.operations.begin(request, act, operation).catch(() => {});
        await stage.reopen();
        const { edits } = (await stage.triage.get(id))!;
        const edited = await list(stage, { subject: subject('event', id) });
        expectLike(edited.length, edits.length, `${writes} writes: the edit`);
        const begun = await stage.triage.operations.get(operation);
        const entries = await list(stage, { subject: subject('operation', operation) });
        expectLike(entries.length, begun ? 1 : 0, `${writes} writes: the operation`);
      }
    },
  ),

  controls('says who set and removed a control, with the control before', [], async (stage) => {
    const [policy, topic] = [stage.name('policy'), stage.name('topic')];
    const breaker = { kind: 'breaker', policy, state: 'open' } as const;
    const first = await stage.controls.impose(breaker, act);
    const second = await stage.controls.impose({ ...breaker, state: 'closed' }, act, 1000 * stage.unitMs);
    await stage.controls.lift(second.id, act);
    await stage.controls.lift(second.id, act);
    const subjects = [subject('control', first.id), subject('policy', policy)];
    const entries = [
      { ...act, what: 'control_removed', subjects, before: { id: first.id, control: { state: 'closed' } } },
      { ...act, what: 'control_set', subjects, before: { control: { state: 'open' }, act } },
      { ...act, what: 'control_set', subjects, before: undefined },
    ];
    expectLike(await list(stage, { subject: subjects[1]! }), entries, 'of a policy');
    expectLike(await list(stage, { subject: subjects[0]! }), entries, 'of a control');
    const pause = await stage.controls.impose({ kind: 'pause', topic }, act);
    const paused = [subject('control', pause.id), subject('topic', topic)];
    expectLike(await list(stage, { subject: paused[1]! }), [{ subjects: paused }], 'of a topic');
  }),

  controls('imposes and lifts nothing if an act cannot be undone', [], async (stage) => {
    const policy = stage.name('policy');
    const mode = { kind: 'mode', policy, mode: 'observe' } as const;
    const wrong = { ...act, undoes: 'unknown' };
    const imposed = (async () => stage.controls.impose(mode, wrong))();
    await expectRejection(imposed, 'HOLDFAST_TRIAGE_NOT_UNDOABLE', 'impose');
    const mine = async () =>
      (await stage.controls.active()).controls.filter(
        ({ control }) => 'policy' in control && control.policy === policy,
      );
    expectLike(await mine(), [], 'nothing was imposed');
    const { id } = await stage.controls.impose(mode, act);
    const lifted = (async () => stage.controls.lift(id, wrong))();
    await expectRejection(lifted, 'HOLDFAST_TRIAGE_NOT_UNDOABLE', 'lift');
    expectLike((await mine()).length, 1, 'it was not lifted');
    const [entry] = await list(stage, { subject: subject('control', id) });
    await stage.controls.lift(id, { ...act, undoes: entry!.id });
    const [undo] = await list(stage, { subject: subject('control', id) });
    expectLike(
      await stage.audit.get(entry!.id),
      { what: 'control_set', undoneBy: undo!.id },
      'the undone act',
    );
  }),

  broker('says who made events due now', ['waitingList'], async (stage) => {
    const topic = await stage.topic();
    const [a, b] = await stage.publish(topic, ['a', 'b'], { delayMs: 50 * stage.unitMs });
    await stage.broker.retryNow(topic, [a!, b!, 'unknown'], act);
    await stage.broker.retryNow(topic, ['unknown'], act);
    const [of, ...events] = [subject('topic', topic), subject('event', a!), subject('event', b!)];
    const entry = { ...act, what: 'retry_now', subjects: [of, ...events], count: 2 };
    expectLike(await list(stage, { subject: of }), [entry], 'of the topic');
    expectLike(await list(stage, { subject: events[1]! }), [entry], 'of an event');
  }),

  broker('says who unblocked a key', ['ordering', 'parkedHoldsKey'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    const [id] = await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.settle({ ...stage.park(await stage.takeOne(topic)), holdsKey: true });
    const wrong = (async () => stage.broker.unblock(topic, [id!], { ...act, undoes: 'unknown' }))();
    await expectRejection(wrong, 'HOLDFAST_TRIAGE_NOT_UNDOABLE', 'an act that undoes nothing');
    await stage.expectNothing(topic, 'it was not unblocked');
    await stage.broker.unblock(topic, [id!, 'unknown'], act);
    const subjects = [subject('topic', topic), subject('event', id!)];
    const entry = { ...act, what: 'unblock', subjects, count: 1 };
    expectLike(await list(stage, { subject: subjects[1]! }), [entry], 'the entry');
  }),

  journals('says who changed, copied, told and stopped an assembly', [], async (stage) => {
    const { journal } = stage;
    const program = { name: stage.name('program'), version: 1 };
    const [id, copy] = [stage.name('order'), stage.name('order')];
    const of = { subject: subject('assembly', id) };
    const what = async () => (await list(stage, of)).map((entry) => entry.what);
    await journal.record([{ kind: 'start', start: { id, ...program, input: '1' } }]);
    const [leased] = (
      await journal.claim({ worker: stage.name('worker'), leaseMs: 1e6, limit: 1, programs: [program] })
    ).assemblies;
    await journal.change(id, { input: '2' }, act);
    expectLike(await what(), [], 'no entry without a change');
    const lease = leased!.lease;
    const parked = { because: 'not_retryable', message: 'no street', paths: [] };
    const next = { kind: 'park', parked, revision: 0 } as const;
    await journal.record([{ kind: 'progress', lease, steps: [], next }]);

    await journal.change(id, { input: '2' }, act);
    await journal.fork(id, { id: copy, keep: [] }, act);
    await journal.fork(id, { id: copy, keep: [] }, act);
    await journal.change(id, { resume: true }, act);
    const signal = { to: id, name: 'approved', payload: undefined };
    await journal.signal([{ ...signal, id: 'of a program' }]);
    await journal.signal([{ ...signal, id: 'of ada', act }]);
    await journal.signal([{ ...signal, id: 'of ada', act }]);
    const stop = { because: 'cancelled', message: act.why, who: act.who };
    await journal.requestStop([{ id: copy, stop: { because: 'cancelled', message: 'by a program' } }]);
    await journal.requestStop([
      { id, stop },
      { id: stage.name('nobody'), stop },
    ]);
    await journal.requestStop([{ id, stop }]);

    const subjects = [of.subject];
    const forked = [of.subject, subject('assembly', copy)];
    const entries = [
      { ...act, what: 'assembly_cancel', subjects, count: 1 },
      { ...act, what: 'assembly_signal', subjects, count: 1 },
      { ...act, what: 'assembly_resume', subjects, count: 1 },
      { ...act, what: 'assembly_fork', subjects: forked, count: 1 },
      { ...act, what: 'assembly_edit', subjects, count: 1 },
    ];
    expectLike(await list(stage, of), entries, 'one entry of each, the latest first');
    expectLike((await list(stage, { subject: forked[1]! })).length, 1, 'of the copy');
  }),

  journals(
    'writes the change of an assembly with its entry, or neither, when it dies',
    ['durable', 'reopen', 'dieAfterWrites'],
    async (stage) => {
      const name = stage.name('program');
      for (let writes = 0; writes < 3; writes++) {
        const [id, stopped] = [stage.name('order'), stage.name('order')];
        for (const each of [id, stopped])
          await stage.journal.record([{ kind: 'start', start: { id: each, name, version: 1, input: '1' } }]);
        stage.harness.dieAfterWrites!(writes);
        await stage.journal.change(id, { input: '2' }, act).catch(() => {});
        const stop = { because: 'cancelled', message: act.why, who: act.who };
        await stage.journal.requestStop([{ id: stopped, stop }]).catch(() => {});
        await stage.reopen();
        const [changed, asked] = await stage.journal.get([id, stopped]);
        for (const [of, isDone] of [
          [id, changed!.input === '2'],
          [stopped, asked!.stop !== undefined],
        ] as const) {
          const entries = await list(stage, { subject: subject('assembly', of) });
          expectLike(entries.length, isDone ? 1 : 0, `${writes} writes`);
        }
      }
    },
  ),
];

async function list(stage: Stage, question: AuditQuestion, limit = 50): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await stage.audit.list(question, { limit, ...(cursor !== undefined && { cursor }) });
    ensure(page.items.length <= limit, 'a page has at most its limit');
    entries.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return entries;
}
