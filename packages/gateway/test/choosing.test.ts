import { Target, TargetHealth } from 'holdfast/machines';
import { seededRandom } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { freePort, serve } from '../../http/test/servers.ts';
import { Balancer, type Member, spread } from '../src/upstream/balancer.ts';
import { ask, eventually, send, simple, start } from './gateways.ts';

function members(...names: string[]): Member[] {
  return names.map((name) => {
    const target = new Target(name);
    target.health = new TargetHealth();
    return target as Member;
  });
}

function balancer(strategy: 'p2c' | 'roundRobin' | 'hash', weights: Record<string, number>) {
  const made = new Balancer(
    strategy,
    { consecutive: 3, ejectForMs: 1000, maxEjectForMs: 1000 },
    seededRandom(1),
  );
  const all = members(...Object.keys(weights));
  made.setShares(all.map((member) => ({ member, weight: weights[member.name!]! })));
  return { balancer: made, all };
}

function countsOf(made: Balancer, calls: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let call = 0; call < calls; call++) {
    const { name } = made.choose(0, spread(call), undefined, undefined)!;
    counts[name!] = (counts[name!] ?? 0) + 1;
  }
  return counts;
}

describe('weights', () => {
  test('in turn are exact, and spread over the round', () => {
    const { balancer: made } = balancer('roundRobin', { a: 20, b: 10 });
    const order = Array.from({ length: 6 }, () => made.choose(0, 0, undefined, undefined)!.name);
    expect(order).toEqual(['a', 'b', 'a', 'a', 'b', 'a']);
  });

  test('by two choices give about that share', () => {
    const { balancer: made } = balancer('p2c', { a: 30, b: 10 });
    const { a, b } = countsOf(made, 4000);
    expect(a! / b!).toBeGreaterThan(2);
    expect(a! / b!).toBeLessThan(5);
  });

  test('by a hash give about that share', () => {
    const { balancer: made } = balancer('hash', { a: 30, b: 10 });
    const { a, b } = countsOf(made, 4000);
    expect(a! / b!).toBeGreaterThan(2);
    expect(a! / b!).toBeLessThan(5);
  });
});

describe('a hash', () => {
  test('sends the same key to the same instance, and moves few keys when one is added', () => {
    const names = { a: 1, b: 1, c: 1, d: 1 };
    const before = balancer('hash', names).balancer;
    const after = balancer('hash', { ...names, e: 1 }).balancer;
    let moved = 0;
    for (let key = 0; key < 1000; key++) {
      const was = before.choose(0, spread(key), undefined, undefined)!.name;
      expect(before.choose(0, spread(key), undefined, undefined)!.name).toBe(was);
      if (after.choose(0, spread(key), undefined, undefined)!.name !== was) moved++;
    }
    expect(moved).toBeLessThan(400);
  });

  test('goes on to the next instance when one was tried or is refused', () => {
    const { balancer: made } = balancer('hash', { a: 1, b: 1, c: 1 });
    const first = made.choose(0, 7, undefined, undefined)!;
    const second = made.choose(0, 7, new Set([first]), undefined)!;
    expect(second).not.toBe(first);
    expect(made.choose(0, 7, undefined, new Set([first]))).toBe(second);
    const third = made.choose(0, 7, new Set([first, second]), undefined)!;
    expect(new Set([first, second, third]).size).toBe(3);
    expect(made.choose(0, 7, undefined, new Set([first, second, third]))).toBeUndefined();
  });
});

describe.each(['p2c', 'roundRobin', 'hash'] as const)('an outlier (%s)', (strategy) => {
  test('is ejected for a while, and never the last ones', () => {
    const { balancer: made, all } = balancer(strategy, { a: 1, b: 1, c: 1 });
    for (let failure = 0; failure < 3; failure++) all[0]!.health.settle(0, 1, false);
    const counts = countsOf(made, 300);
    expect(counts.a ?? 0).toBe(0);
    expect(countsLater(made, 2000).a).toBeGreaterThan(0);
    for (const member of all)
      for (let failure = 0; failure < 9; failure++) member.health.settle(3000, 1, false);
    expect(made.choose(3000, 1, undefined, undefined)).toBeDefined();
  });
});

function countsLater(made: Balancer, now: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let call = 0; call < 300; call++) {
    const { name } = made.choose(now, spread(call), undefined, undefined)!;
    counts[name!] = (counts[name!] ?? 0) + 1;
  }
  return counts;
}

describe('health checks', () => {
  const check =
    'healthCheck: { path: /up, interval: 20ms, timeout: 1s, unhealthyThreshold: 2, healthyThreshold: 2 }';

  test('take an instance out, and put it back', async () => {
    let isWell = true;
    const moody = await serve((_request, response) => {
      response.writeHead(isWell ? 200 : 500).end();
    });
    const steady = await serve(200);
    const gateway = await start(
      simple([moody, steady], `${check}\nloadBalancing: roundRobin\noutlierEjection: false`),
    );
    const health = async () =>
      (await gateway.state())[0]!.upstreams[0]!.instances.map((each) => each.isHealthy);
    await eventually(() => moody.seen.some(({ url }) => url === '/up'));
    isWell = false;
    await eventually(async () => (await health())[0] === false);
    for (let count = 0; count < 6; count++)
      expect(await send(gateway.url, '/work')).toMatchObject({ status: 200 });
    isWell = true;
    await eventually(async () => (await health())[0]);
    const before = moody.seen.filter(({ url }) => url === '/work').length;
    for (let count = 0; count < 4; count++) await send(gateway.url, '/work');
    expect(moody.seen.filter(({ url }) => url === '/work').length - before).toBe(2);
  });

  test('that fail everywhere are ignored: too few would get all requests', async () => {
    const upstream = await serve((request, response) => {
      response.writeHead(request.url === '/up' ? 500 : 200).end();
    });
    const gateway = await start(simple([upstream], check));
    await eventually(async () => (await gateway.state())[0]!.upstreams[0]!.instances[0]!.isHealthy === false);
    expect(await send(gateway.url)).toMatchObject({ status: 200 });
  });
});

describe('an instance', () => {
  test('that drains gets no new request, and ends those it has', async () => {
    let answer: (() => void) | undefined;
    const leaving = await serve((_request, response) => {
      answer = () => response.end('in time');
    });
    const staying = await serve({ body: 'staying' });
    const gateway = await start(simple([leaving, staying], 'loadBalancing: roundRobin'));
    const running = send(gateway.url);
    await eventually(() => answer);
    const name = encodeURIComponent(leaving.url);
    expect(await ask(gateway, `/upstreams/api/instances/${name}/drain`, { method: 'POST' })).toMatchObject({
      status: 200,
    });
    for (let count = 0; count < 4; count++)
      expect(await send(gateway.url)).toMatchObject({ body: 'staying' });
    answer!();
    expect(await running).toMatchObject({ status: 200, body: 'in time' });
    await ask(gateway, `/upstreams/api/instances/${name}/resume`, { method: 'POST' });
    const again = [send(gateway.url), send(gateway.url)];
    await eventually(() => leaving.seen.length === 2);
    answer!();
    await Promise.all(again);
  });

  test.each(['p2c', 'roundRobin', 'hash'])(
    'that drains gets nothing, even as the last one: %s',
    async (how) => {
      const servers = [await serve(200), await serve(200)];
      const gateway = await start(simple(servers, `loadBalancing: ${how}\nretry: { attempts: 3 }`));
      const act = (url: string, what: string) =>
        ask(gateway, `/upstreams/api/instances/${encodeURIComponent(url)}/${what}`, { method: 'POST' });
      expect(await act(servers[0]!.url, 'drain')).toMatchObject({ body: { serving: 1 } });
      expect(await act(servers[1]!.url, 'drain')).toMatchObject({ body: { serving: 0 } });
      expect(await send(gateway.url)).toMatchObject({
        status: 503,
        headers: { 'retry-after': expect.any(String), holdfast: 'retry=safe' },
      });
      expect(servers.map(({ seen }) => seen.length)).toEqual([0, 0]);
      expect(await act(servers[0]!.url, 'resume')).toMatchObject({ body: { serving: 1 } });
      expect(await send(gateway.url)).toMatchObject({ status: 200 });
      expect(servers.map(({ seen }) => seen.length)).toEqual([1, 0]);
    },
  );

  test('of the own zone is preferred while it is healthy', async () => {
    const near = await serve({ body: 'near' });
    const far = await serve({ body: 'far' });
    const yaml = `
admin: { token: a-token }
zone: a
upstreams:
  api: { instances: [{ url: "${near.url}", zone: a }, { url: "${far.url}", zone: b }] }
routes: [{ upstream: api }]
`;
    const gateway = await start(yaml);
    for (let count = 0; count < 6; count++) expect(await send(gateway.url)).toMatchObject({ body: 'near' });
    await ask(gateway, `/upstreams/api/instances/${encodeURIComponent(near.url)}/drain`, { method: 'POST' });
    expect(await send(gateway.url)).toMatchObject({ body: 'far' });
  });

  test('that was added starts slowly', async () => {
    const old = await serve({ body: 'old' });
    const young = await serve({ body: 'young' });
    const yaml = (urls: string) => `
admin: false
upstreams: { api: { instances: [${urls}], slowStart: 1h, loadBalancing: roundRobin } }
routes: [{ upstream: api }]
`;
    const gateway = await start(yaml(`"${old.url}"`));
    const { parseGateway } = await import('../src/index.ts');
    const next = parseGateway(yaml(`"${old.url}", "${young.url}"`));
    expect(
      await gateway.reload({ ...gateway.config, upstreams: next.upstreams, routes: next.routes }),
    ).toMatchObject({
      ok: true,
    });
    for (let count = 0; count < 22; count++) await send(gateway.url);
    expect(young.seen.length).toBe(2);
  });

  test('with a host name is each address that the name has, resolved again and again', async () => {
    const { port } = await serve({ body: 'one' });
    let addresses = ['127.0.0.1'];
    const gateway = await start(
      simple([{ url: `http://orders.internal:${port}` }], 'resolveEvery: 100ms\nretry: { attempts: 2 }'),
      { resolve: async () => addresses },
    );
    const names = async () => (await gateway.state())[0]!.upstreams[0]!.instances.map(({ name }) => name);
    expect(await send(gateway.url)).toMatchObject({ status: 200, body: 'one' });
    expect(await names()).toEqual([`http://orders.internal:${port} (127.0.0.1)`]);
    addresses = ['127.0.0.1', '127.0.0.2'];
    await eventually(async () => (await names()).length === 2);
    addresses = [];
    // A name that nobody knows for a while does not take the instances away.
    for (let count = 0; count < 5; count++) expect(await send(gateway.url)).toMatchObject({ status: 200 });
    expect((await names()).length).toBe(2);
  });

  test('that nobody can reach is a 502 that may be repeated', async () => {
    const gateway = await start(simple([{ url: `http://127.0.0.1:${await freePort()}` }]));
    expect(await send(gateway.url, '/', { method: 'POST', body: 'x' })).toMatchObject({
      status: 502,
      headers: { holdfast: 'retry=safe' },
    });
  });
});
