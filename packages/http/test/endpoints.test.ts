import { storyOf } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { createFetch, type FetchOptions } from '../src/index.ts';
import { closing, freePort, serve } from './servers.ts';

const quick = { backoff: () => 2, budget: { ratio: 1 } } as const;
const setup = (options: FetchOptions) => closing(createFetch({ policy: quick, ...options }));

describe('several endpoints', () => {
  test('the next attempt prefers another', async () => {
    const [sick, well] = [await serve(503), await serve(200)];
    const fetch = setup({ endpoints: [sick.url, well.url] });
    for (let count = 0; count < 20; count++) {
      const response = await fetch('/orders');
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(sick.seen.length).toBeGreaterThan(0);
    expect(well.seen).toHaveLength(20);
  });

  test('the sick one has its own breaker and is sent away', async () => {
    const [sick, well] = [await serve(503), await serve(200)];
    const fetch = setup({
      endpoints: [sick.url, well.url],
      policy: { ...quick, breaker: { consecutive: 3, openFor: ['1m', '2m'] } },
    });
    for (let count = 0; count < 60; count++) await (await fetch('/orders')).text();
    expect(sick.seen.length).toBeLessThanOrEqual(5);
    expect(well.seen).toHaveLength(60);
  });

  test('one that refuses connections is no obstacle, not even for a POST', async () => {
    const well = await serve(200);
    const fetch = setup({ endpoints: [`http://127.0.0.1:${await freePort()}`, well.url] });
    for (let count = 0; count < 10; count++) {
      const response = await fetch('pay', { method: 'POST', body: 'pay' });
      expect(response.status).toBe(200);
      await response.text();
    }
  });

  test('paths go below the base, and queries stay', async () => {
    const server = await serve(200);
    const fetch = setup({ endpoints: [`${server.url}/v1/`] });
    for (const path of ['orders', '/orders', '?a=1', '//elsewhere.test/x', '@elsewhere.test'])
      await fetch(path);
    expect(server.seen.map(({ url }) => url)).toEqual([
      '/v1/orders',
      '/v1/orders',
      '/v1?a=1',
      '/v1//elsewhere.test/x',
      '/v1/@elsewhere.test',
    ]);
  });

  test.each([
    '../admin',
    '/../admin',
    'a/../../admin',
    '..\\admin',
    '%2E./admin',
    '.\t./admin',
    '..',
    '../v10',
  ])('a path that leads out of a base is refused, and nothing is sent: %j', async (path) => {
    const server = await serve(200);
    const fetch = setup({ endpoints: [server.url, `${server.url}/v1`] });
    await expect(fetch(path)).rejects.toThrow('url: expected a path that stays below every endpoint');
    expect(server.seen).toEqual([]);
  });

  test('dots that lead nowhere are left alone', async () => {
    const server = await serve(200);
    const fetch = setup({ endpoints: [`${server.url}/v1`] });
    for (const path of ['a/../b', 'a?next=../b', 'v1..v2', '../v1/c']) await fetch(path);
    await setup({ endpoints: [server.url] })('../d');
    expect(server.seen.map(({ url }) => url)).toEqual([
      '/v1/b',
      '/v1/a?next=../b',
      '/v1/v1..v2',
      '/v1/c',
      '/d',
    ]);
  });

  test('an absolute URL goes where it says', async () => {
    const [listed, other] = [await serve(200), await serve(200)];
    await setup({ endpoints: [listed.url] })(`${other.url}/x`);
    expect([listed.seen.length, other.seen.length]).toEqual([0, 1]);
  });

  test.each([
    [[]],
    [['/relative']],
    [['ftp://kelp.test']],
    [['http://kelp.test?a=1']],
    [['http://user@kelp.test']],
  ])('%j is refused', (endpoints) => {
    expect(() => createFetch({ endpoints })).toThrow('endpoints');
  });
});

test('credentials in an endpoint are refused, and not repeated: names of targets are shown', () => {
  const make = () => createFetch({ endpoints: ['http://user:secret@kelp.test'] });
  expect(make).toThrow('endpoints[0]');
  expect(make).not.toThrow('secret');
});

test('breakers are kept by origin: one dead host does not close the others', async () => {
  const [sick, well] = [await serve(500), await serve(200)];
  const fetch = setup({ policy: { attempts: 1, breaker: { consecutive: 2 } } });
  for (let count = 0; count < 2; count++) await fetch(sick.url);
  const error = await fetch(sick.url).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN', target: sick.url });
  expect(storyOf(error)?.stop).toBe('breaker_open');
  await expect(fetch(well.url)).resolves.toMatchObject({ status: 200 });
});
