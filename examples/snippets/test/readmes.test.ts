import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';

const root = path.join(import.meta.dirname, '../../..');
const folder = mkdtempSync(path.join(root, 'examples/snippets/.readmes-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What surrounds a block of code in the program that a reader has: by the file, and which block of it. */
const around: Readonly<Record<string, string>> = {
  'packages/contracts 2': `
    import type { Features } from '@holdfast/contracts';
    import type { ConformanceOptions } from '@holdfast/contracts/conformance';
    declare const features: Features;
    declare const harness: ConformanceOptions<unknown>['create'];`,
  'packages/http 3': `
    import { createFetch } from '@holdfast/http';
    import axios from 'axios';
    import ky from 'ky';`,
  'packages/server 2': `
    import type { Ledger } from '@holdfast/contracts';
    import { idempotency } from '@holdfast/server';
    declare const ledger: Ledger;`,
  'packages/server 3': `
    import { contextOf } from '@holdfast/server';
    import type { IncomingMessage } from 'node:http';
    declare const request: IncomingMessage & { body: unknown };
    declare function insertOrder(tx: unknown, order: unknown): Promise<number>;`,
  'packages/telemetry 2': `import { pino } from 'pino';\nconst logger = pino();`,
  'engines/postgres 2': `
    import { openPostgres } from '@holdfast/postgres';
    import type { PoolClient } from 'pg';
    declare const client: PoolClient;
    declare const engine: Awaited<ReturnType<typeof openPostgres>>;`,
  'engines/redis 2': `
    import type { Ledger, RateLimits } from '@holdfast/contracts';
    declare const ledger: Ledger;
    declare const rateLimits: RateLimits;
    declare const tenantOf: () => string;`,
  'packages/assembly 2': `
    import type { Program } from '@holdfast/assembly';
    interface Order { id: string; orderId: string }
    declare const input: Order;
    declare const payments: Record<'charge' | 'refund', (...given: unknown[]) => Promise<string>>;
    declare const stock: Record<'reserve' | 'release', (order: Order) => Promise<void>>;
    declare const shipping: { label(order: Order): Promise<string> };
    declare const Label: (label: string) => void;
    declare const shipParcel: Program<{ label: string; approval: unknown }, string>;`,
  'packages/assembly 3': `
    import { type Assemblies, assemblyDoor, type Program } from '@holdfast/assembly';
    declare const work: Assemblies;
    declare const placeOrder: Program<unknown, unknown>;
    declare const tenantOf: (request: unknown) => string;`,
  'engines/sqlite 2': `
    import { openSqlite } from '@holdfast/sqlite';
    declare const engine: Awaited<ReturnType<typeof openSqlite>>;`,
};

const strict = {
  extends: '../../../tsconfig.base.json',
  compilerOptions: {
    composite: false,
    noEmit: true,
    types: ['node'],
    lib: ['esnext', 'dom'],
    // A block shows how to get something, and need not go on to use it.
    noUnusedLocals: false,
  },
};

test('every block of code in the README of a package compiles where readers would put it', async () => {
  const blocks = globSync('{packages,engines}/*/README.md', { cwd: root }).flatMap((file) => {
    const found = readFileSync(path.join(root, file), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm);
    return Array.from(found, ([, code], index) => ({ name: `${path.dirname(file)} ${index + 1}`, code }));
  });
  expect(blocks.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(around)));
  for (const { name, code } of blocks) {
    const file = `${name.replace(/\W/g, '-')}.ts`;
    writeFileSync(path.join(folder, file), `${around[name] ?? ''}\n${code}\nexport {};\n`);
  }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(strict));
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const complaints = await promisify(execFile)(process.execPath, [tsc, '-p', folder]).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  expect(complaints).toBe('');
}, 60_000);
