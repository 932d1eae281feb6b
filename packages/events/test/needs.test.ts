import type { NewAssembly, NewlyParked, ProcessReport } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { needsOf, operations } from '../src/index.ts';

const act = { who: 'ann', why: 'a test' };

function setup() {
  const clock = virtualClock();
  const engine = memoryEngine({ clock });
  const kinds = async () => (await needsOf(engine)).needs.map(({ kind }) => kind);
  const says = async () => (await needsOf(engine)).needs.map((need) => need.says);
  return { clock, engine, kinds, says };
}

/** A process with a consumer of this topic. */
function report(topic: string): ProcessReport {
  return {
    ...{ id: 'p1', service: 'shop', host: 'web-1', pid: 7, version: '1', startedAt: 0, clockOffsetMs: 0 },
    ...{ controlsVersion: 0, notObeyed: [], policies: [], leftOut: 0 },
    consumers: [{ name: topic, topic, status: 'running', waitsFor: [] }],
  };
}

function parked(id: string, keepMs?: number): NewlyParked {
  return {
    ...{ id, topic: 'orders', payload: '', type: undefined, key: undefined, tenant: undefined, headers: {} },
    ...{ correlationId: id, idempotencyKey: id, originTopic: 'orders', firstSeenAt: 0, expiresAt: undefined },
    replay: undefined,
    diagnosis: {
      ...{ reason: 'TypeError', message: 'no total', stop: 'not_retryable', finalAttempt: 1 },
      ...{ consumer: 'orders', error: undefined, story: [] },
    },
    ...(keepMs !== undefined && { keepMs }),
  };
}

test('events that are due and that nobody consumes need a person', async () => {
  const { clock, engine, kinds, says } = setup();
  await engine.broker.declare('orders');
  await engine.broker.publish('orders', [{ payload: '1' }]);
  expect(await kinds()).toEqual([]);
  await clock.advance('11s');
  expect(await says()).toEqual([
    '1 event of "orders" is due for up to 11s, and no process that reports consumes them.',
  ]);
  await engine.presence.report(report('orders'));
  expect(await kinds()).toEqual([]);
  await clock.advance('1m');
  await engine.presence.report(report('orders'));
  expect(await says()).toEqual(['topic "orders" lags: its oldest event of 1 is due for 1m (limit: 1m).']);
  await engine.controls.impose({ kind: 'pause', topic: 'orders' }, act, 60_000);
  expect(await kinds()).toEqual([]);
});

test('a consumer that depends on a policy which nobody has needs a person', async () => {
  const { engine, says } = setup();
  const consumers = [{ name: 'orders', topic: 'orders', unknownDependencies: ['paymnt', 'xyz'] }];
  await engine.presence.report({
    ...report('orders'),
    consumers,
    policies: [{ name: 'payment', targets: [] }],
  });
  expect(await says()).toEqual([
    'consumer "orders" of shop@web-1 (7) depends on the policy "paymnt", which its process does not have; did you mean "payment"?',
    'consumer "orders" of shop@web-1 (7) depends on the policy "xyz", which its process does not have; it waits for nothing.',
  ]);
});

test('an operation that nobody moves on needs a person, until a process runs maintenance', async () => {
  const { clock, engine, says, kinds } = setup();
  await engine.triage.put([parked('e1')]);
  const { id } = await operations({ engine, clock }).begin(
    { kind: 'replay', filter: { topic: 'orders' } },
    act,
  );
  expect(await kinds()).toEqual([]);
  await clock.advance('3s');
  expect(await says()).toEqual([
    `replay ${id} is at "selecting" for 3s, and no process that reports here runs maintenance.`,
  ]);
  await engine.presence.report({ ...report('orders'), maintains: true });
  expect(await kinds()).toEqual([]);
});

test('a group needs a person while it grows', async () => {
  const { clock, engine, kinds } = setup();
  await engine.triage.put(Array.from({ length: 9 }, (_, index) => parked(`e${index}`)));
  expect(await kinds()).toEqual([]);
  await engine.triage.put([parked('e9')]);
  expect(await kinds()).toEqual(['growing']);
  await clock.advance('6m');
  expect(await kinds()).toEqual([]);
});

test('a group goes on only if its last event was parked within a minute', async () => {
  const { clock, engine } = setup();
  const group = (name: string, count: number) =>
    engine.triage.put(
      Array.from({ length: count }, (_, index) => {
        const event = parked(`${name}${index}`);
        const error = { type: name, message: name, fingerprint: name };
        return { ...event, diagnosis: { ...event.diagnosis, reason: name, message: name, error } };
      }),
    );
  const growing = async () => (await needsOf(engine)).needs.map(({ title, says }) => `${title} | ${says}`);
  await group('many', 50);
  await clock.advance('4m');
  await group('late', 10);
  await clock.advance('10s');
  await group('more', 12);
  expect(await growing()).toEqual([
    'One error has parked 12 events, and goes on | 12 events parked with more: more, 12 of them in the last 5m (a group of 10 or more that still grows).',
    'One error has parked 10 events, and goes on | 10 events parked with late: late, 10 of them in the last 5m (a group of 10 or more that still grows).',
    'One error has parked 50 events, the last one 4m ago | 50 events parked with many: many, 50 of them in the last 5m, the last one 4m ago (a group of 10 or more).',
  ]);
});

describe('assemblies that are due', () => {
  const start = (id: string, more: Partial<NewAssembly> = {}) =>
    ({ kind: 'start', start: { id, name: 'order', version: 2, input: '1', ...more } }) as const;
  const claim = { worker: 'w1', leaseMs: 600_000, limit: 1, programs: [{ name: 'order', version: 2 }] };

  test('need a person if no process runs their program', async () => {
    const { clock, engine, says, kinds } = setup();
    await engine.journal.record([start('a'), start('b'), start('later', { dueInMs: 36e5 })]);
    expect(await kinds()).toEqual([]);
    await clock.advance('7m');
    expect((await needsOf(engine)).needs).toEqual([
      {
        ...{ kind: 'assemblies', about: { kind: 'topic', name: 'assembly/order' } },
        title: 'Nobody runs "order@2"',
        says: '2 assemblies of "order@2" are due for up to 7m, and no process runs this program.',
        command: 'assembly ls --name order --version 2 --state waiting',
      },
    ]);
    await engine.controls.impose({ kind: 'pause', topic: 'assembly/order' }, act, 60_000);
    expect(await says()).toEqual([]);
  });

  test('need a person later if workers have others of their program', async () => {
    const { clock, engine, says, kinds } = setup();
    await engine.journal.record([start('a'), start('b')]);
    await engine.journal.claim(claim);
    await clock.advance('30s');
    expect(await kinds()).toEqual([]);
    await clock.advance('1m');
    expect(await says()).toEqual([
      '1 assembly of "order@2" is due for up to 1m, and no worker takes them: 1 other of this program is leased to workers that are busy, or dead.',
    ]);
  });

  test('need nobody if a queue or a quarantine holds them', async () => {
    const { clock, engine, kinds } = setup();
    await engine.journal.setQueue('bank', { concurrency: 1 });
    const queued = [start('a', { queue: 'bank' }), start('b', { queue: 'bank' })];
    await engine.journal.record([...queued, start('c', { tenant: 'acme' })]);
    await engine.controls.impose({ kind: 'quarantine', topic: 'assembly/order', tenant: 'acme' }, act, 36e5);
    await engine.journal.claim(claim);
    await clock.advance('2m');
    expect(await kinds()).toEqual([]);
  });
});

test('parked events that do not grow in number are named at any age, until a replay has them', async () => {
  const { clock, engine } = setup();
  await engine.triage.put(Array.from({ length: 1250 }, (_, index) => parked(`e${index}`)));
  expect((await needsOf(engine)).notes).toEqual([]); // the need for a growing group names them
  await clock.advance('11m');
  expect((await needsOf(engine)).notes).toMatchObject([
    { says: '1,250 events wait in the parking lot, none new for 11m.', command: 'dlq groups' },
  ]);
  const { id } = await operations({ engine, clock }).begin(
    { kind: 'replay', filter: { topic: 'orders' } },
    act,
  );
  await engine.triage.operations.select(id, 1250);
  expect((await needsOf(engine)).notes).toEqual([]);
});

test('a breaker that probes in vain every second has not been closed, and needs a person', async () => {
  const { engine, kinds } = setup();
  const state = (failingForMs: number) => ({
    ...report('orders'),
    policies: [
      {
        name: 'payment',
        targets: [{ target: 'bank', inFlight: 0, breaker: 'half-open', breakerForMs: 100, failingForMs }],
      },
    ],
  });
  await engine.presence.report(state(9000));
  expect(await kinds()).toEqual([]);
  await engine.presence.report(state(11_000));
  expect(await kinds()).toEqual(['breakers']);
});

test('the breakers of a policy are one need, whatever their number', async () => {
  const { engine } = setup();
  const target = (name: string) => ({ target: name, inFlight: 0, breaker: 'open', failingForMs: 25_000 });
  const policies = [{ name: 'payment', targets: [target('a'), target('b')] }];
  for (const id of ['p1', 'p2']) await engine.presence.report({ ...report('orders'), id, policies });
  expect((await needsOf(engine)).needs).toMatchObject([
    {
      title: '2 breakers of payment are open',
      says: '2 breakers of policy "payment" are open for 25s in 2 processes (limit: 10s).',
    },
  ]);
});

test('a control without an end is forgotten after an hour, and a process that does not hear is found', async () => {
  const { clock, engine, kinds, says } = setup();
  await engine.controls.impose({ kind: 'retries', policy: 'payment', state: 'off' }, act);
  expect(await kinds()).toEqual([]);
  await clock.advance('20s');
  await engine.presence.report(report('orders'));
  expect(await says()).toEqual([
    '1 process of 1 did not hear of control retries:payment for 20s: shop@web-1 (7).',
  ]);
  await clock.advance('1h');
  expect(await says()).toEqual([
    'control retries:payment has no end: retries switched off by ann 1h ago: a test.',
  ]);
});

test('a breaker that is forced without an end needs a person at once', async () => {
  const { engine, kinds } = setup();
  await engine.controls.impose({ kind: 'breaker', policy: 'payment', state: 'open' }, act, 60_000);
  expect(await kinds()).toEqual([]);
  await engine.controls.impose({ kind: 'breaker', policy: 'payment', state: 'open' }, act);
  expect(await kinds()).toEqual(['controls']);
});

test('events that are about to be removed need a person', async () => {
  const { clock, engine, kinds, says } = setup();
  await engine.triage.put([parked('old', 48 * 36e5), parked('kept', 48 * 36e5)]);
  const runner = operations({ engine, clock });
  const { id } = await runner.begin({ kind: 'keep', filter: { ids: ['kept'] }, keepMs: 90 * 864e5 }, act);
  await runner.run(id);
  expect(await kinds()).toEqual([]);
  await clock.advance('25h');
  await engine.triage.put([parked('new', 48 * 36e5)]);
  expect(await says()).toEqual(['1 parked event will be removed within 1d, the first in 23h.']);
});

test('suspects and blocked keys are named, each with the command that lists them', async () => {
  const { clock, engine } = setup();
  const { broker } = engine;
  await broker.declare('orders', { ordering: 'key' });
  await broker.publish('orders', [
    { id: 'bad', payload: '1', key: 'k' },
    { id: 'next', payload: '2', key: 'k' },
    { id: 'deadly', payload: '3', key: 'l' },
  ]);
  const { deliveries } = await broker.lease('orders', { owner: 'o', limit: 9, leaseMs: 1000 });
  const { lease } = deliveries.find(({ id }) => id === 'bad')!;
  await broker.settle([{ lease, kind: 'park', stop: 'no', story: [], holdsKey: true }]);
  await clock.advance('2s');
  const { notes, figures } = await needsOf(engine);
  expect(notes.map(({ says, command }) => [says, command])).toContainEqual([
    '1 parked event of "orders" blocks its key: 1 later event waits until it is replayed or unblocked.',
    'topics waiting orders --state blocking',
  ]);
  expect(notes.map(({ says, command }) => [says, command])).toContainEqual([
    '1 event of "orders" may have crashed a process: it is handled while its consumer handles nothing else.',
    'topics waiting orders --state suspect',
  ]);
  expect(figures).toMatchObject({ suspects: 1, blocking: 1, parked: 1 });
});
