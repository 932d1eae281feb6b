import { readdirSync } from 'node:fs';
import { Agent, createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { seededRandom } from 'holdfast/testing';
import { parseGateway, startGateway } from '../src/index.ts';

/**
 * Sends many requests through a gateway, of which some fail in several ways, and tells the memory and the descriptors
 * after each tenth of them. A process of its own, so that nothing else is measured.
 */
const [requests = '100000', faults = '0.05'] = process.argv.slice(2);
const total = Number(requests);
const share = Number(faults);
const random = seededRandom(42);

async function upstream(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    const roll = random() / share;
    if (roll < 0.25) request.socket.destroy();
    else if (roll < 0.5) response.writeHead(503).end('no');
    else if (roll < 0.75) {
      response.writeHead(200, { 'content-length': 1000 });
      response.write('only this');
      request.socket.destroySoon();
    } else if (roll < 1) response.writeHead(500).end('broken');
    else request.on('end', () => response.end('x'.repeat(100)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

const upstreams = await Promise.all([upstream(), upstream(), upstream()]);
const urls = upstreams.map((server) => `"http://127.0.0.1:${(server.address() as AddressInfo).port}"`);
const config = parseGateway(`
listen: 127.0.0.1:0
admin: false
upstreams:
  api:
    instances: [${urls.join(', ')}]
    circuitBreaker: {}
    bulkhead: {}
    rateLimiting: { requestsPerSecond: 1000000, burstSize: 1000000 }
    retry: { attempts: 3, backoff: { base: 1ms, cap: 10ms } }
routes: [{ upstream: api, fallback: { stale: 1s } }]
`);
const gateway = await startGateway(config);
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const statuses: Record<string, number> = {};

function send(index: number): Promise<void> {
  return new Promise((resolve) => {
    const isPost = index % 5 === 0;
    const options = {
      agent,
      port: gateway.address.port,
      path: `/${index % 50}`,
      method: isPost ? 'POST' : 'GET',
    };
    const ended = (status: number | string) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      resolve();
    };
    const request = httpRequest(options, (response) => {
      response.on('error', () => ended('broken off'));
      response.resume().on('end', () => ended(response.statusCode!));
    });
    request.on('error', () => ended('refused'));
    // Some clients give up.
    if (index % 997 === 0) request.on('socket', () => setImmediate(() => request.destroy()));
    request.end(isPost ? 'x'.repeat(1000) : undefined);
  });
}

const readings: { heap: number; descriptors: number; inFlight: number }[] = [];
let next = 0;
for (let tenth = 1; tenth <= 10; tenth++) {
  const until = (total * tenth) / 10;
  const client = async () => {
    while (next < until) await send(next++);
  };
  await Promise.all(Array.from({ length: 32 }, client));
  // The request of a client that has given up ends a moment after its socket.
  let [worker] = await gateway.state();
  for (let look = 0; look < 100 && worker!.inFlight > 0; look++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    [worker] = await gateway.state();
  }
  globalThis.gc?.();
  globalThis.gc?.();
  readings.push({
    heap: process.memoryUsage().heapUsed,
    descriptors: readdirSync('/proc/self/fd').length,
    inFlight: worker!.inFlight,
  });
}
const [worker] = await gateway.state();
console.log(
  JSON.stringify({ readings, statuses, route: worker!.routes[0], protections: worker!.protections }),
);
agent.destroy();
await gateway.close();
for (const server of upstreams) {
  server.close();
  server.closeAllConnections();
}
