import { type Duration, systemClock } from 'holdfast';
import { callback, count, duration, type FieldsOf } from 'holdfast/fields';
import type { Exchange } from '../exchange.ts';
import { readOptions } from '../option-fields.ts';
import type { Part } from '../part.ts';
import type { PartEnvironment } from '../part-environment.ts';
import { type HandlerResponse, headerOf, type PlainResponse } from '../response.ts';

/**
 * The options of `degrade`. Without `fallback`, a failed response can be replaced only by an earlier good
 * response.
 */
export interface DegradeOptions {
  /** How long a good response is kept to replace failed responses. Default: `60s`. */
  staleFor?: Duration | undefined;
  /**
   * After a failure, the handler is not called for this time if there is an earlier good response. Default:
   * `1s`.
   */
  rest?: Duration | undefined;
  /**
   * Returns the response to send if there is no earlier good response. `undefined`: the failed response is
   * sent. Default: none.
   */
  fallback?: ((exchange: Exchange, failed: HandlerResponse) => PlainResponse | undefined) | undefined;
  /**
   * Returns the owner of a response, for example the user. Without it, responses to requests with
   * Authorization or Cookie are not kept. Default: none.
   */
  scope?: ((exchange: Exchange) => string | undefined) | undefined;
  /** Returns whether a response is a failure. Default: statuses from 500. */
  isFailure?: ((response: HandlerResponse) => boolean) | undefined;
  /** The most bytes of all kept responses together. Default: `16777216` (16 MiB). */
  bytesMax?: number | undefined;
  /** The most bytes of one response. A longer response is not kept. Default: `262144` (256 KiB). */
  responseMax?: number | undefined;
}

export const degradeFields = {
  staleFor: duration('60s'),
  rest: duration('1s'),
  fallback: callback<(exchange: Exchange, failed: HandlerResponse) => PlainResponse | undefined>(),
  scope: callback<(exchange: Exchange) => string | undefined>(),
  isFailure: callback<(response: HandlerResponse) => boolean>(),
  bytesMax: count(16 * 1024 * 1024, 0),
  responseMax: count(256 * 1024, 0),
} satisfies FieldsOf<DegradeOptions>;

/** Sends an earlier good response, or a fallback, when the handler fails. */
export interface DegradePart extends Part {
  readonly counts: { stale: number; fallback: number };
  /** The approximate size of all cached responses, in bytes. */
  readonly bytes: number;
}

interface CachedResponse {
  readonly response: PlainResponse;
  /** The values of the request headers in the `Vary` header of the response. */
  readonly varied: string;
  readonly at: number;
  readonly bytes: number;
  /** After a failure, the handler is not called before this time. `undefined`: it has not failed. */
  restsUntil: number | undefined;
  /** True: one request tests whether the failed handler works again. Others get the kept response. */
  isProbed: boolean;
}

/**
 * A part for `guard` that replaces failed responses to GET and HEAD. The client gets the last good response
 * or a fallback, with the header `x-degraded`.
 */
export function degrade(options: DegradeOptions = {}, environment: PartEnvironment = {}): DegradePart {
  const settings = readOptions(degradeFields, options, 'degrade', "{ staleFor: '60s' }");
  const { staleFor, rest: restMs, fallback, scope: scopeOf, bytesMax, responseMax } = settings;
  const isFailure = settings.isFailure ?? (({ status }) => status >= 500);
  const { clock = systemClock } = environment;
  // A Map keeps its insertion order, so the oldest response is deleted first.
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
      // The host is a part of the key, because each host may belong to another tenant.
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
 * Returns the values of the request headers that `Vary` names. Only a request with the same values may get
 * the kept response.
 */
function variedBy({ headers }: PlainResponse, exchange: Exchange): string {
  const names = headerOf(headers, 'vary')?.toLowerCase().split(',') ?? [];
  return names.map((name) => exchange.header(name.trim()) ?? '').join('\n');
}

/**
 * Keeps only the headers that describe the content. Others, such as a request id, were meant for one client.
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
