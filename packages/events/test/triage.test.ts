import { memoryEngine } from '@holdfast/contracts/memory';
import {
  canUndo,
  collectParked,
  commit,
  consumer,
  covered,
  differences,
  fixForward,
  maintenance,
  type OperationRunner,
  operations,
  park,
  rebuild,
  undo,
} from '@holdfast/events';
import type { Clock } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { act, down, type Options, stage } from './stage.ts';

/** Orders that are parked until the bug is fixed. */
async function parkedOrders(count: number, options: Options = {}) {
  const scene = stage();
  const bug = { isFixed: false };
  const modes: string[] = [];
  const orders = await scene.open({
    ...options,
    handler: ({ id, mode }) => {
      modes.push(mode);
      return bug.isFixed || id.startsWith('good') ? undefined : park('bug', down());
    },
  });
  await scene.publish(
    ...Array.from({ length: count }, (_, index) => ({ id: `e${String(index).padStart(3, '0')}` })),
  );
  await scene.clock.advance('1s');
  const replays = operations({ engine: scene.engine, clock: scene.clock });
  /** Runs a replay with time passing as it needs. */
  async function run(id: string) {
    let ended: Awaited<ReturnType<typeof replays.run>> | undefined;
    const progress: string[] = [];
    const running = replays.run(id, {
      onProgress: ({ stage, counts }) => progress.push(`${stage} ${counts.released}`),
    });
    void running.then((operation) => {
      ended = operation;
    });
    for (let steps = 0; !ended && steps < 10_000; steps++) await scene.clock.advance(50);
    return { operation: ended!, progress };
  }
  return { ...scene, bug, modes, orders, replays, run };
}

describe('a replay', () => {
  test('releases what matches at its rate, after a canary, and tells its progress', async () => {
    const { bug, replays, run, triage, clock, modes } = await parkedOrders(40);
    bug.isFixed = true;
    expect(await replays.dryRun({ topic: 'orders' })).toBe(40);
    const { id } = await replays.begin(
      { kind: 'replay', filter: { topic: 'orders' }, rate: 10, canary: 3, canaryMs: 1000 },
      act,
    );
    const from = clock.now();
    const { operation, progress } = await run(id);
    expect(operation).toMatchObject({
      stage: 'done',
      counts: { selected: 40, released: 40, succeeded: 40, failedAgain: 0 },
    });
    // The canary takes a second, and after a pause at most a second of the rate is made up for.
    expect(clock.now() - from).toBeGreaterThan(3000);
    expect(progress).toEqual(expect.arrayContaining(['canary 3', 'releasing 3', 'done 40']));
    expect(await triage.count({ status: 'resolved', topic: 'orders' })).toBe(40);
    expect(modes.slice(40).every((mode) => mode === 'replay')).toBe(true);
  });

  test('of no more events than its canary has no canary: nothing would wait for it', async () => {
    const { bug, replays, run, clock } = await parkedOrders(5);
    bug.isFixed = true;
    for (const filter of [{ ids: ['e000'] }, { topic: 'orders' }]) {
      const { id } = await replays.begin({ kind: 'replay', filter }, act);
      const from = clock.now();
      const { operation, progress } = await run(id);
      expect(operation).toMatchObject({ stage: 'done', counts: { failedAgain: 0 } });
      expect(progress.filter((each) => each.startsWith('canary'))).toEqual([]);
      expect(clock.now() - from).toBeLessThan(1000);
    }
  });

  test('stops by itself when the canary fails again, and gives the rest back', async () => {
    const { replays, run, triage } = await parkedOrders(20);
    const { id } = await replays.begin(
      { kind: 'replay', filter: { topic: 'orders' }, canary: 2, canaryMs: 100 },
      act,
    );
    const { operation } = await run(id);
    expect(operation).toMatchObject({
      stage: 'stopped',
      stopped: 'the canary failed again',
      counts: { released: 2 },
    });
    expect(await triage.count({ topic: 'orders', isFree: true })).toBe(20);
  });

  test('without a canary begins at its rate, and not with all events of a second', async () => {
    const { bug, replays, run, clock, handled } = await parkedOrders(300);
    bug.isFixed = true;
    handled.length = 0;
    const request = { kind: 'replay', filter: { topic: 'orders' }, rate: 200, canary: 0 } as const;
    const running = run((await replays.begin(request, act)).id);
    await clock.advance('100ms');
    expect(handled.length).toBeGreaterThan(0);
    expect(handled.length).toBeLessThan(40);
    await clock.advance('3s');
    expect((await running).operation.counts).toMatchObject({ succeeded: 300 });
  });

  test('is stopped by a person', async () => {
    const { bug, replays, run, triage, clock, engine } = await parkedOrders(30);
    bug.isFixed = true;
    const { id } = await replays.begin(
      { kind: 'replay', filter: { topic: 'orders' }, rate: 5, canary: 0 },
      act,
    );
    const running = run(id);
    await clock.advance('2s');
    expect(await replays.stop(id, { who: 'bo', why: 'too slow' })).toBe(true);
    const { operation } = await running;
    expect(operation).toMatchObject({ stage: 'stopped', stopped: 'too slow' });
    expect(await triage.count({ topic: 'orders', isFree: true })).toBe(30 - operation.counts.released);
    expect((await engine.audit.list({}, { limit: 5 })).items[0]).toMatchObject({
      what: 'operation_stopped',
      who: 'bo',
    });
  });

  test('a replay of a process that died is resumed by another, and releases no event twice', async () => {
    const { bug, engine, replays, run, clock, handled } = await parkedOrders(50);
    bug.isFixed = true;
    handled.length = 0;
    const { id } = await replays.begin(
      { kind: 'replay', filter: { topic: 'orders' }, rate: 20, canary: 0 },
      act,
    );
    const killed = new AbortController();
    const first = replays.run(id, { signal: killed.signal });
    const ended = expect(first).rejects.toThrow('killed');
    await clock.advance('700ms');
    killed.abort(new Error('killed'));
    await ended;
    const before = handled.length;
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(50);
    expect((await operations({ engine, clock }).unfinished()).map((each) => each.id)).toEqual([id]);
    const { operation } = await run(id);
    expect(operation.counts).toMatchObject({ released: 50, succeeded: 50 });
    expect(handled.length).toBe(new Set(handled).size);
    expect(await replays.unfinished()).toEqual([]);
  });

  test('refuses what would touch everything, and what cannot be', async () => {
    const { replays } = await parkedOrders(1);
    await expect(replays.begin({ kind: 'replay', filter: {} }, act)).rejects.toThrow(
      'a filter that names nothing',
    );
    await expect(replays.dryRun({ isFree: true })).rejects.toThrow('a filter that names nothing');
    await expect(
      replays.begin({ kind: 'replay', filter: { topic: 'a' } }, { who: '', why: '' }),
    ).rejects.toThrow('say who');
    await expect(replays.begin({ kind: 'replay', filter: { topic: 'a' }, rate: 0 }, act)).rejects.toThrow(
      'rate: expected events a second',
    );
    await expect(replays.begin({ kind: 'replay', filter: { topic: 'a' }, canary: -1 }, act)).rejects.toThrow(
      'canary: expected',
    );
    await expect(
      replays.begin({ kind: 'replay', filter: { topic: 'a' }, stopAbove: 2 }, act),
    ).rejects.toThrow('stopAbove: expected');
    await expect(
      replays.begin({ kind: 'replay', filter: { topic: 'a' }, to: 'nowhere' }, act),
    ).rejects.toThrow('topic "nowhere" was never declared');
    expect(await replays.unfinished()).toEqual([]);
    await expect(replays.run('nobody')).rejects.toThrow('id: expected the id of an operation, got "nobody"');
  });
});

describe('fix-forward', () => {
  const schema = z.object({ total: z.number() });

  test('edits one event, keeps the original, and replays it', async () => {
    const { clock, engine, triage, run } = await parkedOrders(0);
    const totals: number[] = [];
    await engine.broker.declare('carts');
    const carts = consumer({
      engine,
      topic: 'carts',
      clock,
      schema,
      handler: ({ payload }) => void totals.push(payload.total),
    });
    await carts.start();
    onTestFinished(() => carts.stop());
    await engine.broker.publish('carts', [{ id: 'a', payload: '{"total":"3"}' }]);
    await clock.advance('1s');
    const wrong = fixForward(triage, 'a', { payload: '{"total":"4"}' }, act, { schema });
    await expect(wrong).rejects.toThrow('total: ');
    expect((await triage.get('a'))?.edits).toEqual([]);

    const { id } = await fixForward(triage, 'a', { payload: '{"total":3}' }, act, { schema });
    await run(id);
    expect(totals).toEqual([3]);
    expect(await triage.get('a')).toMatchObject({
      status: 'resolved',
      original: { payload: '{"total":"3"}' },
    });
    await expect(fixForward(triage, 'nobody', {}, act)).rejects.toThrow(
      'id: expected the id of a parked event',
    );
  });
});

describe('maintenance', () => {
  test('applies rules to newly parked events: the first that matches counts', async () => {
    const { clock, engine, triage, bug, publish, handled } = await parkedOrders(0);
    const told: string[] = [];
    await triage.setRule({ name: 'junk', filter: { type: 'junk' }, action: 'discard' }, act);
    await triage.setRule({ name: 'vip', filter: { tenant: 'vip' }, action: 'notify' }, act);
    await triage.setRule({ name: 'bugs', filter: { stop: 'bug' }, action: 'replay', afterMs: 60_000 }, act);
    const upkeep = maintenance({
      engine,
      clock,
      every: '5s',
      request: { canary: 0 },
      onNotify: (rule, events) => void told.push(...events.map(({ id }) => `${rule.name} ${id}`)),
    });
    upkeep.start();
    await publish({ id: 'junk', type: 'junk' }, { id: 'vip', tenant: 'vip' }, { id: 'other' });
    await clock.advance('30s');
    expect((await triage.get('junk'))?.discarded).toMatchObject({ who: 'rule junk' });
    expect(told).toEqual(['vip vip']);
    bug.isFixed = true;
    await clock.advance('2m');
    expect((await triage.get('other'))?.status).toBe('resolved');
    expect(handled.filter((id) => id === 'other').length).toBe(2);
    await upkeep.stop();
    const { pendingTimers } = clock;
    await clock.advance('5m');
    expect(clock.pendingTimers).toBe(pendingTimers);
  });

  test('does not replay for ever what fails again and again', async () => {
    const { clock, engine, triage, publish, handled } = await parkedOrders(0);
    await triage.setRule({ name: 'bugs', filter: { stop: 'bug' }, action: 'replay' }, act);
    const upkeep = maintenance({ engine, clock, every: '5s', parkingsMax: 2, request: { canary: 0 } });
    upkeep.start();
    await publish({ id: 'a' });
    await clock.advance('10m');
    expect(handled).toEqual(['a', 'a', 'a']);
    await upkeep.stop();
  });

  test('resumes replays that no process runs, and removes expired entries', async () => {
    const { clock, engine, triage, replays, bug } = await parkedOrders(10, { keepParked: '1h' });
    bug.isFixed = true;
    const { id } = await replays.begin({ kind: 'replay', filter: { ids: ['e001', 'e002'] }, canary: 0 }, act);
    const upkeep = maintenance({ engine, clock, every: '30s' });
    upkeep.start();
    await clock.advance('5m');
    expect(await triage.operations.get(id)).toMatchObject({ stage: 'done', counts: { succeeded: 2 } });
    await clock.advance('1h');
    expect(await triage.count({ topic: 'orders' })).toBe(0);
    expect((await engine.audit.list({}, { limit: 9 })).items).toEqual(
      expect.arrayContaining([expect.objectContaining({ what: 'retention', count: 10 })]),
    );
    await upkeep.stop();
  });
});

describe('an operation', () => {
  test('discards what matches, and its undo restores exactly that', async () => {
    const { engine, triage, replays } = await parkedOrders(30);
    const [early] = (await triage.list({ topic: 'orders' }, { limit: 1 })).items;
    await discardOne(replays, early!.id);
    const { id } = await replays.begin({ kind: 'discard', filter: { topic: 'orders' } }, act);
    expect(await replays.run(id)).toMatchObject({ stage: 'done', counts: { changed: 29 } });
    expect(await triage.count({ topic: 'orders' })).toBe(0);

    const [entry] = (await engine.audit.list({ subject: `operation:${id}` }, { limit: 1 })).items;
    expect(canUndo(entry!)).toBe(true);
    await undo(engine, entry!.id, { who: 'bo', why: 'the wrong topic' });
    expect(await triage.count({ topic: 'orders' })).toBe(29);
    expect((await triage.get(early!.id))?.status).toBe('discarded');
    expect(canUndo((await engine.audit.get(entry!.id))!)).toBe(false);
    await expect(undo(engine, entry!.id, act)).rejects.toMatchObject({
      code: 'HOLDFAST_TRIAGE_NOT_UNDOABLE',
    });
  });

  test('that keeps events longer is undone to the time they had', async () => {
    const { engine, triage, replays } = await parkedOrders(3);
    const before = (await triage.get('e000'))!.removedAt;
    const { id } = await replays.begin({ kind: 'keep', filter: { topic: 'orders' }, keepMs: 1 }, act);
    await replays.run(id);
    expect((await triage.get('e000'))!.removedAt).toBeLessThan(before);
    const [entry] = (await engine.audit.list({ what: 'keep' }, { limit: 1 })).items;
    await undo(engine, entry!.id, act);
    expect((await triage.get('e000'))!.removedAt).toBe(before);
  });

  test('of another kind is not undone', async () => {
    const { engine, replays } = await parkedOrders(1);
    await replays.begin({ kind: 'replay', filter: { topic: 'orders' } }, act);
    const [entry] = (await engine.audit.list({ what: 'replay' }, { limit: 1 })).items;
    await expect(undo(engine, entry!.id, act)).rejects.toThrow('replay cannot be undone');
    await expect(undo(engine, 'nothing', act)).rejects.toThrow('id: expected the id of an audit entry');
  });

  test('begins once, however often it is asked for under the same id', async () => {
    const { triage, replays } = await parkedOrders(2);
    const request = { kind: 'discard', filter: { topic: 'orders' } } as const;
    const first = await replays.begin(request, act, 'button-1');
    const second = await replays.begin(request, act, 'button-1');
    expect(second.id).toBe(first.id);
    expect((await triage.operations.list({}, { limit: 9 })).items).toHaveLength(1);
  });

  test('changes its rate while it runs', async () => {
    const { bug, replays, run, clock } = await parkedOrders(30);
    bug.isFixed = true;
    const filter = { topic: 'orders' };
    const { id } = await replays.begin({ kind: 'replay', filter, rate: 0.1, canary: 0 }, act);
    const running = run(id);
    await clock.advance('1s');
    expect(await replays.setRate(id, 100, act)).toBe(true);
    const from = clock.now();
    await running;
    expect(clock.now() - from).toBeLessThan(30_000);
    expect(await replays.setRate(id, 5, act)).toBe(false);
    await expect(replays.setRate(id, 0, act)).rejects.toThrow('rate: expected events a second');
  });

  test('of an unknown kind is refused', async () => {
    const { replays } = await parkedOrders(1);
    const wrong = { kind: 'delete', filter: { topic: 'orders' } } as never;
    await expect(replays.begin(wrong, act)).rejects.toThrow('kind: expected one of replay, discard');
  });
});

describe('undo of a control or a rule', () => {
  test('puts back what was there before', async () => {
    const { engine, triage, clock } = stage();
    await engine.controls.impose({ kind: 'concurrency', topic: 'orders', concurrencyMax: 2 }, act);
    await engine.controls.impose({ kind: 'concurrency', topic: 'orders', concurrencyMax: 9 }, act);
    const latest = async () => (await engine.audit.list({}, { limit: 1 })).items[0]!;
    await undo(engine, (await latest()).id, act);
    const { controls } = await engine.controls.active();
    expect(controls.map(({ control }) => control)).toEqual([
      { kind: 'concurrency', topic: 'orders', concurrencyMax: 2 },
    ]);
    await engine.controls.lift(controls[0]!.id, act);
    await undo(engine, (await latest()).id, act);
    expect((await engine.controls.active()).controls).toHaveLength(1);

    await triage.setRule({ name: 'a', filter: { stop: 'bug' }, action: 'notify' }, act);
    await undo(engine, (await latest()).id, act);
    expect(await triage.rules()).toEqual([]);
    await clock.advance('1s');
  });
});

describe('undo of a stale control', () => {
  test('is refused when the control was changed or ended since, and changes nothing', async () => {
    const { engine, clock } = stage();
    const pause = { kind: 'pause', topic: 'orders' } as const;
    await engine.controls.impose(pause, { who: 'ann', why: 'first' }, 600_000);
    await clock.advance('5s');
    const { id } = await engine.controls.impose(pause, { who: 'bo', why: 'second' });
    const [second, first] = (await engine.audit.list({ what: 'control_set' }, { limit: 2 })).items;
    await expect(undo(engine, first!.id, act)).rejects.toThrow('has changed since');
    await engine.controls.lift(id, act);
    await expect(undo(engine, second!.id, act)).rejects.toThrow('has changed since');
    expect((await engine.controls.active()).controls).toEqual([]);
  });
});

describe('differences', () => {
  test('names what is frequent among the chosen events and rare among the others', async () => {
    const scene = stage();
    await scene.open({ handler: ({ tenant }) => park(tenant === 'acme' ? 'no price' : 'late', down()) });
    await scene.publish(
      ...Array.from({ length: 20 }, (_, index) => ({ id: `a${index}`, tenant: 'acme', type: 'placed' })),
      ...Array.from({ length: 20 }, (_, index) => ({ id: `b${index}`, tenant: `t${index}`, type: 'placed' })),
    );
    await scene.clock.advance('5s');
    const found = await differences(scene.triage, { stop: 'no price' });
    expect(found).toEqual([{ by: 'tenant', value: 'acme', share: 1, otherShare: 0, count: 20 }]);
    await expect(differences(scene.triage, {})).rejects.toThrow('a filter that names nothing');
  });
});

describe('covered', () => {
  async function parkedOne(payload: string | Uint8Array, names: readonly string[]) {
    const { clock, open, publish, triage } = stage();
    const made = await open({ handler: () => park('bad'), redact: names, format: 'raw' });
    await publish({ id: 'a', payload, headers: { token: 'abc', region: 'eu' } });
    await clock.advance('1s');
    await triage.edit('a', { payload: '{"card":"4222","sum":2}' }, act);
    return { event: (await triage.get('a'))!, made };
  }

  test('masks the named fields wherever a person would see them, and nothing else', async () => {
    const { event, made } = await parkedOne('{"card":"4111","sum":1,"deep":[{"card":{"no":1}}]}', [
      'card',
      'token',
    ]);
    expect(made.state().redact).toEqual(['card', 'token']);
    const shown = covered(event, made.state().redact);
    expect(JSON.stringify(shown)).not.toMatch(/4111|4222|abc/);
    expect(shown.payload).toBe('{"card":"[redacted]","sum":2}');
    expect(shown.original!.payload).toBe('{"card":"[redacted]","sum":1,"deep":[{"card":"[redacted]"}]}');
    expect(shown.headers).toEqual({ token: '[redacted]', region: 'eu' });
    expect(event.payload).toContain('4222');
  });

  test('masks all of a payload that is not JSON, and nothing without names', async () => {
    const { event } = await parkedOne('{}', []);
    expect(covered(event, [])).toBe(event);
    expect(covered({ ...event, payload: 'card=4111' }, ['card']).payload).toBe('[redacted]');
    expect(covered({ ...event, payload: new Uint8Array([1]) }, ['card']).payload).toBe('[redacted]');
    const deep = `${'['.repeat(100)}${']'.repeat(100)}`;
    expect(covered({ ...event, payload: deep }, ['card']).payload).toBe('[redacted]');
  });
});

async function discardOne(runner: OperationRunner, id: string): Promise<void> {
  await runner.run((await runner.begin({ kind: 'discard', filter: { ids: [id] } }, act)).id);
}

describe('maintenance whose clock or store is wrong', () => {
  test.each([5, -5])('overlooks nothing when its clock is %i minutes ahead', async (minutes) => {
    const { clock, engine, triage, bug, publish } = await parkedOrders(0);
    await triage.setRule({ name: 'bugs', filter: { stop: 'bug' }, action: 'replay' }, act);
    const aheadMs = minutes * 60_000;
    const wrong: Clock = {
      now: () => clock.now(),
      epochMs: () => clock.epochMs() + aheadMs,
      set: (alarm, at) => clock.set(alarm, at),
      clear: (alarm) => clock.clear(alarm),
    };
    const upkeep = maintenance({ engine, clock: wrong, every: '5s', request: { canary: 0 } });
    upkeep.start();
    await clock.advance('10m');
    for (const id of ['a', 'b']) {
      bug.isFixed = false;
      await publish({ id });
      await clock.advance('1s');
      bug.isFixed = true;
      await clock.advance('30m');
      expect((await triage.get(id))?.status).toBe('resolved');
    }
    await upkeep.stop();
  });

  test('makes the next round after one that failed, and stops, also without onError', async () => {
    const { clock, engine } = await parkedOrders(0);
    const failures: unknown[] = [];
    const onFailure = (error: unknown) => failures.push(error);
    process.on('unhandledRejection', onFailure);
    onTestFinished(() => void process.off('unhandledRejection', onFailure));
    let isAway = true;
    let rounds = 0;
    const { sweep } = engine;
    const away = new Error('the store is away');
    const moody = {
      ...engine,
      sweep: async (limit: number) => (isAway ? Promise.reject(away) : sweep(limit)),
    };
    const { rules } = moody.triage;
    moody.triage = {
      ...moody.triage,
      rules() {
        rounds += 1;
        return rules();
      },
    };
    const upkeep = maintenance({ engine: moody, clock, every: '5s' });
    upkeep.start();
    await clock.advance('1m');
    await expect.poll(() => failures).toContain(away);
    isAway = false;
    const before = rounds;
    await clock.advance('1m');
    expect(rounds).toBeGreaterThan(before);
    await upkeep.stop();
  });

  test('stops in the middle of a step, however slow its replay is', async () => {
    const { clock, engine, triage, replays } = await parkedOrders(2);
    const { id } = await replays.begin(
      { kind: 'replay', filter: { topic: 'orders' }, canary: 0, rate: 0.001 },
      act,
    );
    await triage.operations.select(id, 10);
    await triage.operations.move(id, 1, { stage: 'releasing' });
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    const { promise: answer, resolve: onAnswer } = Promise.withResolvers<void>();
    const { get } = triage.operations;
    const slow = {
      ...triage.operations,
      async get(of: string) {
        onAsked();
        await answer;
        return get(of);
      },
    };
    const upkeep = maintenance({ engine: { ...engine, triage: { ...triage, operations: slow } }, clock });
    upkeep.start();
    await asked;
    const stopping = upkeep.stop();
    onAnswer();
    let isStopped = false;
    void stopping.then(() => {
      isStopped = true;
    });
    await clock.advance('1s');
    expect(isStopped).toBe(true);
  });
});

describe('where the parking lot is a topic', () => {
  test('parked events are copied into a triage, with their diagnosis, and replays are reported to it', async () => {
    const { clock, broker, engine } = stage();
    const elsewhere = memoryEngine({ clock });
    const diagnosis = {
      reason: 'TypeError',
      message: 'a bug',
      stop: 'not_retryable',
      finalAttempt: 1,
      consumer: 'orders@1',
      error: undefined,
      story: [],
    };
    const lease = broker.lease.bind(broker);
    // An engine that keeps diagnoses in headers hands them out with the delivery.
    broker.lease = async (topic, request) => {
      const leased = await lease(topic, request);
      const isLot = topic === 'orders.dlq';
      return {
        ...leased,
        deliveries: leased.deliveries.map((each) => (isLot ? { ...each, diagnosis } : each)),
      };
    };
    let isAway = true;
    const put = elsewhere.triage.put.bind(elsewhere.triage);
    elsewhere.triage.put = async (events) => {
      if (isAway) throw new Error('the triage is away');
      return put(events);
    };
    const attendant = collectParked({ broker, topic: 'orders', triage: elsewhere.triage, clock });
    await attendant.start();
    await broker.publish('orders.dlq', [{ id: 'a', key: 'k', payload: '{"total":3}' }]);
    await clock.advance('30s');
    isAway = false;
    await clock.advance('5m');
    expect(await elsewhere.triage.get('a')).toMatchObject({
      topic: 'orders',
      key: 'k',
      status: 'parked',
      diagnosis,
    });

    const orders = consumer({
      broker,
      ledger: engine.ledger,
      triage: elsewhere.triage,
      topic: 'orders',
      clock,
      handler: () => {},
    });
    await orders.start();
    const replays = operations({ broker, triage: elsewhere.triage, clock });
    const { id } = await replays.begin({ kind: 'replay', filter: { topic: 'orders' }, canary: 0 }, act);
    const running = replays.run(id);
    await clock.advance('1m');
    expect(await running).toMatchObject({ stage: 'done', counts: { released: 1, succeeded: 1 } });
    for (const each of [attendant, orders]) await each.stop();
  });
});

test('parked events are collected from a dead-letter topic with another name', async () => {
  const { clock, engine } = stage();
  const { broker, triage } = engine;
  const attendant = collectParked({ broker, triage, topic: 'orders', from: 'orders-dead', clock });
  await attendant.start();
  await broker.publish('orders-dead', [{ id: 'a', payload: '1' }]);
  await clock.advance('1s');
  expect(await triage.get('a')).toMatchObject({ topic: 'orders', status: 'parked' });
  await attendant.stop();
});

describe('a rebuild', () => {
  test('runs another version of a handler over what was kept, once, and in order', async () => {
    const { clock, engine, storage, open, publish } = stage();
    await open({ keepSettled: '1d', handler: ({ id }) => commit((tx) => tx.put(`v1 ${id}`, '')) });
    await publish({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await clock.advance('1s');
    const seen: string[] = [];
    let fails = true;
    const again = (run: string) =>
      rebuild({
        ...{ engine, topic: 'orders', name: 'view@2', clock, run },
        handler: ({ id, mode }) => {
          seen.push(`${id} ${mode}`);
          if (id === 'b' && fails) throw new Error('a bug in version 2');
          return commit((tx) => tx.put(`v2 ${id}`, ''));
        },
      });
    await expect(again('one')).rejects.toThrow('a bug in version 2');
    fails = false;
    await clock.advance('2m');
    expect(await again('one')).toMatchObject({ handled: 2, skipped: 1 });
    expect(seen).toEqual(['a replay', 'b replay', 'b replay', 'c replay']);
    expect([...storage.effects.keys()].filter((name) => name.startsWith('v2'))).toEqual([
      'v2 a',
      'v2 b',
      'v2 c',
    ]);
    expect(await again('two')).toMatchObject({ handled: 3, skipped: 0 });
  });

  test('that failed can be taken up at once, with the event that it failed on', async () => {
    const { clock, engine, open, publish } = stage();
    await open({ keepSettled: '1d' });
    await publish({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await clock.advance('1s');
    const seen: string[] = [];
    let fails = true;
    const again = () =>
      rebuild({
        ...{ engine, topic: 'orders', name: 'view@2', clock, run: 'one' },
        handler: ({ id }) => {
          if (id === 'b' && fails) throw new Error('a bug in version 2');
          seen.push(id);
        },
      });
    await expect(again()).rejects.toThrow('a bug in version 2');
    fails = false;
    expect(await again()).toMatchObject({ handled: 2, skipped: 1 });
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  test('starts behind a position of the history', async () => {
    const { clock, engine, open, publish } = stage();
    await open({ keepSettled: '1d' });
    await publish({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await clock.advance('1s');
    const { cursor } = await engine.broker.history('orders', { limit: 2 });
    const seen: string[] = [];
    const handler = ({ id }: { id: string }) => void seen.push(id);
    await rebuild({ engine, topic: 'orders', name: 'view@2', clock, after: cursor, handler });
    expect(seen).toEqual(['c']);
  });

  test('that was killed leaves no event out: it waits for the one that was being handled', async () => {
    const { clock, engine, open, publish } = stage();
    await open({ keepSettled: '1d' });
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('1s');
    const settings = { engine, topic: 'orders', name: 'view@2', clock, run: 'one' };
    const claim = { scope: 'rebuild/view@2/one', key: 'a', fingerprint: '', whenLost: 'takeOver' as const };
    await engine.ledger.begin([{ ...claim, leaseMs: 60_000 }]);

    const seen: string[] = [];
    const again = rebuild({ ...settings, handler: ({ id }) => void seen.push(id) });
    await clock.advance('30s');
    expect(seen).toEqual([]);
    await clock.advance('1m');
    expect(await again).toMatchObject({ handled: 2, skipped: 0 });
    expect(seen).toEqual(['a', 'b']);
  });

  test('may take as long as it takes for an event', async () => {
    const { clock, engine, storage, open, publish } = stage();
    const orders = await open({ keepSettled: '1d' });
    await publish({ id: 'a' });
    await clock.advance('1s');
    await orders.stop();
    const { promise: worked, resolve: work } = Promise.withResolvers<void>();
    const rebuilt = rebuild({
      ...{ engine, topic: 'orders', name: 'view@2', clock },
      handler: async ({ id }) => {
        await worked;
        return commit((tx) => tx.put(`v2 ${id}`, ''));
      },
    });
    await clock.advance('10m');
    work();
    expect(await rebuilt).toMatchObject({ handled: 1 });
    expect([...storage.effects.keys()]).toContain('v2 a');
    expect(clock.pendingTimers).toBe(0);
  });

  test('within a range of time, and nothing but done and commit makes sense', async () => {
    const { clock, engine, open, publish } = stage();
    await open({ keepSettled: '1d' });
    await publish({ id: 'old' });
    await clock.advance('1h');
    const from = clock.epochMs();
    await publish({ id: 'new' });
    await clock.advance('1s');
    const seen: string[] = [];
    const settings = { engine, topic: 'orders', name: 'view@2', clock };
    await rebuild({ ...settings, from, handler: ({ id }) => void seen.push(id) });
    await rebuild({ ...settings, to: from, handler: ({ id }) => void seen.push(id) });
    expect(seen).toEqual(['new', 'old']);
    await expect(rebuild({ ...settings, handler: () => park('no') })).rejects.toThrow(
      'the answer for event old: expected done or commit, in a rebuild, got "park"',
    );
  });

  test('passes over nothing that its ledger has no room for', async () => {
    const { clock, engine, publish, open } = stage({ keysMax: 2 });
    const orders = await open({ keepSettled: '1d' });
    await publish({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await clock.advance('1s');
    await orders.stop();
    const seen: string[] = [];
    const handler = ({ id }: { id: string }) => void seen.push(id);
    const rebuilding = rebuild({ engine, topic: 'orders', name: 'view@2', clock, handler });
    await expect(rebuilding).rejects.toThrow('event c cannot be rebuilt: its key in the ledger is full');
    expect(seen).toEqual(['a', 'b']);
  });
});
