import { AssemblyStoppedError, assembly, type Step } from '@holdfast/assembly';
import { permanent, transient } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { stage } from './stage.ts';

/** Charges and reserves, both of which can be undone, and then goes on with `rest`. */
function order(log: string[], rest: (step: Step) => unknown) {
  return assembly('order', async (step) => {
    await step.run('charge', () => 'paid', {
      undo: (paid, { outcome }) => void log.push(`refund ${paid} ${outcome}`),
    });
    await step.run('reserve', () => 7, { undo: (stock) => void log.push(`release ${stock}`) });
    await rest(step);
    return 'shipped';
  });
}

describe('a cancelled assembly compensates what was done, the latest first', () => {
  test.each<[string, (step: Step) => unknown]>([
    ['while it sleeps', (step) => step.sleep('long', '30d')],
    ['while it waits for a signal', (step) => step.waitFor('approved')],
    [
      'while it backs off in the store',
      (step) =>
        step.run('ship', () => Promise.reject(transient(new Error('down'))), {
          policy: { backoff: { base: '1h', cap: '2h', jitter: 'none' } },
        }),
    ],
    [
      'while it backs off in the process',
      (step) =>
        step.run('ship', () => Promise.reject(transient(new Error('down'))), {
          policy: { backoff: { base: '4s', cap: '4s', jitter: 'none' } },
        }),
    ],
    [
      'while it is parked',
      (step) => step.run('ship', () => Promise.reject(permanent(new Error('no street')))),
    ],
    [
      'while a step runs, which is aborted',
      (step) =>
        step.run(
          'ship',
          ({ signal }) =>
            new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
        ),
    ],
    ['after its end', () => undefined],
  ])('%s', async (_, rest) => {
    const { open, settle, pass } = stage();
    const log: string[] = [];
    const program = order(log, rest);
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined);
    await settle();
    await it.cancel('the customer left', 'ada');
    // News reaches a running worker within 50 ms.
    await pass(100);
    expect(log).toEqual(['release 7', 'refund paid done']);
    const { state, text, stop } = await it.status();
    expect({ state, text }).toEqual({ state: 'stopped', text: 'stopped because the customer left' });
    expect(stop).toEqual({ because: 'cancelled', message: 'the customer left', who: 'ada' });
    await expect(it.result()).rejects.toThrow(AssemblyStoppedError);
    await it.cancel('once more');
    await pass(1000);
    expect(log).toHaveLength(2);
  });

  test('in each state of a process that never heard of it', async () => {
    const { open, settle, pass } = stage();
    const log: string[] = [];
    const program = order(log, (step) => step.sleep('long', '30d'));
    const first = open([program]);
    await first.run();
    await first.start(program, undefined, { id: 'x' });
    await settle();
    first.kill();
    const second = open([program]);
    await second.get('x').cancel('enough');
    await second.run();
    await pass(60_000);
    expect(log).toEqual(['release 7', 'refund paid done']);
  });
});

test('compensates a step in flight whose outcome nobody knows', async () => {
  const { open, settle, pass } = stage();
  const log: string[] = [];
  const program = assembly('order', async (step) => {
    await step.run('charge', () => new Promise(() => {}), {
      undo: (paid, { outcome, stepKey }) => void log.push(`${paid} ${outcome} ${stepKey}`),
    });
  });
  const work = open([program], { grace: '2s' });
  await work.run();
  const it = await work.start(program, undefined, { id: 'x' });
  await settle();
  await it.cancel('too slow');
  await pass(1000);
  expect(log).toEqual([]);
  await pass(3000);
  expect(log).toEqual(['undefined unknown x/charge']);
  expect((await it.status()).state).toBe('stopped');
});

test('compensates a step that was in flight when its process died', async () => {
  const { open, settle, pass } = stage();
  const log: string[] = [];
  const program = assembly('order', async (step) => {
    await step.run('charge', () => new Promise(() => {}), {
      undo: (_, { outcome }) => void log.push(outcome),
    });
  });
  const first = open([program]);
  await first.run();
  await first.start(program, undefined, { id: 'x' });
  await settle();
  first.kill();
  const second = open([program]);
  await second.get('x').cancel('enough');
  await second.run();
  await pass(60_000);
  expect(log).toEqual(['unknown']);
});

test('does not compensate a step whose target has refused it', async () => {
  const { open, pass } = stage();
  const log: string[] = [];
  const program = assembly('order', { onFailure: 'undo' }, async (step) => {
    await step.run('reserve', () => 1, { undo: () => void log.push('release') });
    await step.run('charge', () => Promise.reject(permanent(new Error('card declined'))), {
      undo: () => void log.push('refund'),
    });
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await pass(100);
  expect(log).toEqual(['release']);
  expect((await it.status()).stop).toMatchObject({ because: 'not_retryable' });
});

test('tries a compensation again, and parks it for people when it is given up on', async () => {
  const { open, pass, settle } = stage();
  const log: string[] = [];
  let isBroken = true;
  const program = assembly('order', async (step) => {
    await step.run('charge', () => 1, { undo: () => void log.push('refund') });
    await step.run('reserve', () => 2, {
      undo: (_, { attempt }) => {
        log.push(`release ${attempt}`);
        if (isBroken)
          throw attempt < 3 ? transient(new Error('busy')) : permanent(new Error('no such stock'));
      },
    });
    await step.waitFor('approved');
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined, { id: 'x' });
  await settle();
  await it.cancel('enough');
  await pass(60_000, 60);
  expect(log).toEqual(['release 1', 'release 2', 'release 3']);
  const { assembly: stored } = await work.inspect('x');
  expect(stored).toMatchObject({
    state: 'parked',
    parked: { because: 'not_retryable', paths: ['~undo/reserve'] },
  });
  isBroken = false;
  await work.resume('x', { who: 'ada', why: 'the stock is there again' });
  await pass(1000);
  expect(log).toEqual(['release 1', 'release 2', 'release 3', 'release 1', 'refund']);
  expect((await it.status()).state).toBe('stopped');
});

test('refuses a cancellation after the pivot', async () => {
  const { open, settle } = stage();
  const program = assembly('order', async (step) => {
    await step.run('ship', () => 1, { pivot: true });
    await step.waitFor('received');
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await settle();
  await expect(it.cancel('too late')).rejects.toThrow('is committed');
});

describe('patience', () => {
  test('stops before a sleep that is too long, and compensates', async () => {
    const { open, pass } = stage();
    const log: string[] = [];
    const program = order(log, (step) => step.sleep('long', '2h'));
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { patience: '1h' });
    await pass(100);
    expect(log).toEqual(['release 7', 'refund paid done']);
    expect((await it.status()).stop).toMatchObject({ because: 'patience_too_short' });
  });

  test('stops before a retry that is too late', async () => {
    const { open, pass } = stage();
    const log: string[] = [];
    const program = order(log, (step) =>
      step.run('ship', () => Promise.reject(transient(new Error('down'))), {
        policy: { backoff: { base: '1m', cap: '1m', jitter: 'none' } },
      }),
    );
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { patience: '30s' });
    await pass(100);
    expect(log).toEqual(['release 7', 'refund paid done']);
    expect((await it.status()).text).toBe('stopped because step ship can not be done in time: down');
  });

  test('shrinks through steps, and aborts what runs when it ends', async () => {
    const { open, pass, clock } = stage();
    const left: number[] = [];
    const aborted: string[] = [];
    const program = assembly('order', async (step) => {
      await step.run('one', ({ patienceLeftMs }) => void left.push(patienceLeftMs));
      await step.sleep('nap', '6s');
      await step.run('two', ({ patienceLeftMs, signal }) => {
        left.push(patienceLeftMs);
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            aborted.push(`${clock.now()}`);
            reject(signal.reason);
          }),
        );
      });
    });
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { patience: '10s' });
    await pass(12_000, 120);
    expect(left[0]).toBe(10_000);
    expect(left[1]).toBeLessThanOrEqual(4000);
    expect(aborted).toHaveLength(1);
    expect((await it.status()).state).toBe('stopped');
  });

  test('ends while it is parked: it compensates by itself', async () => {
    const { open, pass } = stage();
    const log: string[] = [];
    const program = order(log, (step) =>
      step.run('ship', () => Promise.reject(permanent(new Error('no street')))),
    );
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { patience: '1h' });
    await pass(1000);
    expect((await it.status()).state).toBe('parked');
    await pass(3_700_000, 20);
    expect(log).toEqual(['release 7', 'refund paid done']);
    expect((await it.status()).state).toBe('stopped');
  });

  test('ends while it waits for a signal', async () => {
    const { open, pass } = stage();
    const log: string[] = [];
    const program = order(log, (step) => step.waitFor('approved', { patience: '2d' }));
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { patience: '1h' });
    await pass(3_500_000);
    expect(log).toEqual([]);
    await pass(200_000);
    expect(log).toEqual(['release 7', 'refund paid done']);
    expect((await it.status()).stop).toMatchObject({ because: 'patience_too_short' });
  });

  test('can be extended by the customer', async () => {
    const { open, pass } = stage();
    const log: string[] = [];
    const program = order(log, (step) => step.waitFor('restocked', { because: 'sold out', backOrder: true }));
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { patience: '1h' });
    await pass(1000);
    const { state, text } = await it.status();
    expect([state, text]).toEqual(['back-order', '2 steps done, back order: sold out']);
    await it.extend('7d');
    await pass(2 * 3_600_000);
    expect((await it.status()).state).toBe('back-order');
    await it.signal('restocked');
    await pass(1000);
    expect(await it.result()).toBe('shipped');
    expect(log).toEqual([]);
  });

  test('has classes, of which one is chosen at the start and shown', async () => {
    const { open } = stage();
    const program = assembly('order', { patience: { paid: '2m', free: '10s' } }, async (step) =>
      step.waitFor('go'),
    );
    const work = open([program]);
    await work.run();
    const paid = await (await work.start(program, undefined, { patience: 'paid' })).status();
    expect([paid.patienceClass, paid.patienceLeftMs]).toEqual(['paid', 120_000]);
    const own = await (await work.start(program, undefined, { patience: '5s' })).status();
    expect([own.patienceClass, own.patienceLeftMs]).toEqual([undefined, 5000]);
    await expect(work.start(program, undefined, { patience: 'gold' })).rejects.toThrow('paid,free');
  });
});

test('a compensation has a signal, as a step has', async () => {
  const { open, settle, pass } = stage();
  const signals: unknown[] = [];
  const program = assembly('order', async (step) => {
    await step.run('charge', () => 1, { undo: (_, { signal }) => void signals.push(signal.aborted) });
    await step.sleep('long', '30d');
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await settle();
  await it.cancel('the customer left', 'ada');
  await pass(100);

  expect(signals).toEqual([false]);
});
