import { expect } from 'vitest';
import { freePort, serve, serveRaw } from '../../../http/test/servers.ts';
import { ask, eventually, send, simple } from '../gateways.ts';
import type { Check } from './check.ts';

const turns = 'loadBalancing: roundRobin';
const steady = `${turns}\noutlierEjection: false`;
const quick = 'retry: { attempts: 3, backoff: { base: 1ms, cap: 5ms } }';
const unlimited = 'retry: { attempts: 3, budget: false, backoff: { base: 1ms, cap: 5ms } }';
const dead = async () => ({ url: `http://127.0.0.1:${await freePort()}` });

async function statuses(url: string, count: number, path = '/'): Promise<number[]> {
  const found: number[] = [];
  for (let each = 0; each < count; each++) found.push((await send(url, path)).status);
  return found;
}

export const upstreamChecks: readonly Check[] = [
  {
    name: 'instances get requests by their weight',
    needs: ['weights'],
    async run(plane) {
      const [heavy, light] = [await serve(200), await serve(200)];
      const { url } = await plane.start(`
admin: false
upstreams:
  api: { instances: [{ url: "${heavy.url}", weight: 3 }, { url: "${light.url}", weight: 1 }], loadBalancing: roundRobin }
routes: [{ upstream: api }]
`);
      await statuses(url, 40);
      expect(heavy.seen.length + light.seen.length).toBe(40);
      expect(Math.abs(heavy.seen.length - 30)).toBeLessThanOrEqual(2);
    },
  },
  {
    name: 'the same key goes to the same instance',
    needs: ['weights'],
    async run(plane) {
      const servers = await Promise.all([serve(200), serve(200), serve(200)]);
      const { url } = await plane.start(
        simple(servers, 'loadBalancing: { strategy: hash, on: "header:x-key" }'),
      );
      for (let each = 0; each < 60; each++) await send(url, '/', { headers: { 'x-key': `k${each % 6}` } });
      const keys = servers.map(({ seen }) => new Set(seen.map(({ headers }) => headers['x-key'])));
      expect(keys.reduce((sum, { size }) => sum + size, 0)).toBe(6);
    },
  },
  {
    name: 'the own zone is preferred',
    needs: ['zones'],
    async run(plane) {
      const [near, far] = [await serve(200), await serve(200)];
      const { url } = await plane.start(`
admin: false
zone: a
upstreams:
  api: { instances: [{ url: "${near.url}", zone: a }, { url: "${far.url}", zone: b }] }
routes: [{ upstream: api }]
`);
      await statuses(url, 20);
      expect([near.seen.length, far.seen.length]).toEqual([20, 0]);
    },
  },
  {
    name: 'a retry goes to another instance',
    needs: ['retries'],
    async run(plane) {
      const [failing, working] = [await serve(503), await serve({ body: 'well' })];
      const { url } = await plane.start(simple([failing, working], `${unlimited}\n${steady}`));
      expect(await statuses(url, 10)).toEqual(Array(10).fill(200));
      expect(working.seen.length).toBe(10);
      expect(failing.seen.length).toBeGreaterThan(0);
    },
  },
  {
    name: 'a POST that may have been processed is sent once; with a key it is sent again',
    needs: ['retries'],
    async run(plane) {
      let requests = 0;
      const resets = () =>
        serveRaw((socket) => {
          socket.once('data', () => {
            requests++;
            socket.destroy();
          });
        });
      const { url } = await plane.start(simple([await resets(), await resets()], `${unlimited}\n${steady}`));
      const plain = await send(url, '/', { method: 'POST', body: 'one' });
      expect([502, 503]).toContain(plain.status);
      expect(requests).toBe(1);
      await send(url, '/', { method: 'POST', body: 'one', headers: { 'idempotency-key': 'k' } });
      expect(requests).toBe(4);
    },
  },
  {
    name: 'a POST whose instance is not there goes to another: nothing was sent',
    needs: ['retries'],
    async run(plane) {
      const working = await serve({ body: 'made' });
      const { url } = await plane.start(simple([await dead(), working], `${quick}\n${steady}`));
      for (let each = 0; each < 4; each++)
        expect(await send(url, '/', { method: 'POST', body: 'one' })).toMatchObject({ status: 200 });
      expect(working.seen.map(({ body }) => body)).toEqual(Array(4).fill('one'));
    },
  },
  {
    name: 'an outage is not multiplied by requests that come one by one',
    needs: [],
    exactly: ['retryBudget'],
    async run(plane) {
      const failing = await serve(503);
      const { url } = await plane.start(simple([failing], `${quick}\n${steady}`));
      await statuses(url, 100);
      expect(failing.seen.length).toBeLessThan(130);
    },
  },
  {
    name: 'an outage is not multiplied by requests at the same time',
    needs: ['retryBudget'],
    async run(plane) {
      const failing = await serve((_request, response) => {
        setTimeout(() => response.writeHead(503).end(), 200);
      });
      const { url } = await plane.start(simple([failing], `${quick}\n${steady}`));
      await Promise.all(Array.from({ length: 60 }, () => send(url)));
      // Without a budget there would be 180.
      expect(failing.seen.length).toBeLessThan(100);
    },
  },
  {
    name: 'a slow attempt gets a second one at another instance',
    needs: ['hedge'],
    async run(plane) {
      let isSlow = false;
      const slow = await serve((_request, response) => {
        setTimeout(() => response.end('slow'), isSlow ? 60_000 : 0);
      });
      const quickOne = await serve({ body: 'quick' });
      const { url } = await plane.start(
        simple(
          [slow, quickOne],
          `${steady}\nretry: { attempts: 2, budget: false }\nhedge: { after: 50ms, extraLoad: 1 }`,
        ),
      );
      // Successes pay for hedges.
      await statuses(url, 8);
      isSlow = true;
      const before = slow.seen.length;
      for (let each = 0; each < 2; each++) expect((await send(url)).body).toBe('quick');
      expect(slow.seen.length).toBeGreaterThan(before);
    },
  },
  {
    name: 'a breaker refuses without calling, and lets requests pass again after its time',
    needs: ['circuitBreaker'],
    async run(plane) {
      let isDown = true;
      let calls = 0;
      const server = await serve((_request, response) => {
        calls++;
        response.writeHead(isDown ? 500 : 200).end();
      });
      const { url } = await plane.start(
        simple([server], 'circuitBreaker: { failureThreshold: 3, timeout: 1s }\noutlierEjection: false'),
      );
      expect(await statuses(url, 3)).toEqual([500, 500, 500]);
      await eventually(async () => (await send(url)).status === 503);
      const before = calls;
      expect((await send(url)).status).toBe(503);
      expect(calls).toBe(before);
      isDown = false;
      await eventually(async () => (await send(url)).status === 200);
    },
  },
  {
    name: 'an instance that fails is ejected, and the others get its requests',
    needs: ['outlierEjection'],
    async run(plane) {
      const servers = [await serve(500), await serve(200), await serve(200)];
      const { url } = await plane.start(
        simple(servers, `${turns}\noutlierEjection: { consecutive: 3, ejectFor: 1h, maxEjectFor: 1h }`),
      );
      await eventually(async () => (await statuses(url, 6)).every((status) => status === 200));
      expect(servers[0]!.seen.length).toBeLessThan(20);
    },
  },
  {
    name: 'a health check takes an instance out, and puts it back',
    needs: ['healthCheck'],
    async run(plane) {
      let isWell = true;
      const sick = await serve(({ url: path }, response) => {
        response.writeHead(path === '/health' && !isWell ? 503 : 200).end(path === '/health' ? '' : 'sick');
      });
      const well = await serve(
        ({ url: path }, response) => void response.end(path === '/health' ? '' : 'well'),
      );
      const check =
        'healthCheck: { interval: 50ms, timeout: 40ms, unhealthyThreshold: 2, healthyThreshold: 2 }';
      const { url } = await plane.start(simple([sick, well], `${check}\n${steady}`));
      const seen = async () => {
        const bodies: string[] = [];
        for (let each = 0; each < 6; each++) bodies.push((await send(url)).body);
        return new Set(bodies);
      };
      await eventually(async () => (await seen()).size === 2);
      isWell = false;
      await eventually(async () => !(await seen()).has('sick'));
      isWell = true;
      await eventually(async () => (await seen()).has('sick'));
    },
  },
  {
    name: 'health is ignored when too few are healthy',
    needs: ['panic'],
    async run(plane) {
      const servers = await Promise.all(
        [1, 2].map(() =>
          serve(({ url: path }, response) => {
            response.writeHead(path === '/health' ? 503 : 200).end();
          }),
        ),
      );
      const { url } = await plane.start(
        simple(servers, 'healthCheck: { interval: 30ms, timeout: 20ms, unhealthyThreshold: 1 }'),
      );
      await eventually(() =>
        servers.every(({ seen }) => seen.filter((each) => each.url === '/health').length > 3),
      );
      expect(await statuses(url, 5)).toEqual(Array(5).fill(200));
    },
  },
  {
    name: 'an attempt without a response in time is a 504, and a long response is not cut',
    needs: ['requestTimeout'],
    async run(plane) {
      const server = await serve(({ url: path }, response) => {
        if (path === '/never') return;
        response.write('begins ');
        setTimeout(() => response.end('ends'), 600);
      });
      const { url } = await plane.start(simple([server], 'timeouts: { request: 300ms }'));
      expect((await send(url, '/never')).status).toBe(504);
      expect(await send(url, '/long')).toMatchObject({ status: 200, body: 'begins ends' });
    },
  },
  {
    name: 'all attempts together end in time',
    needs: [],
    exactly: ['requestTimeout'],
    async run(plane) {
      const server = await serve(() => {});
      const { url } = await plane.start(
        simple(
          [server],
          'retry: { attempts: 10, budget: false }\ntimeouts: { request: 300ms, attempt: 200ms }',
        ),
      );
      expect((await send(url)).status).toBe(504);
      expect(server.seen.length).toBeLessThan(4);
    },
  },
  {
    name: 'the caller’s own deadline shortens the timeout',
    needs: ['callerDeadline'],
    async run(plane) {
      const server = await serve(() => {});
      const { url } = await plane.start(simple([server]));
      expect((await send(url, '/', { headers: { 'x-request-timeout-ms': '100' } })).status).toBe(504);
    },
  },
  {
    name: 'an instance that is drained gets no new request',
    needs: ['drain'],
    async run(plane) {
      const [leaving, staying] = [await serve(200), await serve(200)];
      const gateway = await plane.start(simple([leaving, staying], steady));
      const path = `/upstreams/api/instances/${encodeURIComponent(leaving.url)}`;
      expect(await ask(gateway, `${path}/drain`, { method: 'POST' })).toMatchObject({ status: 200 });
      const before = leaving.seen.length;
      await statuses(gateway.url, 10);
      expect(leaving.seen.length).toBe(before);
      expect((await gateway.state())[0]!.upstreams[0]!.instances).toMatchObject([
        { isDraining: true },
        { isDraining: false },
      ]);
      await ask(gateway, `${path}/resume`, { method: 'POST' });
      await statuses(gateway.url, 10);
      expect(leaving.seen.length).toBeGreaterThan(before);
    },
  },
  {
    name: 'an upstream whose instances are all drained answers with 503',
    needs: ['drain'],
    async run(plane) {
      const server = await serve(200);
      const gateway = await plane.start(simple([server]));
      const path = `/upstreams/api/instances/${encodeURIComponent(server.url)}`;
      await ask(gateway, `${path}/drain`, { method: 'POST' });
      expect(await statuses(gateway.url, 5)).toEqual(Array(5).fill(503));
      expect(server.seen).toEqual([]);
      await ask(gateway, `${path}/resume`, { method: 'POST' });
      expect(await statuses(gateway.url, 5)).toEqual(Array(5).fill(200));
    },
  },
];
