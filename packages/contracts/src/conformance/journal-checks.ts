import type { StopNote } from '../journal.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { JournalStage } from './journal-stage.ts';
import { act, type Check, checksOf, note, type Stage, storyOf } from './stage.ts';

const checksOfJournals = checksOf(['journal']);

export function journalCheck(
  name: string,
  needs: Parameters<typeof checksOfJournals>[1],
  run: (stage: JournalStage, general: Stage) => Promise<void>,
): Check {
  return checksOfJournals(name, needs, (stage) => run(new JournalStage(stage), stage));
}

const check = journalCheck;
const cancelled: StopNote = { because: 'cancelled', message: 'the customer left', who: 'ada' };
const parked = { because: 'attempts_exhausted', message: 'no street', paths: ['ship'], error: note };

export const journalChecks: readonly Check[] = [
  check('accepts an assembly once, and tells a repeat from another input', [], async (stage) => {
    const start = stage.newAssembly({ tenant: 'acme', key: 'k', settings: '{"plan":[]}' });
    expectLike(await stage.startResult(start), { kind: 'accepted' }, 'a new id is accepted');
    expectLike(await stage.startResult(start), { kind: 'repeated' }, 'the same start again is a repeat');
    expectLike(
      await stage.startResult({ ...start, input: '{"item":8}' }),
      { kind: 'mismatch' },
      'the same id with another input is refused',
    );
    const { id, name, input, tenant, key, settings } = start;
    expectLike(
      await stage.one(id),
      {
        ...{ id, name, version: 1, input, tenant, key, settings, state: 'waiting', revision: 0, deaths: 0 },
        ...{ stop: undefined, parked: undefined, committed: false, worker: undefined, result: undefined },
      },
      'it is stored as it was given',
    );
    await stage.expectIds(await stage.claim(), [id], 'it is due once');
  }),

  check('keeps bytes as bytes and text as text', [], async (stage) => {
    const input = new Uint8Array([0, 255, 7]);
    const id = await stage.startOne({ input });
    const { lease, input: claimed } = await stage.claimOne();
    ensure(claimed instanceof Uint8Array && claimed.join() === '0,255,7', 'the input is the same bytes');
    await stage.progress(lease, {
      steps: [stage.done('a', 1, { result: new Uint8Array([9]) }), stage.done('b', 2, { result: undefined })],
    });
    const { items } = await stage.journal.steps(id, { limit: 10 });
    ensure((items[0]?.result as Uint8Array)?.join() === '9', 'the result is the same bytes');
    ensure(items[1]?.result === undefined, 'a step without a result has none');
  }),

  check('leases an assembly to one worker only', [], async (stage) => {
    const ids = await stage.start({}, {}, {});
    const claims = await Promise.all(
      ['one', 'two', 'three'].map((worker) => stage.claim({ worker, limit: 2 })),
    );
    const claimed = claims.flat().map(({ id }) => id);
    ensure(
      new Set(claimed).size === 3 && claimed.length === 3,
      `each of 3 is leased once, got ${claimed.length}`,
    );
    ensure(
      ids.every((id) => claimed.includes(id)),
      'all are leased',
    );
  }),

  check('leases the longest due first, and not before its time', [], async (stage) => {
    const [late, soon, now] = await stage.start({ dueInMs: 3 * stage.unitMs }, { dueInMs: stage.unitMs }, {});
    const first = await stage.claimAll();
    await stage.expectIds(first.assemblies, [now!], 'only the one without a delay is due');
    const { nextDueInMs = Infinity } = first;
    ensure(
      nextDueInMs > 0 && nextDueInMs <= stage.unitMs,
      `the next is due within a unit, got ${nextDueInMs}`,
    );
    await stage.pass(4);
    await stage.expectIds(await stage.claim(), [soon!, late!], 'the longest due comes first');
  }),

  check('leases only programs and versions that the worker has', [], async (stage) => {
    const [one, two] = await stage.start({ version: 1 }, { version: 2 });
    await stage.expectNothing('another program is not leased', {
      programs: [{ name: 'something else', version: 1 }],
    });
    const v2 = await stage.claim({ programs: [{ name: stage.program, version: 2 }] });
    await stage.expectIds(v2, [two!], 'only version 2 is leased');
    await stage.expectIds(await stage.claim(), [one!], 'only version 1 is leased');
  }),

  check('leases a new assembly to the worker that starts it', [], async (stage) => {
    const here = { name: 'here', leaseMs: 50 * stage.unitMs };
    const start = stage.newAssembly();
    const [result] = await stage.journal.record([{ kind: 'start', start, worker: here }]);
    ensure(result?.kind === 'accepted' && result.lease, 'it is accepted and leased');
    await stage.expectNothing('nobody else gets it', { worker: 'elsewhere' });
    await stage.progress(result.lease, { steps: [stage.done('charge', 1)] });
    expectLike(await stage.one(start.id), { state: 'running', worker: 'here' }, 'it runs here');

    const later = stage.newAssembly({ dueInMs: stage.unitMs });
    const [delayed] = await stage.journal.record([{ kind: 'start', start: later, worker: here }]);
    ensure(delayed?.kind === 'accepted' && !delayed.lease, 'one that is due later is not leased');
    const queued = stage.newAssembly({ queue: 'q' });
    const [waiting] = await stage.journal.record([{ kind: 'start', start: queued, worker: here }]);
    ensure(waiting?.kind === 'accepted' && !waiting.lease, 'one of a queue is not leased');
  }),

  check('gives a claimed assembly with its steps in order and its signals', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    const story = storyOf(2);
    await stage.progress(lease, {
      steps: [
        stage.done('b', 2, { attempts: 3, story }),
        stage.done('a', 1),
        { ...stage.done('c', 3), state: 'failed', result: undefined, error: note, because: 'not_retryable' },
      ],
    });
    await stage.journal.signal([{ to: id, id: 's1', name: 'approved', payload: '"yes"' }]);
    await stage.progress(lease, { next: { kind: 'return' } });
    const again = await stage.claimOne();
    expectLike(
      again.steps,
      [
        { path: 'a', order: 1, state: 'done', result: '"a"', kind: 'run', attempts: 1 },
        { path: 'b', order: 2, attempts: 3, story },
        { path: 'c', order: 3, state: 'failed', error: note, because: 'not_retryable' },
      ],
      'the steps are in their order, whole',
    );
    expectLike(
      again.signals,
      [{ number: 1, id: 's1', name: 'approved', payload: '"yes"' }],
      'the signal is there',
    );
    ensure(again.revision === 1, 'a signal counts up the revision');
  }),

  check('replaces the record of a step', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    const before = await stage.journal.now();
    await stage.progress(lease, {
      steps: [
        {
          path: 'a',
          kind: 'run',
          state: 'retrying',
          order: 1,
          attempts: 1,
          at: 1,
          dueInMs: 2 * stage.unitMs,
        },
      ],
    });
    const [retrying] = (await stage.journal.steps(id, { limit: 10 })).items;
    const dueInMs = (retrying?.dueAt ?? 0) - before;
    ensure(
      dueInMs >= 2 * stage.unitMs && dueInMs <= 3 * stage.unitMs,
      `it is due in two units, got ${dueInMs} ms`,
    );
    await stage.progress(lease, { steps: [stage.done('a', 2, { attempts: 2 })] });
    const { items } = await stage.journal.steps(id, { limit: 10 });
    expectLike(
      items,
      [{ path: 'a', state: 'done', order: 2, attempts: 2, dueAt: undefined }],
      'one record is left',
    );
  }),

  check('suspends until its time, and keeps nothing of the lease', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    await stage.progress(lease, { next: { kind: 'suspend', dueInMs: 2 * stage.unitMs, revision: 0 } });
    expectLike(await stage.one(id), { state: 'waiting', worker: undefined }, 'it waits');
    await stage.expectLost(lease);
    await stage.expectNothing('it is not due yet');
    await stage.pass(3);
    await stage.expectIds(await stage.claim(), [id], 'it is due after its time');
  }),

  check('never sleeps over a signal, in whatever order they come', [], async (stage) => {
    const id = await stage.startOne();
    const { lease, revision } = await stage.claimOne();
    await stage.journal.signal([{ to: id, id: 's1', name: 'approved', payload: undefined }]);
    await stage.progress(lease, { next: { kind: 'suspend', revision } });
    const second = await stage.claimOne();
    expectLike(second, { id, revision: 1 }, 'a signal before the suspension makes it due at once');

    await stage.progress(second.lease, { next: { kind: 'suspend', revision: second.revision } });
    await stage.expectNothing('without a signal it waits');
    await stage.journal.signal([{ to: id, id: 's2', name: 'approved', payload: undefined }]);
    const third = await stage.claimOne();
    expectLike(third.signals, [{ number: 1 }, { number: 2 }], 'a signal after the suspension wakes it');

    const [, taken] = await Promise.all([
      stage.journal.signal([{ to: id, id: 's3', name: 'approved', payload: undefined }]),
      stage.journal.record([
        {
          kind: 'progress',
          lease: third.lease,
          steps: [],
          next: { kind: 'suspend', revision: third.revision },
        },
      ]),
    ]);
    expectLike(taken, [{ kind: 'took' }], 'a suspension at the same time is taken');
    expectLike(await stage.claimOne(), { id, revision: 3 }, 'a signal at the same time wakes it');
  }),

  check('stores a signal once, and says what became of it', [], async (stage) => {
    const id = await stage.startOne();
    const signal = { to: id, id: 's1', name: 'approved', payload: '1' };
    expectLike(
      await stage.journal.signal([signal, signal, { ...signal, to: 'nobody' }]),
      ['accepted', 'repeated', 'unknown'],
      'each signal has its result',
    );
    expectLike(await stage.journal.signals(id), [{ number: 1, payload: '1' }], 'it is stored once');
    expectLike(await stage.journal.signals(id, 1), [], 'nothing came after it');
    const { lease } = await stage.claimOne();
    await stage.progress(lease, { next: { kind: 'done', result: '1' } });
    expectLike(
      await stage.journal.signal([{ ...signal, id: 's2' }]),
      ['ended'],
      'an ended assembly takes no signal',
    );
  }),

  check('gives back what a dead worker had, with one death more', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne({ worker: 'dead', leaseMs: stage.unitMs });
    await stage.progress(lease, { steps: [stage.done('charge', 1)] });
    const { assemblies, nextDueInMs = Infinity } = await stage.claimAll({ worker: 'other' });
    await stage.expectIds(assemblies, [], 'it is not given while its worker lives');
    ensure(nextDueInMs <= stage.unitMs, `others are told when its lease ends, got ${nextDueInMs}`);
    await stage.pass(2);
    const again = await stage.claimOne({ worker: 'other' });
    expectLike(
      again,
      { id, deaths: 1, steps: [{ path: 'charge', result: '"charge"' }] },
      'another worker gets it, with its record',
    );
    await stage.expectLost(lease, { steps: [stage.done('ship', 2)] });
    await stage.expectLost(lease, { next: { kind: 'done', result: undefined } });
    expectLike(
      (await stage.journal.steps(id, { limit: 10 })).items,
      [{ path: 'charge' }],
      'nothing of the dead worker was taken',
    );
    await stage.progress(again.lease, { clearDeaths: true, next: { kind: 'return' } });
    expectLike(await stage.claimOne(), { deaths: 0 }, 'progress forgets deaths');
  }),

  check('keeps assemblies with a worker that sends heartbeats', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne({ worker: 'slow', leaseMs: 2 * stage.unitMs });
    for (let beat = 0; beat < 3; beat++) {
      await stage.pass(1);
      expectLike(
        await stage.journal.heartbeat('slow', 2 * stage.unitMs),
        { alive: true, leased: [id], changed: [] },
        'the heartbeat names what the worker has',
      );
    }
    await stage.expectNothing('it stays with its worker', { worker: 'other' });
    await stage.journal.requestStop([{ id, stop: cancelled }]);
    expectLike(
      await stage.journal.heartbeat('slow', stage.unitMs),
      { changed: [{ id, revision: 1 }] },
      'the heartbeat tells what came from outside',
    );
    await stage.pass(2);
    await stage.claimOne({ worker: 'other' });
    expectLike(
      await stage.journal.heartbeat('slow', stage.unitMs),
      { alive: false, leased: [] },
      'a worker that was too slow is told',
    );
    await stage.expectLost(lease);
  }),

  check('leases suspects only on request, one at a time', [], async (stage) => {
    const ids = await stage.start({}, {});
    await stage.claim({ worker: 'dead', leaseMs: stage.unitMs });
    await stage.pass(2);
    const careful = { worker: 'careful', suspectDeaths: 1 };
    const { assemblies, suspects } = await stage.claimAll(careful);
    await stage.expectIds(assemblies, [], 'suspects are not leased with the others');
    ensure(suspects >= 1, `suspects are counted, got ${suspects}`);
    const alone = await stage.claim({ ...careful, suspects: true });
    ensure(alone.length === 1 && ids.includes(alone[0]!.id), 'one suspect is leased');
    expectLike(alone, [{ deaths: 1 }], 'its death is counted');
  }),

  check('gives back at once what a worker releases', [], async (stage) => {
    const ids = await stage.start({}, {});
    const [{ lease } = { lease: { id: '', token: '' } }] = await stage.claim({ worker: 'leaving' });
    ensure((await stage.journal.release('leaving')) === 2, 'both are given back');
    await stage.expectLost(lease);
    const again = await stage.claim({ worker: 'other' });
    expectLike(new Set(again.map(({ id }) => id)), new Set(ids), 'another worker gets both');
    ensure(
      again.every(({ deaths }) => deaths === 0),
      'a release is no death',
    );
  }),

  check('ends an assembly once, with its result', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    await stage.progress(lease, {
      steps: [stage.done('ship', 1)],
      next: { kind: 'done', result: '{"number":1}' },
    });
    expectLike(
      await stage.one(id),
      { state: 'done', result: '{"number":1}', worker: undefined, dueAt: undefined },
      'it is done with its result',
    );
    ensure((await stage.one(id)).endedAt !== undefined, 'the time of its end is stored');
    await stage.expectLost(lease, { next: { kind: 'stopped' } });
    await stage.expectNothing('it is not due any more');
  }),

  check('starts and signals others in the same write, or not at all', [], async (stage) => {
    const [parent] = await stage.start({});
    const { lease } = await stage.claimOne();
    const child = stage.newAssembly({ name: `${stage.program}-child` });
    await stage.expectLost({ ...lease, token: 'another' }, { starts: [child] });
    expectLike(await stage.journal.get([child.id]), [undefined], 'a lost lease starts nothing');
    await stage.progress(lease, { starts: [child], next: { kind: 'suspend', revision: 0 } });
    const request = { programs: [{ name: child.name, version: 1 }] };
    const run = await stage.claimOne(request);
    await stage.progress(run.lease, {
      signals: [{ to: parent!, id: `${child.id}/end`, name: 'child', payload: '"42"' }],
      next: { kind: 'done', result: '"42"' },
    });
    expectLike(
      await stage.claimOne(),
      { id: parent, signals: [{ name: 'child', payload: '"42"' }] },
      'the end of a child wakes its parent',
    );
  }),

  check('stops an assembly in each state but a committed one', [], async (stage) => {
    const stop = (id: string) => stage.journal.requestStop([{ id, stop: cancelled }]);
    const [asleep, running, aside, ended] = await stage.start({}, {}, {}, {});
    const leases = new Map((await stage.claim()).map(({ id, lease }) => [id, lease]));
    await stage.progress(leases.get(asleep!)!, {
      next: { kind: 'suspend', dueInMs: 9 * stage.unitMs, revision: 0 },
    });
    await stage.progress(leases.get(aside!)!, { next: { kind: 'park', parked, revision: 0 } });
    await stage.progress(leases.get(ended!)!, { next: { kind: 'done', result: '1' } });
    await stage.expectNothing('none of them is due');

    for (const id of [asleep!, aside!, ended!])
      expectLike(await stop(id), ['requested'], 'it is asked to stop');
    const woken = await stage.claim();
    expectLike(
      new Set(woken.map(({ id }) => id)),
      new Set([asleep, aside, ended]),
      'a sleeper, a parked and an ended one are due at once',
    );
    ensure(
      woken.every((one) => one.stop?.because === 'cancelled' && one.stop.who === 'ada'),
      'they are told why',
    );
    expectLike(await stop(running!), ['requested'], 'a running one is asked to stop');
    const lease = leases.get(running!)!;
    await stage.progress(lease, { next: { kind: 'suspend', revision: 0 } });
    await stage.claimOne();
    expectLike(await stop(asleep!), ['already'], 'the first request counts');
    expectLike(await stop('nobody'), ['unknown'], 'an unknown id is told');
    for (const one of woken) await stage.progress(one.lease, { next: { kind: 'stopped' } });
    expectLike(await stop(ended!), ['already'], 'a stopped one stays stopped');
    expectLike(await stage.one(ended!), { state: 'stopped', result: '1' }, 'it has compensated');

    const crossing = await stage.startOne();
    const { lease: unaware } = await stage.claimOne();
    await stop(crossing);
    await stage.progress(unaware, { next: { kind: 'done', result: '2' } });
    expectLike(
      await stage.claimOne(),
      { id: crossing, result: '2', stop: cancelled },
      'an end that crosses the request is compensated as well',
    );

    const committed = await stage.startOne();
    const { lease: last } = await stage.claimOne();
    await stage.progress(last, { steps: [stage.done('ship', 1)], commits: true });
    expectLike(await stop(committed), ['committed'], 'after its pivot it is not stopped');
    expectLike(await stage.one(committed), { stop: undefined, committed: true }, 'nothing was changed');
  }),

  check('keeps the reason for which a worker stops an assembly', [], async (stage) => {
    const id = await stage.startOne({ patienceMs: 5 * stage.unitMs });
    const { lease, expiresAt = 0, acceptedAt } = await stage.claimOne();
    ensure(expiresAt - acceptedAt === 5 * stage.unitMs, 'patience is an expiry by the clock of the store');
    const stop = { because: 'patience_too_short', message: 'it would take too long' };
    await stage.progress(lease, { stop, next: { kind: 'return' } });
    expectLike(await stage.claimOne(), { id, stop }, 'it is stored');
    expectLike(
      await stage.journal.requestStop([{ id, stop: cancelled }]),
      ['already'],
      'the first reason stays',
    );
  }),

  check('parks for people until the patience of the customer ends', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    await stage.progress(lease, { next: { kind: 'park', parked, dueInMs: 2 * stage.unitMs, revision: 0 } });
    expectLike(await stage.one(id), { state: 'parked', parked }, 'it is parked with its error');
    await stage.journal.signal([{ to: id, id: 's1', name: 'approved', payload: undefined }]);
    await stage.expectNothing('a signal does not wake it');
    await stage.pass(3);
    const woken = await stage.claimOne();
    expectLike(woken, { id, parked, revision: 1 }, 'the end of patience wakes it');
    await stage.progress(woken.lease, { next: { kind: 'suspend', revision: 1 } });
    expectLike(await stage.one(id), { state: 'waiting', parked: undefined }, 'it is parked no longer');
  }),

  check('wakes an assembly whose patience has changed', [], async (stage) => {
    const id = await stage.startOne({ patienceMs: stage.unitMs });
    const { lease } = await stage.claimOne();
    await stage.progress(lease, { next: { kind: 'suspend', revision: 0 } });
    ensure(await stage.journal.setPatience(id, 60 * stage.unitMs), 'patience can be extended');
    const { expiresAt = 0, revision, lease: next } = await stage.claimOne();
    ensure(expiresAt - (await stage.journal.now()) > 50 * stage.unitMs, 'it expires later');
    ensure(revision === 1, 'that counts up the revision');
    await stage.progress(next, { next: { kind: 'done', result: undefined } });
    ensure(!(await stage.journal.setPatience(id, stage.unitMs)), 'an ended one has no patience');
    ensure(!(await stage.journal.setPatience('nobody', stage.unitMs)), 'an unknown one has none');
  }),

  check('lets people edit and resume a parked assembly', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    expectLike(await stage.journal.change(id, { resume: true }, act), 'leased', 'not while a worker has it');
    await stage.progress(lease, {
      steps: [
        stage.done('charge', 1),
        { ...stage.done('reserve', 2), result: undefined },
        { ...stage.done('ship', 3), state: 'failed', result: undefined, error: note },
      ],
      next: { kind: 'park', parked, revision: 0 },
    });
    const change = {
      input: '{"item":9}',
      version: 2,
      settings: '{}',
      put: [
        { path: 'reserve', result: '"edited"' },
        { path: 'print', result: '"by hand"' },
      ],
      forget: ['ship'],
      resume: true,
    };
    await expectRejection(
      stage.journal.change(id, change, { who: '', why: '' }),
      'HOLDFAST_TRIAGE_NO_REASON',
      'who and why are needed',
    );
    expectLike(await stage.journal.change(id, change, act), 'changed', 'it is changed');
    const again = await stage.claimOne({ programs: [{ name: stage.program, version: 2 }] });
    expectLike(
      again,
      {
        ...{ id, input: '{"item":9}', settings: '{}', parked: undefined, revision: 1, acts: [act] },
        steps: [
          { path: 'charge', order: 1, result: '"charge"' },
          { path: 'reserve', order: 2, result: '"edited"', state: 'done' },
          { path: 'print', order: 3, result: '"by hand"', state: 'done', kind: 'run' },
        ],
      },
      'input, version and results are as edited, and the failed step is forgotten',
    );
    await stage.progress(again.lease, { next: { kind: 'done', result: undefined } });
    expectLike(await stage.journal.change(id, {}, act), 'ended', 'not after its end');
    expectLike(await stage.journal.change('nobody', {}, act), 'unknown', 'an unknown id is told');
  }),

  check('copies an assembly with the steps that are kept', [], async (stage) => {
    const id = await stage.startOne({ patienceMs: 90 * stage.unitMs, settings: '{"plan":[]}' });
    const { lease } = await stage.claimOne();
    await stage.journal.signal([{ to: id, id: 's1', name: 'approved', payload: '1' }]);
    await stage.progress(lease, {
      steps: [stage.done('charge', 1), stage.done('ship', 2), { ...stage.done('wait', 3), state: 'waiting' }],
      next: { kind: 'done', result: '1' },
    });
    const copy = stage.newAssembly().id;
    const fork = { id: copy, keep: ['charge', 'wait'] };
    expectLike(await stage.journal.fork(id, fork, act), 'forked', 'it is copied');
    expectLike(await stage.journal.fork(id, fork, act), 'repeated', 'a copy is made once');
    expectLike(await stage.journal.fork('nobody', fork, act), 'unknown', 'an unknown id is told');
    expectLike(
      await stage.claimOne(),
      {
        ...{ id: copy, input: '{"item":7}', settings: '{"plan":[]}', state: 'running', result: undefined },
        steps: [{ path: 'charge', order: 1 }],
        signals: [{ name: 'approved', payload: '1' }],
        acts: [act],
      },
      'the copy has the kept steps that are settled, and the signals',
    );
    expectLike(await stage.one(id), { state: 'done' }, 'the original is as it was');
  }),

  check('lists assemblies by filter, the latest first, page by page', [], async (stage) => {
    const ids = await stage.start({ tenant: 'a' }, { key: 'k' }, { tenant: 'a', queue: 'q' });
    const program = { name: stage.program };
    const first = await stage.journal.list(program, { limit: 2 });
    await stage.expectIds(first.items, [ids[2]!, ids[1]!], 'the latest come first');
    const rest = await stage.journal.list(program, { limit: 2, cursor: first.cursor! });
    await stage.expectIds(rest.items, [ids[0]!], 'the next page goes on');
    ensure(rest.cursor === undefined, 'the last page has no cursor');
    const only = async (filter: object) =>
      (await stage.journal.list({ ...program, ...filter }, { limit: 9 })).items;
    await stage.expectIds(await only({ tenant: 'a' }), [ids[2]!, ids[0]!], 'by tenant');
    await stage.expectIds(await only({ key: 'k' }), [ids[1]!], 'by key');
    await stage.expectIds(await only({ queue: 'q' }), [ids[2]!], 'by queue');
    const [claimed] = await stage.claim({ limit: 1 });
    await stage.progress(claimed!.lease, { next: { kind: 'park', parked, revision: 0 } });
    await stage.expectIds(await only({ state: 'parked' }), [claimed!.id], 'by state');
    await stage.expectIds(await only({ fingerprint: note.fingerprint }), [claimed!.id], 'by fingerprint');
    await stage.journal.requestStop([{ id: ids[1]!, stop: cancelled }]);
    await stage.expectIds(await only({ stopping: true }), [ids[1]!], 'by compensation');
    expectLike(
      (await stage.journal.counts()).filter(({ name }) => name === stage.program),
      [{ version: 1, waiting: 2, running: 0, parked: 1, done: 0, stopped: 0 }],
      'they are counted by state',
    );
  }),

  check(
    'groups parked assemblies by program, reason and error, the largest group first',
    [],
    async (stage) => {
      const ids = await stage.start({}, {}, {}, {});
      const claimed = await stage.claim({ limit: 4 });
      const lost = { because: 'crashed', message: 'three workers died', paths: [] };
      for (const [index, { lease }] of claimed.entries())
        await stage.progress(lease, {
          next: {
            kind: 'park',
            parked: index === 1 ? lost : index === 3 ? { ...parked, message: 'later' } : parked,
            revision: 0,
          },
        });
      const ours = async () =>
        (await stage.journal.parkedGroups(100)).filter(({ name }) => name === stage.program);
      const { fingerprint } = note;
      expectLike(
        await ours(),
        [
          { because: parked.because, fingerprint, count: 3, latestId: ids[3], message: 'later' },
          { because: 'crashed', fingerprint: undefined, count: 1, latestId: ids[1], message: lost.message },
        ],
        'each parked assembly is in one group',
      );
      ensure((await stage.journal.parkedGroups(1)).length === 1, 'no more groups than asked for');
      await stage.journal.change(ids[1]!, { resume: true }, act);
      expectLike(await ours(), [{ count: 3 }], 'a resumed one is in none');
    },
  ),

  check('reads the steps of an assembly page by page', [], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    await stage.progress(lease, { steps: ['a', 'b', 'c'].map((path, index) => stage.done(path, index + 1)) });
    const first = await stage.journal.steps(id, { limit: 2 });
    expectLike(first.items, [{ path: 'a' }, { path: 'b' }], 'the first page');
    const rest = await stage.journal.steps(id, { limit: 2, cursor: first.cursor! });
    expectLike(rest, { items: [{ path: 'c' }], cursor: undefined }, 'the last page');
  }),

  check('removes an ended assembly when its time is over, and not before', [], async (stage, general) => {
    const [ended, open] = await stage.start({ keepMs: 2 * stage.unitMs }, { keepMs: 0 });
    const claimed = await stage.claim();
    const lease = claimed.find(({ id }) => id === ended)!.lease;
    await stage.progress(lease, { steps: [stage.done('a', 1)], next: { kind: 'done', result: '1' } });
    await general.engine.sweep(1000);
    expectLike(await stage.one(ended!), { state: 'done' }, 'it is kept');
    await stage.pass(3);
    await general.engine.sweep(1000);
    expectLike(await stage.journal.get([ended!]), [undefined], 'it is removed');
    expectLike((await stage.journal.steps(ended!, { limit: 9 })).items, [], 'its steps are removed');
    expectLike(await stage.one(open!), { state: 'running' }, 'one that has not ended stays');
  }),

  check('rings when something is due or has come', ['doorbell'], async (stage) => {
    let rings = 0;
    const stop = stage.journal.doorbell(() => rings++);
    const rung = async (why: string) => {
      for (let tries = 0; rings === 0 && tries < 50; tries++) await stage.pass(0.1);
      ensure(rings > 0, why);
      rings = 0;
    };
    const id = await stage.startOne();
    await rung('a start rings');
    const { lease } = await stage.claimOne();
    await stage.progress(lease, { next: { kind: 'suspend', revision: 0 } });
    rings = 0;
    await stage.journal.signal([{ to: id, id: 's', name: 'approved', payload: undefined }]);
    await rung('a signal rings');
    await stage.claimOne();
    rings = 0;
    await stage.journal.requestStop([{ id, stop: cancelled }]);
    await rung('a request to stop rings');
    stop();
  }),

  check('rings for those who watch an assembly', ['doorbell'], async (stage) => {
    let rings = 0;
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    const stop = stage.journal.watch(id, () => rings++);
    await stage.progress(lease, { steps: [stage.done('a', 1)], next: { kind: 'done', result: '1' } });
    for (let tries = 0; rings === 0 && tries < 50; tries++) await stage.pass(0.1);
    ensure(rings > 0, 'its end rings');
    stop();
  }),

  check('commits a step and its effect together', ['sharedTransaction', 'effect'], async (stage, general) => {
    const { effect } = general.harness;
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    const name = general.name('effect');
    const transaction = (fails: boolean) => ({
      step: stage.done('book', 1, { kind: 'transaction', result: undefined }),
      run: (tx: unknown) => {
        const written = effect!.write(tx, name);
        const answer = () => {
          if (fails) throw new Error('no seat left');
          return '"seat 7"';
        };
        return written instanceof Promise ? written.then(answer) : answer();
      },
    });
    const [failed] = await stage.journal.record([
      { kind: 'progress', lease, steps: [stage.done('other', 2)], transaction: transaction(true) },
    ]);
    ensure(failed?.kind === 'commit_failed', 'what it throws is told');
    ensure((failed.error as Error).message === 'no seat left', 'with the real error');
    ensure(!(await effect!.isThere(name)), 'the effect is not there');
    expectLike((await stage.journal.steps(id, { limit: 9 })).items, [], 'nothing of the entry is written');

    const [lost] = await stage.journal.record([
      { kind: 'progress', lease: { id, token: 'another' }, steps: [], transaction: transaction(false) },
    ]);
    expectLike(lost, { kind: 'lease_lost' }, 'a lost lease runs nothing');
    ensure(!(await effect!.isThere(name)), 'and leaves no effect');

    const [took] = await stage.journal.record([
      { kind: 'progress', lease, steps: [stage.done('other', 2)], transaction: transaction(false) },
    ]);
    expectLike(took, { kind: 'took', result: '"seat 7"' }, 'the result is told');
    ensure(await effect!.isThere(name), 'the effect is there');
    expectLike(
      (await stage.journal.steps(id, { limit: 9 })).items,
      [{ path: 'book', result: '"seat 7"', kind: 'transaction' }, { path: 'other' }],
      'with the record',
    );
  }),

  check('starts within a transaction of the caller', ['sharedTransaction', 'effect'], async (stage) => {
    const id = await stage.startOne();
    const { lease } = await stage.claimOne();
    const [kept, dropped] = [stage.newAssembly(), stage.newAssembly()];
    const within = (start: typeof kept, fails: boolean) => ({
      step: stage.done(`start ${start.id}`, 1, { kind: 'transaction' as const }),
      run: (tx: unknown) => {
        const started = stage.journal.startWithin(tx, [start]);
        if (!fails) return started instanceof Promise ? started.then(() => undefined) : undefined;
        const refuse = () => {
          throw new Error('not after all');
        };
        return started instanceof Promise ? started.then(refuse) : refuse();
      },
    });
    await stage.journal.record([
      { kind: 'progress', lease, steps: [], transaction: within(kept, false) },
      { kind: 'progress', lease, steps: [], transaction: within(dropped, true) },
    ]);
    expectLike(
      await stage.journal.get([id, kept.id, dropped.id]),
      [{ id }, { id: kept.id, state: 'waiting' }, undefined],
      'an assembly is there if the transaction commits',
    );
  }),

  check('knows after a restart what is on record', ['durable', 'reopen'], async (stage, general) => {
    const [id, asleep] = await stage.start({}, {});
    const claimed = await stage.claim({ worker: 'gone', leaseMs: stage.unitMs });
    const leaseOf = (which: string) => claimed.find((each) => each.id === which)!.lease;
    await stage.progress(leaseOf(id!), { steps: [stage.done('charge', 1)] });
    await stage.progress(leaseOf(asleep!), {
      next: { kind: 'suspend', dueInMs: 2 * stage.unitMs, revision: 0 },
    });
    await general.reopen();
    await stage.expectNothing('what is leased stays leased', { worker: 'new' });
    await stage.pass(3);
    const again = await stage.claim({ worker: 'new' });
    expectLike(
      new Set(again.map((each) => each.id)),
      new Set([id, asleep]),
      'the dead worker and the sleeper are taken over',
    );
    expectLike(
      again.find((each) => each.id === id)?.steps,
      [{ path: 'charge', result: '"charge"' }],
      'the record is there',
    );
  }),

  check(
    'writes an entry whole or not at all',
    ['durable', 'reopen', 'dieAfterWrites'],
    async (stage, general) => {
      for (let writes = 0; writes < 3; writes++) {
        const [id] = await stage.start({});
        const { lease } = (await stage.claim()).find((each) => each.id === id)!;
        const child = stage.newAssembly({ name: `${stage.program}-child` });
        general.harness.dieAfterWrites!(writes);
        const written = await stage.journal
          .record([
            {
              kind: 'progress',
              lease,
              steps: [stage.done('ship', 1)],
              starts: [child],
              next: { kind: 'done', result: '1' },
            },
          ])
          .then(
            () => true,
            () => false,
          );
        await general.reopen();
        const { state } = await stage.one(id!);
        const steps = (await stage.journal.steps(id!, { limit: 9 })).items.length;
        const [started] = await stage.journal.get([child.id]);
        const isWhole = state === 'done' && steps === 1 && started !== undefined;
        const isNothing = state === 'running' && steps === 0 && started === undefined;
        ensure(isWhole || (isNothing && !written), 'an entry is there whole, or not at all');
        await stage.journal.release('worker-1');
      }
    },
  ),

  check('refuses what it cannot store, and stores nothing of the batch', [], async (stage) => {
    const good = stage.newAssembly();
    for (const bad of [{ id: '' }, { name: 'a\0b' }, { version: -1 }, { patienceMs: Number.NaN }]) {
      await expectRejection(
        stage.journal.record([
          { kind: 'start', start: good },
          { kind: 'start', start: stage.newAssembly(bad) },
        ]),
        'HOLDFAST_OPTIONS',
        `${JSON.stringify(bad)} is refused`,
      );
    }
    await expectRejection(
      stage.journal.record([
        {
          kind: 'start',
          start: stage.newAssembly({ input: 'x'.repeat(stage.journal.limits.payloadBytesMax + 1) }),
        },
      ]),
      'HOLDFAST_TOO_LARGE',
      'an input that is too large is refused',
    );
    expectLike(await stage.journal.get([good.id]), [undefined], 'nothing was stored');
  }),
];
