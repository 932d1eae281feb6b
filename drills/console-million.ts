import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openConsole } from '@holdfast/console';
import { openSqlite } from '@holdfast/sqlite';
import { chromium } from 'playwright-core';
import { buildPageIfStale } from '../scripts/build-page.ts';
import type { DrillOptions } from '../scripts/drill.ts';
import { browserPath } from '../scripts/services/install.ts';
import { fill } from './parked-million.ts';

const PARKED = 1_000_000;
const LOOKS = 20;

/** The page asks for the name of who uses it, unless it knows it. */
const nameScript = `if (location.protocol === 'http:') localStorage.setItem('holdfast-who', 'drill');`;

/** Many parked events in the console: what a page of them takes, in the server and to the eye. `times`: events. */
export async function drill({ times = PARKED }: Partial<DrillOptions>): Promise<Record<string, number>> {
  await buildPageIfStale();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-console-'));
  const engine = await openSqlite({ file: path.join(folder, 'parked.db') });
  const args = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
  ];
  const browser = await chromium.launch({ executablePath: browserPath, args });
  const opened = await openConsole({ engine });
  try {
    await fill(engine, times);
    const { url, link } = await opened.listen({ port: 0 });
    const token = new URL(link).hash.slice('#token='.length);
    const ask = async (where: string) => {
      const startedAt = performance.now();
      const response = await fetch(`${url}api/v1${where}`, { headers: { authorization: `Bearer ${token}` } });
      const answer = await response.json();
      if (!response.ok) throw new Error(`${where}: ${JSON.stringify(answer)}`);
      return { answer, ms: performance.now() - startedAt };
    };
    const medianOf = async (where: string) => {
      const all: number[] = [];
      for (let look = 0; look < LOOKS; look++) all.push((await ask(where)).ms);
      return rounded(all.sort((a, b) => a - b)[LOOKS / 2]!);
    };
    let cursor: string | undefined;
    for (let page = 1; page < 400 && page * 50 < times; page++)
      ({ cursor } = await engine.triage.list({}, { limit: 50, ...(cursor !== undefined && { cursor }) }));
    const counted = (await ask('/parked/groups?by=error')).answer.items as { count: number }[];
    const inGroups = counted.reduce((sum, { count }) => sum + count, 0);

    const page = await browser.newPage();
    await page.addInitScript(nameScript);
    await page.goto(link);
    await page.locator('.figures').waitFor();
    const paintMs: number[] = [];
    for (let look = 0; look < LOOKS; look++) {
      await page.goto(new URL('/audit', url).href);
      await page.locator('h1').waitFor();
      const startedAt = performance.now();
      await page.goto(new URL('/parked?view=events', url).href);
      await page.locator('tbody tr').nth(49).waitFor();
      paintMs.push(performance.now() - startedAt);
    }
    return {
      parked: times,
      inGroups,
      pageMs: await medianOf('/parked?limit=50'),
      page400Ms: await medianOf(`/parked?limit=50&cursor=${encodeURIComponent(cursor!)}`),
      groupsMs: await medianOf('/parked/groups?by=error'),
      overviewMs: await medianOf('/overview?window=1h'),
      searchMs: rounded((await ask('/parked?text=customer-1234')).ms),
      navigationToRowsMs: rounded(paintMs.sort((a, b) => a - b)[LOOKS / 2]!),
    };
  } finally {
    await browser.close();
    await opened.close();
    await engine.close();
    await rm(folder, { recursive: true });
  }
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(3));
}
