// A fetch that retries safely, against a server that fails for a moment.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createFetch } from '@holdfast/http';
import { storyOf } from 'holdfast';

// The server that stands for yours: it answers the first request of each kind with 503.
const requests = new Map<string, number>();
const server = createServer((request, response) => {
  const name = `${request.method} ${request.url}`;
  const count = (requests.get(name) ?? 0) + 1;
  requests.set(name, count);
  response.writeHead(count < 2 ? 503 : 200).end(`${name}, request ${count}`);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

const fetch = createFetch({
  policy: { name: 'prices', patience: '5s' },
  onWait: ({ attempt, because }) => console.log(`  attempt ${attempt} failed: ${because}; waiting`),
});

// A GET is repeated.
const price = await fetch(`http://127.0.0.1:${port}/prices/lamp`);
console.log(`${price.status}: ${await price.text()}`);

// A POST may have been done although it failed, so it is not repeated.
const order = await fetch(`http://127.0.0.1:${port}/orders`, { method: 'POST', body: 'a lamp' });
console.log(`${order.status}: ${await order.text()}; no other attempt: ${storyOf(order)?.stop}`);

// With an Idempotency-Key the server can recognise a repeated POST, so it is repeated.
const payment = await fetch(`http://127.0.0.1:${port}/payments`, {
  method: 'POST',
  body: '12 EUR',
  headers: { 'idempotency-key': 'order-17' },
});
console.log(`${payment.status}: ${await payment.text()}`);

await fetch.close();
server.close();
