import { chromium } from 'playwright-core';
import { openShop } from '../packages/console/test/open-shop.ts';
import { axeScript, screensOf, seriousFindings } from '../packages/console/test/screens.ts';
import { buildPageIfStale } from '../scripts/build-page.ts';
import type { DrillResult } from '../scripts/drill.ts';
import { browserPath } from '../scripts/services/install.ts';

const sizes = [
  [1440, 900],
  [390, 844],
] as const;
const themes = ['light', 'dark'] as const;

/** Every screen of the console in both themes, on a desk and on a phone: axe-core finds nothing serious. */
export async function drill(): Promise<DrillResult> {
  await buildPageIfStale();
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
    ],
  });
  const shop = await openShop();
  try {
    const screens = await screensOf(shop);
    const cases = [];
    for (const [width, height] of sizes)
      for (const theme of themes) {
        const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
        await context.addInitScript(axeScript);
        await context.addInitScript(
          `if (location.protocol === 'http:') localStorage.setItem('holdfast-who', 'drill');`,
        );
        const page = await context.newPage();
        await page.goto(shop.link);
        await page.locator('.app').waitFor();
        for (const screen of screens) {
          await page.goto(new URL(screen, shop.link).href);
          await page
            .locator('main :is(table, form, .figures, .empty, .story, .sheet), main code')
            .first()
            .waitFor();
          const findings = await seriousFindings(page);
          const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
          const says = isWide ? [...findings, 'the page scrolls sideways'] : findings;
          cases.push({ id: `${screen} ${theme} ${width}`, pass: says.length === 0, findings: says });
        }
        await context.close();
      }
    return { cases };
  } finally {
    await browser.close();
    await shop.close();
  }
}
