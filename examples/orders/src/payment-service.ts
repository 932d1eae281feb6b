import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChaosProxy, type ChaosSpec, chaosProxy } from '@holdfast/chaos';

export interface PaymentService {
  /** Where it is reached, through a network that fails. */
  readonly url: string;
  /** Orders that were charged, and requests that came again for one that had been. */
  readonly charges: { readonly made: number; readonly repeated: number };
  /** Whether the network lets requests through at the moment. */
  readonly proxy: ChaosProxy;
  close(): Promise<void>;
}

/** A card that starts with this is declined at first, until its owner has called the bank. */
export const reluctantCard = '4000';

/**
 * A payment service like many: it is slow, its network breaks, it is away for a while now and then. It charges an order once
 * for each idempotency key, however often it is asked.
 */
export async function startPaymentService(faults: ChaosSpec, declinesForMs: number): Promise<PaymentService> {
  const charged = new Map<string, string>();
  const firstAsked = new Map<string, number>();
  let repeated = 0;

  async function charge(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { card, total } = JSON.parse(Buffer.concat(chunks).toString());
    const key = String(request.headers['idempotency-key']);
    const known = charged.get(key);
    if (known !== undefined) {
      repeated += 1;
      return answer(response, 200, { receipt: known });
    }
    const now = performance.now();
    const since = firstAsked.get(card) ?? now;
    firstAsked.set(card, since);
    if (card.startsWith(reluctantCard) && now - since < declinesForMs) {
      return answer(response, 402, { error: 'the card was declined' });
    }
    const receipt = `receipt ${charged.size + 1} over ${total}`;
    charged.set(key, receipt);
    return answer(response, 200, { receipt });
  }

  const server = createServer((request, response) => {
    charge(request, response).catch((error: Error) => answer(response, 500, { error: error.message }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = await chaosProxy({ upstream: `127.0.0.1:${port}`, spec: faults });
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    proxy,
    get charges() {
      return { made: charged.size, repeated };
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
