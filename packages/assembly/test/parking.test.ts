import { type AssembliesOptions, type AssemblyParkedError, assembly } from '@holdfast/assembly';
import type { MemoryTransaction } from '@holdfast/contracts/memory';
import { permanent } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { stage } from './stage.ts';

const act = { who: 'ada', why: 'there is a street now' };

async function setup(options: Partial<AssembliesOptions<MemoryTransaction>> = {}) {
  const { open, pass, settle } = stage();
  const warnings: string[] = [];
  const onWarning = (warning: Error & { code?: string }) => {
    if (warning.code === 'HOLDFAST_ASSEMBLY_PARKED') warnings.push(warning.message);
  };
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  let street = '';
  const program = assembly('order', async (step) =>
    step.run('ship', () => {
      if (street === '') throw permanent(new Error('no street'));
      return `to ${street}`;
    }),
  );
  const work = open([program], options);
  await work.run();
  /** Gives the orders a street, and resumes this one. */
  const mend = async (id: string) => {
    street = 'Elm';
    await work.resume(id, act);
    await pass(100);
  };
  const start = (id: string, given = {}) => work.start(program, undefined, { id, ...given });
  return { work, start, mend, warnings, pass, settle, open, program };
}

const sentence =
  'assembly x is parked (not_retryable): step ship failed (not_retryable): no street; "holdfast assembly show x" ' +
  'shows it, and "holdfast assembly resume x --why <reason>" continues it';

test('a result that is waited for rejects when the assembly is parked, and says what to do', async () => {
  const { start, pass, warnings } = await setup();
  const result = (await start('x')).result();
  result.catch(() => {});
  await pass(100);
  await expect(result).rejects.toMatchObject({
    code: 'HOLDFAST_ASSEMBLY_PARKED',
    message: sentence,
    id: 'x',
    step: 'ship',
    parked: { because: 'not_retryable' },
  });
  expect(warnings).toEqual([]);
});

test('the result of an assembly that is parked already rejects in any process', async () => {
  const { work, start, pass, open, program } = await setup();
  await start('x');
  await pass(100);
  await expect(work.get('x').result()).rejects.toThrow(sentence);
  await expect(open([program]).get('x').result()).rejects.toThrow(sentence);
});

test('a result can be waited for while the assembly is parked, until a person resumes it', async () => {
  const { start, pass, mend, warnings } = await setup();
  const result = (await start('x')).result({ waitWhileParked: true });
  await pass(100);
  expect(warnings).toHaveLength(1);
  await mend('x');
  expect(await result).toBe('to Elm');
});

test('a result can be asked for again after the assembly was resumed', async () => {
  const { start, pass, mend } = await setup();
  const it = await start('x');
  await pass(100);
  await expect(it.result()).rejects.toThrow('is parked');
  await mend('x');
  expect(await it.result()).toBe('to Elm');
});

test('the first parked assembly is reported as a warning when nobody listens', async () => {
  const { start, pass, warnings } = await setup();
  await start('x');
  await start('y');
  await pass(100);
  expect(warnings).toEqual([
    `${sentence}. More may follow without a warning: onParked of assemblies() tells of each, and ` +
      '"holdfast assembly ls --state parked" lists them.',
  ]);
});

test('onParked is called for each parked assembly, and no warning is printed', async () => {
  const parked: AssemblyParkedError[] = [];
  const { start, pass, warnings } = await setup({ onParked: (error) => parked.push(error) });
  await start('x');
  await start('y');
  await pass(100);
  expect(parked.map(({ id, step }) => [id, step])).toEqual([
    ['x', 'ship'],
    ['y', 'ship'],
  ]);
  expect(warnings).toEqual([]);
});

test('an assembly that is parked while a signal arrives is reported once', async () => {
  const parked: string[] = [];
  const { open, pass } = stage();
  const program = assembly('order', async (step) =>
    step.run('ship', async () => {
      await work.get('x').signal('hello');
      throw permanent(new Error('no street'));
    }),
  );
  const work = open([program], { onParked: ({ id }) => parked.push(id) });
  await work.run();
  const it = await work.start(program, undefined, { id: 'x', patience: '1h' });
  await pass(5000);
  expect((await it.status()).state).toBe('parked');
  expect(parked).toEqual(['x']);
});

test('an onParked that throws is a failure of background work, and the assembly stays parked', async () => {
  const failures: unknown[] = [];
  const { work, start, pass } = await setup({
    onParked() {
      throw new Error('no pager');
    },
    onFailure: (what, error) => failures.push([what, error]),
  });
  await start('x');
  await pass(100);
  expect(failures).toEqual([['onParked', new Error('no pager')]]);
  expect((await work.get('x').status()).state).toBe('parked');
});
