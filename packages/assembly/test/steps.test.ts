import { assembly, type StepFailedError } from '@holdfast/assembly';
import { ambientContext, permanent, transient } from 'holdfast';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { stage } from './stage.ts';

test('a result that does not pass its check is a failed attempt, and is not stored', async () => {
  const { open, pass } = stage();
  const given = [{ label: 7 }, { label: 'DE-1' }];
  const program = assembly('order', async (step) =>
    step.run('print', ({ attempt }) => given[attempt - 1] as { label: string }, {
      check: z.object({ label: z.string() }),
    }),
  );
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined, { id: 'x' });
  await pass(5000);
  expect(await it.result()).toEqual({ label: 'DE-1' });
  const { steps } = await work.inspect('x');
  expect(steps[0]).toMatchObject({ attempts: 2, result: '{"label":"DE-1"}' });
  expect(steps[0]!.story![0]!.errorMessage).toContain('label:');
});

test('a check can be a function', async () => {
  const { open, pass } = stage();
  const program = assembly('order', async (step) =>
    step.run('count', ({ attempt }) => attempt, { check: (count) => count > 2 }),
  );
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await pass(60_000, 60);
  expect(await it.result()).toBe(3);
});

test('a step that is given up on fails with its story, the same in each run', async () => {
  const { open, settle, pass } = stage();
  const caught: StepFailedError[] = [];
  const program = assembly('order', async (step) => {
    try {
      await step.run('charge', () => Promise.reject(permanent(new Error('card declined'))));
    } catch (error) {
      caught.push(error as StepFailedError);
    }
    await step.waitFor('go');
    return 'went on';
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await settle();
  await it.signal('go');
  await pass(100);
  expect(await it.result()).toBe('went on');
  expect(caught.map(({ message, because, step, story }) => [message, because, step, story.length])).toEqual([
    ['step charge failed (not_retryable): card declined', 'not_retryable', 'charge', 1],
    ['step charge failed (not_retryable): card declined', 'not_retryable', 'charge', 1],
  ]);
  expect((caught[0]!.cause as Error).message).toBe('card declined');
});

test('an attempt that takes too long is aborted, and tried again', async () => {
  const { open, pass } = stage();
  const aborted: number[] = [];
  const program = assembly('order', async (step) =>
    step.run(
      'call',
      ({ attempt, signal }) => {
        if (attempt > 1) return 'answer';
        signal.addEventListener('abort', () => aborted.push(attempt));
        return new Promise<string>(() => {});
      },
      { timeout: '2s' },
    ),
  );
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await pass(4000, 20);
  expect(await it.result()).toBe('answer');
  expect(aborted).toEqual([1]);
});

test('a transaction commits its effect with its record, and once', async () => {
  const { open, storage, pass } = stage();
  const program = assembly('order', async (step) => {
    const seat = await step.transaction('book', (tx, { attempt }) => {
      tx.put('seat', 'taken');
      if (attempt === 1) throw transient(new Error('conflict'));
      return `seat ${attempt}`;
    });
    await step.sleep('nap', '1m');
    return seat;
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await pass(70_000, 70);
  expect(await it.result()).toBe('seat 2');
  expect(storage.effects.get('seat')).toBe('taken');
});

test('a step that must happen once at most is not repeated when its outcome is unknown', async () => {
  const { open, settle, pass } = stage();
  const calls: string[] = [];
  const program = (finds: boolean) =>
    assembly('order', async (step) =>
      step.run(
        'charge',
        () => {
          calls.push('charge');
          return new Promise<string>(() => {});
        },
        { once: true, ...(finds && { whenUnknown: () => 'found it' }) },
      ),
    );
  const first = open([program(false)]);
  await first.run();
  await first.start(program(false), undefined, { id: 'x' });
  await settle();
  first.kill();
  const second = open([program(false)]);
  await second.run();
  await pass(60_000);
  expect((await second.inspect('x')).assembly.parked).toMatchObject({
    because: 'outcome_unknown',
    paths: ['charge'],
  });
  expect(calls).toEqual(['charge']);
  await second.stop();

  const third = open([program(true)]);
  await third.run();
  const it = await third.start(program(true), undefined, { id: 'y' });
  await settle();
  expect(calls).toEqual(['charge', 'charge']);
  third.kill();
  const fourth = open([program(true)]);
  await fourth.run();
  await pass(60_000);
  expect(await fourth.get('y').result()).toBe('found it');
  expect(calls).toEqual(['charge', 'charge']);
  expect(it.id).toBe('y');
});

test('each step has an ambient key, the same in each attempt, and what is left of patience', async () => {
  const { open, pass } = stage();
  const seen: unknown[] = [];
  const program = assembly('order', async (step) =>
    step.all('both', {
      a: (branch) =>
        branch.run('call', ({ attempt }) => {
          const { idempotencyKey, attempt: number, patienceEndsAt } = ambientContext()!;
          seen.push([idempotencyKey, number, patienceEndsAt]);
          if (attempt === 1) throw transient(new Error('again'));
        }),
    }),
  );
  const work = open([program]);
  await work.run();
  await work.start(program, undefined, { id: 'x', patience: '1h' });
  await pass(5000);
  expect(seen).toEqual([
    ['x/both/a/call', 1, 3_600_000],
    ['x/both/a/call', 2, 3_600_000],
  ]);
});

test('a signal that came before is not lost, and each is taken once', async () => {
  const { open, settle, pass } = stage();
  const program = assembly('order', async (step) => {
    await step.waitFor('start');
    return [await step.waitFor<number>('item'), await step.waitFor<number>('item')];
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await it.signal('item', 1, { id: 'a' });
  await it.signal('item', 1, { id: 'a' });
  await settle();
  await it.signal('start');
  await pass(100);
  expect((await it.status()).state).toBe('waiting');
  await it.signal('item', 2);
  await pass(100);
  expect(await it.result()).toEqual([1, 2]);
});

test('a wait for a signal ends in time', async () => {
  const { open, pass } = stage();
  const program = assembly('order', async (step) => {
    try {
      return await step.waitFor('approved', { patience: '2d' });
    } catch (error) {
      return (error as StepFailedError).note?.code;
    }
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await pass(3 * 86_400_000, 30);
  expect(await it.result()).toBe('HOLDFAST_SIGNAL_TIMEOUT');
});

test('a child is started once, gives its result, and is compensated with its parent', async () => {
  const { open, settle, pass } = stage();
  const log: string[] = [];
  const shipping = assembly('shipping', async (step, label: string) => {
    await step.run('pick', () => void log.push(`pick ${label}`), { undo: () => void log.push('put back') });
    await step.sleep('truck', '1h');
    return `shipped ${label}`;
  });
  const program = assembly('order', async (step) => {
    await step.run('charge', () => 1, { undo: () => void log.push('refund') });
    return step.child('ship', shipping, 'DE-1');
  });
  const work = open([program, shipping]);
  await work.run();
  const it = await work.start(program, undefined, { id: 'x' });
  await settle();
  await pass(3_700_000, 20);
  expect(await it.result()).toBe('shipped DE-1');
  await it.cancel('returned');
  await pass(1000);
  expect(log).toEqual(['pick DE-1', 'put back', 'refund']);
  expect((await work.get('x/ship').status()).state).toBe('stopped');
});

test('a child that is stopped fails the step of its parent', async () => {
  const { open, settle, pass } = stage();
  const child = assembly('child', async (step) => step.waitFor('never'));
  const program = assembly('order', async (step) => {
    try {
      await step.child('inner', child, undefined);
    } catch (error) {
      return (error as StepFailedError).because;
    }
    return 'no error';
  });
  const work = open([program, child]);
  await work.run();
  const it = await work.start(program, undefined, { id: 'x' });
  await settle();
  await work.get('x/inner').cancel('enough');
  await pass(1000);
  expect(await it.result()).toBe('cancelled');
});

test('time, chance and ids are the same in each run', async () => {
  const { open, settle, pass } = stage();
  const seen: unknown[][] = [];
  const program = assembly('order', async (step) => {
    await step.run('one', () => 1);
    seen.push([step.now(), step.random(), step.uuid()]);
    await step.waitFor('go');
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await settle();
  await pass(1000);
  await it.signal('go');
  await pass(1000);
  await it.result();
  expect(seen).toHaveLength(2);
  expect(seen[1]).toEqual(seen[0]);
});

test('what a program sees is what is stored, also the first time', async () => {
  const { open, pass } = stage();
  const program = assembly('order', async (step) => {
    const made = await step.run('make', () => ({ at: new Date(0), gone: undefined }));
    return typeof made.at;
  });
  const work = open([program]);
  await work.run();
  const it = await work.start(program, undefined);
  await pass(100);
  expect(await it.result()).toBe('string');
});
