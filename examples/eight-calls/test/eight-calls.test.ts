import { expect, onTestFinished, test } from 'vitest';
import { printedInReadme, startExample } from '../../../scripts/examples/start-example.ts';
import { renderPage } from '../src/page.ts';
import { startServices } from '../src/services.ts';

test('the page is there although one call hangs, and prints what the README shows', async () => {
  const example = await startExample('eight-calls');
  expect(await example.ended).toBe(0);
  expect(example.output()).toBe(await printedInReadme('eight-calls'));
});

test('only what failed is marked, and the call that hangs is cancelled', async () => {
  const services = await startServices(new Set(['stock']));
  onTestFinished(() => services.close());
  const html = await renderPage(services.origin);
  expect(html.match(/<section/g)).toHaveLength(8);
  expect([...html.matchAll(/id="(\w+)" data-fallback/g)].map(([, name]) => name)).toEqual(['stock']);
  await expect.poll(() => services.cancelled).toEqual(['stock']);
});

test('a page without its product fails, with the error of that call', async () => {
  const services = await startServices(new Set(['product']));
  onTestFinished(() => services.close());
  await expect(renderPage(services.origin)).rejects.toThrow();
  await expect.poll(() => services.cancelled).toEqual(['product']);
});
