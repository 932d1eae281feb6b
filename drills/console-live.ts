import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { sleep, systemClock } from 'holdfast';
import { type CDPSession, chromium } from 'playwright-core';
import { buildPageIfStale } from '../scripts/build-page.ts';
import type { DrillOptions } from '../scripts/drill.ts';
import { browserPath } from '../scripts/services/install.ts';
import type { LiveMessage } from './console/live-process.ts';

const MINUTES = 60;
/** The store's time passes so much faster than ours. */
const SPEED = 60;
const READERS = 20;
const TOKEN = 'a-token-of-at-least-32-characters-for-drills';
const HEAP_GROWTH_MAX_MEGABYTES = 5;
const NODE_GROWTH_MAX = 200;
const READER_COST_MAX = 1.5;

interface DrillCase {
  readonly id: string;
  readonly pass: boolean;
  readonly [figure: string]: unknown;
}

interface PageWeight {
  readonly heapMegabytes: number;
  readonly nodes: number;
}

/** The page asks for the name of who uses it, unless it knows it. */
const nameScript = `if (location.protocol === 'http:') localStorage.setItem('holdfast-who', 'drill');`;

/**
 * An hour of live updates in a minute: 20 services that make 5,000 calls a second, a page that is open all the time, and
 * what 20 readers cost compared with one. `times`: minutes.
 */
export async function drill({ times = MINUTES }: Partial<DrillOptions>): Promise<{ cases: DrillCase[] }> {
  await buildPageIfStale();
  const program = path.join(import.meta.dirname, 'console/live-process.ts');
  const server = fork(program, [TOKEN], { execArgv: ['--conditions=holdfast-source'] });
  const args = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
  ];
  const browser = await chromium.launch({ executablePath: browserPath, args });
  try {
    const { link } = await messageOf<{ link: string }>(server);
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    await context.addInitScript(`
      window.longTasks = [];
      new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((each) => each.duration)))
        .observe({ type: 'longtask' });
    `);
    await context.addInitScript(nameScript);
    const page = await context.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(link);
    // The tail is full, and all windows have points, before anything is weighed.
    await page.locator('.figures').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.tail li').length >= 50);
    const cdp = await context.newCDPSession(page);
    await cdp.send('Performance.enable');
    await page.evaluate('longTasks.length = 0');
    const before = await weigh(cdp);
    await sleep(systemClock, (times * 60_000) / SPEED);
    const after = await weigh(cdp);
    const longTasks = (await page.evaluate('longTasks')) as number[];
    await context.close();

    const phaseMs = Math.max(2000, (times * 60_000) / SPEED / 6);
    const one = await readFor(server, link, 1, phaseMs);
    const many = await readFor(server, link, READERS, phaseMs);
    const heapGrowth = after.heapMegabytes - before.heapMegabytes;
    const nodeGrowth = after.nodes - before.nodes;
    const cost = many.cpuPerSecond / one.cpuPerSecond;
    return {
      cases: [
        { id: 'no error in the page', pass: errors.length === 0, errors },
        {
          id: 'the heap of the page is flat',
          pass: heapGrowth <= HEAP_GROWTH_MAX_MEGABYTES,
          minutes: times,
          before: rounded(before.heapMegabytes),
          after: rounded(after.heapMegabytes),
        },
        {
          id: 'the nodes of the page are flat',
          pass: nodeGrowth <= NODE_GROWTH_MAX,
          before: before.nodes,
          after: after.nodes,
        },
        {
          id: `${READERS} readers cost at most ${READER_COST_MAX} times what one costs`,
          // A share of a second is noise: the bound is for the whole hour.
          pass: cost <= READER_COST_MAX || times < MINUTES,
          times: rounded(cost),
          coreOfOne: rounded(one.cpuPerSecond),
          kilobytesPerSecond: rounded(many.bytesPerSecond / 1000),
        },
        {
          id: 'tasks of the page over 50 ms are told',
          pass: true,
          count: longTasks.length,
          longestMs: Math.round(Math.max(0, ...longTasks)),
        },
      ],
    };
  } finally {
    await browser.close();
    server.kill('SIGKILL');
  }
}

async function weigh(cdp: CDPSession): Promise<PageWeight> {
  for (let round = 0; round < 3; round++) await cdp.send('HeapProfiler.collectGarbage');
  const { metrics } = await cdp.send('Performance.getMetrics');
  const figure = (name: string) => metrics.find((each) => each.name === name)!.value;
  return { heapMegabytes: figure('JSHeapUsedSize') / 1e6, nodes: figure('Nodes') };
}

/** What so many readers cost the server: seconds of processor and bytes a reader, for each second of the store. */
async function readFor(server: ChildProcess, link: string, readers: number, ms: number) {
  const { origin } = new URL(link);
  let bytes = 0;
  const requests = Array.from({ length: readers }, () =>
    http
      .get(`${origin}/api/v1/live?window=1h`, { headers: { authorization: `Bearer ${TOKEN}` } })
      .on('response', (response) =>
        response.on('data', (part: Buffer) => {
          bytes += part.length;
        }),
      )
      // Each is ended by the drill.
      .on('error', () => {}),
  );
  await sleep(systemClock, 1000);
  const from = await costOf(server);
  const bytesBefore = bytes;
  await sleep(systemClock, ms);
  const to = await costOf(server);
  for (const request of requests) request.destroy();
  const seconds = (to.storeMs - from.storeMs) / 1000;
  return {
    cpuPerSecond: (to.cpuMs - from.cpuMs) / 1000 / seconds,
    bytesPerSecond: (bytes - bytesBefore) / readers / seconds,
  };
}

async function costOf(server: ChildProcess): Promise<{ cpuMs: number; storeMs: number }> {
  server.send('cost');
  return messageOf(server);
}

async function messageOf<M>(child: ChildProcess): Promise<M & LiveMessage> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The console ended with ${code}.`);
  });
  const [message] = await Promise.race([once(child, 'message'), ended]);
  return message;
}

function rounded(figure: number): number {
  return Number(figure.toPrecision(3));
}
