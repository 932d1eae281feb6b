import { assembly, type Step } from '@holdfast/assembly';
import { transient } from 'holdfast';
import { expect, test } from 'vitest';
import { stage } from './stage.ts';

type Body = (step: Step, done: string[]) => Promise<unknown>;

/** Runs `before` until it waits for a signal, then lets another process go on with `after`. */
async function changed(before: Body, after: Body) {
  const { open, pass, settle } = stage();
  const done: string[] = [];
  const first = open([assembly('order', (step) => before(step, done))]);
  await first.run();
  const it = await first.start(
    assembly('order', (step) => before(step, done)),
    undefined,
    { id: 'x' },
  );
  await settle();
  await first.stop();
  const atStop = [...done];
  const second = open([assembly('order', (step) => after(step, done))]);
  await second.run();
  await it.signal('go');
  await pass(2000);
  const { assembly: stored, status } = await second.inspect('x');
  return { stored, status, atStop, begunAfter: done.slice(atStop.length), work: second, pass };
}

const does = (step: Step, name: string, done: string[]) => step.run(name, () => void done.push(name));

const twoSteps: Body = async (step, done) => {
  await does(step, 'charge', done);
  await does(step, 'ship', done);
  await step.waitFor('go');
  await does(step, 'notify', done);
};

test('goes on where nothing has changed', async () => {
  const { stored, begunAfter } = await changed(twoSteps, twoSteps);
  expect(stored.state).toBe('done');
  expect(begunAfter).toEqual(['notify']);
});

test.each<[string, Body, string]>([
  [
    'renamed',
    async (step, done) => {
      await does(step, 'charge-card', done);
      await does(step, 'ship', done);
    },
    'order@1: step charge was done before, but the program asks for charge-card in its place',
  ],
  [
    'moved',
    async (step, done) => {
      await does(step, 'ship', done);
      await does(step, 'charge', done);
    },
    'order@1: step ship came after charge before, but the program asks for it first',
  ],
  [
    'added',
    async (step, done) => {
      await does(step, 'charge', done);
      await does(step, 'insure', done);
      await does(step, 'ship', done);
    },
    'order@1: step ship was done before, but the program asks for insure in its place',
  ],
  [
    'removed',
    async (step, done) => {
      await does(step, 'charge', done);
      await step.waitFor('go');
      await does(step, 'notify', done);
    },
    'order@1: step go came after ship before, but the program asks for it first',
  ],
  [
    'removed at the end',
    async (step, done) => {
      await does(step, 'charge', done);
    },
    'order@1: step ship was done before, but the program ended without it',
  ],
  [
    'renamed while under way',
    async (step, done) => {
      await does(step, 'charge', done);
      await does(step, 'ship', done);
      await step.waitFor('come');
    },
    'order@1: step go was under way, but the program asks for come in its place',
  ],
  [
    'made something else',
    async (step, done) => {
      await step.sleep('charge', '1s');
      await does(step, 'ship', done);
    },
    'order@1: step charge was a run before, and is a sleep now',
  ],
])('finds a step that was %s before anything new is begun', async (_, after, sentence) => {
  const { stored, begunAfter } = await changed(twoSteps, after);
  expect(stored.state).toBe('parked');
  expect(stored.parked).toMatchObject({ because: 'program_changed', message: sentence });
  expect(begunAfter).toEqual([]);
});

/** Kills a process in an attempt of `charge`, and lets another go on with a program that calls it `pay`. */
async function renamedInTheMiddle({
  inAttempt = 1,
  ...options
}: {
  inAttempt?: number;
  once?: boolean;
} = {}) {
  const { open, pass } = stage();
  const keys: string[] = [];
  const program = (name: string, call: (attempt: number) => unknown) =>
    assembly('order', async (step) => {
      await step.run('reserve', () => 'a seat');
      await step.run(
        name,
        ({ key, attempt }) => {
          keys.push(key);
          return call(attempt);
        },
        options,
      );
    });
  const before = program('charge', (attempt) => {
    if (attempt < inAttempt) throw transient(new Error('the bank is away'));
    return new Promise(() => {});
  });
  const first = open([before]);
  await first.run();
  await first.start(before, undefined, { id: 'x' });
  await pass(2000);
  first.kill();
  const second = open([program('pay', () => 'paid')]);
  await second.run();
  await pass(60_000);
  const { assembly: stored, steps } = await second.inspect('x');
  return { stored, keys, steps: steps.map(({ path }) => path) };
}

test('runs a step that was renamed after a crash in its first attempt as a new step, with another key', async () => {
  const { stored, keys, steps } = await renamedInTheMiddle();
  expect(stored.state).toBe('done');
  expect(steps).toEqual(['reserve', 'pay']);
  expect(keys).toEqual(['x/charge', 'x/pay']);
});

test.each([
  ['with `once` that was renamed after a crash in its first attempt', { once: true }],
  ['that was renamed after a crash in its second attempt', { inAttempt: 2 }],
])('finds a step %s', async (_, how) => {
  const { stored, keys } = await renamedInTheMiddle(how);
  expect(stored.parked).toMatchObject({
    because: 'program_changed',
    message: 'order@1: step charge was under way, but the program asks for pay in its place',
  });
  expect(new Set(keys)).toEqual(new Set(['x/charge']));
});

test('lets a person accept the change: results are given by name', async () => {
  const { work, pass, stored } = await changed(twoSteps, async (step, done) => {
    await does(step, 'charge', done);
    await step.waitFor('go');
    await does(step, 'notify', done);
    return 'ok';
  });
  expect(stored.state).toBe('parked');
  await work.resume('x', { who: 'ada', why: 'ship is gone for good' }, { acceptChange: true });
  await pass(1000);
  expect(await work.get('x').result()).toBe('ok');
});

test('finds a branch that was added before what is under way', async () => {
  const branches =
    (names: readonly string[]): Body =>
    async (step, done) => {
      await step.each('prepare', names, String, (branch, name) =>
        branch.run('do', () => void done.push(name)),
      );
      await step.waitFor('go');
    };
  const { stored, begunAfter } = await changed(branches(['a', 'b']), branches(['c', 'a', 'b']));
  expect(stored.state).toBe('parked');
  expect(stored.parked?.message).toContain('prepare/c/do');
  expect(begunAfter).toEqual([]);
});

test('keeps the version with which an assembly began', async () => {
  const { open, pass, settle } = stage();
  const done: string[] = [];
  const v1 = assembly('order', { version: 1 }, async (step) => {
    await does(step, 'charge', done);
    await step.waitFor('go');
    await does(step, 'ship', done);
    return 1;
  });
  const v2 = assembly('order', { version: 2 }, async (step) => {
    await does(step, 'charge-card', done);
    return 2;
  });
  const first = open([v1]);
  await first.run();
  await first.start(v1, undefined, { id: 'old' });
  await settle();
  await first.stop();

  const onlyNew = open([v2]);
  await onlyNew.run();
  await onlyNew.get('old').signal('go');
  await pass(5000);
  expect(await onlyNew.journal.counts()).toMatchObject([{ name: 'order', version: 1, waiting: 1 }]);

  const both = open([v1, v2]);
  await both.run();
  await both.start(v2, undefined, { id: 'new' });
  await pass(5000);
  expect(await both.get('old').result()).toBe(1);
  expect(await both.get('new').result()).toBe(2);
  expect(done.sort()).toEqual(['charge', 'charge-card', 'ship']);
});

test('changed is false for those who passed before, and true for others, and stays so', async () => {
  const { open, settle, pass } = stage();
  const seen: [string, boolean][] = [];
  const program = (knows: boolean) =>
    assembly('order', async (step, id: string) => {
      await step.run('charge', () => 1);
      if (knows) seen.push([id, step.changed('insured')]);
      await step.waitFor('go');
      await step.waitFor('end');
    });
  const first = open([program(false)]);
  await first.run();
  await first.start(program(false), 'old', { id: 'old' });
  await settle();
  await first.stop();
  const second = open([program(true)]);
  await second.run();
  await second.start(program(true), 'new', { id: 'new' });
  await pass(1000);
  for (const name of ['go', 'end'])
    for (const id of ['old', 'new']) {
      await second.get(id).signal(name);
      await pass(1000);
    }
  await second.get('old').result();
  await second.get('new').result();
  expect(new Set(seen.filter(([id]) => id === 'new').map(([, value]) => value))).toEqual(new Set([true]));
  expect(new Set(seen.filter(([id]) => id === 'old').map(([, value]) => value))).toEqual(new Set([false]));
});
