import { type Clock, systemClock } from 'holdfast';
import { callback, count, duration, readTable, type SpecOf } from 'holdfast/fields';
import type { Exchange } from '../exchange.ts';
import type { Part } from '../part.ts';
import { type HandlerResponse, headerOf, type PlainResponse } from '../response.ts';

const fields = {
  staleFor: duration('60s'),
  rest: duration('1s'),
  fallback: callback<(exchange: Exchange, failed: HandlerResponse) => PlainResponse | undefined>(),
  scope: callback<(exchange: Exchange) => string | undefined>(),
  isFailure: callback<(response: HandlerResponse) => boolean>(),
  bytesMax: count(16 * 1024 * 1024, 0),
  responseMax: count(256 * 1024, 0),
};

export type DegradeOptions = SpecOf<typeof fields>;

export interface DegradePart extends Part {
  readonly counts: { stale: number; fallback: number };
  /** The approximate size of all cached responses, in bytes. */
  readonly bytes: number;
}

interface CachedResponse {
  readonly response: PlainResponse;
  /** The request's values of the headers that the response's `Vary` header names. */
  readonly varied: string;
  readonly at: number;
  readonly bytes: number;
  /** Set when the handler has failed: until this time the handler is not called. Undefined while the handler works. */
  restsUntil: number | undefined;
  /** Whether one request is calling the handler now, to find out if it works again. */
  isProbed: boolean;
}

/**
 * Makes a part that replaces failed responses to GET and HEAD requests: by the last good response, if it is at most
 * `staleFor` old, or by a fallback. Both have the header `x-degraded`.
 *
 * If there is a good response, a handler that has failed is not called during the time `rest`. After that, one request
 * calls the handler as a probe, while the others still get the old response. Responses to requests with an
 * Authorization or Cookie header are cached only if `scope` returns their owner.
 */
export function degrade(
  options: DegradeOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): DegradePart {
  const settings = readTable(fields, options, 'degrade.');
  const { staleFor, rest: restMs, fallback, scope: scopeOf, bytesMax, responseMax } = settings;
  const isFailure = settings.isFailure ?? (({ status }) => status >= 500);
  const { clock = systemClock } = environment;
  // A Map keeps the order in which entries were added, so the oldest is deleted first.
  const cache = new Map<string, CachedResponse>();
  const counts = { stale: 0, fallback: 0 };
  let bytes = 0;

  function forget(key: string): void {
    bytes -= cache.get(key)?.bytes ?? 0;
    cache.delete(key);
  }

  function store(exchange: Exchange, key: string, response: PlainResponse): void {
    forget(key);
    const varied = variedBy(response, exchange);
    const size = key.length + varied.length + (response.body?.length ?? 0) + 200;
    if (size > bytesMax) return;
    cache.set(key, {
      response,
      varied,
      at: clock.now(),
      bytes: size,
      restsUntil: undefined,
      isProbed: false,
    });
    bytes += size;
    for (const [oldest] of cache) {
      if (bytes <= bytesMax) break;
      forget(oldest);
    }
  }

  function stale(exchange: Exchange, key: string): PlainResponse | undefined {
    const found = cache.get(key);
    if (!found || found.varied !== variedBy(found.response, exchange)) return undefined;
    const ageMs = clock.now() - found.at;
    if (ageMs > staleFor) {
      forget(key);
      return undefined;
    }
    counts.stale++;
    return marked(found.response, 'stale', { age: String(Math.floor(ageMs / 1000)) });
  }

  return {
    name: 'degrade',
    counts,
    get bytes() {
      return bytes;
    },
    enter(exchange) {
      const { method } = exchange;
      if (method !== 'GET' && method !== 'HEAD') return undefined;
      const scope = scopeOf?.(exchange);
      const isPrivate =
        exchange.header('authorization') !== undefined || exchange.header('cookie') !== undefined;
      // The host is part of the cache key, because each host may belong to another tenant.
      const resource = `${method} ${exchange.host} ${exchange.url}`;
      const key = isPrivate && scope === undefined ? undefined : `${resource}\n${scope ?? ''}`;
      const found = key === undefined ? undefined : cache.get(key);
      if (found?.restsUntil !== undefined) {
        const rests = found.isProbed || exchange.nowOf(clock) < found.restsUntil;
        const old = rests ? stale(exchange, key!) : undefined;
        if (old) return old;
        found.isProbed = true;
        exchange.onEnd(() => {
          found.isProbed = false;
        });
      }
      exchange.addReviewer(responseMax, (response) => {
        if (!isFailure(response)) {
          if (found) found.restsUntil = undefined;
          if (key !== undefined && isCacheable(response)) store(exchange, key, contentOf(response));
          return undefined;
        }
        const last = key === undefined ? undefined : cache.get(key);
        if (last) last.restsUntil = clock.now() + restMs;
        const old = key === undefined ? undefined : stale(exchange, key);
        if (old) return old;
        const instead = fallback?.(exchange, response);
        if (!instead) return undefined;
        counts.fallback++;
        return marked(instead, 'fallback', {});
      });
      return undefined;
    },
  };
}

function isCacheable({ status, headers, body }: HandlerResponse): boolean {
  if (status !== 200 || body === undefined) return false;
  if (headerOf(headers, 'vary')?.includes('*') || headers['set-cookie'] !== undefined) return false;
  return !/no-store|private/.test(headerOf(headers, 'cache-control') ?? '');
}

/**
 * Returns the request's values of the headers that `Vary` names. A request with other values must not get the response.
 */
function variedBy({ headers }: PlainResponse, exchange: Exchange): string {
  const names = headerOf(headers, 'vary')?.toLowerCase().split(',') ?? [];
  return names.map((name) => exchange.header(name.trim()) ?? '').join('\n');
}

/**
 * Returns the response with only those headers that describe its content. All other headers were meant for one caller.
 */
function contentOf({ status, headers, body }: HandlerResponse): PlainResponse {
  const kept = Object.entries(headers).filter(([name]) =>
    /^(content-|etag|last-modified|link|vary)/.test(name),
  );
  return { status, headers: Object.fromEntries(kept), body: body ?? null };
}

function marked(response: PlainResponse, how: string, more: Record<string, string>): PlainResponse {
  return {
    ...response,
    headers: { ...response.headers, 'x-degraded': how, 'cache-control': 'no-store', ...more },
  };
}
