import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const folder = path.join(import.meta.dirname, '..', '..', '.holdfast', 'drills');

/** Adds the counts of a run to those of earlier runs, so that a long drill can be run in pieces. `fresh`: forgets those. */
export async function addToTotals(
  name: string,
  counts: Readonly<Record<string, number>>,
  fresh: boolean,
): Promise<Record<string, number>> {
  const file = path.join(folder, `${name}.json`);
  const totals: Record<string, number> = fresh ? {} : await readTotals(file);
  totals.runs = (totals.runs ?? 0) + 1;
  for (const [what, count] of Object.entries(counts)) totals[what] = (totals[what] ?? 0) + count;
  await mkdir(folder, { recursive: true });
  await writeFile(file, `${JSON.stringify(totals, null, 2)}\n`);
  return totals;
}

async function readTotals(file: string): Promise<Record<string, number>> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return {};
    throw error;
  }
}
