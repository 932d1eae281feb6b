import { commit, discard, done, park, reroute, retry, snooze } from '@holdfast/events';
import { permanent, transient, retryAfter as waitFor } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { act, down, stage } from './stage.ts';

describe('an event is done', () => {
  test.each([
    ['nothing', undefined],
    ['done', done()],
  ])('when its handler answers %s', async (_, answer) => {
    const { clock, open, publish, handled, left } = stage();
    const orders = await open({ handler: () => answer });
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('10ms');
    expect(handled).toEqual(['a', 'b']);
    expect(await left()).toEqual([]);
    expect(orders.state().counters).toMatchObject({ attempts: 2, succeeded: 2, dlqRate: 0 });
  });

  test('whatever other value an arrow function returns by accident', async () => {
    const { clock, open, publish, left } = stage();
    await open({ handler: (() => ({ kind: 'park', rows: 1 })) as never });
    await publish({ id: 'a' });
    await clock.advance('10ms');
    expect(await left()).toEqual([]);
  });

  test('with its effect, in one transaction', async () => {
    const { clock, storage, open, publish, left } = stage();
    await open({ name: 'view@1', handler: ({ id }) => commit((tx) => tx.put(id, 'seen')) });
    await publish({ id: 'a' });
    await clock.advance('10ms');
    expect(storage.effects.get('a')).toBe('seen');
    expect([...storage.marks.keys()]).toEqual(['view@1\0a']);
    expect(await left()).toEqual([]);
  });

  test('and its effect is not made again when it is published again', async () => {
    const { clock, storage, open, publish } = stage();
    let effects = 0;
    const orders = await open({
      handler: ({ id }) =>
        commit((tx) => {
          effects += 1;
          tx.put(id, 'seen');
        }),
    });
    await publish({ id: 'a' });
    await clock.advance('10ms');
    await publish({ id: 'a' });
    await clock.advance('10ms');
    expect(effects).toBe(1);
    expect(storage.effects.size).toBe(1);
    expect(orders.state().counters).toMatchObject({ succeeded: 2, repeated: 1 });
  });

  test('once, where every event is looked up before its handler is called', async () => {
    const { clock, open, publish, handled, left } = stage();
    const orders = await open({ effects: 'once' });
    await publish({ id: 'a' });
    await clock.advance('10ms');
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('10ms');
    expect(handled).toEqual(['a', 'b']);
    expect(orders.state().counters).toMatchObject({ succeeded: 3, repeated: 1 });
    expect(await left()).toEqual([]);
  });
});

describe('an event is tried again', () => {
  test('when the error is transient, six times in all, then it is parked with its story', async () => {
    const { clock, open, publish, handled, parked, left } = stage();
    const orders = await open({
      handler: () => {
        throw down();
      },
    });
    await publish({ id: 'a', key: 'k' });
    await clock.advance('5m');
    expect(handled.length).toBe(6);
    expect(await left()).toEqual([]);
    const { diagnosis } = (await parked('a'))!;
    expect(diagnosis).toMatchObject({
      reason: 'Error',
      message: 'connection reset',
      stop: 'attempts_exhausted',
      finalAttempt: 6,
      error: { code: 'ECONNRESET', stack: expect.stringContaining('handler-results.test.ts') },
    });
    expect(diagnosis.story.map(({ attempt, verdict, because }) => [attempt, verdict, because])).toEqual([
      ...[1, 2, 3, 4, 5].map((attempt) => [attempt, 'retry', 'transient']),
      [6, 'park', 'attempts_exhausted'],
    ]);
    for (const [index, { delayMs = 0 }] of diagnosis.story.slice(0, 5).entries()) {
      expect(delayMs).toBeGreaterThan(0);
      expect(delayMs).toBeLessThanOrEqual(500 * 2 ** index);
    }
    expect(orders.state().counters).toMatchObject({
      attempts: 6,
      retryAttempts: 5,
      parked: 1,
      dlqRate: 1,
      parkedBecause: { attempts_exhausted: 1 },
    });
  });

  test('and succeeds after it, which is counted', async () => {
    const { clock, open, publish } = stage();
    const modes: string[] = [];
    const orders = await open({
      handler: ({ attempt, mode }) => {
        modes.push(mode);
        if (attempt < 3) throw down();
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(modes).toEqual(['live', 'retry', 'retry']);
    expect(orders.state().counters).toMatchObject({ succeeded: 1, successAfterRetry: 1, retryAttempts: 2 });
  });

  test('with the delays of its policy', async () => {
    const { clock, open, publish } = stage();
    const at: number[] = [];
    await open({
      policy: { attempts: 4, backoff: { base: '1s', jitter: 'none' } },
      handler: () => {
        at.push(Math.round(clock.now() / 1000));
        throw down();
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(at).toEqual([0, 1, 3, 7]);
  });

  test('not before the time that a server named', async () => {
    const { clock, open, publish } = stage();
    const at: number[] = [];
    await open({
      handler: ({ attempt }) => {
        at.push(clock.now());
        if (attempt === 1) throw waitFor(new Error('slow down'), '20s');
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(at.length).toBe(2);
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(20_000);
  });

  test('when the handler wants it, whatever the error; unless that is marked as permanent', async () => {
    const { clock, open, publish, parked, handled } = stage();
    await open({ handler: ({ id }) => retry(id === 'a' ? new Error('odd') : permanent(new Error('final'))) });
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('5m');
    expect(handled.filter((id) => id === 'a').length).toBe(6);
    expect((await parked('b'))?.diagnosis).toMatchObject({ stop: 'not_retryable', finalAttempt: 1 });
  });

  test.each([
    [
      'an optimistic lock that was lost',
      Object.assign(new Error('row was updated'), { name: 'OptimisticLockError' }),
    ],
    ['a mark', transient(new Error('passing'))],
    ['a store that is full', Object.assign(new Error('x'), { code: 'HOLDFAST_SQLITE_FULL' })],
    ['a store that is locked', Object.assign(new Error('x'), { code: 'HOLDFAST_SQLITE_BUSY' })],
    ['a store that is away', Object.assign(new Error('x'), { code: 'HOLDFAST_POSTGRES_UNAVAILABLE' })],
    ['a version that was not expected', Object.assign(new Error('x'), { name: 'WrongExpectedVersionError' })],
  ])('after %s', async (_, error) => {
    const { clock, open, publish, handled } = stage();
    await open({
      handler: ({ attempt }) => {
        if (attempt === 1) throw error;
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(handled).toEqual(['a', 'a']);
  });

  test('when its commit fails, by the class of what that threw', async () => {
    const { clock, storage, open, publish, parked } = stage();
    await open({
      handler: ({ id, attempt }) =>
        commit((tx) => {
          if (id === 'bad') throw new TypeError('no such column');
          if (attempt === 1) throw down();
          tx.put(id, `attempt ${attempt}`);
        }),
    });
    await publish({ id: 'a' }, { id: 'bad' });
    await clock.advance('1m');
    expect(storage.effects.get('a')).toBe('attempt 2');
    expect((await parked('bad'))?.diagnosis).toMatchObject({ reason: 'TypeError', stop: 'not_retryable' });
  });
});

describe('an event is snoozed', () => {
  test('without counting an attempt', async () => {
    const { clock, open, publish, left } = stage();
    const seen: number[][] = [];
    await open({
      handler: ({ attempt, delivery }) => {
        seen.push([attempt, delivery.snoozes]);
        return delivery.snoozes < 2 ? snooze('10s') : undefined;
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(seen).toEqual([
      [1, 0],
      [1, 1],
      [1, 2],
    ]);
    expect(await left()).toEqual([]);
  });

  test('at most snoozesMax times: then attempts are counted, and it is parked', async () => {
    const { clock, open, publish, parked, handled } = stage();
    await open({ snoozesMax: 3, policy: { attempts: 2 }, handler: () => snooze('1s') });
    await publish({ id: 'a' });
    await clock.advance('5m');
    expect(handled.length).toBe(3 + 2);
    expect((await parked('a'))?.diagnosis.stop).toBe('attempts_exhausted');
  });
});

describe('an event leaves', () => {
  test('for the parking lot when the error is unknown', async () => {
    const { clock, open, publish, parked } = stage();
    const cause = new Error('the cause');
    await open({
      handler: () => {
        throw new TypeError('a mistake', { cause });
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect((await parked('a'))?.diagnosis).toMatchObject({
      reason: 'TypeError',
      stop: 'not_retryable',
      finalAttempt: 1,
      error: { causes: [{ type: 'Error', message: 'the cause' }] },
      story: [{ attempt: 1, class: 'fatal', verdict: 'park', errorMessage: 'a mistake' }],
    });
  });

  test.each<[string, () => unknown]>([
    ['whose code is a getter that throws', () => throwing(new Error('declined'), 'code')],
    ['whose code is no text', () => Object.assign(new Error('declined'), { code: Object.create(null) })],
    ['that no property can be read of', () => new Proxy(new Error('declined'), { get: refuse, has: refuse })],
    ['whose prototype is a secret', () => new Proxy(new Error('declined'), { getPrototypeOf: refuse })],
  ])('for the parking lot when something is thrown %s', async (_, thrown) => {
    const { clock, open, publish, parked, left } = stage();
    await publish({ id: 'a' }, { id: 'b' });
    const orders = await open({
      handler: ({ id }) => {
        if (id === 'a') throw thrown();
      },
    });
    await clock.advance('1s');

    expect(await parked('a')).toMatchObject({ diagnosis: { stop: 'not_retryable' } });
    expect(await left()).toEqual([]);
    expect(orders.state()).toMatchObject({ running: 0, counters: { succeeded: 1, parked: 1 } });
  });

  test('for the parking lot when its handler says so, with that word', async () => {
    const { clock, open, publish, parked } = stage();
    await open({
      keepParked: '1h',
      handler: ({ id }) => park('no such customer', id === 'b' ? down() : undefined),
    });
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('1m');
    expect((await parked('a'))?.diagnosis).toMatchObject({ stop: 'no such customer', error: undefined });
    expect((await parked('b'))?.diagnosis).toMatchObject({
      stop: 'no such customer',
      message: 'connection reset',
    });
    const kept = (await parked('a'))!;
    expect(kept.removedAt - kept.parkedAt).toBe(3_600_000);
  });

  test('for good', async () => {
    const { clock, open, publish, left, parked } = stage();
    const orders = await open({ handler: () => discard('a test order') });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect([await left(), await parked('a')]).toEqual([[], undefined]);
    expect(orders.state().counters.discarded).toBe(1);
  });

  test('for another topic', async () => {
    const { clock, broker, open, publish, left } = stage();
    await broker.declare('slow');
    await open({ handler: () => reroute('slow') });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect(await left()).toEqual([]);
    expect((await broker.waiting('slow', { limit: 10 })).items).toMatchObject([{ id: 'a', state: 'ready' }]);
  });

  test('for the parking lot when that topic does not exist', async () => {
    const { clock, open, publish, parked } = stage();
    await open({ handler: () => reroute('nowhere') });
    await publish({ id: 'a' });
    await clock.advance('1m');
    expect((await parked('a'))?.diagnosis).toMatchObject({
      stop: 'not_retryable',
      message: 'topic "nowhere" was never declared',
    });
  });
});

describe('an event whose patience is over', () => {
  test('is parked and not handled', async () => {
    const { clock, open, publish, parked, handled } = stage();
    await publish({ id: 'a', patienceMs: 1000 });
    await clock.advance('2s');
    await open();
    await clock.advance('10ms');
    expect(handled).toEqual([]);
    expect((await parked('a'))?.diagnosis).toMatchObject({
      stop: 'patience_too_short',
      reason: 'patience_too_short',
    });
  });

  test('is not retried when the delay would be longer than the patience', async () => {
    const { clock, open, publish, parked, handled } = stage();
    await open({
      policy: { backoff: { base: '10s', jitter: 'none' } },
      handler: () => {
        throw down();
      },
    });
    await publish({ id: 'a', patienceMs: 5000 });
    await clock.advance('1s');
    expect(handled).toEqual(['a']);
    expect((await parked('a'))?.diagnosis).toMatchObject({
      stop: 'patience_too_short',
      message: 'connection reset',
    });
  });

  test('keeps the error that it had before', async () => {
    const { clock, open, publish, parked, handled, broker } = stage();
    await open({
      policy: { backoff: { base: '1s', jitter: 'none' } },
      handler: () => {
        throw down();
      },
    });
    await publish({ id: 'a', patienceMs: 5000 });
    await clock.advance('500ms');
    await broker.controls.impose({ kind: 'pause', topic: 'orders' }, act);
    await clock.advance('1m');
    await broker.controls.lift('pause:orders', act);
    await clock.advance('1m');
    expect(handled).toEqual(['a']);
    expect((await parked('a'))?.diagnosis).toMatchObject({
      stop: 'patience_too_short',
      message: 'connection reset',
    });
  });
});

function refuse(): never {
  throw new Error('not to be looked at');
}

function throwing(error: Error, name: string): Error {
  return Object.defineProperty(error, name, { get: refuse });
}

test('a reroute to an unknown topic parks the event, and settlements of the same batch succeed', async () => {
  const { clock, open, publish, parked, left } = stage();
  await open({ handler: ({ id }) => (id === 'a' ? reroute(undefined as never) : undefined) });
  await publish({ id: 'a' }, { id: 'b' });
  await clock.advance('1s');
  const message = 'reroute: expected the name of a topic, got undefined';
  expect((await parked('a'))?.diagnosis).toMatchObject({ reason: 'HOLDFAST_OPTIONS', message });
  expect(await left()).toEqual([]);
});

test('any word may be a reason to park, and a long one is cut', async () => {
  const { clock, open, publish, parked } = stage();
  const words = ['constructor', '__proto__', 'x'.repeat(20_000)];
  const orders = await open({ handler: ({ id }) => park(words[Number(id)]!) });
  await publish({ id: '0' }, { id: '1' }, { id: '2' });
  await clock.advance('1s');
  const counted = [words[0], words[1], 'x'.repeat(512)].map((word) => [word, 1]);
  expect(Object.entries(orders.state().counters.parkedBecause)).toEqual(counted);
  expect((await parked('2'))?.diagnosis.stop).toHaveLength(512);
});
