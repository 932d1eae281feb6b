import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface StorageServer {
  readonly url: string;
  /** The chunks that are stored, in order. */
  content(): Buffer;
  /** How often a chunk came that was stored before. */
  readonly repeated: number;
  /** Ends the outage that begins with chunk 6. */
  comeBack(): void;
  close(): void;
}

/** Stands for your server. It refuses chunk 2 once, loses its answer to chunk 4, and is away from chunk 6 on. */
export async function startStorage(): Promise<StorageServer> {
  const chunks = new Map<number, Buffer>();
  const seen = new Set<number>();
  let repeated = 0;
  let isAway = false;

  const server = createServer(async (request, response) => {
    const chunk = Number(/\/chunks\/(\d+)$/.exec(request.url ?? '')?.[1] ?? -1);
    const isFirst = !seen.has(chunk);
    seen.add(chunk);
    if (chunk === 6 && isFirst) isAway = true;
    if (isAway) return request.destroy();
    if (request.method === 'GET') return response.end(JSON.stringify({ stored: [...chunks.keys()] }));
    const bytes = await buffer(request);
    if (chunk === 2 && isFirst) return response.writeHead(503).end();
    if (chunks.has(chunk)) repeated += 1;
    chunks.set(chunk, bytes);
    if (chunk === 4 && isFirst) return request.destroy();
    return response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/uploads/film`,
    content: () => Buffer.concat([...chunks].sort(([a], [b]) => a - b).map(([, bytes]) => bytes)),
    get repeated() {
      return repeated;
    },
    comeBack() {
      isAway = false;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
