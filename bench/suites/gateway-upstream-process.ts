import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The server behind all proxies. */

const small = JSON.stringify({ id: 17, status: 'placed', items: ['book', 'lamp'], note: 'x'.repeat(34) });
const large = 'x'.repeat(16_384);

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const body = request.url === '/large' ? large : small;
  const answer = () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    response.end(body);
  };
  if (request.method === 'POST') request.resume().on('end', answer);
  else answer();
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit(0));
