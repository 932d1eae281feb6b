import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createFetch } from '@holdfast/http';

// Stands for the API that you call: it refuses two requests and answers the third.
let requests = 0;
const api = createServer((_, response) => {
  requests++;
  response.statusCode = requests < 3 ? 503 : 200;
  response.end('a lamp costs 12 EUR');
}).listen(0, '127.0.0.1');
await once(api, 'listening');
const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}/prices/lamp`;

const shopFetch = createFetch({ policy: { name: 'shop', patience: '5s' } });
const response = await shopFetch(url);
console.log(`${response.status} ${await response.text()}, after ${requests} requests`);
await shopFetch.close();
api.close();
