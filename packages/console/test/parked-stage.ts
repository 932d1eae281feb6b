import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { NewlyParked } from '@holdfast/contracts';
import { consumer } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';
import type { Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { operateToken, parkedEvent } from './open-test-console.ts';

interface Told {
  readonly reason?: string;
  readonly message?: string;
  readonly group?: string;
}

/** A parked event of a group of its own choice. */
export function parkedOf(
  id: string,
  { reason = 'PaymentRejected', message = '422 card_token is required', group = '4f1d9c02b7e6a813' }: Told,
  changes: Partial<NewlyParked> = {},
): NewlyParked {
  const event = parkedEvent(id, changes);
  const error = {
    ...event.diagnosis.error!,
    ...{ type: reason, message, fingerprint: group },
    causes: [{ type: 'HttpError', message: 'status 422' }],
  };
  return { ...event, diagnosis: { ...event.diagnosis, reason, message, error, ...changes.diagnosis } };
}

export const address: Told = {
  reason: 'AddressInvalid',
  message: 'postal_code: 5 digits',
  group: 'a91e04d77c3b5f20',
};

/** A store in a file of its own. */
export async function openStore(events: readonly NewlyParked[] = []) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'console-'));
  const file = path.join(folder, 'store.db');
  const engine = await openSqlite({ file });
  onTestFinished(async () => {
    await engine.close();
    rmSync(folder, { recursive: true });
  });
  await engine.broker.declare('orders');
  for (let at = 0; at < events.length; at += 1000) await engine.triage.put(events.slice(at, at + 1000));
  return { engine, file };
}
export type Store = Awaited<ReturnType<typeof openStore>>['engine'];

/** A consumer that does what the test says. */
export async function consume(engine: Store, handler: (event: { readonly id: string }) => unknown) {
  const running = consumer({
    ...{ engine, topic: 'orders', name: 'orders@8', poll: '20ms' },
    handler: async (event) => void (await handler(event)),
  });
  await running.start();
  onTestFinished(() => running.stop());
}

export function numbered(count: number, make: (id: string) => NewlyParked): NewlyParked[] {
  return Array.from({ length: count }, (_, index) => make(`e-${index}`));
}

/** Answers a dialog by keys alone: the focus goes to the reason by Tab. */
export async function answer(page: Page, title: string, why: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.waitFor();
  const reason = dialog.getByLabel('Why?');
  await expect
    .poll(async () => {
      const isThere = await reason.evaluate((field) => field === field.ownerDocument.activeElement);
      if (!isThere) await page.keyboard.press('Tab');
      return isThere;
    })
    .toBe(true);
  await page.keyboard.type(why);
  await dialog.locator('footer button:enabled').nth(1).waitFor();
  await page.keyboard.press('ControlOrMeta+Enter');
  await dialog.waitFor({ state: 'detached' });
}

/** A console in a process of its own, so that it can be killed. */
export async function startConsole(file: string, port: number) {
  const script = path.join(import.meta.dirname, 'console-process.ts');
  const args = ['--conditions=holdfast-source', '--no-warnings', script, file, String(port), operateToken];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const kill = () =>
    new Promise<void>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', () => resolve());
      child.kill('SIGKILL');
    });
  onTestFinished(kill);
  const link = await new Promise<string>((resolve, reject) => {
    child.stdout!.once('data', (bytes: Buffer) => resolve(String(bytes).trim()));
    child.once('exit', (code) => reject(new Error(`the console ended with ${code}`)));
  });
  return { link, kill };
}
