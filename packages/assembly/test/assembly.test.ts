import { assembly } from '@holdfast/assembly';
import { transient } from 'holdfast';
import { expect, test } from 'vitest';
import { stage } from './stage.ts';

test('gives the result of its steps', async () => {
  const { open } = stage();
  const add = assembly('add', async (step, input: { a: number }) => {
    const one = await step.run('one', () => input.a + 1);
    const two = await step.run('two', () => one + 1);
    return { two };
  });
  const work = open([add]);
  await work.run();
  const it = await work.start(add, { a: 1 });
  expect(await it.result()).toEqual({ two: 3 });
  expect((await it.status()).state).toBe('done');
});

test('goes on in another process with what is on record', async () => {
  const { open, pass, settle } = stage();
  const calls: string[] = [];
  let isBlocked = true;
  const order = assembly('order', async (step) => {
    const charged = await step.run('charge', () => {
      calls.push('charge');
      return 'paid';
    });
    await step.run('ship', async () => {
      calls.push('ship');
      if (isBlocked) await new Promise(() => {});
    });
    return charged;
  });
  const first = open([order]);
  await first.run();
  await first.start(order, undefined, { id: 'order-1' });
  await settle();
  expect(calls).toEqual(['charge', 'ship']);
  first.kill();
  isBlocked = false;
  const second = open([order]);
  await second.run();
  await pass(40_000);
  expect(await second.get('order-1').result()).toBe('paid');
  expect(calls).toEqual(['charge', 'ship', 'ship']);
});

test('tries a step again by its policy, in process and durably', async () => {
  const { open, pass } = stage();
  const attempts: number[] = [];
  const flaky = assembly('flaky', async (step) =>
    step.run(
      'call',
      ({ attempt, key }) => {
        attempts.push(attempt);
        if (attempt < 4) throw transient(new Error('not yet'));
        return key;
      },
      { policy: { attempts: 5, backoff: { base: '1s', factor: 10, cap: '1h', jitter: 'none' } } },
    ),
  );
  const work = open([flaky]);
  await work.run();
  const it = await work.start(flaky, undefined, { id: 'x' });
  await pass(2000);
  await pass(12_000);
  await pass(120_000);
  expect(await it.result()).toBe('x/call');
  expect(attempts).toEqual([1, 2, 3, 4]);
  const { steps } = await work.inspect('x');
  expect(steps).toMatchObject([{ path: 'call', attempts: 4, state: 'done' }]);
  expect(steps[0]!.story!.map(({ delayMs }) => delayMs)).toEqual([1000, 10_000, 100_000]);
});

test('sleeps for a month in a moment', async () => {
  const { open, pass, clock } = stage();
  const woken: number[] = [];
  const sleeper = assembly('sleeper', async (step) => {
    await step.sleep('month', '30d');
    await step.run('wake', () => woken.push(clock.now()));
  });
  const work = open([sleeper]);
  await work.run();
  const it = await work.start(sleeper, undefined);
  await pass(29 * 86_400_000);
  expect(woken).toEqual([]);
  expect((await it.status()).state).toBe('waiting');
  await pass(2 * 86_400_000);
  await it.result();
  expect(woken).toHaveLength(1);
});
