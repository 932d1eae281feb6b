import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answers everything with a few bytes, as fast as it can. */
const body = Buffer.from('{"ok":true}');
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
});
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit(0));
