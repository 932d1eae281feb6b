import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { assembly } from '@holdfast/assembly';
import { expect, onTestFinished, test } from 'vitest';
import { stage } from './stage.ts';

const nap = assembly('nap', async (step) => {
  await step.sleep('long', '1h');
  return 'rested';
});

test('a result that is awaited is rejected when the process is stopped', async () => {
  const { open, pass, settle } = stage();
  const first = open([nap]);
  await first.run();
  const it = await first.start(nap, undefined, { id: 'x' });
  await settle();
  const awaited = it.result();
  const whileParked = first.get('x').result({ waitWhileParked: true });
  const rejected = [expect(awaited), expect(whileParked)].map((each) =>
    each.rejects.toMatchObject({
      code: 'HOLDFAST_ASSEMBLY_STATE',
      message: expect.stringContaining('assembly x has not ended, and this process was stopped'),
    }),
  );
  await first.stop();
  await Promise.all(rejected);
  await expect(first.get('x').result()).rejects.toMatchObject({ code: 'HOLDFAST_ASSEMBLY_STATE' });

  const second = open([nap]);
  await second.run();
  await pass(4_000_000);
  expect(await second.get('x').result()).toBe('rested');
  expect(await first.get('x').result()).toBe('rested');
});

test('a result that is awaited resolves if its assembly ends within the grace of stop', async () => {
  const { open, settle } = stage();
  const { promise, resolve } = Promise.withResolvers<string>();
  const slow = assembly('slow', (step) => step.run('call', () => promise));
  const work = open([slow]);
  await work.run();
  const it = await work.start(slow, undefined);
  await settle();
  const awaited = it.result();
  const stopped = [work.stop(), work.stop()];
  resolve('answer');
  await Promise.all(stopped);
  expect(await awaited).toBe('answer');
});

test('who follows an assembly is let go when the process is stopped', async () => {
  const { open, settle } = stage();
  const work = open([nap]);
  await work.run();
  const it = await work.start(nap, undefined);
  const texts: string[] = [];
  const followed = (async () => {
    for await (const { text } of it.follow()) texts.push(text);
  })();
  await settle();
  await work.stop();
  await followed;
  expect(texts[0]).toBe('accepted');
});

test('Ctrl-C ends a process that waits for a result, and the next one continues', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-stop-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = path.join(import.meta.dirname, 'stopped-process.ts');
  const run = () => {
    const child = spawn(process.execPath, ['--conditions=holdfast-source', program, folder]);
    const said: string[] = [];
    child.stdout.on('data', (data) => {
      said.push(String(data));
      if (String(data).includes('charging')) child.kill('SIGINT');
    });
    return once(child, 'close').then(([code]) => ({ code, said: said.join('') }));
  };
  expect(await run()).toEqual({
    code: 0,
    said: expect.stringMatching(/^charging\nassembly order-17 has not ended/),
  });
  expect(await run()).toEqual({ code: 0, said: 'order-17 is shipped\n' });
}, 20_000);
