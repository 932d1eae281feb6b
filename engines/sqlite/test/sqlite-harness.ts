import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Harness } from '@holdfast/contracts/conformance';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { seededRandom, virtualClock } from 'holdfast/testing';

/** An engine on a file of its own and on virtual time. */
export async function sqliteHarness(): Promise<Harness<DatabaseSync>> {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-sqlite-'));
  const file = path.join(folder, 'events.db');
  const clock = virtualClock();
  const engines: SqliteEngine[] = [];
  let writesLeft = Infinity;

  async function open(): Promise<SqliteEngine> {
    let isDead = false;
    const beforeWrite = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const random = seededRandom('ids', engines.length);
    const engine = await openSqlite({ file, clock, random, beforeWrite });
    engines.push(engine);
    return engine;
  }

  const engine = await open();
  await engine.transaction((database) => database.exec('CREATE TABLE effect (name TEXT PRIMARY KEY)'));
  return {
    engine,
    clock,
    passTime: (ms) => clock.advance(ms),
    async reopen() {
      writesLeft = Infinity;
      return open();
    },
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    effect: {
      write: (tx, name) => void tx.prepare('INSERT INTO effect VALUES (?)').run(name),
      isThere: (name) =>
        engine.transaction((tx) => tx.prepare('SELECT 1 FROM effect WHERE name = ?').get(name) !== undefined),
    },
    async dispose() {
      for (const each of engines) await each.close();
      rmSync(folder, { recursive: true });
    },
  };
}
