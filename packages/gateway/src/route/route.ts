import type { ServerResponse } from 'node:http';
import { requestTraits } from '@holdfast/http/rules';
import { fnv1a } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import { writeRequest } from 'holdfast/wire';
import type { RouteConfig } from '../file/gateway-config.ts';
import type { ProxiedRequest, RequestRecorder } from '../proxy/proxied-request.ts';
import type { RequestHead } from '../proxy/request-head.ts';
import type { AttemptPolicy } from '../upstream/attempt-policy.ts';
import { spread } from '../upstream/balancer.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { RouteCounts } from './route-counts.ts';

export class Route {
  readonly config: RouteConfig;
  readonly upstream: Upstream;
  readonly policy: AttemptPolicy;
  readonly counts: RouteCounts;
  /**
   * Passes a request through the protections (such as rate limits) of the route, and then to the upstream.
   */
  handle!: (head: RequestHead, response: ServerResponse) => void;
  fallbackRoute: Route | undefined = undefined;
  /** True: the route has protections (such as rate limits). */
  isGuarded = false;
  readonly isHashed: boolean;
  readonly #announces: boolean;
  readonly #setNames: ReadonlySet<string>;

  constructor(config: RouteConfig, upstream: Upstream, counts: RouteCounts) {
    this.config = config;
    this.upstream = upstream;
    this.policy = upstream.policyFor(config);
    this.counts = counts;
    this.isHashed = upstream.config.loadBalancing.strategy === 'hash';
    this.#announces = config.attempts.hasRetries;
    const { set, remove } = config.requestHeaders;
    this.#setNames = new Set([...Object.keys(set), ...remove]);
  }

  pathOf({ url }: RequestHead): string {
    const { rewrite, match } = this.config;
    if (rewrite === undefined) return url;
    const prefix = match.path.replace(/\/$/, '');
    const rest = url.slice(prefix.length);
    const base = rewrite.replace(/\/$/, '');
    return rest.startsWith('/') || base !== '' ? base + rest : `/${rest}`;
  }

  hashOf(head: RequestHead): number {
    const { on } = this.upstream.config.loadBalancing;
    if (on === 'client') return spread(fnv1a(head.client));
    return spread(fnv1a(on === 'path' ? head.path : (head.header(on.slice(7)) ?? head.client)));
  }

  requestHeaders(head: RequestHead, isStreamed: boolean): string[] {
    const headers = head.headers.slice();
    const { set } = this.config.requestHeaders;
    const names = this.#setNames;
    if (names.size > 0) {
      for (let index = headers.length - 2; index >= 0; index -= 2)
        if (names.has(headers[index]!.toLowerCase())) headers.splice(index, 2);
    }
    if (head.host !== '' && !names.has('host')) headers.push('host', head.host);
    const { peer } = head;
    headers.push('x-forwarded-for', head.forwardedFor === undefined ? peer : `${head.forwardedFor}, ${peer}`);
    const proto = (head.request.socket as { encrypted?: boolean }).encrypted ? 'https' : 'http';
    if (!head.isTrusted || head.header('x-forwarded-proto') === undefined)
      headers.push('x-forwarded-proto', proto);
    // Only if the route changes `Host`. Otherwise, `x-forwarded-host` would have the same value.
    if (names.has('host') && (!head.isTrusted || head.header('x-forwarded-host') === undefined))
      headers.push('x-forwarded-host', head.host);
    if (head.forwarded !== undefined)
      headers.push(
        'forwarded',
        `${head.forwarded}, for=${nodeName(peer)};host="${head.host}";proto=${proto}`,
      );
    headers.push('via', '1.1 holdfast', 'x-request-id', head.requestId);
    if (isStreamed && head.contentLength >= 0) headers.push('content-length', String(head.contentLength));
    for (const name in set) headers.push(name, set[name]!);
    return headers;
  }

  /**
   * Returns the `Holdfast` header of an attempt: how long the client still waits, and whether the gateway retries.
   */
  announcement(
    { method, idempotencyKey }: RequestHead,
    { attempt, patienceEndsAt, startedAt }: GuardedAttempt,
  ): string | undefined {
    if (!this.#announces) return undefined;
    const { isIdempotent } = requestTraits(method, null, idempotencyKey);
    return writeRequest({
      patienceMs: patienceEndsAt - startedAt,
      attempt,
      owner: isIdempotent || undefined,
    });
  }

  /** Returns the headers that the gateway adds, as a flat list: name, value, name, value. */
  ownHeaders(proxied: ProxiedRequest, recorder: RequestRecorder): string[] {
    const { head } = proxied;
    const own = ['x-request-id', head.requestId];
    // A client that has not sent its whole body cannot send another request on this connection.
    if (recorder.isDraining || (head.hasBody && !head.request.complete)) own.push('connection', 'close');
    if (recorder.serverTiming) {
      const tookMs = (proxied.respondedAt || proxied.startedAt) - proxied.startedAt;
      own.push('server-timing', `upstream;dur=${tookMs.toFixed(1)}, attempts;desc="${proxied.attempts}"`);
    }
    return own;
  }
}

function nodeName(address: string): string {
  return address.includes(':') ? `"[${address}]"` : address;
}
