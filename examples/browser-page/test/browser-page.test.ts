import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { startExample } from '../../../scripts/examples/start-example.ts';
import { browserPath } from '../../../scripts/services/install.ts';

const isBrowserMissing = !existsSync(browserPath);
if (isBrowserMissing && process.env.CI === 'true') throw new Error(`There is no browser at ${browserPath}.`);
const skipped = isBrowserMissing ? `, skipped: no browser at ${browserPath}` : '';
const waitMs = 15_000;

async function openPage() {
  const { printed, signal } = await startExample('browser-page', { PORT: '0' });
  const [, origin = ''] = await printed(/^the page is on (http:\/\/127\.0\.0\.1:\d+)$/m);
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run'];
  const browser = await chromium.launch({ executablePath: browserPath, args });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(waitMs);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  onTestFinished(() => expect(errors).toEqual([]));
  await page.goto(origin);
  return { page, status: page.locator('#status'), waits: page.locator('#waits li'), signal };
}

test.skipIf(isBrowserMissing)(`the page says that it waits, then shows the price${skipped}`, async () => {
  const { page, status, waits } = await openPage();
  await page.getByRole('button', { name: 'Ask for the price' }).click();
  await status.getByText('The shop is busy. The next attempt is in').waitFor();
  await status.getByText('A lamp costs 12 EUR. That was request 3.').waitFor();
  expect(await waits.allTextContents()).toEqual(['attempt 1 failed', 'attempt 2 failed']);
});

test.skipIf(isBrowserMissing)(`the page says that the shop cannot be reached${skipped}`, async () => {
  const { page, status, signal } = await openPage();
  signal('SIGKILL');
  await page.getByRole('button', { name: 'Ask for the price' }).click();
  await status.getByText('The shop cannot be reached. Please try again.').waitFor();
  expect(await page.getByRole('button').isEnabled()).toBe(true);
});
