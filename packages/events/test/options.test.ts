import { memoryEngine } from '@holdfast/contracts/memory';
import {
  type ConsumerOptions,
  commit,
  consumer,
  drainOnSignals,
  type EventDraft,
  fixForward,
  joinFleet,
  maintenance,
  operations,
  outbox,
  PoisonError,
  producer,
  rebuild,
  topicControls,
} from '@holdfast/events';
import { describe, expect, test } from 'vitest';
import { stage } from './stage.ts';

const engine = memoryEngine();
const named = { engine, topic: 'orders' };
const misspelt = { patiance: '5s' };
const good = { engine, topic: 'orders', handler: () => {} };

describe('a consumer refuses, in one sentence that names field and value', () => {
  test.each<[object, string]>([
    [{ engine: undefined }, 'broker: expected a broker, or an engine that has one, got undefined'],
    [
      { engine: Promise.resolve(engine) },
      'engine: expected an engine: await it first, as in `await openSqlite(…)`, got "a promise"',
    ],
    [{ topic: '' }, 'topic: expected the name of a topic, got ""'],
    [{ concurency: 5 }, 'concurency: not an option; did you mean concurrency?'],
    [{ name: 5 }, 'name: expected a name for the handler, got 5'],
    [{ name: '' }, 'name: expected a name for the handler, got ""'],
    [{ name: 'a\0b' }, 'name: expected a text without NUL, got "a\\u0000b"'],
    [{ schema: {} }, 'schema: expected a schema of https://standardschema.dev, got {}'],
    [{ dependsOn: 'payment' }, 'dependsOn: expected a list of names, got "payment"'],
    [{ redact: 'card' }, 'redact: expected a list of names, got "card"'],
    [{ redact: [5] }, 'redact: expected a list of names, got [5]'],
    [{ policy: 'patient' }, 'policy: expected a document, got "patient"'],
    [{ retriesShare: '0.5' }, 'retriesShare: expected a number from 0 to 1, got "0.5"'],
    [{ handler: 'no' }, 'handler: expected a function, got "no"'],
    [{ concurrency: 0 }, 'concurrency: expected a whole number from 1, got 0'],
    [{ retriesShare: 2 }, 'retriesShare: expected a number from 0 to 1, got 2'],
    [{ effects: 'twice' }, 'effects: expected commit or once or off, got "twice"'],
    [{ ordering: 'time' }, 'ordering: expected none or key, got "time"'],
    [{ lease: '1 hour' }, 'lease: expected a duration such as "200ms", got "1 hour"'],
    [{ lease: 0 }, 'lease: expected at least 1 ms, got 0'],
    [{ parkedKeys: 'hold' }, 'parkedKeys: expected release or block, got "hold"'],
    [{ policy: { attempts: 0 } }, 'policy.attempts: expected a whole number of at least 1'],
    [{ policy: { atempts: 3 } }, 'policy.atempts: not an option; did you mean attempts?'],
    [{ policy: { patience: '5s' } }, 'policy.patience: expected nothing'],
    [
      { policy: { retryOn: ['sql', PoisonError] } },
      'policy.retryOn: expected a function such as (outcome) => (outcome.error instanceof PoisonError ? \'transient\' : undefined), got "class PoisonError"',
    ],
    [{ policy: { retryOnly: Error } }, 'got "class Error"'],
    [{ engine: undefined, broker: engine.broker, effects: 'once' }, 'ledger: expected a ledger'],
  ])('%o', (wrong, sentence) => {
    expect(() => consumer({ ...good, ...wrong } as ConsumerOptions)).toThrow(sentence);
  });
});

test.each<[string, () => unknown]>([
  ['producer', () => producer({ ...named, ...misspelt })],
  ['outbox', () => outbox({ ...named, ...misspelt })],
  ['operations', () => operations({ engine, ...misspelt })],
  ['maintenance', () => maintenance({ engine, ...misspelt })],
  ['rebuild', () => rebuild({ ...good, name: 'v2', ...misspelt })],
])('a misspelt option of a %s is refused', async (_, make) => {
  await expect(async () => make()).rejects.toThrow(/: not an option; /);
});

test('a misspelt field of an event, or a schema where options belong, is refused', async () => {
  const draft = { payload: 1, dely: '1s' } as EventDraft;
  await expect(async () => producer(named).publish(draft)).rejects.toThrow(
    'dely: not an option; did you mean delay?',
  );
  const act = { who: 'ann', why: 'a test' };
  const schema = { '~standard': { validate: () => ({ issues: [{ message: 'no' }] }) } } as object;
  await expect(fixForward(engine.triage!, 'e1', {}, act, schema)).rejects.toThrow('~standard: not an option');
  expect(() => drainOnSignals([], { grce: '1s' } as object)).toThrow(
    'grce: not an option; did you mean grace?',
  );
});

test('maintenance refuses rounds without a pause, and rules that never give up', () => {
  expect(() => maintenance({ engine, every: 0 })).toThrow(
    'every: expected some time between two rounds, got 0',
  );
  expect(() => maintenance({ engine, parkingsMax: Number.NaN })).toThrow(
    'parkingsMax: expected a number from 1, got NaN',
  );
});

test('parked keys can only be blocked in a topic that is ordered by key', async () => {
  const { open } = stage();
  await expect(open({ parkedKeys: 'block' })).rejects.toThrow(
    'parkedKeys: expected release, because no event of topic "orders" waits for another (its ordering is "none"): ' +
      'give `ordering: \'key\'`, too, got "block"',
  );
  await open({ parkedKeys: 'block', ordering: 'key' });
});

test.each<[string, (engine: never) => unknown]>([
  ['producer', (promise) => producer({ engine: promise, topic: 'orders' })],
  ['outbox', (promise) => outbox({ engine: promise, topic: 'orders' })],
  ['operations', (promise) => operations({ engine: promise })],
  ['maintenance', (promise) => maintenance({ engine: promise })],
  ['joinFleet', (promise) => joinFleet({ engine: promise, service: 'shop' })],
])('%s refuses an engine that nobody has awaited', (_, make) => {
  expect(() => make(Promise.resolve(engine) as never)).toThrow('engine: expected an engine: await it first');
});

test('a consumer that was stopped says so when it is started again', async () => {
  const stopped = consumer(good);
  await stopped.start();
  await stopped.stop();
  await expect(stopped.start()).rejects.toThrow('the consumer orders was stopped');

  const never = consumer(good);
  await never.stop();
  await never.start();
  expect(never.state().status).toBe('stopped');
});

test('a producer, a rebuild, a handler result and the controls refuse wrong values', async () => {
  expect(() => producer({ engine, topic: 'orders', schema: {} as never })).toThrow(
    'schema: expected a schema',
  );
  const past = { engine, topic: 'orders', name: 'view@1' };
  await expect(rebuild({ ...past, handler: null as never })).rejects.toThrow('handler: expected a function');
  expect(() => commit(undefined as never)).toThrow('commit: expected a function, got undefined');

  const by = { who: 'ann', why: 'a test' };
  const controls = topicControls(engine.broker, 'orders');
  await expect(controls.quarantine({} as never, by)).rejects.toThrow(
    'what: expected a tenant or a key, got {}',
  );
  await expect(controls.quarantine({ key: 5 } as never, by)).rejects.toThrow('what: expected a text, got 5');
  await expect(controls.skip('', by)).rejects.toThrow('eventId: expected a text, got ""');
  await expect(controls.reroute('', by)).rejects.toThrow('to: expected a text, got ""');
  expect(() => topicControls(engine.broker, '')).toThrow('topic: expected a text, got ""');
  expect(await controls.active()).toEqual([]);
});

test('the policy is six attempts over half a minute, and a document changes parts of it', () => {
  const { policy } = consumer(good);
  expect(policy.settings).toMatchObject({
    attempts: 6,
    patience: Infinity,
    backoff: { base: 500, factor: 2, cap: 60_000, jitter: 'full' },
  });
  const other = consumer({ ...good, policy: { backoff: { base: '1s' } } }).policy;
  expect(other.settings).toMatchObject({ attempts: 6, backoff: { base: 1000, cap: 60_000 } });
});
