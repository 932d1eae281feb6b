import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { buildPageIfStale } from '../../../scripts/build-page.ts';
import { browserPath } from '../../../scripts/services/install.ts';

export const isBrowserMissing = !existsSync(browserPath);
if (isBrowserMissing && process.env.CI === 'true') throw new Error(`There is no browser at ${browserPath}.`);
/** Stands in the title of what is skipped. */
export const skipped = isBrowserMissing ? `, skipped: no browser at ${browserPath}` : '';

/** Builds the page if its sources are newer, and starts the browser of a test file. */
export async function openBrowser(): Promise<Browser> {
  await buildPageIfStale();
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
  return chromium.launch({ executablePath: browserPath, args: [...args, ...quiet] });
}

/** A machine under load is slow, but not that slow. */
const waitMs = 15_000;

export interface PageSettings {
  /** The link that the console prints, with the token in its fragment. */
  readonly link: string;
  readonly who?: string;
  readonly size?: readonly [width: number, height: number];
  readonly theme?: 'light' | 'dark';
  /** Complaints of the browser that the test brings about, such as a refused request. */
  readonly expected?: RegExp;
}

/**
 * Opens a page of its own and signs in. When the test ends, the browser must not have complained: no error, no report
 * of the content policy, no request to another origin.
 */
export async function openPage(
  browser: Browser,
  { link, who = 'mara', size: [width, height] = [1440, 900], theme = 'light', expected }: PageSettings,
): Promise<{ page: Page; context: BrowserContext; go(path: string): Promise<void> }> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const complaints: string[] = [];
  const { origin } = new URL(link);
  context.on('page', (page) => {
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      complaints.push(`a dialog of a script: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(origin)) complaints.push(`asked another origin: ${request.url()}`);
    });
  });
  context.setDefaultTimeout(waitMs);
  // The empty page before the first one has no storage.
  await context.addInitScript(
    `if (location.protocol === 'http:') localStorage.setItem('holdfast-who', ${JSON.stringify(who)});`,
  );
  const page = await context.newPage();
  await page.goto(link);
  await page.locator('nav.rail').waitFor({ state: 'attached' });
  onTestFinished(async () => {
    await context.close();
    expect(complaints.filter((text) => !expected?.test(text))).toEqual([]);
  });
  return {
    page,
    context,
    async go(path) {
      await page.goto(new URL(path, link).href);
      await page.locator('h1').first().waitFor({ state: 'attached' });
    },
  };
}
