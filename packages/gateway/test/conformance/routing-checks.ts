import { expect } from 'vitest';
import { serve } from '../../../http/test/servers.ts';
import { RawClient, send, simple } from '../gateways.ts';
import type { Check } from './check.ts';

const named = (name: string) => serve({ body: name });

export const routingChecks: readonly Check[] = [
  {
    name: 'the most specific route is taken: host before path before method',
    needs: ['routing'],
    async run(plane) {
      const [all, orders, exact, posts, host, below] = await Promise.all(
        ['all', 'orders', 'exact', 'posts', 'host', 'below'].map(named),
      );
      const { url } = await plane.start(`
admin: false
upstreams:
  all: { instances: ["${all!.url}"] }
  orders: { instances: ["${orders!.url}"] }
  exact: { instances: ["${exact!.url}"] }
  posts: { instances: ["${posts!.url}"] }
  host: { instances: ["${host!.url}"] }
  below: { instances: ["${below!.url}"] }
routes:
  - { match: /, upstream: all }
  - { match: /orders, upstream: orders }
  - { match: { exact: /orders/latest }, upstream: exact }
  - { match: { path: /orders, methods: [POST] }, upstream: posts }
  - { match: { host: [shop.test], path: /shop }, upstream: host }
  - { match: { host: ["*.shop.test"], path: / }, upstream: below }
`);
      const ask = async (path: string, host = 'a.test', method = 'GET') =>
        (await send(url, path, { headers: { host }, method })).body;
      expect(await ask('/else')).toBe('all');
      expect(await ask('/orders')).toBe('orders');
      expect(await ask('/orders/1?x=/y')).toBe('orders');
      expect(await ask('/ordersX')).toBe('all');
      expect(await ask('/orders/latest')).toBe('exact');
      expect(await ask('/orders/latest/1')).toBe('orders');
      expect(await ask('/orders', 'a.test', 'POST')).toBe('posts');
      expect(await ask('/shop/1', 'shop.test:8080')).toBe('host');
      expect(await ask('/orders', 'shop.test')).toBe('orders');
      expect(await ask('/orders', 'eu.shop.test')).toBe('below');
    },
  },
  {
    name: 'a path without a route is a 404, a method without one a 405',
    needs: ['routing'],
    async run(plane) {
      const server = await named('it');
      const { url } = await plane.start(`
admin: false
upstreams: { it: { instances: ["${server.url}"] } }
routes: [{ match: { path: /it, methods: [GET] }, upstream: it }]
`);
      expect(await send(url, '/other')).toMatchObject({
        status: 404,
        headers: { 'content-type': 'application/problem+json' },
      });
      expect(await send(url, '/it', { method: 'DELETE' })).toMatchObject({ status: 405 });
      expect(await send(url, '/it/1')).toMatchObject({ status: 200 });
      expect(server.seen.length).toBe(1);
    },
  },
  {
    name: 'the matched path is replaced, and the query stays',
    needs: ['routing'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(`
admin: false
upstreams: { it: { instances: ["${server.url}"] } }
routes:
  - { match: /orders, upstream: it, rewrite: /v2/orders }
  - { match: /bare, upstream: it, rewrite: / }
`);
      for (const path of ['/orders', '/orders/1?a=b', '/bare', '/bare/x?y']) await send(url, path);
      expect(server.seen.map((each) => each.url)).toEqual(['/v2/orders', '/v2/orders/1?a=b', '/', '/x?y']);
    },
  },
  {
    name: 'headers are set and removed as the route says, and those of one connection stay behind',
    needs: ['routing'],
    async run(plane) {
      const server = await serve({ headers: { 'x-inner': 'secret', 'x-kept': 'k' } });
      const { url } = await plane.start(
        simple(
          [server],
          '',
          'headers: { request: { set: { x-new: "50%" }, remove: [x-old] }, response: { set: { x-by: gateway }, remove: [x-inner] } }',
        ),
      );
      const answer = await send(url, '/', {
        headers: { 'x-old': '1', connection: 'x-hop', 'x-hop': '1', te: 'trailers', 'keep-alive': 'x' },
      });
      expect(answer.headers).toMatchObject({ 'x-by': 'gateway', 'x-kept': 'k' });
      expect(answer.headers).not.toHaveProperty('x-inner');
      expect(server.seen[0]!.headers).toMatchObject({ 'x-new': '50%' });
      for (const name of ['x-old', 'x-hop', 'keep-alive'])
        expect(server.seen[0]!.headers).not.toHaveProperty(name);
    },
  },
  {
    name: 'a request has an id that the response carries, too',
    needs: ['routing'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(simple([server]));
      const answer = await send(url, '/', { headers: { 'x-request-id': 'forged' } });
      expect(answer.headers['x-request-id']).toMatch(/^[\w-]{8,}$/);
      expect(answer.headers['x-request-id']).not.toBe('forged');
      expect(server.seen[0]!.headers['x-request-id']).toBe(answer.headers['x-request-id']);
    },
  },
  {
    name: 'a stranger says nothing about where a request came from',
    needs: ['routing'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(simple([server]));
      await send(url, '/', {
        headers: {
          host: 'shop.test',
          'x-forwarded-for': '6.6.6.6',
          'x-forwarded-proto': 'https',
          forwarded: 'for=6.6.6.6',
        },
      });
      expect(server.seen[0]!.headers).toMatchObject({
        host: 'shop.test',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-proto': 'http',
      });
      expect(server.seen[0]!.headers).not.toHaveProperty('forwarded');
    },
  },
  {
    name: 'a trusted proxy is believed, and added to the way',
    needs: ['routing'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(
        simple([server], '', '', 'listen: { port: 8080, trustedProxies: [127.0.0.1] }'),
      );
      await send(url, '/', { headers: { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': 'https' } });
      expect(server.seen[0]!.headers).toMatchObject({
        'x-forwarded-for': expect.stringMatching(/^6\.6\.6\.6, ?127\.0\.0\.1$/),
        'x-forwarded-proto': 'https',
      });
    },
  },
  {
    name: 'a path or a framing that servers read in different ways is refused',
    needs: ['routing'],
    async run(plane) {
      const server = await serve(200);
      const gateway = await plane.start(simple([server]));
      for (const path of ['/a/../b', '/a/./b', '/a/..', '/a%2fb', '/a/%2e%2e/b', '/a\\b', '//a']) {
        const client = await RawClient.connect(gateway.address.port);
        client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
        await client.until(/HTTP\/1\.1 400/);
        client.end();
      }
      const both = await RawClient.connect(gateway.address.port);
      both.write(
        'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      );
      await both.until(/HTTP\/1\.1 400/);
      const absolute = await RawClient.connect(gateway.address.port);
      absolute.write('GET http://other.test/ HTTP/1.1\r\nhost: x\r\n\r\n');
      await absolute.until(/HTTP\/1\.1 4\d\d/);
      expect(server.seen).toEqual([]);
    },
  },
  {
    name: 'a body that is announced to be too long is a 413',
    needs: ['bodyLimit'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(simple([server], '', 'maxBody: 1KiB'));
      expect(await send(url, '/', { method: 'POST', body: 'x'.repeat(1024) })).toMatchObject({ status: 200 });
      const client = await RawClient.connect(Number(new URL(url).port));
      client.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1025\r\n\r\n');
      await client.until(/HTTP\/1\.1 413/);
      expect(server.seen.length).toBe(1);
    },
  },
  {
    name: 'a body without a length that is too long is a 413',
    needs: [],
    exactly: ['bodyLimit'],
    async run(plane) {
      const server = await serve(200);
      const { url } = await plane.start(simple([server], '', 'maxBody: 1KiB'));
      const client = await RawClient.connect(Number(new URL(url).port));
      client.write(
        `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n800\r\n${'x'.repeat(2048)}\r\n`,
      );
      await client.until(/HTTP\/1\.1 413/);
    },
  },
];
