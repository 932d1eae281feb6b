import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parseScenario } from '@holdfast/config';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath } from '../../../scripts/services/install.ts';
import {
  band,
  comparePolicies,
  RunPool,
  reportCsv,
  reportHtml,
  reportText,
  sparkline,
  spread,
} from '../src/index.ts';

/** Small, with a name that would do harm if it were not escaped. */
const scenario = parseScenario(`
id: small
title: a title with <script>alert(1)</script> in it
duration: 20s
services: { api: { workers: 5, time: { exponential: 50ms }, calls: [{ to: db }] }, db: { time: 5ms } }
clients:
  web: { to: api, arrivals: { poisson: 40/s } }
  batch: { to: api, arrivals: { poisson: 10/s }, priority: sheddable }
faults: [{ kind: stall, service: api, from: 5s, until: 7s }]
policies: { naive: { attempts: 4, budget: false, breaker: false, backoff: false }, careful: {} }
expect: [{ metric: success, atLeast: 0.5 }]
`);

const pool = new RunPool(1);
const comparison = await comparePolicies(scenario, ['naive', 'careful'], pool, { seeds: [1, 2, 3] });
afterAll(() => pool.close());

describe('a comparison', () => {
  test('has all customers, each class, each tier and each service', () => {
    const [first] = comparison.policies;
    expect(first!.groups.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'all all customers',
      'clients web',
      'clients batch',
      'tier api → db',
      'service api',
      'service db',
    ]);
    for (const { series } of first!.groups) {
      for (const { mean } of Object.values(series)) expect(mean).toHaveLength(20);
    }
  });

  test('sums the classes up', () => {
    const [all, web, batch] = comparison.policies[0]!.groups;
    const begun = (group: typeof all) => group!.series.offered!.mean.reduce((sum, each) => sum! + each!, 0)!;
    expect(begun(all)).toBeCloseTo(begun(web) + begun(batch), 6);
  });

  test('is the same whichever thread has made it', async () => {
    await using other = new RunPool(2);
    const again = await comparePolicies(scenario, ['naive', 'careful'], other, { seeds: [1, 2, 3] });
    expect(again).toEqual(comparison);
  });

  test('ends in the middle of a run when it is told to', async () => {
    const leaving = new AbortController();
    await using other = new RunPool(1, leaving.signal);
    const runs = comparePolicies(scenario, ['naive', 'careful'], other, {
      seeds: Array.from({ length: 200 }, (_, index) => index + 1),
      onProgress: () => leaving.abort(new Error('enough')),
    });
    await expect(runs).rejects.toThrow('enough');
  });

  test('leaves no thread behind when it is told to end, so that a process can', async () => {
    const program = `
      import { RunPool, readStorm } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
      const leaving = new AbortController();
      const pool = new RunPool(2, leaving.signal);
      const requests = [1, 2, 3].map((seed) => ({ scenario: readStorm('s01'), policy: 'holdfast', seed }));
      const runs = pool.run(requests);
      leaving.abort(new Error('enough'));
      await runs.catch((error) => console.log(error.message));
    `;
    const flags = ['--conditions=holdfast-source', '--no-warnings', '--input-type=module', '-e', program];
    const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 15_000 });
    expect(stdout).toBe('S01: enough\n');
  });

  test('goes through promises where any policy that it meets does', async () => {
    const policies = new Map(Object.entries({ watched: { mode: 'observe' as const } }));
    const watched = parseScenario(`
id: watched
duration: 5s
services: { api: { calls: [{ to: db, policy: watched }] }, db: { time: 5ms } }
clients: { web: { to: api, arrivals: { constant: 10/s } } }
policies: { mine: {} }
`);
    const { policies: found } = await comparePolicies(watched, ['mine'], pool, { policies, seeds: [1] });
    expect(found[0]!.groups[0]!.figures.success!.median).toBe(1);
  });

  test('fails with a sentence where a run does', async () => {
    await using other = new RunPool(1);
    const wrong = comparePolicies(scenario, ['nobody'], other, { seeds: [1] });
    await expect(wrong).rejects.toThrow('small: small names a policy that is nowhere: nobody.');
  });
});

describe('estimates', () => {
  test('of one seed are sure; of several, as wide as Student says', () => {
    expect(band([[2, null]])).toEqual({ mean: [2, null], low: [2, null], high: [2, null] });
    const { mean, low, high } = band([[1], [2], [3]]);
    expect(mean).toEqual([2]);
    expect(high[0]! - 2).toBeCloseTo(4.303 / Math.sqrt(3), 3);
    expect(low[0]).toBe(0);
  });

  test('say never where the median is never', () => {
    expect(spread([1, null, null])).toEqual({ median: null, least: 1, most: null });
  });
});

test('a run of days has a report like any other', async () => {
  const long = parseScenario(`
id: long
duration: 40h
services: { s: { time: 400ms } }
clients: { c: { to: s, arrivals: { constant: 1/m } } }
policies: { p: { attempts: 1 } }
`);
  const days = await comparePolicies(long, ['p'], pool, { seeds: [1] });
  expect(reportText(days)).toContain('144,000 s, seed 1');
  const html = reportHtml(days);
  expect(html).toContain('p: from 0/s to 1/s, at the end 0/s');
  // What is drawn is in it, and not what each second was.
  expect(html.length).toBeLessThan(500_000);
});

describe('a report', () => {
  const html = reportHtml(comparison);

  test('is one file that loads nothing and runs nothing of a name', () => {
    expect(html).not.toMatch(/(src|href)=["']?(https?:)?\/\//);
    expect(html).toContain("default-src 'none'");
    expect(html).not.toContain('<script>alert(1)');
  });

  test('has a colour and a dash for each policy, however many there are', () => {
    const [first] = comparison.policies;
    const dozen = {
      ...comparison,
      policies: Array.from({ length: 12 }, (_, n) => ({ ...first!, policy: `p${n}` })),
    };
    const styles = reportHtml(dozen).match(
      /^\.p\d+ \{\n {2}--c: .+\n {2}--dash: .+|\.p\d+\{--c:hsl[^}]+\}/gm,
    );
    expect(styles).toHaveLength(12);
    expect(new Set(styles!.map((each) => each.replace(/\.p\d+/, ''))).size).toBe(12);
  });

  test('says its verdict in a sentence at the top, with units', () => {
    const [, top] = reportText(comparison).split('\n');
    expect(top).toBe('naive meets the bound. careful meets the bound.');
    expect(html).toContain(`<p class="verdict">${top}</p>`);
    const [first] = comparison.policies;
    const finding = { ...first!.trial.findings[0]!, atLeast: 0.999, figure: 0.42, met: false };
    const missed = { ...first!, trial: { ...first!.trial, pass: false, findings: [finding] } };
    const failed = reportText({ ...comparison, policies: [missed] });
    expect(failed).toContain('naive misses 1 of 1 bounds: success is 42 %, expected ≥ 99.9 %.');
    const free = { ...first!, trial: { ...first!.trial, findings: [] } };
    expect(reportText({ ...comparison, policies: [free] })).toMatch(
      /naive gets [\d.]+ % of the work done with [\d.]+× the load/,
    );
  });

  test('does not praise a policy that only observes or only falls back', async () => {
    const storm = parseScenario(`
id: outage
duration: 10s
services: { api: { time: 5ms } }
clients: { web: { to: api, arrivals: { poisson: 40/s } } }
faults: [{ kind: refuse, service: api, from: 2s, until: 8s }]
policies:
  watching: { mode: observe }
  tenth: { mode: { enforce: 0.1 } }
  soothing: { fallback: { to: nothing } }
  careful: {}
`);
    const names = ['watching', 'tenth', 'soothing', 'careful'];
    const compared = await comparePolicies(storm, names, pool, { seeds: [1] });
    const [, top] = reportText(compared).split('\n');
    expect(top).toContain('watching only observes: nothing is protected, and each call is sent once.');
    expect(top).toContain('tenth enforces 10 % of the work, and protects nothing of the rest.');
    expect(top).toMatch(/\d+(\.\d+)? % of the answers of soothing are a fallback; that work was not done\./);
    expect(top).not.toMatch(/careful (only|enforces)|answers of careful/);
    const of = (name: string) => compared.policies.find(({ policy }) => policy === name)!.groups[0]!.figures;
    expect(of('soothing').success!.median).toBeCloseTo(of('careful').success!.median!, 1);
    expect(of('soothing').success!.median).toBeLessThan(0.6);
    const bounded = await comparePolicies(
      { ...storm, expect: scenario.expect.map((bound) => ({ ...bound, atLeast: 0.1 })) },
      ['watching', 'soothing'],
      pool,
      { seeds: [1] },
    );
    const [, second] = reportText(bounded).split('\n');
    expect(second).toMatch(/^watching meets the bound\. watching only observes: nothing is protected/);
    expect(second).toMatch(/soothing meets the bound\. \d+(\.\d+)? % of the answers/);
  });

  test('has a column for the peak', () => {
    expect(reportText(comparison)).toMatch(/multiplication +peak +p50/);
    const { figures, series } = comparison.policies[0]!.groups[0]!;
    expect(figures.peak!.most).toBeGreaterThanOrEqual(
      Math.max(...series.attempts!.mean.map((each) => each ?? 0)),
    );
  });

  test('in a terminal fits a line for each policy', () => {
    const text = reportText(comparison);
    expect(text).toContain('goodput over time');
    expect(text.split('\n').filter((line) => line.startsWith('  careful'))).toHaveLength(3);
    expect(sparkline([0, 1, 2, 4, null], 5)).toBe('▁▂▄█ ');
  });

  test('as CSV has a line for each policy, part and second', () => {
    const lines = reportCsv(comparison).trimEnd().split('\n');
    expect(lines).toHaveLength(1 + 2 * 6 * 20);
    expect(lines[0]).toMatch(/^policy,part,name,second,offered,goodput/);
    expect(lines[1]!.split(',')).toHaveLength(lines[0]!.split(',').length);
  });
});

const executablePath = browserPath;
const isMissing = !existsSync(executablePath);
if (isMissing && process.env.CI === 'true') throw new Error(`There is no browser at ${executablePath}.`);
const why = isMissing ? `, skipped: no browser at ${executablePath}` : '';

describe.skipIf(isMissing)(`a report in a browser${why}`, () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'report-'));
  const file = path.join(folder, 'report.html');
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  const asked: string[] = [];

  beforeAll(async () => {
    writeFileSync(file, reportHtml(comparison));
    const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
    const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
    browser = await chromium.launch({ executablePath, args: [...args, ...quiet] });
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(`file://${file}`);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
  });

  test('is readable at 420 px, without scrolling sideways', async () => {
    const narrow = await browser.newPage({ viewport: { width: 420, height: 900 } });
    await narrow.goto(`file://${file}`);
    const sizes = await narrow.evaluate(() => {
      const table = document.querySelector('.stacked')!;
      const cell = table.querySelector('td')!;
      return {
        page: document.documentElement.scrollWidth,
        table: table.scrollWidth,
        title: getComputedStyle(cell, '::before').content,
      };
    });
    expect(sizes.page).toBeLessThanOrEqual(420);
    expect(sizes.table).toBeLessThanOrEqual(420);
    expect(sizes.title).toBe('"success"');
    await narrow.close();
  });

  test('opens without a complaint and asks for nothing else', () => {
    expect(complaints).toEqual([]);
    expect(asked).toEqual([`file://${file}`]);
  });

  test('tells values under the pointer and the keys, and where the trouble was', async () => {
    const chart = page.locator('svg[data-chart]').first();
    expect(await chart.locator('.fault title').textContent()).toBe('stall of api, 5 s to 7 s');
    await chart.hover();
    const readout = page.locator('.readout').first();
    await expect.poll(() => readout.textContent()).toMatch(/10 s · naive .+\/s · careful .+\/s/);
    await chart.focus();
    await page.keyboard.press('Home');
    expect(await readout.textContent()).toMatch(/^1 s · /);
  });

  test('leaves out a policy that is switched off', async () => {
    const lines = page.locator('.chart .p0').first();
    await page.getByRole('checkbox', { name: 'naive' }).uncheck();
    expect(await lines.isVisible()).toBe(false);
    await page.getByRole('checkbox', { name: 'naive' }).check();
    expect(await lines.isVisible()).toBe(true);
  });

  test('every chart has a name, and everything can be reached by keys', async () => {
    const names = await page
      .locator('svg[data-chart]')
      .evaluateAll((all) =>
        all.map((each) => [
          each.getAttribute('role'),
          each.getAttribute('aria-label'),
          each.getAttribute('tabindex'),
        ]),
      );
    expect(names.length).toBeGreaterThan(10);
    for (const [role, name, tab] of names) {
      expect(role).toBe('img');
      expect(name).toMatch(/: .+from .+ to /);
      expect(tab).toBe('0');
    }
  });

  test('is as wide as a small screen, and dark where that is wanted', async () => {
    await page.setViewportSize({ width: 360, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await ground();
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await ground()).not.toBe(light);
  });
});
