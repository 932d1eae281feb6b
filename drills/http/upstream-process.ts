import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chaosProxy } from '@holdfast/chaos';
import type { Executed, Order } from './upstream.ts';

/** Each thousand-and-so-many-th request meets one of these, whatever the proxy does. */
const oddities = [
  { every: 29, status: 503 },
  { every: 31, status: 500 },
  { every: 37, status: 429 },
];

const posts = new Map<string, number>();
let requests = 0;
let repeatedPosts = 0;

const server = createServer((request, response) => {
  requests++;
  const id = request.headers['x-id'];
  if (request.method === 'POST' && typeof id === 'string') {
    const times = (posts.get(id) ?? 0) + 1;
    posts.set(id, times);
    if (times > 1) repeatedPosts++;
  }
  request.resume().on('end', () => {
    const odd = request.url === '/odd' ? oddities.find(({ every }) => requests % every === 0) : undefined;
    response.writeHead(odd?.status ?? 200, odd?.status === 429 ? { 'retry-after-ms': '5' } : {});
    response.end('x'.repeat(odd ? 100 : 1000));
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const proxy = await chaosProxy({ upstream: `127.0.0.1:${(server.address() as AddressInfo).port}` });

process.on('message', async (order: Order) => {
  if (order.do === 'spec') {
    await proxy.set(order.spec);
    process.send?.(true);
  } else {
    const executed: Executed = { requests, posts: posts.size, repeatedPosts };
    process.send?.(executed);
  }
});
process.once('disconnect', () => process.exit(0));
process.send?.(proxy.port);
