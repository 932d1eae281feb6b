import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { down, type Options, stage } from './stage.ts';

const schemas = {
  zod: z.object({ total: z.number(), lines: z.array(z.object({ price: z.number() })) }),
  valibot: v.object({ total: v.number(), lines: v.array(v.object({ price: v.number() })) }),
  arktype: type({ total: 'number', lines: type({ price: 'number' }).array() }),
  'zod, asynchronous': z
    .object({ total: z.number(), lines: z.array(z.object({ price: z.number() })) })
    .refine(async ({ total }) => total > 0, { path: ['total'], message: 'must be above zero' }),
};

describe.each(Object.entries(schemas))('a schema of %s', (_, schema) => {
  test('lets through what fits, typed, and parks the rest without a retry, with the issues', async () => {
    const { clock, open, publish, handled, parked } = stage();
    const totals: number[] = [];
    const orders = await open({
      schema: schema as Options<{ total: number; lines: { price: number }[] }>['schema'] & {},
      handler: ({ payload }) => void totals.push(payload.total),
    });
    await publish(
      { id: 'good', payload: '{"total":3,"lines":[{"price":3}]}' },
      { id: 'bad', payload: '{"total":3,"lines":[{"price":"much"}]}' },
    );
    await clock.advance('1m');
    expect([handled, totals]).toEqual([['good'], [3]]);
    const { diagnosis } = (await parked('bad'))!;
    expect(diagnosis).toMatchObject({ reason: 'HOLDFAST_POISON', stop: 'poison', finalAttempt: 1 });
    expect(diagnosis.message).toMatch(/lines\.0\.price: .*number/);
    expect(orders.state().counters.parkedBecause).toEqual({ poison: 1 });
  });
});

test('what is wrong in the same way is one group, however it was come upon', async () => {
  const { clock, open, publish, triage } = stage();
  await open({ schema: schemas.zod, concurrency: 1, handler: async () => {} });
  await publish(
    { id: 'good', payload: '{"total":3,"lines":[]}' },
    { id: 'a', payload: '{}' },
    { id: 'b', payload: '{}' },
  );
  await clock.advance('1s');
  await publish({ id: 'c', payload: '{}' });
  await clock.advance('1s');
  expect((await triage.groups({}, { limit: 9 })).items).toMatchObject([
    { reason: 'HOLDFAST_POISON', count: 3 },
  ]);
});

test('a payload that is not JSON is poison, when it is read', async () => {
  const { clock, open, publish, parked, left } = stage();
  await open({ handler: ({ id, payload }) => void [id, payload] });
  await publish({ id: 'a', payload: '{"total":' });
  await clock.advance('1m');
  expect((await parked('a'))?.diagnosis).toMatchObject({
    stop: 'poison',
    message: expect.stringContaining('the payload is not JSON'),
    error: { causes: [{ type: 'SyntaxError' }] },
  });
  expect(await left()).toEqual([]);
});

test('raw payloads are text and bytes, as they are', async () => {
  const { clock, open, publish } = stage();
  const seen: unknown[] = [];
  await open({ format: 'raw', handler: ({ payload }) => void seen.push(payload) });
  await publish({ id: 'a', payload: 'plain text' }, { id: 'b', payload: new Uint8Array([1, 2]) });
  await clock.advance('1s');
  expect(seen).toEqual(['plain text', new Uint8Array([1, 2])]);
});

describe('redaction', () => {
  test('covers named fields in message, stack, causes and story, wherever their values appear', async () => {
    const { clock, open, publish, parked } = stage();
    await open({
      redact: ['card', 'email', 'token'],
      handler: () => {
        throw new TypeError(`card 4111-1111 refused, body was {"email":"x@y.z","n":1} token=abc`, {
          cause: new Error('for 4111-1111'),
        });
      },
    });
    await publish({ id: 'a', payload: '{"card":{"number":"4111-1111"},"user":{"email":"ann@example.com"}}' });
    await clock.advance('1s');
    const parkedEvent = (await parked('a'))!;
    const { diagnosis } = parkedEvent;
    expect(JSON.stringify(diagnosis)).not.toMatch(/4111|x@y\.z|abc/);
    expect(diagnosis.message).toBe(
      'card [redacted] refused, body was {"email":[redacted],"n":1} token=[redacted]',
    );
    expect(diagnosis.error?.causes).toEqual([{ type: 'Error', message: 'for [redacted]' }]);
    // The event itself is kept: without it nothing could be replayed.
    expect(parkedEvent.payload).toContain('4111');
  });

  test('covers the values of a payload that came as bytes', async () => {
    const { clock, open, publish, parked } = stage();
    await open({
      redact: ['card'],
      handler: ({ payload }) => {
        throw new TypeError(`refused ${(payload as { card: string }).card}`);
      },
    });
    await publish({ id: 'a', payload: new TextEncoder().encode('{"card":"4111-1111"}') });
    await clock.advance('1s');
    expect((await parked('a'))?.diagnosis.message).toBe('refused [redacted]');
  });

  test('is nothing at all where no field is named', async () => {
    const { clock, open, publish, parked } = stage();
    await open({
      policy: { attempts: 1 },
      handler: () => {
        throw down('card=4111');
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1s');
    expect((await parked('a'))?.diagnosis.message).toBe('card=4111');
  });
});
