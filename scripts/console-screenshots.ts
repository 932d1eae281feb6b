import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { endOnSignal, root } from './command.ts';
import { browserPath } from './services/install.ts';

/** Pictures of the console for the documents: `npm run screenshots`. The shop runs, is broken, and is looked at. */
const folder = path.join(root, 'docs/console');
const sizes = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
const calmSeconds = 75;
const rejectedSeconds = 8;
const awaySeconds = 22;

endOnSignal();
mkdirSync(folder, { recursive: true });
const data = mkdtempSync(path.join(os.tmpdir(), 'holdfast-pictures-'));
const shop = spawn(
  process.execPath,
  [
    ...['--conditions=holdfast-source', path.join(root, 'examples/orders/src/system.ts')],
    ...['--port', '0', '--store', path.join(data, 'orders.db')],
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const link = await new Promise<string>((resolve) => {
  createInterface(shop.stdout).on('line', (line) => {
    if (line.startsWith('http://')) resolve(line);
  });
});
const [url = '', token = ''] = link.split('#token=');

async function ask(route: string, body?: object) {
  const [method = 'GET', place = ''] = route.split(' ');
  const response = await fetch(`${url}api/v1${place}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return response.json();
}
const setFault = (name: string, isOn: boolean) => ask(`POST /demo/faults/${name}`, { isOn });

await pause(calmSeconds * 1000);
await setFault('rejects', true);
await pause(rejectedSeconds * 1000);
await setFault('rejects', false);
await pause(5000);
await setFault('away', true);
await pause(awaySeconds * 1000);

const { items } = await ask('GET /parked?limit=1');
const screens = {
  overview: '/',
  parked: '/parked',
  event: `/parked/${encodeURIComponent(items[0].id)}`,
  policy: '/policies/payment',
};
const browser = await chromium.launch({ executablePath: browserPath, args: quiet });
for (const [size, viewport] of Object.entries(sizes)) {
  const page = await browser.newPage({ viewport, colorScheme: 'light' });
  await page.addInitScript(() => {
    localStorage.setItem('holdfast-who', 'mara');
  });
  await page.goto(link);
  await page.getByRole('heading', { level: 1 }).waitFor();
  for (const [name, place] of Object.entries(screens)) {
    await page.goto(url.slice(0, -1) + place);
    await page.getByRole('heading', { level: 1 }).waitFor();
    if (name === 'overview') await page.getByRole('button', { name: '15 min' }).click();
    await page.waitForTimeout(2500);
    await page.screenshot({ path: path.join(folder, `${name}-light-${size}.png`) });
  }
  await page.close();
}
await browser.close();
shop.kill('SIGINT');
await new Promise((resolve) => shop.once('exit', resolve));
rmSync(data, { recursive: true });
