import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { NewlyParked } from '@holdfast/contracts';
import { joinFleet, maintenance } from '@holdfast/events';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type ConsoleOptions, openConsole } from '../src/index.ts';
import { isBrowserMissing, openBrowser, openPage, type PageSettings, skipped } from './open-browser.ts';
import { operateToken, parkedEvent } from './open-test-console.ts';
import {
  address,
  answer,
  consume,
  numbered,
  openStore,
  parkedOf,
  type Store,
  startConsole,
} from './parked-stage.ts';

const artifacts = path.join(import.meta.dirname, 'artifacts');
const act = { who: 'jonas', why: 'from another window' };

/** Presses a key until it has its effect: a screen listens a moment after it is seen. */
async function pressUntil(page: Page, key: string, selector: string): Promise<void> {
  await expect
    .poll(
      async () => {
        if ((await page.locator(selector).count()) > 0) return true;
        await page.keyboard.press(key);
        return false;
      },
      { timeout: 15_000, interval: 300 },
    )
    .toBe(true);
}

describe.skipIf(isBrowserMissing)(`the screens of parked events${skipped}`, { timeout: 60_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
    mkdirSync(artifacts, { recursive: true });
  }, 60_000);
  afterAll(() => browser?.close());

  /** A console on a store with these events, and a page of it. */
  async function setup(
    events: readonly NewlyParked[],
    options: Partial<ConsoleOptions> = {},
    settings: Partial<PageSettings> = {},
  ) {
    const { engine } = await openStore(events);
    const opened = await openConsole({ engine, token: operateToken, ...options });
    const { link } = await opened.listen({ port: 0 });
    onTestFinished(() => opened.close());
    return { engine, link, ...(await openPage(browser, { link, ...settings })) };
  }

  const statusOf = async (engine: Store, id: string) => (await engine.triage.get(id))?.status;

  test('a group shows what is different, and is replayed; the progress outlives a reload and a killed server', async () => {
    const { engine, file } = await openStore([
      ...numbered(40, (id) => parkedOf(id, {}, { tenant: 'northwind', headers: { producer: '2.3.0' } })),
      ...numbered(20, (id) =>
        parkedOf(`b-${id}`, address, { tenant: 'kestrel', headers: { producer: '2.2.1' } }),
      ),
    ]);
    await consume(engine, () => {});
    const fleet = joinFleet({ engine, service: 'shop' });
    onTestFinished(() => fleet.stop());
    await fleet.refresh();
    const port = 20_000 + (process.pid % 20_000);
    const server = await startConsole(file, port);
    const { page, go } = await openPage(browser, { link: server.link, expected: /ERR_|Failed to load/ });

    await go('/parked');
    await page.getByRole('heading', { name: '60 events are parked, in 2 groups.' }).waitFor();
    await page.getByRole('checkbox', { name: /Choose PaymentRejected/ }).click();
    const differs = page.locator('.differs');
    await differs.getByText('northwind').waitFor();
    await differs.getByText('producer: 2.3.0').waitFor();
    await page.getByRole('button', { name: 'Replay…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Replay 40 events of PaymentRejected' });
    await dialog.waitFor();
    await dialog.getByText('its consumer runs').waitFor();
    await dialog.getByLabel('A second').fill('4');
    await dialog.getByLabel('First').fill('3');
    await dialog.locator('.command').getByText('--rate 4 --canary 3').waitFor();
    await dialog.getByLabel('Why?').fill('the producer is fixed');
    await dialog.getByRole('button', { name: 'Replay 40' }).click();
    await page.getByRole('link', { name: 'Show it' }).click();
    await page.getByText('canary: 3 of 3 succeeded, watched').waitFor();

    await page.reload();
    await page.getByText('releasing 4 a second').waitFor();
    await server.kill();
    const round = maintenance({ engine, every: '100ms' });
    round.start();
    onTestFinished(() => round.stop());
    const again = await startConsole(file, port);
    const replay = new URL(page.url()).pathname;
    await page.goto(again.link);
    await page.locator('nav.rail').waitFor();
    await go(replay);
    await page.getByRole('button', { name: /a second…/ }).click();
    const rate = page.getByRole('dialog', { name: 'Slower or faster' });
    await rate.getByLabel('A second').fill('500');
    await rate.getByLabel('Why?').fill('it goes well');
    await rate.getByRole('button', { name: 'Release 500 a second' }).click();
    await page.getByRole('heading', { name: 'All 40 succeeded.' }).waitFor();
    expect(await engine.triage.count({ fingerprint: '4f1d9c02b7e6a813' })).toBe(0);
    expect(await engine.triage.count({ fingerprint: address.group! })).toBe(20);
  });

  test('a replay is stopped by a person, and what was not released stays parked', async () => {
    const { engine, page, go } = await setup(numbered(30, (id) => parkedOf(id, {})));
    await consume(engine, () => {});
    await go('/parked?pick=*&do=replay');
    const dialog = page.getByRole('dialog', { name: 'Replay 30 events of the whole parking lot' });
    await dialog.getByLabel('A second').fill('1');
    await dialog.getByLabel('First').fill('0');
    await dialog.getByLabel('Why?').fill('a try');
    await dialog.getByRole('button', { name: 'Replay 30' }).click();
    await page.getByRole('link', { name: 'Show it' }).click();
    await page.getByText('releasing 1 a second').waitFor();
    await page.keyboard.press('s');
    const stop = page.getByRole('dialog', { name: 'Stop it' });
    await stop.getByLabel('Why?').fill('enough');
    await stop.getByRole('button', { name: /^Stop/ }).click();
    await page.getByText('stopped by mara').waitFor();
    await expect.poll(() => engine.triage.count({ isFree: true, topic: 'orders' })).toBeGreaterThan(25);
    await go('/replays');
    await page.getByRole('row', { name: /stopped by mara/ }).waitFor();
  });

  test('a canary that fails again stops the replay, and the page says which', async () => {
    const { engine, page, go } = await setup(numbered(12, (id) => parkedOf(id, {})));
    await consume(engine, ({ id }) => {
      throw Object.assign(new TypeError(`still no card_token in ${id}`));
    });
    await go('/parked?pick=4f1d9c02b7e6a813&do=replay');
    const dialog = page.getByRole('dialog', { name: /Replay 12 events/ });
    await dialog.getByLabel('First').fill('2');
    await dialog.getByLabel('Why?').fill('tried after the rollback');
    await dialog.getByRole('button', { name: 'Replay 12' }).click();
    await page.getByRole('link', { name: 'Show it' }).click();
    await page.getByRole('heading', { name: /It stopped itself after 2 events/ }).waitFor();
    await page.getByText(/canary: \d of 2 failed again/).waitFor();
    await page.getByText('10 never released').waitFor();
    const failed = page.getByRole('link', { name: /TypeError still no card_token/ });
    await failed.click();
    await page
      .getByRole('row', { name: /still no card_token/ })
      .first()
      .waitFor();
    expect(await engine.triage.count({ fingerprint: '4f1d9c02b7e6a813' })).toBe(10);
  });

  const shipment = { order: 'order-1', to: { postal_code: '1011', city: 'Berlin' }, id: 12345678901234567n };
  const shipmentText = `{"order":"order-1","to":{"postal_code":"1011","city":"Berlin"},"id":${shipment.id}}`;
  const checks = {
    orders: (payload: unknown) =>
      /"postal_code":"\d{5}"/.test(String(payload)) ? [] : ['to.postal_code: expected 5 digits'],
  };

  test('an edit shows its diff, is checked, survives Esc and another editor, and keeps long numbers', async () => {
    const { engine, page, go } = await setup(
      [parkedOf('e1', address, { payload: shipmentText })],
      { checks },
      { expected: /status of 412/ },
    );
    await go('/parked/e1?edit');
    const payload = page.getByLabel('Payload', { exact: true });
    const typed = await payload.inputValue();
    expect(typed).toContain('12345678901234567');

    await payload.fill(typed.replace('"1011",', '"1011"'));
    await page.getByText(/Payload, line 5, column 5: expected a comma/).waitFor();
    await payload.fill(typed.replace('1011', '10115x'));
    await page.getByText('It does not fit: to.postal_code: expected 5 digits').waitFor();
    expect(await page.getByRole('button', { name: 'Save and replay…' }).isDisabled()).toBe(true);
    await payload.fill(typed.replace('1011', '10115'));
    await page.locator('.diff .add b', { hasText: '10115' }).waitFor();
    await page.locator('.diff .del b', { hasText: '1011' }).waitFor();

    await page.keyboard.press('Escape');
    await page.getByText('You have begun to edit it').waitFor();
    await page.getByRole('link', { name: 'Go on' }).click();
    expect(await payload.inputValue()).toContain('10115');

    await engine.triage.edit('e1', { headers: { region: 'us' } }, act);
    await page.getByRole('button', { name: 'Save…', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Save the edit' });
    await dialog.getByText('payload.to.postal_code').first().waitFor();
    await dialog.getByLabel('Why?').fill('the import cut it');
    await dialog.getByRole('button', { name: /^Save/ }).click();
    await dialog.getByText('Event e1 has version 2, and you have seen 1.').waitFor();
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    await page.getByText('jonas has changed it since you began').waitFor();
    expect(await payload.inputValue()).toContain('10115');
    await page.getByRole('button', { name: 'I have seen it' }).click();
    await page.getByLabel('Headers, one a line').fill('region: us');
    await page.getByRole('button', { name: 'Save…', exact: true }).click();
    await dialog.getByLabel('Why?').fill('the import cut it');
    await dialog.getByRole('button', { name: /^Save/ }).click();
    await page.getByText('The edit is stored.').waitFor();
    const stored = await engine.triage.get('e1');
    expect(stored?.payload).toBe(shipmentText.replace('1011', '10115'));
    expect(stored?.headers).toEqual({ region: 'us' });
    await page.getByRole('link', { name: 'Edits 2' }).click();
    await page.locator('.diff .add b', { hasText: '10115' }).waitFor();
  });

  test('covered fields are marked, and uncovered with a reason', async () => {
    const { engine, page, go } = await setup([parkedEvent('e1')], { redact: ['card'] });
    await go('/parked/e1');
    await page.locator('mark', { hasText: '[redacted]' }).waitFor();
    expect(await page.getByText('4111').count()).toBe(0);
    await page.getByRole('button', { name: 'Uncover…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Uncover this event' });
    await dialog.getByLabel('Why?').fill('the bank asks');
    await dialog.getByRole('button', { name: 'Uncover' }).click();
    await page.getByText('"4111"').waitFor();
    const { items } = await engine.audit.list({ what: 'uncover' }, { limit: 1 });
    expect(items).toMatchObject([{ who: 'mara', why: 'the bank asks' }]);
  });

  test('a discard is undone from its toast, and after a reload from the audit log', async () => {
    const { engine, page, go } = await setup(numbered(25, (id) => parkedOf(id, {})));
    const discard = async () => {
      await go('/parked?pick=4f1d9c02b7e6a813&do=discard');
      const dialog = page.getByRole('dialog', { name: 'Discard 25 events of PaymentRejected' });
      await dialog.getByLabel('Why?').fill('test orders');
      await dialog.getByRole('button', { name: 'Discard 25' }).click();
      await expect.poll(() => engine.triage.count({ status: 'discarded' })).toBe(25);
    };
    await discard();
    await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Undone: 25 events').waitFor();
    expect(await engine.triage.count({ status: 'discarded' })).toBe(0);

    await discard();
    await page.reload();
    const { items } = await engine.audit.list({ what: 'discard' }, { limit: 1 });
    await go('/audit?what=discard');
    await page.getByRole('button', { name: /^Undo/ }).first().click();
    const dialog = page.getByRole('dialog', { name: /Undo/ });
    await dialog.getByLabel('Why?').fill('they matter after all');
    await dialog.getByRole('button', { name: /^Undo/ }).click();
    await expect.poll(() => engine.triage.count({ status: 'parked' })).toBe(25);
    expect((await engine.audit.get(items[0]!.id))?.undoneBy).toBeDefined();
  });

  test('what is parked between the count and the act is not touched', async () => {
    const { engine, page, go } = await setup(numbered(3, (id) => parkedOf(id, {})));
    await go('/parked?pick=4f1d9c02b7e6a813&do=discard');
    const dialog = page.getByRole('dialog', { name: 'Discard 3 events of PaymentRejected' });
    await dialog.waitFor();
    await engine.triage.put([parkedOf('late', {})]);
    await dialog.getByLabel('Why?').fill('test orders');
    await dialog.getByRole('button', { name: 'Discard 3' }).click();
    await expect.poll(() => engine.triage.count({ status: 'discarded' })).toBe(3);
    expect(await statusOf(engine, 'late')).toBe('parked');
    await page.getByRole('heading', { name: '1 event is parked, in 1 group.' }).waitFor();
  });

  test('a double click, and an answer that is lost, begin one operation', async () => {
    const { engine, page, go } = await setup(
      numbered(4, (id) => parkedOf(id, {})),
      {},
      { expected: /ERR_FAILED/ },
    );
    const operations = async () => (await engine.triage.operations.list({}, { limit: 10 })).items.length;
    await go('/parked?pick=4f1d9c02b7e6a813&do=keep');
    const keep = page.getByRole('dialog', { name: /Keep 4 events/ });
    await keep.getByLabel('Why?').fill('the audit wants them');
    await keep.getByRole('button', { name: 'Keep 4' }).dblclick();
    await page.getByText('4 events kept until').waitFor();
    expect(await operations()).toBe(1);

    await go('/parked?pick=4f1d9c02b7e6a813&do=discard');
    let isLost = false;
    await page.route('**/api/v1/discards', async (route) => {
      const body = route.request().postData() ?? '';
      if (isLost || body.includes('"dry":true')) return route.continue();
      isLost = true;
      await route.fetch();
      return route.abort();
    });
    const dialog = page.getByRole('dialog', { name: /Discard 4 events/ });
    await dialog.getByLabel('Why?').fill('test orders');
    await dialog.getByRole('button', { name: 'Discard 4' }).click();
    await dialog.getByText('It was not sent').waitFor();
    await dialog.getByRole('button', { name: 'Discard 4' }).click();
    await page.getByText('4 events discarded.').waitFor();
    expect(await operations()).toBe(2);
  });

  test('back and forward work, and a row opens in a new tab', async () => {
    const { page, context, go } = await setup([
      ...numbered(3, (id) => parkedOf(id, {})),
      parkedOf('b-1', address, { tenant: 'kestrel' }),
    ]);
    await go('/parked');
    await page.getByRole('link', { name: /AddressInvalid/ }).click();
    await page.locator('a[data-row=b-1]').click();
    await page.getByRole('heading', { name: 'order.placed for key-b-1' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: '1 matching event is parked.' }).waitFor();
    await page.getByRole('link', { name: 'Remove group a91e04d77c3b5f20' }).click();
    await page.getByRole('heading', { name: '4 events are parked.' }).waitFor();
    await page.goBack();
    await page.goBack();
    await page.getByRole('heading', { name: '4 events are parked, in 2 groups.' }).waitFor();
    await page.goForward();
    await page.goForward();
    await page.getByRole('heading', { name: '4 events are parked.' }).waitFor();
    const opening = context.waitForEvent('page');
    await page.locator('a[data-row=b-1]').click({ modifiers: ['ControlOrMeta'] });
    const tab = await opening;
    await tab.getByRole('heading', { name: 'order.placed for key-b-1' }).waitFor();
  });

  test('the keyboard alone replays, edits and discards', async () => {
    const { engine, page, go } = await setup([
      ...numbered(3, (id) => parkedOf(id, {})),
      parkedOf('b-1', address, { payload: '{"total":12}' }),
    ]);
    await consume(engine, () => {});
    const { keyboard } = page;
    await go('/parked');
    await page.getByRole('link', { name: /PaymentRejected/ }).waitFor();
    await keyboard.press('j');
    await keyboard.press('x');
    await page.getByText('1 group chosen').waitFor();
    await keyboard.press('r');
    await answer(page, 'Replay 3 events of PaymentRejected', 'fixed');
    await expect.poll(() => engine.triage.count({ status: 'resolved' })).toBe(3);

    await keyboard.press('g');
    await keyboard.press('p');
    await page.getByRole('heading', { name: '1 event is parked, in 1 group.' }).waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await page.locator('a[data-row=b-1]').waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'order.placed for key-b-1' }).waitFor();
    await pressUntil(page, 'e', '#edit-payload:focus');
    await keyboard.press('ControlOrMeta+a');
    await keyboard.type('{"total":13}');
    await page.getByText('1 change; the server has nothing against it.').waitFor();
    await keyboard.press('Tab');
    await keyboard.press('Tab');
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    await answer(page, 'Save the edit', 'a wrong total');
    await expect.poll(async () => (await engine.triage.get('b-1'))?.payload).toBe('{"total":13}');

    await page.getByRole('heading', { name: 'order.placed for key-b-1' }).waitFor();
    await keyboard.press('d');
    await answer(page, 'Discard 1 event by its id', 'a test order');
    await expect.poll(() => statusOf(engine, 'b-1')).toBe('discarded');
    await page.locator('.toast').getByRole('button', { name: 'Undo' }).waitFor();
    await keyboard.press('z');
    await expect.poll(() => statusOf(engine, 'b-1')).toBe('parked');
  });

  test('20,500 events are listed page by page, and a search says how far it looked', async () => {
    const events = numbered(20_500, (id) => parkedOf(id, {}, { payload: `{"n":"${id}"}` }));
    const { engine, page, go } = await setup(events);
    await go('/parked?view=events');
    await page.getByRole('heading', { name: '20,500 events are parked.' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(50);
    const first = await page.locator('tbody a').first().getAttribute('data-row');
    await page.getByRole('link', { name: 'Older' }).click();
    await expect.poll(() => page.locator('tbody a').first().getAttribute('data-row')).not.toBe(first);
    let cursor: string | undefined;
    for (let page400 = 0; page400 < 100; page400++)
      ({ cursor } = await engine.triage.list({}, { limit: 200, ...(cursor !== undefined && { cursor }) }));
    await go(`/parked?view=events&cursor=${encodeURIComponent(cursor!)}`);
    await expect.poll(() => page.locator('tbody tr').count()).toBe(50);
    const oldest = (await engine.triage.list({}, { limit: 1, cursor: cursor! })).items[0]!.id;
    expect(await page.locator('tbody a').first().getAttribute('data-row')).toBe(oldest);

    await page.getByLabel('Search parked events').fill(`"${oldest}"`);
    await page.keyboard.press('Enter');
    await page.getByText(/Looked through 20,000 events and found 0/).waitFor();
    await page.getByRole('link', { name: 'Look further' }).click();
    await page.locator(`a[data-row="${oldest}"]`).waitFor();
    await go('/parked?pick=*&do=discard');
    const dialog = page.getByRole('dialog', { name: /Discard 20,500 events/ });
    await dialog.getByLabel('Why?').fill('all of them');
    expect(await dialog.getByRole('button', { name: 'Discard 20,500' }).isDisabled()).toBe(true);
    await dialog.getByLabel('Type 20,500').fill('20500');
    expect(await dialog.getByRole('button', { name: 'Discard 20,500' }).isDisabled()).toBe(false);
  });

  test('a filter is made of suggestions, and the histogram narrows it by keys', async () => {
    const { page, go } = await setup([
      ...numbered(3, (id) => parkedOf(id, {})),
      parkedOf('b-1', address, { tenant: 'kestrel' }),
    ]);
    await go('/parked');
    await pressUntil(page, 'f', 'input:focus');
    await page.locator('#word-values option[value="kestrel"]').waitFor({ state: 'attached' });
    await page.keyboard.type('kestrel');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: '1 matching event is parked, in 1 group.' }).waitFor();
    expect(new URL(page.url()).searchParams.get('tenant')).toBe('kestrel');
    await page.locator('.hist').focus();
    for (const key of ['End', 'Enter', 'Home', 'Enter']) await page.keyboard.press(key);
    await expect.poll(() => new URL(page.url()).searchParams.has('from')).toBe(true);
    await page.getByRole('heading', { name: '1 matching event is parked, in 1 group.' }).waitFor();
  });

  test('script in a payload, a key, a tenant, a topic, a header or an error is shown, and not run', async () => {
    const evil = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
    const { page, go } = await setup([
      parkedOf(
        'evil',
        { reason: evil, message: evil },
        {
          topic: evil,
          originTopic: evil,
          type: evil,
          key: evil,
          tenant: evil,
          payload: JSON.stringify({ evil }),
          headers: { evil },
        },
      ),
      parkedOf('other', address, { topic: evil }),
    ]);
    for (const where of ['/parked?pick=4f1d9c02b7e6a813', '/parked?view=events', '/parked?by=tenant']) {
      await go(where);
      await page.locator('main').getByText('alert(2)').first().waitFor();
    }
    for (const tab of ['payload', 'headers', 'error']) {
      await go(`/parked/evil?tab=${tab}`);
      await page.locator('main').getByText('alert(2)').first().waitFor();
    }
    await go('/parked/evil?edit');
    expect(await page.locator('#edit-payload').inputValue()).toContain('<script>');
    await go('/parked/evil?do=discard');
    await page.getByRole('dialog').getByText('alert(2)').first().waitFor();
    expect(await page.locator('main script, main img').count()).toBe(0);
  });

  test('an empty parking lot says what it would show', async () => {
    const { page, go } = await setup([], {}, { expected: /status of 404/ });
    await go('/parked');
    await page.getByRole('heading', { name: 'Nothing is parked.', level: 1 }).waitFor();
    await page.getByText('When a consumer gives an event up').waitFor();
    await go('/parked/gone');
    await page.getByText('There is no parked event gone.').waitFor();
  });

  test('every screen fits a desk and a phone, in the light and in the dark', async () => {
    const events = [
      ...numbered(40, (id) => parkedOf(id, {}, { tenant: 'northwind' })),
      ...numbered(8, (id) => parkedOf(`b-${id}`, address, { tenant: 'kestrel' })),
    ];
    const { page, go } = await setup(events, { redact: ['card'] });
    const screens = [
      ['lot', '/parked?pick=4f1d9c02b7e6a813', '.differs li'],
      ['events', '/parked?view=events&group=a91e04d77c3b5f20', 'tbody tr'],
      ['replay-dialog', '/parked?pick=4f1d9c02b7e6a813&do=replay', 'dialog .checks li'],
      ['event', '/parked/e-3', '.story li'],
      ['edit', '/parked/e-3?edit', '#edit-payload'],
      ['replays', '/replays', 'h1'],
    ] as const;
    const sizes = [
      ['desk', { width: 1440, height: 900 }],
      ['phone', { width: 390, height: 844 }],
    ] as const;
    for (const [screen, where, seen] of screens) {
      await go(where);
      await page.locator(seen).first().waitFor();
      for (const [name, size] of sizes)
        for (const theme of ['light', 'dark'] as const) {
          await page.setViewportSize(size);
          await page.emulateMedia({ colorScheme: theme });
          await page.screenshot({ path: path.join(artifacts, `${screen}-${name}-${theme}.png`) });
          const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
          expect(overflow, `${where} scrolls sideways on a ${name}`).toBeLessThanOrEqual(0);
        }
    }
  });
});
