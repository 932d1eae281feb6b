// Serves the page, its bundle, and a price that fails twice before it is told.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { build } from 'esbuild';

const { PORT = '3000' } = process.env;

const page = await readFile(path.join(import.meta.dirname, 'index.html'));
const { outputFiles } = await build({
  entryPoints: [path.join(import.meta.dirname, 'page.ts')],
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  conditions: ['holdfast-source'], // not needed outside this repository
  write: false,
});

let requests = 0;
const server = createServer((request, response) => {
  if (request.url === '/') return response.setHeader('content-type', 'text/html').end(page);
  if (request.url === '/page.js')
    return response.setHeader('content-type', 'text/javascript').end(outputFiles[0]!.contents);
  if (request.url !== '/api/price') return response.writeHead(404).end();
  requests += 1;
  if (requests % 3 !== 0) return response.writeHead(503, { 'retry-after': '1' }).end();
  return response.end(`A lamp costs 12 EUR. That was request ${requests}.`);
});
server.listen(Number(PORT), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(`the page is on http://127.0.0.1:${port}`);
});
