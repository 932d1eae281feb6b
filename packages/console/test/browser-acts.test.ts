import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../src/api/routes.ts';
import { isBrowserMissing, openBrowser, openPage, skipped } from './open-browser.ts';
import { openShop, type Shop } from './open-shop.ts';
import { refusals, routesOfParkingTests, routesOfPrograms, screensOf } from './screens.ts';

describe.skipIf(isBrowserMissing)(`acts in a browser${skipped}`, { timeout: 60_000 }, () => {
  let browser: Browser;
  let shop: Shop;
  let screens: string[];
  /** Every question of every page, as `GET /topics/orders`. */
  const asked = new Set<string>();

  beforeAll(async () => {
    [browser, shop] = await Promise.all([openBrowser(), openShop()]);
    screens = await screensOf(shop);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  async function open(settings: Partial<Parameters<typeof openPage>[1]> = {}) {
    const opened = await openPage(browser, { link: shop.link, ...settings });
    opened.context.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith('/api/v1/'))
        asked.add(`${request.method()} ${pathname.slice('/api/v1'.length)}`);
    });
    return opened;
  }

  /** Gives the reason of a dialog and presses its button; the dialog goes away once the act is done. */
  async function confirm(page: Page, verb: string, why = 'a test') {
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Why?').fill(why);
    await dialog.getByRole('button', { name: verb }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  const consumer = async () => (await shop.ask('GET /consumers')).items[0];
  const topic = async () => (await shop.ask('GET /topics/orders')).topic;

  test('a pause and a quarantine are seen by a running consumer, until they are ended', async () => {
    const { page, go } = await open();
    await go('/topics/orders');
    await page.getByRole('button', { name: 'Pause…' }).click();
    await expect
      .poll(() => page.locator('dialog code').textContent())
      .toContain('topics pause orders --for 15m');
    await confirm(page, 'Pause', 'the bank is down');
    await expect.poll(async () => (await consumer()).paused, { timeout: 10_000 }).toBe(true);
    await expect.poll(() => page.locator('h1').textContent()).toContain('orders: paused');
    await page.getByRole('button', { name: 'Resume…' }).click();
    await confirm(page, 'Resume');
    await expect.poll(async () => (await consumer()).paused, { timeout: 10_000 }).toBe(false);

    await page.getByRole('button', { name: 'Quarantine…' }).click();
    await page.locator('dialog').getByLabel('Tenant', { exact: true }).fill('acme');
    await confirm(page, 'Quarantine', 'double entries');
    await expect.poll(async () => (await topic()).counts.held, { timeout: 10_000 }).toBeGreaterThan(0);
    await page.getByRole('button', { name: 'Release…' }).click();
    await confirm(page, 'Release');
    await expect.poll(async () => (await topic()).counts.held, { timeout: 10_000 }).toBe(0);
  });

  test('a breaker is forced for a time, holds the work back, and decides again when it ends', async () => {
    const { page, go } = await open();
    await go('/policies/payment');
    await page.getByRole('button', { name: 'Keep open…' }).first().click();
    await confirm(page, 'Keep open', 'the bank asked for a pause');
    await page.getByText('kept open by hand').waitFor({ timeout: 15_000 });
    await expect.poll(async () => (await topic()).waitsFor, { timeout: 10_000 }).toEqual(['payment']);
    await page.locator('.checks').getByText('1 process obeys').waitFor({ timeout: 15_000 });
    await page.getByRole('button', { name: 'Let it decide…' }).first().click();
    await confirm(page, 'Let it decide');
    await expect.poll(async () => (await topic()).waitsFor, { timeout: 15_000 }).toEqual([]);

    const forced = { to: 'open', forMs: 4000, why: 'for a moment' };
    await shop.ask('POST /policies/payment/breaker', forced);
    await page.locator('.checks').getByText('Ends by itself').waitFor();
    await page.locator('.checks').getByText('Ends by itself').waitFor({ state: 'detached', timeout: 20_000 });
    await expect.poll(async () => (await topic()).waitsFor, { timeout: 15_000 }).toEqual([]);
  });

  test('retries and the mode of a policy are switched, and the toast undoes it', async () => {
    const { page, go } = await open();
    await go('/policies/payment');
    await page.getByRole('button', { name: 'Retries off…' }).click();
    await confirm(page, 'Switch off');
    await page.getByRole('button', { name: 'Retries on…' }).waitFor({ timeout: 15_000 });
    await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('button', { name: 'Retries off…' }).waitFor({ timeout: 15_000 });
    await page.getByRole('button', { name: 'Mode…' }).click();
    await confirm(page, 'Set to observe');
    await page.getByText('It only observes').waitFor({ timeout: 15_000 });
    await page.getByRole('button', { name: 'End it…' }).click();
    await confirm(page, 'End it');
    await page.getByText('Mode enforce').waitFor({ timeout: 15_000 });
  });

  test('waiting events are chosen, retried and unblocked', async () => {
    const { page, go } = await open();
    await shop.ask('PUT /controls', {
      control: { kind: 'pause', topic: 'orders' },
      forMs: 60_000,
      why: 'a test',
    });
    await go('/topics/orders?state=ready');
    for (const [button, verb] of [
      ['Retry', 'Retry 1 event'],
      ['Unblock…', 'Unblock 1 event'],
    ] as const) {
      await page.getByRole('checkbox').first().check({ timeout: 15_000 });
      await page.getByRole('button', { name: button }).click();
      await confirm(page, verb);
    }
    await shop.ask('DELETE /controls/pause%3Aorders', { why: 'a test' });
  });

  test('an assembly that is not parked says why it cannot be resumed, and is cancelled', async () => {
    const { page, go } = await open({ expected: refusals });
    const id = (await shop.ask('GET /assemblies?state=done')).items[0].id;
    await go(`/assemblies/${id}`);
    await page.getByRole('button', { name: 'Resume…' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Why?').fill('a test');
    await dialog.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => dialog.getByRole('alert').textContent()).toMatch(/^[A-Z].*\.$/);
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    await page.getByRole('button', { name: 'Edit the result…' }).first().click();
    await dialog.getByLabel('JSON').fill('{"by":"hand"}');
    await dialog.getByLabel('Why?').fill('a test');
    await dialog.getByRole('button', { name: 'Set the result' }).click();
    await expect.poll(() => dialog.getByRole('alert').textContent()).toMatch(/^[A-Z].*\.$/);
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    await page.getByRole('button', { name: 'Cancel…' }).click();
    await confirm(page, 'Cancel and compensate');
    await page.getByText('was stopped.').waitFor({ timeout: 15_000 });
    await go('/assemblies');
    await page.getByRole('button', { name: 'Pause…' }).first().click();
    await expect
      .poll(() => page.locator('dialog code').textContent())
      .toContain('assembly pause fulfil-order');
    await confirm(page, 'Pause');
    await page.getByRole('button', { name: 'Resume…' }).click();
    await confirm(page, 'Resume');
  });

  test('the gateway drains an instance, keeps a breaker open, and reads its file again', async () => {
    const { page, go } = await open();
    const instances = async () => (await shop.ask('GET /gateway')).state.workers[0].upstreams[0].instances;
    await go('/gateway');
    await page.getByRole('button', { name: 'Drain…' }).first().click();
    await confirm(page, 'Drain');
    await expect.poll(async () => (await instances())[0].isDraining).toBe(true);
    await page.getByRole('button', { name: 'Resume…' }).click();
    await confirm(page, 'Resume');
    await expect.poll(async () => (await instances())[0].isDraining).toBe(false);
    await page.getByRole('button', { name: 'Force…' }).first().click();
    await confirm(page, 'Keep open');
    await expect.poll(async () => (await instances())[0].forced).toBe('open');
    await page.getByRole('button', { name: 'Let it decide…' }).click();
    await confirm(page, 'Let it decide');
    await expect.poll(async () => (await instances())[0].forced).toBe(null);
    await page.getByRole('button', { name: 'Reload…' }).click();
    await confirm(page, 'Reload');
    await page.getByText('The file is in force.').waitFor();
  });

  test('a live policy is tried in a storm, beside the defaults', async () => {
    const { page, go } = await open();
    await go('/simulator?policy=payment');
    await expect.poll(() => page.locator('textarea').inputValue()).toContain('"payment (live)"');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('In this storm, payment (live) is back').waitFor({ timeout: 40_000 });
    await expect.poll(() => page.locator('main tbody tr').count()).toBeGreaterThan(2);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.getByText('was cancelled').waitFor({ timeout: 20_000 });
  });

  test('an act is undone from the audit log, after a reload', async () => {
    const { page, go } = await open();
    await shop.ask('PUT /controls', {
      control: { kind: 'concurrency', topic: 'orders', concurrencyMax: 2 },
      why: 'the database is slow',
    });
    await go('/audit?what=control_set&of=topic%3Aorders');
    await page.getByRole('button', { name: 'Undo…' }).first().click();
    await page.reload();
    await confirm(page, 'Undo');
    await expect.poll(async () => (await topic()).controls).toEqual([]);
    await page.getByText('undone').first().waitFor();
  });

  test('every route of the API is used by some screen', async () => {
    const { page, go } = await open();
    for (const screen of screens.filter((each) => /^.(topics|policies|gateway.requests.*)$/.test(each))) {
      await go(screen);
      await page.locator('main table, main .story').first().waitFor();
    }
    await go('/');
    await page.getByRole('button', { name: /^Break payment: away/ }).click();
    await page.getByRole('button', { name: /^Mend payment: away/ }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('The token').fill(new URL(shop.link).hash.slice('#token='.length));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('nav.rail').waitFor();
    const unused = Object.keys(routes).filter((name) => {
      const [method = '', pattern = ''] = name.split(' ');
      const shape = new RegExp(`^${method} ${pattern.replace(/:\w+/g, '[^/]+')}$`);
      return ![...asked].some((each) => shape.test(each));
    });
    const elsewhere: readonly string[] = [...routesOfParkingTests, ...routesOfPrograms];
    expect(unused.filter((name) => !elsewhere.includes(name))).toEqual([]);
  });
});
