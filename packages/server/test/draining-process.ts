// A process that a test ends with SIGTERM: it prints its port, and answers each request after a few milliseconds.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gracefulShutdown } from '@holdfast/server';

const server = createServer((_request, response) => {
  setTimeout(() => response.end('done'), 10 * Math.random());
});
gracefulShutdown(server, { drainDelay: '200ms', patience: '10s' });
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
