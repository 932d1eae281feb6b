import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { contextOf, type Exchange, type Part, type Peers, peers } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/node';
import { type Clock, type Random, sleep, systemClock, systemRandom, Timer } from 'holdfast';
import { AccessLog } from '../admin/access-log.ts';
import { accessRecord } from '../admin/access-record.ts';
import { Stories } from '../admin/stories.ts';
import type { GatewayConfig, RouteConfig } from '../file/gateway-config.ts';
import { Route } from '../route/route.ts';
import { RouteCounts } from '../route/route-counts.ts';
import { RouteParts, type Stores } from '../route/route-parts.ts';
import { NOT_ALLOWED, NOT_FOUND, RouteTable } from '../route/route-table.ts';
import { Upstream, type UpstreamEnvironment } from '../upstream/upstream.ts';
import { createListener, type Listener } from './listener.ts';
import { ProxiedRequest, type RequestRecorder } from './proxied-request.ts';
import { type RefusalName, refusal } from './refusals.ts';
import { attachHead, type HeadSettings, headOf, type Malformed, RequestHead } from './request-head.ts';
import { setCloseListener } from './response-close.ts';
import { Tunnel } from './tunnel.ts';

export interface ProcessOptions {
  readonly stores: Stores;
  readonly workers: number;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  readonly resolve?: UpstreamEnvironment['resolve'];
  /** The prefix of policy names in the registry of `holdfast`; `gateway/` by default. */
  readonly prefix?: string | undefined;
}

/** `drain` keeps idle connections open for this time (ms), because a request may be on its way. */
const idleGraceMs = 1000;

const drainLookMs = 20;

/** One gateway process: its listener, routes, upstreams and counters. */
export class GatewayProcess implements RequestRecorder {
  readonly startedAt: number;
  readonly stories: Stories;
  /** Counts requests that no route served: 404, 405, malformed requests and refused upgrades. */
  readonly unmatched = new RouteCounts();
  config: GatewayConfig;
  isDraining = false;
  inFlight = 0;
  accessLog: AccessLog | undefined;
  readonly #options: ProcessOptions;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #listener: Listener;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #counts = new Map<string, RouteCounts>();
  readonly #stallTimer: Timer;
  #headSettings: HeadSettings;
  #routes: readonly Route[] = [];
  #table = new RouteTable<Route>([]);
  #parts: RouteParts | undefined;

  constructor(config: GatewayConfig, options: ProcessOptions) {
    const { clock = systemClock, random = systemRandom } = options;
    this.config = config;
    this.#options = options;
    this.#clock = clock;
    this.#random = random;
    this.startedAt = clock.epochMs();
    this.stories = new Stories(config.storiesMax);
    this.#headSettings = { trusted: trustedIn(config), makeId: idMaker(random) };
    this.#listener = createListener(config.listen, {
      request: (request, response) => this.#onRequest(request, response),
      upgrade: (request, socket, first) => this.#onUpgrade(request, socket, first),
    });
    this.#stallTimer = new Timer(clock, () => {
      this.#listener.closeStalled();
      this.#stallTimer.setIn(this.config.listen.writeTimeoutMs);
    });
    this.#apply(config);
  }

  get clock(): Clock {
    return this.#clock;
  }

  get address(): AddressInfo {
    return this.#listener.address;
  }

  get serverTiming(): boolean {
    return this.config.serverTiming;
  }

  get keptBodyMax(): number {
    return this.config.keptBodyBytes;
  }

  get bodyTimeoutMs(): number {
    return this.config.listen.bodyTimeoutMs;
  }

  get routes(): readonly Route[] {
    return this.#routes;
  }

  get upstreams(): ReadonlyMap<string, Upstream> {
    return this.#upstreams;
  }

  get parts(): ReadonlyMap<string, Part> {
    return this.#parts!.parts;
  }

  async listen(): Promise<void> {
    await this.prepare();
    await this.#listener.listen();
  }

  /** Call it instead of `listen` in a process that gets its connections through `accept`. */
  async prepare(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.resolve()));
    this.#stallTimer.setIn(this.config.listen.writeTimeoutMs);
  }

  accept(socket: Socket): void {
    this.#listener.accept(socket);
  }

  /** Requests in flight keep the settings of their old route. */
  reload(config: GatewayConfig): void {
    this.#apply(config);
  }

  /**
   * Stops accepting connections. Resolves with the number of requests that did not end in time and were
   * aborted.
   */
  async drain(): Promise<number> {
    const { delayMs, drainMs } = this.config.shutdown;
    this.isDraining = true;
    // Load balancers need this time to notice that the gateway is not ready. Meanwhile, the gateway still
    // serves requests.
    if (delayMs > 0) await sleep(this.#clock, delayMs);
    const stopped = this.#listener.stop();
    const stoppedAt = this.#clock.now();
    const elapsed = () => this.#clock.now() - stoppedAt;
    // Responses have `Connection: close`, so active connections close by themselves. Those still open after
    // `graceMs` are probably unused.
    const graceMs = Math.min(idleGraceMs, drainMs);
    while (this.#listener.connections > 0 && elapsed() < graceMs) await sleep(this.#clock, drainLookMs);
    while (this.inFlight > 0 && elapsed() < drainMs) {
      this.#listener.closeIdle();
      await sleep(this.#clock, drainLookMs);
    }
    const cutOff = this.inFlight;
    this.#listener.destroy();
    await stopped;
    return cutOff;
  }

  async close(): Promise<void> {
    this.#stallTimer.clear();
    this.#listener.destroy();
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.close(true)));
    await this.accessLog?.close();
  }

  ended(proxied: ProxiedRequest): void {
    const { head, route, shownStatus: status, fallback } = proxied;
    const tookMs = this.#clock.now() - proxied.startedAt;
    route.counts.inFlight--;
    if (fallback !== undefined) route.counts.fallbacks++;
    else {
      this.inFlight--;
      route.counts.record(status, proxied.wasAborted, tookMs, proxied.attempts, proxied.bytes);
    }
    const { machine } = proxied;
    if (!this.accessLog && !machine) return;
    const record = accessRecord(head, proxied, status, this.#clock.epochMs(), tookMs);
    if (machine) this.stories.add(record, proxied);
    if (fallback === undefined) this.accessLog?.add(record);
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const head = new RequestHead(request, this.#headSettings);
    if (head.malformed !== undefined) this.#refuse(head, response, malformedAs(head.malformed), true);
    else this.#serve(head, response);
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void {
    const head = new RequestHead(request, this.#headSettings);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as never);
    socket.on('error', () => socket.destroy());
    // Node removes its HTTP parser before an upgrade. If the upgrade is refused, the connection is useless,
    // so close it.
    response.on('finish', () => socket.end());
    if (head.malformed !== undefined || head.hasBody || head.method !== 'GET')
      this.#refuse(head, response, 'bad-request', true);
    else if (head.upgrade !== 'websocket') this.#refuse(head, response, 'no-upgrade', true);
    else {
      head.tunnel = new Tunnel(socket, first);
      this.#serve(head, response);
    }
  }

  #serve(head: RequestHead, response: ServerResponse): void {
    const table = this.#table;
    const route = table.find(table.needsHost ? head.hostName : '', head.path, head.method);
    if (route === NOT_FOUND) this.#refuse(head, response, 'no-route', false);
    else if (route === NOT_ALLOWED) this.#refuse(head, response, 'method-not-allowed', false);
    else if (head.tunnel && !route.config.websocket) this.#refuse(head, response, 'no-upgrade', true);
    else {
      head.route = route;
      this.inFlight++;
      route.counts.inFlight++;
      try {
        route.handle(head, response);
      } catch (error) {
        // This is a bug of the gateway. An uncaught error would end the process and fail all requests.
        process.emitWarning(error as Error);
        response.destroy();
      }
    }
  }

  #refuse(head: RequestHead, response: ServerResponse, name: RefusalName, closes: boolean): void {
    const own = { 'x-request-id': head.requestId };
    const isHttp2 = head.request.httpVersionMajor === 2;
    const refused = refusal(name, closes && !isHttp2 ? { ...own, connection: 'close' } : own);
    const bytes = head.method === 'HEAD' ? 0 : Buffer.byteLength(refused.body!);
    this.unmatched.record(refused.status, false, 0, 0, bytes);
    this.accessLog?.add(accessRecord(head, undefined, refused.status, this.#clock.epochMs(), 0, bytes));
    sendResponse(response, refused);
  }

  #apply(config: GatewayConfig): void {
    const before = this.config;
    this.config = config;
    this.#headSettings = { ...this.#headSettings, trusted: trustedIn(config) };
    if (config.listen.tls && before !== config) this.#listener.setCertificate(config.listen.tls);
    if (before === config || before.accessLog !== config.accessLog) {
      const old = this.accessLog;
      this.accessLog = config.accessLog === false ? undefined : new AccessLog(config.accessLog, this.#clock);
      void old?.close();
    }
    this.#setUpstreams(config);
    this.#setRoutes(config);
  }

  #setUpstreams({ upstreams, routes, zone }: GatewayConfig): void {
    const environment: UpstreamEnvironment = {
      clock: this.#clock,
      random: this.#random,
      zone,
      prefix: this.#options.prefix ?? 'gateway/',
      resolve: this.#options.resolve,
    };
    const removed = new Map(this.#upstreams);
    for (const config of upstreams) {
      const known = removed.get(config.name);
      removed.delete(config.name);
      const own = routes.filter(({ upstream }) => upstream === config.name);
      if (known) known.update(config, own, zone);
      else this.#upstreams.set(config.name, new Upstream(config, environment));
    }
    for (const [name, upstream] of removed) {
      this.#upstreams.delete(name);
      upstream.close().catch(() => {});
    }
  }

  #setRoutes(config: GatewayConfig): void {
    const { stores, workers } = this.#options;
    const parts = new RouteParts(stores, this.#headSettings.trusted, workers, this.#parts);
    const routes = config.routes.map((each) => {
      const upstream = this.#upstreams.get(each.upstream)!;
      const route = new Route(each, upstream, this.#countsOf(each));
      route.handle = this.#handlerOf(route, parts.partsFor(each, upstream.config.protections));
      return route;
    });
    for (const route of routes)
      route.fallbackRoute = routes.find(({ config: { name } }) => name === route.config.fallback?.route);
    this.#parts = parts;
    this.#routes = routes;
    this.#table = new RouteTable(routes);
    const names = new Set(config.routes.map(({ name }) => name));
    for (const name of this.#counts.keys()) if (!names.has(name)) this.#counts.delete(name);
  }

  #countsOf({ name }: RouteConfig): RouteCounts {
    const counts = this.#counts.get(name) ?? new RouteCounts();
    this.#counts.set(name, counts);
    return counts;
  }

  #handlerOf(route: Route, parts: readonly Part[]): Route['handle'] {
    const proxy = (head: RequestHead, response: ServerResponse) =>
      new ProxiedRequest(route, head, response, this, head.tunnel).begin();
    if (parts.length === 0) return proxy;
    route.isGuarded = true;
    const refused = (response: ServerResponse) => this.#endedRefused(route, response);
    const readsBody = parts.some(({ bodyMax }) => bodyMax !== undefined);
    const handler = (request: IncomingMessage, response: ServerResponse) => {
      const head = headOf(request);
      // A protection (such as `idempotency`) may replace the response of the upstream. So the request id is
      // set now.
      if ((contextOf(request) as Exchange | undefined)?.hasReviewers)
        response.setHeader('x-request-id', head.requestId);
      proxy(head, response);
    };
    const enter = guard(parts.map(withRequestId), handler, { clock: this.#clock });
    return (head, response) => {
      attachHead(head.request, head);
      setCloseListener(response, refused);
      if (readsBody && head.expectsContinue) {
        head.expectsContinue = false;
        response.writeContinue();
      }
      enter(head.request, response);
    };
  }

  #endedRefused(route: Route, response: ServerResponse): void {
    const head = headOf(response.req);
    this.inFlight--;
    route.counts.inFlight--;
    route.counts.refused++;
    const { statusCode, writableFinished } = response;
    const bytes = bodyBytesOf(response);
    route.counts.record(statusCode, !writableFinished, 0, 0, bytes);
    this.accessLog?.add(accessRecord(head, undefined, statusCode, this.#clock.epochMs(), 0, bytes));
  }
}

/**
 * Adds the request id to responses that a protection (such as a rate limit) makes itself. Setting the id
 * earlier would slow down the responses of upstreams.
 */
function withRequestId(part: Part): Part {
  const mark = <T>(exchange: Exchange, response: T): T => {
    if (response !== undefined && !exchange.isAbandoned)
      exchange.setHeader('x-request-id', headOf(exchange.native as object).requestId);
    return response;
  };
  return {
    name: part.name,
    bodyMax: part.bodyMax,
    enter(exchange) {
      const entered = part.enter(exchange);
      if (!(entered instanceof Promise)) return mark(exchange, entered);
      return entered.then((response) => mark(exchange, response));
    },
  };
}

function bodyBytesOf(response: ServerResponse): number {
  return response.req.method === 'HEAD' ? 0 : Number(response.getHeader('content-length') ?? 0);
}

function trustedIn({ listen }: GatewayConfig): Peers | undefined {
  return listen.trustedProxies.length > 0 ? peers(...listen.trustedProxies) : undefined;
}

/** A random prefix keeps the request ids of different processes apart. */
function idMaker(random: Random): () => string {
  const beginning = Array.from({ length: 2 }, () =>
    Math.floor(random() * 36 ** 6)
      .toString(36)
      .padStart(6, '0'),
  );
  const prefix = `${beginning.join('')}-`;
  let serial = 0;
  return () => prefix + (++serial).toString(36);
}

function malformedAs(malformed: Malformed): RefusalName {
  return malformed === 'expect' ? 'expectation-failed' : 'bad-request';
}
