import { assemblies } from '@holdfast/assembly';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openConsole } from '../src/index.ts';
import { isBrowserMissing, openBrowser, openPage, type PageSettings, skipped } from './open-browser.ts';
import { openShop, openStoreOf, type Shop } from './open-shop.ts';
import { openTestConsole, operateToken } from './open-test-console.ts';
import { axeScript, refusals, screensOf, seriousFindings } from './screens.ts';

describe.skipIf(isBrowserMissing)(`the screens in a browser${skipped}`, { timeout: 60_000 }, () => {
  let browser: Browser;
  let shop: Shop;
  let screens: string[];

  beforeAll(async () => {
    [browser, shop] = await Promise.all([openBrowser(), openShop()]);
    screens = await screensOf(shop);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  function openShopPage(settings: Partial<PageSettings> = {}) {
    return openPage(browser, { link: shop.link, ...settings });
  }

  test('every screen opens by its link, also for those who have to sign in first', async () => {
    const { page, context } = await openShopPage({ expected: refusals });
    const token = new URL(shop.link).hash.slice('#token='.length);
    for (const screen of screens) {
      await context.clearCookies();
      await page.goto(new URL(screen, shop.link).href);
      await page.getByLabel('The token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('nav.rail').waitFor();
      expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe(screen);
      await expect.poll(() => page.locator('main h1').first().textContent()).not.toBe('');
    }
  });

  test('axe finds nothing serious on any screen', async () => {
    const { page, context, go } = await openShopPage({ expected: refusals });
    await context.addInitScript(axeScript);
    for (const screen of screens) {
      await go(screen);
      await page
        .locator('main :is(table, form, .figures, .empty, .story, .sheet), main code')
        .first()
        .waitFor();
      expect(await seriousFindings(page), screen).toEqual([]);
    }
  });

  test('those who may only look see every act, are told why not, and send none', async () => {
    const engine = await openStoreOf(shop);
    const viewToken = 'a-token-of-those-who-may-only-look-000';
    const opened = await openConsole({ engine, viewToken, assemblies: assemblies({ engine, programs: [] }) });
    const { url } = await opened.listen({ port: 0 });
    onTestFinished(async () => {
      await opened.close();
      await engine.close();
    });
    const { page, go, context } = await openPage(browser, {
      link: `${url}#token=${viewToken}`,
      who: 'jonas',
    });
    const sent: string[] = [];
    context.on('request', (request) => {
      if (request.method() !== 'GET') sent.push(`${request.method()} ${request.url()}`);
    });
    const id = (await shop.ask('GET /assemblies')).items[0].id;
    for (const screen of [
      '/topics/orders',
      '/policies/payment',
      '/assemblies',
      `/assemblies/${id}`,
      '/audit',
    ]) {
      await go(screen);
      const buttons = page.locator('main button[aria-disabled="true"]');
      if (screen !== '/audit') await buttons.first().waitFor();
      for (const button of await buttons.all()) {
        expect(await button.getAttribute('title')).toBe('jonas may look. Acts need the token to operate.');
        await button.dispatchEvent('click');
      }
      expect(await page.locator('main button[aria-disabled="false"]').count(), screen).toBe(0);
      expect(await page.locator('dialog').count()).toBe(0);
    }
    // A dialog that is opened by its link is shown, and does not act either.
    await go('/topics/orders?act=pause');
    await page.locator('dialog').getByLabel('Why?').fill('I may not');
    expect(await page.locator('dialog').getByRole('button', { name: 'Pause' }).isDisabled()).toBe(true);
    // Parts that this console was not given say so, and what to start.
    for (const screen of ['/gateway', '/simulator']) {
      await go(screen);
      await page.getByText('This console was started without').waitFor();
    }
    expect(sent).toEqual([]);
  });

  test('ages are right although the clock of the browser is wrong by a day', async () => {
    const { page, context, go } = await openShopPage();
    await context.addInitScript(`{
      const now = Date.now.bind(Date);
      Date.now = () => now() + 864e5;
    }`);
    await go('/topics');
    const heard = page.locator('td[data-is="heard"]').first();
    await expect.poll(() => heard.textContent(), { timeout: 10_000 }).toMatch(/^(now|\d+ s ago)$/);
  });

  test('the first useful paint is measured', async () => {
    const { page, context, go } = await openShopPage();
    const cdp = await context.newCDPSession(page);
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: 4 });
    await cdp.send('Network.clearBrowserCache');
    await go('/');
    await page.locator('.figures').waitFor();
    const ms = await page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    );
    console.info(`First contentful paint, CPU slowed 4 times: ${Math.round(ms)} ms.`);
  });

  test('a store that is away makes the page stale and its acts idle, and nothing that was typed is lost', async () => {
    const { engine, url } = await openTestConsole();
    const { processes } = engine.presence;
    const expected = /status of 50\d/;
    const { page, go } = await openPage(browser, { link: `${url}#token=${operateToken}`, expected });
    await go('/topics/orders?act=pause');
    const why = page.locator('dialog').getByLabel('Why?');
    await why.fill('half of a reason');
    engine.presence.processes = () => Promise.reject(new Error('the database is away'));
    await page.getByText('The store does not answer.').waitFor({ timeout: 20_000 });
    const pause = page.locator('dialog').getByRole('button', { name: 'Pause' });
    expect(await pause.isDisabled()).toBe(true);
    engine.presence.processes = processes;
    await page.getByText('The store does not answer.').waitFor({ state: 'detached', timeout: 20_000 });
    expect(await why.inputValue()).toBe('half of a reason');
    expect(await pause.isDisabled()).toBe(false);
  });

  test('a server that stops answering makes the page stale and its acts idle, until it is back', async () => {
    const { page, go } = await openShopPage({ expected: /Failed to load resource|ERR_/ });
    await go('/topics/orders');
    await page.getByRole('button', { name: 'Pause…' }).waitFor();
    // The table has a request of its own: without it, the server would be stopped before it answers.
    await page.locator('main table').first().waitFor();
    shop.process.kill('SIGSTOP');
    try {
      await page.getByText('The console does not answer.').waitFor({ timeout: 20_000 });
      expect(await page.locator('main table').first().isVisible()).toBe(true);
      const pause = page.getByRole('button', { name: 'Pause…' });
      expect(await pause.getAttribute('aria-disabled')).toBe('true');
      await pause.dispatchEvent('click');
      expect(await page.locator('dialog').count()).toBe(0);
    } finally {
      shop.process.kill('SIGCONT');
    }
    await page.getByText('The console does not answer.').waitFor({ state: 'detached', timeout: 20_000 });
    await expect
      .poll(() => page.getByRole('button', { name: 'Pause…' }).getAttribute('aria-disabled'))
      .toBe('false');
  });
});
