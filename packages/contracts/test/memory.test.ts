import { advanceOperation, defaultReplay, type Engine, ruleFor } from '@holdfast/contracts';
import { type MemoryOptions, MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';

function setup(options: MemoryOptions = {}) {
  const clock = virtualClock();
  return { clock, ...memoryEngine({ clock, random: seededRandom('memory'), ...options }) };
}

const act = { who: 'ada', why: 'a test' };
const error = { type: 'Error', message: 'no', fingerprint: 'f' };

describe('memory is bounded', () => {
  test('in events, and a refused batch stores nothing', async () => {
    const { broker } = setup({ eventsMax: 3 });
    await broker.declare('orders');
    await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }]);
    const refused = broker.publish('orders', [{ payload: 'c' }, { payload: 'd' }]);
    await expect(refused).rejects.toMatchObject({ code: 'HOLDFAST_ENGINE_FULL' });
    expect(await broker.counts('orders')).toMatchObject({ ready: 2 });
  });

  test('in keys: strangers are refused, and keys come free again', async () => {
    const { ledger, clock } = setup({ keysMax: 2 });
    const claim = (key: string) => ({ scope: 's', key, fingerprint: 'f', leaseMs: 10, keepMs: 100 });
    const kinds = (await ledger.begin([claim('a'), claim('b'), claim('c')])).map(({ kind }) => kind);
    expect(kinds).toEqual(['acquired', 'acquired', 'full']);
    await clock.advance(100);
    expect(await ledger.begin([claim('c')])).toMatchObject([{ kind: 'acquired' }]);
  });

  test('in marks: it refuses rather than forgets', async () => {
    const { ledger } = setup({ marksMax: 1 });
    await ledger.mark([{ handler: 'h', eventId: '1' }]);
    await expect(ledger.mark([{ handler: 'h', eventId: '2' }])).rejects.toMatchObject({
      code: 'HOLDFAST_ENGINE_FULL',
    });
    expect(await ledger.isMarked([{ handler: 'h', eventId: '1' }])).toEqual([true]);
  });

  test('in rate limits: strangers share one, and no debt is forgiven', async () => {
    const { rateLimits, clock } = setup({ rateLimitsMax: 2 });
    const take = (key: string) => [{ key, ratePerMs: 0.001, burst: 1 }];
    const allowed = async (...keys: string[]) =>
      (await rateLimits.take(keys.map(take))).map((answer) => answer.allowed);
    expect(await allowed('a', 'b', 'c', 'd', 'a')).toEqual([true, true, true, false, false]);
    await clock.advance('1s');
    expect(await allowed('d', 'e')).toEqual([true, true]);
  });

  test('in settled events and audit entries: the oldest go', async () => {
    const { broker, triage, audit } = setup({ settledMax: 2, auditMax: 2 });
    await broker.declare('orders', { keepSettledMs: 1000 });
    await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }, { payload: 'c' }]);
    const { deliveries } = await broker.lease('orders', { owner: 'w', limit: 3, leaseMs: 1000 });
    await broker.settle(deliveries.map(({ lease }) => ({ lease, kind: 'ack' })));
    const { items } = await broker.history('orders', { limit: 9 });
    expect(items.map(({ payload }) => payload)).toEqual(['b', 'c']);
    for (const name of ['x', 'y', 'z'])
      await triage.setRule({ name, filter: { reason: 'E' }, action: 'notify' }, act);
    const entries = (await audit.list({}, { limit: 9 })).items;
    expect(entries.map(({ subjects }) => subjects[0])).toEqual(['rule:z', 'rule:y']);
  });
});

describe('a sweep', () => {
  test('removes what has outlived its time, at most so many at once', async () => {
    const { ledger, clock, sweep } = setup({ keepMarksMs: 10 });
    await ledger.mark(['1', '2', '3'].map((eventId) => ({ handler: 'h', eventId })));
    expect(await sweep(10)).toBe(0);
    await clock.advance(10);
    expect(await sweep(2)).toBe(2);
    expect(await sweep(2)).toBe(1);
  });

  test('leaves what a replay still has to hear of', async () => {
    const engine = setup();
    await parkOne(engine, 10);
    const { operations } = engine.triage;
    const request = { ...defaultReplay, rate: 1, canary: 0 };
    const { id } = await operations.begin({ ...request, filter: { topic: 'orders' } }, act);
    await operations.select(id, 1);
    await engine.clock.advance(20);
    expect(await engine.sweep(10)).toBe(0);
    await operations.unselect(id, 1);
    expect(await engine.sweep(10)).toBe(1);
  });
});

test('a replay ends with the settlement of what it released', async () => {
  const engine = setup();
  const { broker, triage } = engine;
  const event = await parkOne(engine);
  const request = { ...defaultReplay, rate: 1, canary: 0 };
  const { id } = await triage.operations.begin({ ...request, filter: { ids: [event] } }, act);
  await triage.operations.select(id, 1);
  await triage.operations.release(id, 1, (topic, events) => broker.publish(topic, events));
  const [delivery] = (await broker.lease('orders', { owner: 'w', limit: 1, leaseMs: 1000 })).deliveries;
  expect(delivery).toMatchObject({ id: event, replay: id, attempt: 1, originTopic: 'orders' });
  await broker.settle([{ lease: delivery!.lease, kind: 'ack' }]);
  expect(await triage.get(event)).toMatchObject({ status: 'resolved' });
  expect((await triage.operations.get(id))?.counts).toMatchObject({ released: 1, succeeded: 1 });
});

test('a replay whose canary takes long is looked at in peace', async () => {
  const engine = setup();
  const { clock } = engine;
  const filter = { ids: [await parkOne(engine), await parkOne(engine)] };
  const request = { ...defaultReplay, filter, canary: 1, canaryMs: 1000 };
  const { id } = await engine.triage.operations.begin(request, act);
  let looks = 0;
  for (let left = 60_000; left > 0; looks++) {
    const step = await advanceOperation(engine.triage, id, clock, async () => {});
    expect(step?.operation.stage).not.toBe('releasing');
    left -= step!.waitMs!;
    await clock.advance(step!.waitMs!);
  }
  expect(looks).toBeLessThan(1000);
});

test('pages of what two processes did within a millisecond leave nothing out', async () => {
  const [clock, storage] = [virtualClock(), new MemoryStorage()];
  const processes = ['one', 'other'].map((name) =>
    memoryEngine({ clock, storage, random: seededRandom(name) }),
  );
  const request = { ...defaultReplay, filter: { topic: 'orders' } };
  for (let count = 0; count < 20; count++) await processes[count % 2]!.triage.operations.begin(request, act);
  const { triage, audit } = processes[0]!;
  for (const list of [audit.list, triage.operations.list]) {
    const { items } = await list({}, { limit: 20 });
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await list({}, { limit: 3, ...(cursor !== undefined && { cursor }) });
      ids.push(...page.items.map(({ id }) => id));
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect(ids).toEqual(items.map(({ id }) => id));
    expect(ids.length).toBe(20);
  }
});

test('a commit that outlasts its lease changes nothing', async () => {
  const { broker, ledger, clock } = setup();
  await broker.declare('orders');
  await broker.publish('orders', [{ payload: 'a' }]);
  const [delivery] = (await broker.lease('orders', { owner: 'w', limit: 1, leaseMs: 10 })).deliveries;
  const slowly = () => clock.advance(20);
  const settled = await broker.settle([
    { lease: delivery!.lease, kind: 'ack', marks: ['h'], commit: slowly },
  ]);
  expect(settled).toMatchObject([{ took: false, because: 'lease_lost' }]);
  expect(await ledger.isMarked([{ handler: 'h', eventId: delivery!.id }])).toEqual([false]);

  const [begun] = await ledger.begin([{ scope: 's', key: 'k', fingerprint: 'f', leaseMs: 10 }]);
  const { hold } = begun as Extract<typeof begun, { kind: 'acquired' }>;
  const commit = () => clock.advance(20).then(() => 'late');
  const completed = await ledger.complete([{ hold, record: undefined, keepMs: 1000, commit }]);
  expect(completed).toMatchObject([{ took: false, because: 'lease_lost' }]);
});

test('the first rule that matches counts', async () => {
  const engine = setup();
  const event = await engine.triage.get(await parkOne(engine));
  const rules = [
    { name: 'other', filter: { reason: 'RangeError' }, action: 'discard' },
    { name: 'mine', filter: { reason: 'Error' }, action: 'replay' },
    { name: 'late', filter: { topic: 'orders' }, action: 'notify' },
  ] as const;
  expect(ruleFor(rules, event!)?.name).toBe('mine');
  expect(ruleFor(rules.slice(0, 1), event!)).toBeUndefined();
});

test('a doorbell may call the broker', async () => {
  const { broker } = setup();
  await broker.declare('orders');
  const seen: number[] = [];
  broker.doorbell('orders', async () => void seen.push((await broker.counts('orders')).ready));
  await broker.publish('orders', [{ payload: 'a' }]);
  await Promise.resolve();
  expect(seen).toEqual([1]);
});

test.each([
  [{ delayMs: 1, dueAt: 1 }, 'events[0].dueAt'],
  [{ delayMs: -1 }, 'events[0].delayMs'],
  [{ patienceMs: Number.NaN }, 'events[0].patienceMs'],
  [{ key: '' }, 'events[0].key'],
  [{ headers: { 'retry-attempt': '1' } }, 'events[0].headers'],
])('an event with %j is refused', async (wrong, path) => {
  const { broker } = setup();
  await broker.declare('orders');
  await expect(broker.publish('orders', [{ payload: 'a', ...wrong }])).rejects.toMatchObject({ path });
});

async function parkOne({ broker }: Required<Pick<Engine, 'broker'>>, keepMs = 1000): Promise<string> {
  await broker.declare('orders');
  await broker.publish('orders', [{ payload: 'a' }]);
  const [delivery] = (await broker.lease('orders', { owner: 'w', limit: 1, leaseMs: 1000 })).deliveries;
  await broker.settle([{ lease: delivery!.lease, kind: 'park', stop: 'poison', error, story: [], keepMs }]);
  return delivery!.id;
}

describe('options of a memory engine', () => {
  test('that are not known are refused', () => {
    expect(() => memoryEngine({ eventMax: 3 } as never)).toThrow(
      'eventMax: not an option; did you mean eventsMax?',
    );
  });

  test('that are undefined leave the defaults in force', async () => {
    const { rateLimits } = setup({
      rateLimitsMax: undefined,
      limits: undefined,
      storage: undefined,
      beforeWrite: undefined,
    });
    const take = (key: string) => [{ key, ratePerMs: 0.001, burst: 1 }];
    const answers = await rateLimits.take(['a', 'b'].map(take));
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true]);
  });
});
