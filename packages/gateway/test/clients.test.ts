import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { browserPath } from '../../../scripts/services/install.ts';
import { closing, serve } from '../../http/test/servers.ts';
import { simple, start } from './gateways.ts';

const run = promisify(execFile);

describe('curl', () => {
  const echo = () =>
    serve((request, response) => {
      void text(request).then((body) => response.end(`${request.method} ${body.length}`));
    });

  test('gets, posts with Expect, and uploads in chunks', async () => {
    const { url } = await start(simple([await echo()]));
    const curl = async (...args: string[]) =>
      (await run('curl', ['-sS', '--max-time', '10', ...args])).stdout;
    expect(await curl(`${url}/a?b=c`)).toBe('GET 0');
    const long = 'x'.repeat(100_000);
    expect(await curl('-H', 'Expect: 100-continue', '-d', long, url)).toBe('POST 100000');
    expect(await curl('-H', 'Transfer-Encoding: chunked', '-T', import.meta.filename, url)).toMatch(
      /^PUT \d{4}$/,
    );
    expect(await curl('-o', '/dev/null', '-w', '%{http_code}', '--path-as-is', `${url}/a/../b`)).toBe('400');
    expect(await curl('-I', url)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test('speaks HTTP/2 without TLS, and HTTP/1.0', async () => {
    const { url } = await start(simple([await echo()], '', '', 'listen: { http2: true }'));
    const version = async (...args: string[]) =>
      (
        await run('curl', [
          '-sS',
          '--max-time',
          '10',
          '-o',
          '/dev/null',
          '-w',
          '%{http_version} %{http_code}',
          ...args,
        ])
      ).stdout;
    expect(await version('--http2-prior-knowledge', '-d', 'x', url)).toBe('2 200');
    expect(await version('--http1.0', url)).toBe('1.1 200');
    expect(await version(url)).toBe('1.1 200');
  });
});

const isMissing = !existsSync(browserPath);
if (isMissing && process.env.CI === 'true') throw new Error(`There is no browser at ${browserPath}.`);

const page = `<!doctype html><meta charset="utf-8"><title>page</title><script>
const results = [];
const done = (name, value) => { results.push(name + ' ' + value); document.title = results.sort().join(', '); };
fetch('/api', { method: 'POST', body: 'hello' }).then((r) => r.text()).then((t) => done('fetch', t));
new EventSource('/events').onmessage = (e) => { e.target.close(); done('event', e.data); };
const socket = new WebSocket('ws://' + location.host + '/socket');
socket.onmessage = (e) => { socket.close(); done('socket', e.data); };
</script>`;

describe(`a browser${isMissing ? `, skipped: no browser at ${browserPath}` : ''}`, () => {
  test.skipIf(isMissing)(
    'loads a page, fetches, gets events and opens a WebSocket',
    async () => {
      const server = createServer((request, response) => {
        if (request.url === '/events') {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('data: one\n\n');
        } else if (request.url === '/api') void text(request).then((body) => response.end(`${body} there`));
        else response.writeHead(200, { 'content-type': 'text/html' }).end(page);
      });
      server.on('upgrade', (request, socket) => {
        const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
        const accept = createHash('sha1').update(key).digest('base64');
        socket.on('error', () => {});
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
        );
        socket.write(Buffer.from([0x81, 2, 0x68, 0x69]));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      closing({
        close: async () => {
          server.close();
          server.closeAllConnections();
        },
      });
      const { url } = await start(
        simple([{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }]),
      );
      const browser = closing(
        await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] }),
      );
      const tab = await browser.newPage();
      await tab.goto(url);
      await tab.waitForFunction(() => document.title.split(',').length === 3);
      expect(await tab.title()).toBe('event one, fetch hello there, socket hi');
    },
    60_000,
  );
});
