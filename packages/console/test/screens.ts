import { setTimeout as wait } from 'node:timers/promises';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import type { RouteName } from '../src/index.ts';
import type { Shop } from './open-shop.ts';

/** Routes that the tests of the parking lot and of replays go through. */
export const routesOfParkingTests: readonly RouteName[] = [
  'GET /parked',
  'GET /parked/groups',
  'GET /parked/histogram',
  'GET /parked/differences',
  'GET /parked/:id',
  'POST /parked/:id/uncover',
  'GET /parked/:id/payload',
  'PATCH /parked/:id',
  'GET /replays',
  'GET /replays/:id',
  'POST /replays',
  'PATCH /replays/:id',
  'POST /replays/:id/stop',
  'POST /discards',
  'POST /restores',
  'POST /keeps',
  'GET /rules',
  'PUT /rules/:name',
  'DELETE /rules/:name',
];

/** What the browser says of answers that a test asks for. */
export const refusals = /status of (401|404|412|422)/;

/** Routes that no page needs. */
export const routesOfPrograms: readonly RouteName[] = ['GET /healthz'];

/** One URL of every screen, with ids that the shop has. */
export async function screensOf(shop: Shop): Promise<string[]> {
  async function first(route: string, of: string): Promise<string> {
    for (let tries = 0; ; tries++) {
      const [found] = (await shop.ask(route))[of];
      if (found) return found.id;
      if (tries === 200) throw new Error(`The shop has none of ${of} of ${route} after 20 s.`);
      await wait(100);
    }
  }
  const assembly = await first('GET /assemblies', 'items');
  const request = await first('GET /gateway/requests', 'stories');
  const policy = 'policies:\n  proposal:\n    attempts: 2\n';
  const { run } = await shop.ask('POST /simulator/runs', { scenario: 's03', policy });
  return [
    '/',
    '/parked',
    '/parked?view=events',
    '/replays',
    '/topics',
    '/topics/orders',
    '/topics/orders?act=pause',
    '/policies',
    '/policies/payment',
    '/policies/gateway%2Fpayment',
    '/policies/payment?act=force',
    '/assemblies',
    `/assemblies/${assembly}`,
    `/assemblies/${assembly}?act=edit`,
    '/gateway',
    `/gateway/requests/${request}`,
    '/simulator',
    `/simulator/${run.id}`,
    '/audit',
    '/nothing-of-the-sort',
  ];
}

/** axe-core as a script. It is added before the page's own scripts, because the page allows no others. */
export const axeScript: { content: string } = { content: axe.source };

/** What axe-core finds that is serious or critical, each with its place. */
export async function seriousFindings(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ['violations'] }),
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
    );
}
