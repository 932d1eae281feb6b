// A process that a test ends with SIGTERM: it prints its port, and answers each request after a few milliseconds.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gracefulShutdown } from '@holdfast/server';

const server = createServer((_request, response) => {
  setTimeout(() => response.end('done'), 10 * Math.random());
});
const drainDelay = process.argv.includes('drainDelay=1h') ? '1h' : '200ms';
gracefulShutdown(server, { drainDelay, patience: '10s', before: () => console.log('draining') });
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
