import {
  type AttemptRecord,
  continueStory,
  controlId,
  type Delivery,
  editDiff,
  errorNote,
  fingerprint,
  fixedWords,
  fromWire,
  normalizeStack,
  storyMax,
  timeOfId,
  timeOrderedId,
  toWire,
} from '@holdfast/contracts';
import fc from 'fast-check';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';

const here = `TypeError: Cannot read "street" of order 4711
    at ship (/srv/app/releases/2026-01-01/src/ship.ts:10:3)
    at async Object.handle (file:///srv/app/releases/2026-01-01/node_modules/@holdfast/events/dist/consumer.js:88:12)
    at new Order (C:\\build\\src\\order.js:1:2)
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)`;
const there = `TypeError: Cannot read "street" of order 15
    at ship (/home2/ci/w/src/ship.ts:12:31)
    at async Object.handle (/opt/x/node_modules/@holdfast/events/dist/consumer.js?v=2:90:1)
    at new Order (/build/src/order.js:7:7)`;

describe('a stack, normalised', () => {
  test('is the same on another machine, in another build', () => {
    expect(normalizeStack(there)).toBe(normalizeStack(here));
    expect(normalizeStack(here)).toBe(
      'at ship (src/ship.ts)\nat Object.handle (node_modules/@holdfast/events/dist/consumer.js)\nat Order (src/order.js)',
    );
  });

  test('loses the content hash of a bundle', () => {
    expect(normalizeStack('at x (/srv/dist/chunk-4f2a9b1c.js:1:99)')).toBe('at x (dist/chunk.js)');
  });

  test('stays as it is when it is normalised again', () => {
    const frame = fc
      .tuple(fc.constantFrom('ship', 'Object.a', 'async b', 'new C'), fc.webPath(), fc.nat(999))
      .map(([name, path, line]) => `    at ${name} (/srv${path}/a.ts:${line}:1)`);
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 10 }), (frames) => {
        const once = normalizeStack(['Error: x', ...frames].join('\n'));
        expect(normalizeStack(once)).toBe(once);
      }),
    );
  });
});

describe('the fixed words of a message', () => {
  test.each([
    ['Customer Anna has no order 17', 'customer has no order'],
    ['no stock of "blue chair" (in `Berlin`), try {"later": 1}', 'no stock of try'],
    ["can't find 'Anna' at https://x.example/y?z=1", "can't find at"],
    ['connect ECONNREFUSED 10.0.0.3:5432', 'connect'],
    ['duplicate key 0a4f-11ee: 018f2a9b-7c1d', 'duplicate key'],
    ['Не найден заказ 17', 'не найден заказ'],
    ['17', ''],
  ])('of %j are %j', (message, words) => {
    expect(fixedWords(message)).toBe(words);
  });

  test('are twelve at most, and the same when they are taken again', () => {
    expect(fixedWords('a '.repeat(99)).split(' ')).toHaveLength(12);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (message) => {
        const once = fixedWords(message);
        expect(fixedWords(once)).toBe(once);
      }),
    );
  });
});

describe('an error, noted', () => {
  const thrown = (message: string, more: object = {}, place = 'f (/a/b.ts:1:1)') =>
    errorNote(
      Object.assign(new TypeError(message), { stack: `TypeError: ${message}\n    at ${place}` }, more),
    ).fingerprint;

  test('is grouped by the place and the reason, and not by the values in the message', () => {
    const first = thrown('order 1 of Anna is refused');
    expect(thrown('order 27 of Berta is refused')).toBe(first);
    expect(thrown('order 1 of Anna is unknown')).not.toBe(first);
    expect(thrown('order 1 of Anna is refused', {}, 'g (/a/b.ts:1:1)')).not.toBe(first);
    expect(fingerprint('TypeError', 'at f (b.ts)')).not.toBe(fingerprint('RangeError', 'at f (b.ts)'));
  });

  test('is grouped by its own code, and by the status of a response', () => {
    const failed = [{ code: '23505' }, { code: '40001' }, { status: 404 }, { status: 503 }, {}];
    expect(new Set(failed.map((more) => thrown('the query failed', more))).size).toBe(5);
    expect(thrown('the query failed', { statusCode: 503 })).toBe(thrown('the query failed', { status: 503 }));
    expect(thrown('the query failed', { status: 'red' })).toBe(thrown('the query failed'));
    expect(thrown('the query failed', { status: 'fail', statusCode: 503 })).toBe(
      thrown('the query failed', { status: 503 }),
    );
  });

  test('is told from others by its message, if there is nothing else', () => {
    const bare = (message: string) => errorNote({ name: 'Error', message }).fingerprint;
    expect(bare('#1')).not.toBe(bare('#2'));
    expect(bare('order 1')).toBe(bare('order 2'));
  });

  test('keeps type, message, code and causes, within bounds', () => {
    const cause = new Error('reset', { cause: new Error('cable') });
    const note = errorNote(Object.assign(new RangeError('x'.repeat(9999), { cause }), { code: 'E_RANGE' }));
    expect(note).toMatchObject({
      type: 'RangeError',
      code: 'E_RANGE',
      causes: [{ message: 'reset' }, { message: 'cable' }],
    });
    expect(note.message).toHaveLength(512);
    expect(note.stack!.length).toBeLessThanOrEqual(8192);
  });

  test('says the code of the cause, and groups by it', () => {
    const failed = (code: string) => {
      const cause = Object.assign(new Error(code.toLowerCase()), { code });
      return errorNote(new TypeError('fetch failed', { cause }));
    };
    const [reset, again, unknown] = ['ECONNRESET', 'ECONNRESET', 'ENOTFOUND'].map(failed);
    expect(reset!.message).toBe('fetch failed (ECONNRESET)');
    expect(again!.fingerprint).toBe(reset!.fingerprint);
    expect(unknown!.fingerprint).not.toBe(reset!.fingerprint);
    const cause = Object.assign(new Error('x'), { code: 'E_RANGE' });
    expect(errorNote(new Error('it was E_RANGE', { cause })).message).toBe('it was E_RANGE');
    expect(errorNote(new Error('x'.repeat(999), { cause })).message).toMatch(/^x{502} \(E_RANGE\)$/);
  });

  test('shows every text to the redactor', () => {
    const error = new Error('card 4111', { cause: new Error('card 4111') });
    expect(JSON.stringify(errorNote(error, (text) => text.replaceAll('4111', '•')))).not.toContain('4111');
  });

  test('is made of anything that can be thrown', () => {
    const cycle: Record<string, unknown> = {};
    cycle.cause = cycle;
    const trap = {
      get message(): string {
        throw new Error('trap');
      },
    };
    for (const thrown of ['text', undefined, null, 7, cycle, trap, Object.create(null)]) {
      const note = errorNote(thrown);
      expect(JSON.parse(JSON.stringify(note))).toEqual(note);
    }
    fc.assert(fc.property(fc.anything(), (thrown) => errorNote(thrown).message.length <= 512));
  });
});

test('a long story keeps its beginning and its end', () => {
  const note = (attempt: number) => ({ attempt }) as AttemptRecord;
  let story: readonly AttemptRecord[] = [];
  for (let attempt = 1; attempt <= 100; attempt++) story = continueStory(story, note(attempt));
  expect(story).toHaveLength(storyMax);
  expect(story.map(({ attempt }) => attempt)).toEqual([
    1,
    2,
    3,
    4,
    5,
    ...Array.from({ length: 15 }, (_, i) => 86 + i),
  ]);
});

describe('ids', () => {
  test('are UUIDs of version 7 that say when they were made', async () => {
    const clock = virtualClock();
    const id = timeOrderedId(clock, seededRandom('ids'))();
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(timeOfId(id)).toBe(clock.epochMs());
    expect(timeOfId('order 1')).toBeUndefined();
  });

  test('grow, within a millisecond and when the clock goes back', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 50 }), fc.nat(), (jumps, seed) => {
        const clock = virtualClock();
        let shift = 0;
        const next = timeOrderedId(
          { ...clock, epochMs: () => 1_800_000_000_000 + shift },
          seededRandom(seed),
        );
        const ids = jumps.flatMap((jump) => {
          shift += jump - 1;
          return Array.from({ length: 200 }, next);
        });
        expect(ids).toEqual([...new Set(ids)].sort());
      }),
      { numRuns: 30 },
    );
  });
});

describe('headers on the wire', () => {
  const text = fc.string({ minLength: 1 });
  const count = fc.nat(1000);
  const note = fc.record({ type: text, message: text, fingerprint: text });
  const state = fc.record({
    ...{ id: text, type: fc.option(text, { nil: undefined }), key: fc.option(text, { nil: undefined }) },
    ...{
      tenant: fc.option(text, { nil: undefined }),
      correlationId: text,
      idempotencyKey: text,
      originTopic: text,
    },
    headers: fc.dictionary(
      text.map((name) => `x-${name}`),
      fc.string(),
    ),
    firstSeenAt: fc.integer({ min: 0 }),
    expiresAt: fc.option(fc.integer({ min: 0 }), { nil: undefined }),
    replay: fc.option(text, { nil: undefined }),
    ...{ attempts: count, snoozes: count, deaths: count, nextDelayMs: fc.option(count, { nil: undefined }) },
    lastError: fc.option(note, { nil: undefined }),
    story: fc.array(fc.record({ attempt: count, errorMessage: text }), { maxLength: 3 }),
    diagnosis: fc.constant(undefined),
  }) as unknown as fc.Arbitrary<Delivery>;

  test('come back as they went', () => {
    fc.assert(
      fc.property(state, (delivery) => {
        const read = fromWire(toWire(delivery));
        const { id, correlationId = id, idempotencyKey = id } = read;
        expect({ ...read, correlationId, idempotencyKey }).toEqual(delivery);
      }),
    );
  });

  test('have the names that people know', () => {
    const error = { type: 'TypeError', message: 'no street', fingerprint: 'f' };
    const story = [{ attempt: 1 } as AttemptRecord];
    const diagnosis = {
      reason: 'TypeError',
      message: 'no street',
      stop: 'poison',
      finalAttempt: 6,
      consumer: 'shipping',
      error,
      story,
    };
    const [delivery] = fc.sample(state, 1);
    const wire = toWire({ ...delivery!, diagnosis, attempts: 5 });
    expect(wire).toMatchObject({
      ...{
        'retry-attempt': '5',
        'dlq-reason': 'TypeError',
        'dlq-message': 'no street',
        'dlq-stop': 'poison',
        'dlq-consumer': 'shipping',
      },
      ...{
        'final-attempt': '6',
        'origin-topic': delivery!.originTopic,
        'first-seen-ts': `${delivery!.firstSeenAt}`,
      },
    });
    expect(fromWire(wire).diagnosis).toEqual(diagnosis);
  });

  test('say nothing that is told elsewhere', () => {
    const untried = {
      attempts: 0,
      snoozes: 0,
      deaths: 0,
      nextDelayMs: undefined,
      lastError: undefined,
      story: [],
    };
    const untold = { key: undefined, originTopic: undefined, firstSeenAt: undefined, expiresAt: undefined };
    const rest = { replay: undefined, diagnosis: undefined, headers: {}, type: undefined, tenant: undefined };
    const same = { id: 'e1', correlationId: 'e1', idempotencyKey: 'e1' };
    expect(toWire({ ...same, ...untried, ...untold, ...rest })).toEqual({ 'event-id': 'e1' });
    expect(toWire({ ...same, ...untried, ...untold, ...rest, dueAt: 5, payloadKind: 'bytes' })).toEqual({
      ...{ 'event-id': 'e1', 'due-ts': '5', 'payload-kind': 'bytes' },
    });
  });

  test('that a stranger wrote are taken for what they can be', () => {
    const state = fromWire({
      'retry-attempt': 'many',
      'last-error': '{',
      'retry-story': '7',
      'x-own': 'kept',
    });
    expect(state).toMatchObject({
      id: '',
      attempts: 0,
      lastError: undefined,
      story: [],
      headers: { 'x-own': 'kept' },
    });
  });
});

describe('the difference that an edit makes', () => {
  test('is told by path', () => {
    const before = { payload: '{"lines":[{"price":1},{"price":2}],"note":"x"}', headers: { a: '1', b: '2' } };
    const after = { payload: '{"lines":[{"price":1},{"price":3}]}', headers: { a: '1', c: '3' } };
    expect(editDiff(before, after)).toEqual([
      { path: 'payload.lines.1.price', before: '2', after: '3' },
      { path: 'payload.note', before: '"x"', after: undefined },
      { path: 'headers.b', before: '"2"', after: undefined },
      { path: 'headers.c', before: undefined, after: '"3"' },
    ]);
  });

  test('is told whole where the payload is not JSON', () => {
    expect(editDiff({ payload: 'old', headers: {} }, { payload: 'new', headers: {} })).toEqual([
      { path: 'payload', before: '"old"', after: '"new"' },
    ]);
    const bytes = editDiff(
      { payload: Uint8Array.of(1), headers: {} },
      { payload: Uint8Array.of(2), headers: {} },
    );
    expect(bytes).toHaveLength(1);
  });

  test('is none exactly when nothing changed', () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (payload, other) => {
        const changes = editDiff({ payload, headers: {} }, { payload: other, headers: {} });
        expect(changes.length === 0).toBe(
          JSON.stringify(JSON.parse(payload)) === JSON.stringify(JSON.parse(other)),
        );
      }),
    );
  });
});

test('a control of half a character has an id like any other', () => {
  expect(controlId({ kind: 'skip', topic: 'orders', eventId: 'a\ud800' })).toBe('skip:orders:a%EF%BF%BD');
});
