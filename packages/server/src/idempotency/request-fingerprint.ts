import { hash } from 'node:crypto';
import type { Exchange } from '../exchange.ts';

/**
 * Returns a hash of a request. Requests with equal hashes count as the same request, whatever the order of
 * their query parameters.
 */
export function requestFingerprint(exchange: Exchange, body: string | Uint8Array): string {
  const { method, url } = exchange;
  const query = url.indexOf('?');
  const place = query < 0 ? url : `${url.slice(0, query)}?${sorted(url.slice(query + 1))}`;
  const head = `${method}\n${place}\n${exchange.header('content-type') ?? ''}\n`;
  if (typeof body === 'string') return hash('sha256', head + body, 'base64url');
  const all = Buffer.allocUnsafe(Buffer.byteLength(head) + body.length);
  all.set(body, all.write(head));
  return hash('sha256', all, 'base64url');
}

function sorted(query: string): string {
  return query.includes('&') ? query.split('&').sort().join('&') : query;
}

/** Returns the name of an idempotency key in the store. A hash keeps the client's key secret. */
export function storeKey(scope: string, exchange: Exchange, key: string): string {
  const route = exchange.route ?? exchange.path;
  return hash('sha256', `${scope.length}:${scope}\n${exchange.method} ${route}\n${key}`, 'base64url');
}
