import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MatchConfig } from '../src/index.ts';
import { NOT_ALLOWED, NOT_FOUND, RouteTable } from '../src/route/route-table.ts';

interface Named {
  readonly name: string;
  readonly config: { readonly match: MatchConfig };
}

function route(name: string, match: Partial<MatchConfig>): Named {
  return { name, config: { match: { hosts: [], path: '/', isExact: false, methods: [], ...match } } };
}

function find(routes: Named[], host: string, path: string, method = 'GET'): string | number {
  const found = new RouteTable(routes).find(host, path, method);
  return typeof found === 'number' ? found : found.name;
}

describe('a route table', () => {
  const routes = [
    route('any', {}),
    route('orders', { path: '/orders' }),
    route('one order', { path: '/orders/1', isExact: true }),
    route('post orders', { path: '/orders', methods: ['POST'] }),
    route('shop', { hosts: ['shop.example'] }),
    route('shops', { hosts: ['*.shop.example'], path: '/a' }),
    route('deep shops', { hosts: ['*.eu.shop.example'], path: '/a' }),
  ];

  test.each([
    ['other', '/', 'GET', 'any'],
    ['other', '/ordersX', 'GET', 'any'],
    ['other', '/orders', 'GET', 'orders'],
    ['other', '/orders/', 'GET', 'orders'],
    ['other', '/orders/2/items', 'GET', 'orders'],
    ['other', '/orders/1', 'GET', 'one order'],
    ['other', '/orders/1/x', 'GET', 'orders'],
    ['other', '/orders/2', 'POST', 'post orders'],
    ['shop.example', '/orders', 'GET', 'shop'],
    ['a.shop.example', '/a/b', 'GET', 'shops'],
    ['b.eu.shop.example', '/a', 'GET', 'deep shops'],
    // No route of this host has the path, so the routes of every host are asked.
    ['a.shop.example', '/orders', 'GET', 'orders'],
  ])('finds for %s%s with %s the most specific: %s', (host, path, method, name) => {
    expect(find(routes, host, path, method)).toBe(name);
    expect(find(routes.toReversed(), host, path, method)).toBe(name);
  });

  test('says whether the path or only the method is unknown', () => {
    const only = [route('read', { path: '/a', methods: ['GET'] })];
    expect(find(only, 'x', '/b')).toBe(NOT_FOUND);
    expect(find(only, 'x', '/a/b', 'PUT')).toBe(NOT_ALLOWED);
  });

  test('takes the longest prefix that ends at a slash, for any routes and paths', () => {
    const segment = fc.constantFrom('a', 'b', 'ab');
    const path = fc.array(segment, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`);
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 6 }), path, (prefixes, wanted) => {
        const table = prefixes.map((prefix) => route(prefix, { path: prefix }));
        const isBelow = (prefix: string) =>
          prefix === '/' || wanted === prefix || wanted.startsWith(`${prefix}/`);
        const longest = prefixes.filter(isBelow).sort((a, b) => b.length - a.length)[0];
        expect(find(table, 'x', wanted)).toBe(longest ?? NOT_FOUND);
      }),
    );
  });
});
