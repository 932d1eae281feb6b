import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chaosProxy } from '@holdfast/chaos';
import type { Executed, Order } from './instances.ts';

/** Several instances of one service, each behind a chaos proxy of its own, or with faults of its own. */

const count = Number(process.argv[2]);
/** Each so-many-th request fails: half of them break off, the others are a 503. 0: chaos alone decides. */
const faultEvery = Number(process.argv[3]);
/** How often each POST was executed, by its id. Those with an idempotency key have another count. */
const plain = new Map<string, number>();
const keyed = new Map<string, number>();
let requests = 0;

const body = 'x'.repeat(100);
const proxies = await Promise.all(
  Array.from({ length: count }, async () => {
    const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      if (request.url === '/health') {
        response.end();
        return;
      }
      requests++;
      const id = request.headers['x-id'];
      const key = request.headers['idempotency-key'];
      if (typeof id === 'string') plain.set(id, (plain.get(id) ?? 0) + 1);
      if (typeof key === 'string') keyed.set(key, (keyed.get(key) ?? 0) + 1);
      const isFault = faultEvery > 0 && requests % faultEvery === 0;
      if (isFault && requests % (2 * faultEvery) === 0) {
        request.socket.destroy();
        return;
      }
      if (isFault) response.statusCode = 503;
      request.resume().on('end', () => response.end(body));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    // A proxy costs more than the server behind it, so a soak goes without.
    if (faultEvery > 0) return { port, set: () => Promise.reject(new Error('there is no chaos proxy')) };
    return chaosProxy({ upstream: `127.0.0.1:${port}` });
  }),
);

process.on('message', async (order: Order) => {
  if (order.do === 'spec') {
    await Promise.all(order.instances.map((index) => proxies[index]!.set(order.spec)));
    process.send?.(true);
    return;
  }
  const repeated = (counts: ReadonlyMap<string, number>) =>
    [...counts.values()].filter((times) => times > 1).length;
  const executed: Executed = {
    requests,
    plainPosts: plain.size,
    repeatedPlainPosts: repeated(plain),
    keyedPosts: keyed.size,
    repeatedKeyedPosts: repeated(keyed),
  };
  process.send?.(executed);
});
process.once('disconnect', () => process.exit(0));
process.send?.(proxies.map(({ port }) => port));
