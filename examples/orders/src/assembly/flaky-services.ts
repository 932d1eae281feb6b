import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChaosSpec, chaosProxy } from '@holdfast/chaos';

/** What the four services have done: for each act the orders, in the order of the first request. */
export type Deeds = Readonly<Record<string, readonly string[]>>;

export interface FlakyServices {
  /** Where all of them are reached, through a network that fails. */
  readonly url: string;
  readonly deeds: Deeds;
  /** Requests that came again under a key that had been done. */
  readonly repeated: number;
  close(): Promise<void>;
}

/** Books of this item are sold out: the service says so, and will say so again. */
export const soldOut = 'sold out';

/**
 * Payment, stock, shipping and notification in one server: `POST /payment/charge`, `/stock/reserve` and so on. One request in
 * five fails, sometimes after it was done; each deed is done once for an idempotency key.
 */
export async function startFlakyServices(faults: ChaosSpec, random: () => number): Promise<FlakyServices> {
  const deeds: Record<string, string[]> = {};
  const answers = new Map<string, object>();
  let repeated = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { order, item } = JSON.parse(Buffer.concat(chunks).toString()) as { order: string; item: string };
    const key = String(request.headers['idempotency-key']);
    const roll = random();
    if (roll < 0.15) return answer(response, 503, { error: 'too busy' });
    if (request.url === '/stock/reserve' && item === soldOut)
      return answer(response, 409, { error: `${item} is sold out` });
    const known = answers.get(key);
    const act = String(request.url).slice(1);
    if (known) repeated += 1;
    else deeds[act] = [...(deeds[act] ?? []), order];
    const done = known ?? { number: `${act} ${deeds[act]!.length}` };
    answers.set(key, done);
    // Done, but nobody hears of it.
    if (roll < 0.2) return void request.socket.destroy();
    return answer(response, 200, done);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: Error) => answer(response, 500, { error: error.message }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = await chaosProxy({ upstream: `127.0.0.1:${port}`, spec: faults });
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    deeds,
    get repeated() {
      return repeated;
    },
    async close() {
      await proxy.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
