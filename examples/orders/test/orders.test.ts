import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openSqlite } from '@holdfast/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { canvas } from '../src/screen.ts';

const main = path.resolve(import.meta.dirname, '../src/main.ts');

async function start(...options: string[]) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-orders-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'orders.db');
  const child = spawn(process.execPath, ['--conditions=holdfast-source', main, '--store', file, ...options]);
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    out += chunk;
  });
  return { file, child, output: () => out, ended: endOf(child) };
}

async function endOf(child: ChildProcess): Promise<number | null> {
  const [code] = await once(child, 'close');
  return code;
}

test('runs to its end without a terminal: every order is shipped or parked', async () => {
  const { file, output, ended } = await start('--once', '--orders', '40');
  expect([await ended, output()]).toEqual([0, expect.stringContaining('All is done or parked.')]);
  const engine = await openSqlite({ file });
  onTestFinished(() => engine.close());
  const rows = await engine.transaction((database) =>
    database.prepare('SELECT status, receipt FROM order_view').all(),
  );
  const parked = await engine.triage.count({ topic: 'orders' });
  expect(rows.length + parked).toBe(40);
  for (const row of rows)
    expect(row).toEqual({ status: 'shipped', receipt: expect.stringContaining('receipt') });
});

test('says in a sentence that its file cannot be used', async () => {
  const { output, ended } = await start('--once', '--store', import.meta.filename);
  expect([await ended, output()]).toEqual([
    3,
    `Orders cannot be kept in ${import.meta.filename}: ${import.meta.filename} refused: file is not a database. Say another file with --store.\n`,
  ]);
});

test('draws over itself in a narrow terminal: each line takes one row', () => {
  const written: string[] = [];
  const draw = canvas(
    (text) => written.push(text),
    () => 10,
  );
  draw(['short', 'longer than ten']);
  draw(['short']);
  expect(written).toEqual(['\x1b[2Kshort\n\x1b[2Klonger tha\n', '\x1b[2A\x1b[2Kshort\n']);
});

test('drains on a signal: nothing stays in hand', async () => {
  const { file, child, output, ended } = await start('--once', '--orders', '100000');
  await expect.poll(output, { timeout: 15_000 }).toContain('sold; view: ');
  child.kill('SIGTERM');
  expect([await ended, output()]).toEqual([0, expect.stringContaining('Drained')]);
  const engine = await openSqlite({ file });
  onTestFinished(() => engine.close());
  expect(await engine.broker.counts('orders')).toMatchObject({ leased: 0, suspect: 0 });
});
