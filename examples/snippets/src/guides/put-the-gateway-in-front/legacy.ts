import { createServer } from 'node:http';

// Stands for a service that nobody may change. Of three requests it refuses two.
let requests = 0;
createServer((request, response) => {
  requests++;
  response.statusCode = requests % 3 === 0 ? 200 : 503;
  response.end(`${request.method} ${request.url}: request ${requests}\n`);
}).listen(Number(process.env.LEGACY_PORT ?? 3000), '127.0.0.1', () => console.log('ready'));
