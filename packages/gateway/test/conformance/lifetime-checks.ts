import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { expect } from 'vitest';
import { serve, serveRaw } from '../../../http/test/servers.ts';
import { parseGateway } from '../../src/index.ts';
import { eventually, RawClient, send, simple } from '../gateways.ts';
import type { Check, Started } from './check.ts';

const handshake =
  'GET /chat HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

/** Takes over another file in a gateway that runs: what belongs to the process stays as it is. */
async function reload(gateway: Started, yaml: string) {
  const { listen, admin, shutdown } = gateway.config;
  return gateway.reload({ ...parseGateway(yaml, { file: 'gateway.yaml' }), listen, admin, shutdown });
}

export const lifetimeChecks: readonly Check[] = [
  {
    name: 'a WebSocket passes bytes in both directions',
    needs: ['websocket'],
    async run(plane) {
      const server = await serveRaw((socket) => {
        let isOpen = false;
        socket.on('data', (chunk) => {
          if (isOpen) socket.write(chunk);
          else
            socket.write(
              'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
            );
          isOpen = true;
        });
      });
      const gateway = await plane.start(simple([server]));
      const client = await RawClient.connect(gateway.address.port);
      client.write(handshake);
      await client.until(/101 Switching Protocols[\s\S]*\r\n\r\n/);
      client.write('ping-1');
      await client.until(/ping-1/);
      client.end();
      await eventually(() => server.open() === 0);
    },
  },
  {
    name: 'a WebSocket is refused where the route has none',
    needs: ['websocket'],
    async run(plane) {
      const server = await serve(200);
      const gateway = await plane.start(simple([server], '', 'websocket: false'));
      const client = await RawClient.connect(gateway.address.port);
      client.write(handshake);
      await client.until(/HTTP\/1\.1 4\d\d/);
      expect(server.seen).toEqual([]);
    },
  },
  {
    name: 'a body streams to the upstream, and the response streams back, before either has ended',
    needs: ['streaming'],
    async run(plane) {
      const server = await serve((request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        request.on('data', (chunk) => response.write(`echo ${chunk}`));
        request.on('end', () => response.end('over'));
      });
      const { url } = await plane.start(simple([server], '', '', 'keptBody: 0'));
      const request = httpRequest(url, { method: 'POST', agent: false });
      request.write('one');
      const [response] = await once(request, 'response');
      const [first] = await once(response, 'data');
      expect(String(first)).toBe('echo one');
      request.end('two');
      let rest = '';
      for await (const chunk of response) rest += chunk;
      expect(rest).toBe('echo twoover');
    },
  },
  {
    name: 'a client that gives up ends the request of the upstream',
    needs: ['streaming'],
    async run(plane) {
      let isClosed = false;
      const server = await serve((_request, response) => {
        response.on('close', () => {
          isClosed = true;
        });
      });
      const gateway = await plane.start(simple([server]));
      const client = await RawClient.connect(gateway.address.port);
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      await eventually(() => server.seen.length === 1);
      client.end();
      await eventually(() => isClosed);
    },
  },
  {
    name: 'a reload brings new routes and upstreams, and takes old ones away',
    needs: ['reload'],
    async run(plane) {
      const [old, next] = [await serve({ body: 'old' }), await serve({ body: 'next' })];
      const gateway = await plane.start(simple([old], '', 'match: /old'));
      expect((await send(gateway.url, '/old')).body).toBe('old');
      expect(await reload(gateway, simple([next], '', 'match: /next'))).toMatchObject({ ok: true });
      expect((await send(gateway.url, '/next')).body).toBe('next');
      expect((await send(gateway.url, '/old')).status).toBe(404);
    },
  },
  {
    name: 'reloads under load fail no request',
    needs: ['reload'],
    async run(plane) {
      const servers = await Promise.all([serve(200), serve(200)]);
      const gateway = await plane.start(simple([servers[0]!]));
      const agent = new Agent({ keepAlive: true, maxSockets: 8 });
      let isOver = false;
      const found: number[] = [];
      const load = Array.from({ length: 8 }, async () => {
        while (!isOver) found.push((await send(gateway.url, '/', { agent })).status);
      });
      for (let each = 0; each < 6; each++) {
        const name = each % 2 === 0 ? 'first' : 'second';
        const yaml = simple([servers[each % 2]!]).replaceAll('api', name);
        expect(await reload(gateway, yaml)).toMatchObject({ ok: true });
      }
      isOver = true;
      await Promise.all(load);
      agent.destroy();
      expect(found.length).toBeGreaterThan(0);
      expect(found.filter((status) => status !== 200)).toEqual([]);
    },
  },
  {
    name: 'a drain lets what is in flight end, and takes no new connections',
    needs: ['drain'],
    async run(plane) {
      let end = () => {};
      const server = await serve((_request, response) => {
        end = () => response.end('whole');
      });
      const gateway = await plane.start(simple([server]));
      await reloadWithDrain(gateway, simple([server]));
      const inFlight = send(gateway.url);
      await eventually(() => server.seen.length === 1);
      const drained = gateway.drain();
      await eventually(async () => {
        const client = await RawClient.connect(gateway.address.port).catch(() => undefined);
        client?.end();
        return client === undefined;
      });
      end();
      expect(await inFlight).toMatchObject({ status: 200, body: 'whole' });
      expect(await drained).toBe(0);
    },
  },
];

/** The tests' gateways drain for a moment only. */
async function reloadWithDrain(gateway: Started, yaml: string): Promise<void> {
  const { listen, admin } = gateway.config;
  const config = parseGateway(yaml, { file: 'gateway.yaml' });
  await gateway.reload({ ...config, listen, admin, shutdown: { delayMs: 0, drainMs: 10_000 } });
}
