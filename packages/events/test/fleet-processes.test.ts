import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fleetState } from '@holdfast/events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { type AnyEngine, openStore } from './open-store.ts';
import { act } from './stage.ts';

const postgres = await service('postgres');
const waiting = { timeout: 30_000, interval: 20 };

interface Shown {
  readonly id: string;
  readonly breaker: string;
  readonly forced: { readonly state: string; readonly because: string } | null;
  readonly killSwitch: boolean;
  readonly overridden: object | null;
}

/** Three processes of one fleet, each with the last state that it has printed. */
async function threeProcesses(kind: string, where: string, schema: string) {
  const program = path.join(import.meta.dirname, 'fleet-process.ts');
  const flags = ['--conditions=holdfast-source', '--no-warnings'];
  const started = [0, 1, 2].map(() => {
    const child = spawn(process.execPath, [...flags, program, kind, where, schema], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const shown: { last: Shown | undefined; child: ChildProcess } = { last: undefined, child };
    createInterface(child.stdout).on('line', (line) => {
      shown.last = JSON.parse(line);
    });
    return shown;
  });
  onTestFinished(async () => {
    for (const { child } of started) {
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    }
  });
  await expect.poll(() => started.every(({ last }) => last !== undefined), waiting).toBe(true);
  return started;
}

async function obeyedByThree(engine: AnyEngine, kind: string, where: string, schema: string): Promise<void> {
  const [a, b, stopped] = await threeProcesses(kind, where, schema);
  const ids = async () => (await engine.presence.processes()).map(({ id }) => id);
  await expect.poll(async () => (await ids()).length, waiting).toBe(3);

  stopped!.child.kill('SIGSTOP');
  await engine.controls.impose({ kind: 'breaker', policy: 'payment', state: 'open' }, act, 600_000);
  await expect.poll(() => [a!.last!.breaker, b!.last!.breaker], waiting).toEqual(['open', 'open']);
  expect(a!.last!.forced).toEqual({ state: 'open', because: 'ann: a test' });
  const heard = async () => (await fleetState(engine)).controls[0]!.heard;
  await expect
    .poll(heard, waiting)
    .toMatchObject({ [a!.last!.id]: 'obeyed', [b!.last!.id]: 'obeyed', [stopped!.last!.id]: 'not_heard' });
  // The process that reports nothing is forgotten, and is heard of again when it goes on.
  await expect.poll(async () => (await ids()).length, waiting).toBe(2);
  stopped!.child.kill('SIGCONT');
  await expect.poll(() => stopped!.last!.breaker, waiting).toBe('open');

  await engine.controls.lift('breaker:payment', act);
  await engine.controls.impose({ kind: 'retries', policy: 'payment', state: 'off' }, act);
  await engine.controls.impose({ kind: 'mode', policy: '*', mode: 'observe' }, act);
  for (const each of [a!, b!, stopped!]) {
    await expect
      .poll(() => each.last, waiting)
      .toMatchObject({ forced: null, killSwitch: true, overridden: { mode: 'observe' } });
  }
}

describe('a fleet of three processes, one of them stopped', () => {
  test('on SQLite', { timeout: 90_000 }, async () => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-fleet-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = path.join(folder, 'fleet.db');
    const engine = await openStore('sqlite', file, '');
    onTestFinished(() => engine.close());
    await obeyedByThree(engine, 'sqlite', file, '');
  });

  test.skipIf(postgres.missing !== undefined)(
    titled('on PostgreSQL', postgres),
    { timeout: 90_000 },
    async () => {
      const schema = `fleet_${process.pid}`;
      const url = postgres.missing === undefined ? postgres.url : '';
      const engine = await openStore('postgres', url, schema);
      onTestFinished(() => engine.close());
      await obeyedByThree(engine, 'postgres', url, schema);
    },
  );
});
