import { mkdtempSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import httpProxy from '@fastify/http-proxy';
import { parseGateway, startGateway } from '@holdfast/gateway';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import fastProxy from 'fast-proxy';
import fastify from 'fastify';
import { createProxyServer } from 'http-proxy-3';
import { type Dispatcher, Pool } from 'undici';

/** Starts a proxy for an upstream, and gives its port. */
type Start = (upstream: string) => Promise<number>;

/** Enough for 32 clients, the same for all. */
const connections = 128;
/** Connections rest while others have their turn. */
const keptOpenMs = 600_000;

export const proxies: Readonly<Record<string, Start>> = {
  floor,
  ours: (upstream) => gateway(upstream, ''),
  'access log': (upstream) => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'holdfast-bench-')), 'access.log');
    return gateway(upstream, `accessLog: ${JSON.stringify(file)}`);
  },
  'Server-Timing': (upstream) => gateway(upstream, 'serverTiming: true'),
  async spans(upstream) {
    // Spans are made and thrown away: what an exporter costs is its own affair.
    const exporter = new InMemorySpanExporter();
    exporter.export = (_spans, done) => done({ code: 0 });
    trace.setGlobalTracerProvider(
      new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
    );
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    return gateway(upstream, 'tracing: true');
  },
  'fast-proxy'(upstream) {
    const { proxy } = fastProxy({ base: upstream, undici: { connections, pipelining: 1 } });
    return listening((request, response) => {
      proxy(request, response, request.url ?? '/', {});
    });
  },
  'http-proxy-3'(upstream) {
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    const proxy = createProxyServer({ target: upstream, agent });
    return listening((request, response) => proxy.web(request, response));
  },
  async '@fastify/http-proxy'(upstream) {
    const app = fastify({ keepAliveTimeout: keptOpenMs });
    app.register(httpProxy, { upstream, undici: { connections, pipelining: 1 } });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return (app.server.address() as AddressInfo).port;
  },
};

/** The least that a proxy for Node can do: node:http in, undici out, nothing looked at. */
function floor(upstream: string): Promise<number> {
  const pool = new Pool(upstream, { connections, pipelining: 1, keepAliveTimeout: keptOpenMs });
  return listening((request, response) => {
    pool.dispatch(
      {
        path: request.url!,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.rawHeaders,
        body: request.method === 'GET' ? null : request,
      },
      {
        onRequestStart() {},
        onResponseStart(_controller, status, headers) {
          response.writeHead(status, headers as Record<string, string>);
        },
        onResponseData(controller, chunk) {
          if (response.write(chunk)) return;
          controller.pause();
          response.once('drain', () => controller.resume());
        },
        onResponseEnd() {
          response.end();
        },
        onResponseError(_controller, error) {
          response.destroy(error);
        },
      },
    );
  });
}

/** All protections are on, and none is ever reached; but for shedding, which would refuse what a benchmark does on purpose. */
async function gateway(upstream: string, more: string): Promise<number> {
  const config = parseGateway(`
listen: { port: 0, keepAlive: 10m }
admin: false
${more}
upstreams:
  api:
    instances: ["${upstream}"]
    connections: ${connections}
    healthCheck: { path: /small }
    circuitBreaker: true
    retry: { attempts: 3, patience: 5s }
    bulkhead: { maxConcurrentRequests: ${connections} }
    rateLimiting: { requestsPerSecond: 1000000, burstSize: 1000000, key: client }
routes:
  - match: /
    upstream: api
    idempotency: { scope: client }
`);
  const { address } = await startGateway(config);
  return address.port;
}

function listening(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer({ keepAliveTimeout: keptOpenMs }, handle);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
