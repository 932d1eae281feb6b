import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChaosProxy, chaosProxy } from '@holdfast/chaos';

export interface Payment {
  /** The two instances, each behind a network that can fail. */
  readonly urls: readonly string[];
  /** Orders that were charged, and requests that came again for one that had been. */
  readonly charges: { readonly made: number; readonly repeated: number };
  /** True: every charge is refused, because its form is wrong. No retry helps. */
  rejects: boolean;
  /** Takes both instances off the network, or puts them back. */
  setAway(isAway: boolean): Promise<void>;
  readonly isAway: boolean;
  /** Makes one of the two instances slow. */
  setSlow(isSlow: boolean): Promise<void>;
  readonly isSlow: boolean;
  close(): Promise<void>;
}

/** An ordinary day: some requests are slow, and one connection in fifty breaks. */
const ordinary = [
  { kind: 'latency', delay: { distribution: 'lognormal', median: '8ms', sigma: 0.8, cap: '300ms' } },
  { kind: 'reset', rate: 0.02 },
] as const;
const away = [{ kind: 'refuse', cut: true }] as const;
const slow = [{ kind: 'latency', delay: '900ms' }] as const;

/** Payment, stock, shipping and notification in one service, which runs twice. Each deed is done once for a key. */
export async function startPayment(random: () => number): Promise<Payment> {
  const answers = new Map<string, object>();
  const state = { rejects: false, isAway: false, isSlow: false };
  let repeated = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const key = String(request.headers['idempotency-key'] ?? '');
    if (request.url === '/health') return answer(response, 200, { status: 'pass' });
    if (state.rejects && request.url === '/payment/charge')
      return answer(response, 422, { error: 'card_token is required' });
    if (request.url === '/stock/reserve' && Buffer.concat(chunks).includes('"sold out"'))
      return answer(response, 409, { error: 'it is sold out' });
    if (random() < 0.02) return answer(response, 503, { error: 'too busy' });
    const known = answers.get(key);
    if (known) repeated += 1;
    const done = known ?? { number: `${String(request.url).slice(1)} ${answers.size + 1}` };
    answers.set(key, done);
    return answer(response, 200, done);
  }

  const servers = await Promise.all([0, 1].map(() => listening(serve)));
  const proxies: ChaosProxy[] = [];
  for (const server of servers) {
    const { port } = server.address() as AddressInfo;
    proxies.push(await chaosProxy({ upstream: `127.0.0.1:${port}`, spec: { faults: [...ordinary] } }));
  }

  async function apply(): Promise<void> {
    for (const [index, proxy] of proxies.entries()) {
      const extra = state.isAway ? away : state.isSlow && index === 0 ? slow : [];
      await proxy.set({ faults: [...extra, ...ordinary] });
    }
  }

  return {
    urls: proxies.map(({ port }) => `http://127.0.0.1:${port}`),
    get charges() {
      return { made: answers.size, repeated };
    },
    get rejects() {
      return state.rejects;
    },
    set rejects(rejects) {
      state.rejects = rejects;
    },
    get isAway() {
      return state.isAway;
    },
    get isSlow() {
      return state.isSlow;
    },
    async setAway(isAway) {
      state.isAway = isAway;
      await apply();
    },
    async setSlow(isSlow) {
      state.isSlow = isSlow;
      await apply();
    },
    async close() {
      for (const proxy of proxies) await proxy.close();
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

async function listening(serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>) {
  const server = createServer((request, response) => {
    serve(request, response).catch((error: Error) => answer(response, 500, { error: error.message }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
