import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildSiteIfStale } from '../../../scripts/build-site.ts';
import { isBrowserMissing, openBrowser, openPage, type PageSettings, skipped } from './open-browser.ts';
import { openTestConsole, operateToken } from './open-test-console.ts';
import { axeScript, seriousFindings } from './screens.ts';

describe('help', () => {
  beforeAll(buildSiteIfStale, 60_000);

  test('is served to everybody, from a fixed table', async () => {
    const { url } = await openTestConsole();
    const ask = (place: string) => fetch(url + place, { redirect: 'manual' });
    for (const [place, to] of [
      ['help', '/help/'],
      ['help/packages/http', '/help/packages/http/'],
    ] as const) {
      const moved = await ask(place);
      expect([moved.status, moved.headers.get('location')]).toEqual([301, to]);
    }
    const page = await ask('help/packages/http/');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await page.text()).toContain('<h1');
    const picture = await ask('help/docs/console/overview-light-desktop.png');
    expect(picture.headers.get('content-type')).toBe('image/png');
    expect(picture.headers.get('content-encoding')).toBe(null);
    for (const place of [
      'help/nothing.html',
      'help/nothing/',
      'help/..%2fpage%2findex.html',
      'help//page/',
    ]) {
      const missing = await ask(place);
      expect(missing.status, place).toBe(404);
      expect(missing.headers.get('content-type')).toBe('application/problem+json');
    }
  });
});

describe.skipIf(isBrowserMissing)(`help in a browser${skipped}`, { timeout: 60_000 }, () => {
  let browser: Browser;

  beforeAll(async () => {
    await buildSiteIfStale();
    browser = await openBrowser();
  }, 60_000);
  afterAll(() => browser?.close());

  async function openConsolePage(settings: Partial<PageSettings> = {}) {
    const { url } = await openTestConsole();
    return openPage(browser, { link: `${url}#token=${operateToken}`, ...settings });
  }

  test('opens from the navigation, and is searched with the keyboard alone', async () => {
    const { page, context } = await openConsolePage();
    const [help] = await Promise.all([
      context.waitForEvent('page'),
      page.locator('nav.rail').getByRole('link', { name: 'Help' }).click(),
    ]);
    await help.getByRole('search').waitFor();
    expect(new URL(help.url()).pathname).toBe('/help/');
    await help.keyboard.press('/');
    await help.keyboard.type('circuit breaker');
    const results = help.locator('#results a');
    await results.first().waitFor();
    await help.keyboard.press('ArrowDown');
    const href = await help.evaluate(() => (document.activeElement as HTMLAnchorElement).href);
    expect(href).toBe(await results.first().evaluate((link: HTMLAnchorElement) => link.href));
    await help.keyboard.press('Escape');
    expect(await help.locator('#results').isVisible()).toBe(false);
    expect(await help.evaluate(() => document.activeElement?.id)).toBe('search');
    await help.keyboard.press('Enter');
    await help.waitForURL(href);
    expect(await help.locator('h1').textContent()).toMatch(/breaker/i);
  });

  test('says when nothing is found, and Enter stays', async () => {
    const { page, go } = await openConsolePage();
    await go('/help/');
    await page.keyboard.press('/');
    await page.keyboard.type('xyzzyplugh');
    await page.getByText('Nothing has "xyzzyplugh".').waitFor();
    await page.keyboard.press('Enter');
    expect(new URL(page.url()).pathname).toBe('/help/');
  });

  test.each(['light', 'dark'] as const)('axe finds nothing serious, %s', async (theme) => {
    const { page, context, go } = await openConsolePage({ theme });
    await context.addInitScript(axeScript);
    for (const place of ['/help/', '/help/packages/http/']) {
      await go(place);
      await page.getByRole('search').waitFor();
      expect(await seriousFindings(page), place).toEqual([]);
    }
  });

  test('on a phone nothing scrolls sideways, and the pages are behind a button', async () => {
    const { page, go } = await openConsolePage({ size: [390, 844] });
    await go('/more');
    await page.getByRole('main').getByRole('link', { name: 'Help' }).waitFor();
    for (const place of [
      '/help/',
      '/help/docs/options.html',
      '/help/docs/policies/',
      '/help/docs/reference/',
    ]) {
      await go(place);
      await page.getByRole('search').waitFor();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width, place).toBe(390);
    }
    const pages = page.getByRole('navigation', { name: 'Pages' });
    expect(await pages.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Pages' }).click();
    await pages.getByText('Guides', { exact: true }).click();
    await pages.getByRole('link', { name: 'Survive your clients' }).first().click();
    await page.waitForURL(/survive-your-clients/);
    expect(await pages.isVisible()).toBe(false);
  });
});
