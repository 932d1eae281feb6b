import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing, openBrowser, openPage, skipped } from './open-browser.ts';
import { openShop, type Shop } from './open-shop.ts';

describe.skipIf(isBrowserMissing)(`the tour in a browser${skipped}`, () => {
  let browser: Browser;
  let shop: Shop;

  beforeAll(async () => {
    [browser, shop] = await Promise.all([openBrowser(), openShop()]);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  test('break payment, see what waits and what is parked, mend it, replay: nothing needs you', async () => {
    const { page, go } = await openPage(browser, { link: shop.link });
    const headline = page.locator('h1').first();
    const parked = async () => (await shop.ask('GET /overview')).badges.parked;
    const press = (name: string) => page.getByRole('button', { name }).click();
    const steps = page.locator('.tour .steps li');
    await expect.poll(() => headline.textContent()).toBe('Nothing needs you.');

    await press('Break payment: away');
    await go('/policies/payment');
    await expect.poll(() => headline.textContent(), { timeout: 20_000 }).toBe('payment spares its target.');
    await go('/topics/orders');
    await page.getByText('and no attempt is used up').waitFor({ timeout: 10_000 });
    expect(await parked()).toBe(0);

    await go('/');
    await press('Mend payment: away');
    await press('Break payment: rejects every charge');
    await expect.poll(parked, { timeout: 30_000 }).toBeGreaterThanOrEqual(10);
    await expect.poll(() => headline.textContent(), { timeout: 20_000 }).toMatch(/needs? you\.$/);
    await page.locator('.needs a[href^="/parked"]').first().waitFor({ timeout: 20_000 });
    await press('Mend payment: rejects every charge');

    await go('/parked?pick=*&do=replay');
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Why?').fill('payment is mended');
    await dialog.getByRole('button', { name: /^Replay \d/ }).click();
    await dialog.waitFor({ state: 'detached' });
    const stage = async () => (await shop.ask('GET /replays')).items[0].stage;
    await expect.poll(stage, { timeout: 30_000 }).toBe('done');
    await expect.poll(parked, { timeout: 10_000 }).toBe(0);

    await go('/');
    await expect.poll(() => headline.textContent(), { timeout: 70_000 }).toBe('Nothing needs you.');
    await expect
      .poll(() => steps.evaluateAll((all) => all.map((each) => each.getAttribute('data-done'))))
      .toEqual(['true', 'true', 'true', 'true', 'true']);
  }, 180_000);
});
