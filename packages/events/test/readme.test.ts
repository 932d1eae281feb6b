import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { commit, type EventNotice, outbox, stopAdvice, subscribeEvents, transient } from '@holdfast/events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { down, stage } from './stage.ts';

const root = path.join(import.meta.dirname, '../../..');

test('the first example of the README runs as it stands, prints something, and ends with Ctrl-C', async () => {
  const readme = await readFile(path.join(import.meta.dirname, '../README.md'), 'utf8');
  const [, example] = /```ts\n(.*?)```/s.exec(readme)!;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-readme-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }');
  await writeFile(path.join(folder, 'first.ts'), example!);
  const flags = ['--conditions=holdfast-source', '--no-warnings'];
  const child = spawn(process.execPath, [...flags, 'first.ts'], { cwd: folder });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  let complaints = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
    child.kill('SIGINT');
  });
  child.stderr.on('data', (chunk) => {
    complaints += chunk;
  });
  const [code] = await once(child, 'exit');
  expect({ printed, complaints, code }).toEqual({
    printed: 'order-17 costs 40\n',
    complaints: '',
    code: 0,
  });
});

describe('a consumer that parks', () => {
  function warnings(): string[] {
    const told: string[] = [];
    const onWarning = (warning: Error & { code?: string }) => {
      if (warning.code === 'HOLDFAST_PARKED') told.push(warning.message);
    };
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    return told;
  }

  const fail = () => {
    throw down();
  };

  test('warns once when nobody listens', async () => {
    const told = warnings();
    const { clock, open, publish } = stage();
    await open({ name: 'silent', policy: { attempts: 1 }, handler: fail });
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('1s');
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toContain('consumer "silent" has parked event a of topic "orders" (attempts_exhausted');
    expect(told[0]).toContain('Error: connection reset');
  });

  test('says why an unknown error is not tried again, and what to do', async () => {
    const told = warnings();
    const { clock, open, publish } = stage();
    const boom = () => {
      throw new Error('boom');
    };
    await open({ handler: boom });
    await publish({ id: 'a' });
    await clock.advance('1s');
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toContain(
      '(not_retryable, Error: boom): nothing says that this error is temporary, so it was not tried again; ' +
        'if it is temporary, throw `transient(error)` in the handler, or let `policy.retryOn` recognize it. More',
    );
  });

  test('names the package of the command that lists parked events', async () => {
    const told = warnings();
    const { clock, open, publish } = stage();
    await open({ policy: { attempts: 1 }, handler: fail });
    await publish({ id: 'a' });
    await clock.advance('1s');
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toContain(
      '"npx -p @holdfast/cli holdfast dlq ls --store <file or postgres URL>" lists them.',
    );
  });

  test('says that a topic must be declared before an outbox publishes to it', async () => {
    const told = warnings();
    const { clock, open, publish, engine } = stage();
    const mails = outbox({ engine, topic: 'mail', clock });
    await open({ handler: () => commit((tx) => void mails.publish(tx, { payload: 1 })) });
    await publish({ id: 'a' });
    await clock.advance('1s');
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toContain(
      'topic "mail" was never declared): declare this topic once, before the first event is published to it: `await engine.broker.declare("mail")`',
    );
    expect(told[0]).not.toContain('transient(error)');
  });

  test('says the same to its listeners', async () => {
    const told: EventNotice[] = [];
    onTestFinished(subscribeEvents((notice) => told.push(notice)));
    const { clock, open, publish } = stage();
    let thrown = new Error('boom');
    await open({
      policy: { attempts: 1 },
      handler: () => {
        throw thrown;
      },
    });
    await publish({ id: 'a' });
    await clock.advance('1s');
    thrown = transient(new Error('boom'));
    await publish({ id: 'b' });
    await clock.advance('1s');
    const parked = told.filter((notice) => notice.type === 'parked');
    expect(parked.map(({ id, stop, advice }) => [id, stop, advice])).toEqual([
      ['a', 'not_retryable', stopAdvice('not_retryable')],
      ['b', 'attempts_exhausted', undefined],
    ]);
  });

  test('does not warn when somebody listens', async () => {
    const told = warnings();
    onTestFinished(subscribeEvents(() => {}));
    const { clock, open, publish, parked } = stage();
    await open({ policy: { attempts: 1 }, handler: fail });
    await publish({ id: 'a' });
    await clock.advance('1s');
    expect(await parked('a')).toBeDefined();
    expect(told).toEqual([]);
  });

  test('tells its listeners that a commit has failed, and not that it succeeded', async () => {
    const told: EventNotice[] = [];
    onTestFinished(subscribeEvents((notice) => told.push(notice)));
    const { clock, open, publish } = stage();
    const broken = new TypeError('no such table');
    await open({
      name: 'commits',
      handler: ({ id }) =>
        commit(() => {
          if (id === 'bad') throw broken;
        }),
    });
    await publish({ id: 'good' }, { id: 'bad' });
    await clock.advance('1s');
    const types = (id: string) =>
      told.flatMap((notice) =>
        'id' in notice && notice.id === id && notice.type !== 'begun' ? notice.type : [],
      );
    expect([types('good'), types('bad')]).toEqual([['succeeded'], ['parked']]);
  });
});
