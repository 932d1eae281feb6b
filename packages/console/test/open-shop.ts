import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openSqlite } from '@holdfast/sqlite';

const root = path.join(import.meta.dirname, '../../..');

export interface Shop {
  /** The link of its console, with the token to operate. */
  readonly link: string;
  readonly process: ChildProcess;
  /** The file of its store, for a console beside it. */
  readonly store: string;
  /** Asks its API as a program does, and rejects with the body of an error. */
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is checked by each test
  ask(route: string, body?: unknown): Promise<any>;
  close(): Promise<void>;
}

/** The whole system of `examples/orders` in a process of its own: shop, gateway, consumer, assembly, console. */
export async function openShop(): Promise<Shop> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-console-'));
  const store = path.join(folder, 'shop.db');
  const script = path.join(root, 'examples/orders/src/system.ts');
  const args = ['--conditions=holdfast-source', '--disable-warning=HOLDFAST_PARKED', script];
  const child = spawn(process.execPath, [...args, '--port', '0', '--store', store], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const link = await linkOf(child);
  const { origin, hash } = new URL(link);
  const token = hash.slice('#token='.length);

  async function ask(route: string, body?: unknown) {
    const [method = '', where = ''] = route.split(' ');
    const response = await fetch(`${origin}/api/v1${where}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${route}: ${text}`);
    return JSON.parse(text);
  }

  return {
    link,
    process: child,
    store,
    ask,
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function linkOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const read = (part: Buffer) => {
      text += part;
      const found = /http:\/\/\S+#token=\S+/.exec(text)?.[0];
      if (found) resolve(found);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('exit', (code) => reject(new Error(`The shop ended with ${code}: ${text}`)));
  });
}

/** The store of a shop, opened once more: for a console beside it. */
export function openStoreOf(shop: Shop): ReturnType<typeof openSqlite> {
  return openSqlite({ file: shop.store });
}
