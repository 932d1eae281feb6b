import { commit, type RebuildProgress, rebuild } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';

/** Fills a new table from what is kept of the past. The topic must have been declared with `keepSettled`. */
export async function rebuildTotals(engine: SqliteEngine, run: string): Promise<RebuildProgress> {
  await engine.transaction((database) =>
    database.exec('CREATE TABLE IF NOT EXISTS totals (id TEXT PRIMARY KEY, total REAL)'),
  );
  return rebuild({
    engine,
    topic: 'orders',
    name: 'totals@2',
    run,
    handler: ({ key = '', payload }) => {
      const { total } = payload as { total: number };
      return commit((database) => database.prepare('INSERT INTO totals VALUES (?, ?)').run(key, total));
    },
  });
}
