import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { serve } from '../../../http/test/servers.ts';
import { ask, eventually, send, simple } from '../gateways.ts';
import type { Check } from './check.ts';

export const protectionChecks: readonly Check[] = [
  {
    name: 'a rate limit lets a burst pass, and refuses what is above it',
    needs: ['rateLimiting'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(
        simple([server], '', 'rateLimiting: { requestsPerSecond: 0.01, burstSize: 3 }'),
      );
      const found: number[] = [];
      for (let each = 0; each < 5; each++) found.push((await send(url)).status);
      expect(found).toEqual([200, 200, 200, 429, 429]);
      expect(server.seen.length).toBe(3);
    },
  },
  {
    name: 'a rate limit by a header gives each value its own',
    needs: ['rateLimiting'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(
        simple([server], '', 'rateLimiting: { requestsPerSecond: 0.01, burstSize: 1, key: "header:x-who" }'),
      );
      const as = async (who: string) => (await send(url, '/', { headers: { 'x-who': who } })).status;
      expect([await as('a'), await as('a'), await as('b'), await as('b')]).toEqual([200, 429, 200, 429]);
    },
  },
  {
    name: 'a rate limit of an upstream counts all its routes together',
    needs: ['rateLimiting'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(`
admin: false
upstreams:
  api: { instances: ["${server.url}"], rateLimiting: { requestsPerSecond: 0.01, burstSize: 2, key: client } }
routes: [{ match: /a, upstream: api }, { match: /b, upstream: api }]
`);
      const found = [
        await send(url, '/a'),
        await send(url, '/b'),
        await send(url, '/a'),
        await send(url, '/b'),
      ];
      expect(found.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    },
  },
  {
    name: 'a limit that only counts refuses nothing',
    needs: ['rateLimiting'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(
        simple([server], '', 'rateLimiting: { requestsPerSecond: 0.01, burstSize: 1, reportOnly: true }'),
      );
      expect([(await send(url)).status, (await send(url)).status]).toEqual([200, 200]);
    },
  },
  {
    name: 'a bulkhead lets so many requests pass, queues some, and refuses the rest',
    needs: ['bulkhead'],
    async run(plane) {
      const held: (() => void)[] = [];
      const server = await serve((_request, response) => {
        held.push(() => response.end());
      });
      const { url } = await plane.start(
        simple([server], 'bulkhead: { maxConcurrentRequests: 2, maxQueuedRequests: 1, queueTimeout: 10s }'),
      );
      const answered: number[] = [];
      const all = Array.from({ length: 12 }, async () => {
        answered.push((await send(url)).status);
      });
      // An approximation may have a queue that is longer by the number of concurrent requests.
      await eventually(() => answered.length >= 7 && held.length === 2);
      expect(answered.filter((status) => status !== 503)).toEqual([]);
      await eventually(() => {
        for (const end of held.splice(0)) end();
        return answered.length === 12;
      });
      await Promise.all(all);
      expect(answered.filter((status) => status === 503).length).toBeLessThanOrEqual(9);
      expect(answered.filter((status) => status === 200).length).toBe(server.seen.length);
    },
  },
  {
    name: 'a repeated idempotency key gets the recorded response',
    needs: ['idempotency'],
    async run(plane) {
      const server = await serve({ status: 201, body: 'made' });
      const { url } = await plane.start(simple([server], '', 'idempotency: { scope: public }'));
      const post = () => send(url, '/', { method: 'POST', body: 'x', headers: { 'idempotency-key': 'k' } });
      expect([(await post()).status, (await post()).status]).toEqual([201, 201]);
      expect(server.seen.length).toBe(1);
    },
  },
  {
    name: 'a fixed response stands in for a failure',
    needs: ['staticFallback'],
    async run(plane) {
      const { url } = await plane.start(
        simple([await serve(500)], '', 'fallback: { static: { status: 200, body: instead } }'),
      );
      expect(await send(url)).toMatchObject({ status: 200, body: 'instead' });
    },
  },
  {
    name: 'the last good response stands in for a failure',
    needs: ['staleFallback'],
    async run(plane) {
      const { url } = await plane.start(
        simple([await serve({ body: 'good' }, 500)], '', 'fallback: { stale: 1m }'),
      );
      await send(url);
      expect(await send(url)).toMatchObject({ status: 200, body: 'good' });
    },
  },
  {
    name: 'another route stands in for a failure',
    needs: ['routeFallback'],
    async run(plane) {
      const [failing, other] = [await serve(500), await serve({ body: 'other' })];
      const { url } = await plane.start(`
admin: false
upstreams: { main: { instances: ["${failing.url}"] }, other: { instances: ["${other.url}"] } }
routes:
  - { name: main, match: /, upstream: main, fallback: { route: other } }
  - { name: other, match: /other, upstream: other }
`);
      expect(await send(url)).toMatchObject({ status: 200, body: 'other' });
    },
  },
  {
    name: 'the least important are shed first',
    needs: ['shedding', 'priority'],
    async run(plane) {
      const server = await serve(() => {});
      const { url, ...gateway } = await plane.start(`
admin: false
upstreams:
  api: { instances: ["${server.url}"], shedding: { initial: 1, floor: 1, ceiling: 1, maxQueuedRequests: 0 } }
routes: [{ upstream: api, priority: sheddable }]
`);
      const first = send(url).catch(() => {});
      await eventually(() => server.seen.length === 1);
      expect((await send(url)).status).toBe(503);
      await gateway.close();
      await first;
    },
  },
  {
    name: 'an operator keeps a breaker open',
    needs: ['forcedBreaker'],
    async run(plane) {
      const server = await serve(200);
      const gateway = await plane.start(simple([server], 'circuitBreaker: true'));
      await send(gateway.url);
      const { policies } = (await gateway.state())[0]!.upstreams[0]!;
      await ask(gateway, '/breakers', { method: 'POST', body: { policy: policies[0]!.name, state: 'open' } });
      expect((await send(gateway.url)).status).toBe(503);
      expect(server.seen.length).toBe(1);
    },
  },
  {
    name: 'the story of a request tells why it was retried',
    needs: ['stories'],
    async run(plane) {
      const gateway = await plane.start(simple([await serve(503, 200)], 'retry: { backoff: { base: 1ms } }'));
      const { headers } = await send(gateway.url);
      expect(await ask(gateway, `/stories/${headers['x-request-id']}`)).toMatchObject({
        status: 200,
        body: { attempts: 2 },
      });
    },
  },
  {
    name: 'the access log has a line of JSON for each request',
    needs: ['accessLog'],
    async run(plane) {
      const file = path.join(mkdtempSync(path.join(tmpdir(), 'holdfast-log-')), 'access.log');
      const gateway = await plane.start(
        simple([await serve(200)], '', '', `accessLog: ${JSON.stringify(file)}`),
      );
      await send(gateway.url, '/it?secret=1');
      await gateway.close();
      const lines = readFileSync(file, 'utf8').trim().split('\n');
      expect(lines.length).toBe(1);
      expect(JSON.parse(lines[0]!)).toMatchObject({ method: 'GET', path: '/it', status: 200, attempts: 1 });
    },
  },
  {
    name: 'Server-Timing tells how long the upstream took',
    needs: ['serverTiming'],
    async run(plane) {
      const { url } = await plane.start(simple([await serve(200)], '', '', 'serverTiming: true'));
      expect((await send(url)).headers['server-timing']).toMatch(/upstream;dur=\d/);
    },
  },
  {
    name: 'the state and the metrics count requests by route',
    needs: ['routing'],
    async run(plane) {
      const gateway = await plane.start(simple([await serve(200, 404)], 'circuitBreaker: true'));
      await send(gateway.url);
      await send(gateway.url);
      const state = await eventually(async () => {
        const [only] = await gateway.state();
        return only!.routes[0]!.requests === 2 && only!;
      });
      expect(state.routes[0]).toMatchObject({ name: 'everything', statuses: { '2xx': 1, '4xx': 1 } });
      expect(state.upstreams[0]!.instances[0]).toMatchObject({ isHealthy: true, breaker: 'closed' });
      const { text } = await ask(gateway, '/metrics');
      expect(text).toMatch(/holdfast_gateway_requests_total\{.*status="2xx"\} 1\n/);
    },
  },
];
