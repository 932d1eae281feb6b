import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deadline, peers, shed } from '@holdfast/server';
import { guard } from '@holdfast/server/node';
import type { ServiceOrder } from './service.ts';

/**
 * A service whose work is waiting for something else: so many calls of `CALL_MS` at a time. What comes on top waits in a line
 * that knows no deadline, as those of most database pools.
 */
const CALL_MS = 50;
let slots = Number(process.argv[2]) / (1000 / CALL_MS);
const isProtected = process.argv[3] === 'protected';

let busy = 0;
/** When the calls under way would end if no timer were ever late: a database does not wait for our thread. */
let freeAt: number[] = [];
const line: (() => void)[] = [];

function serve(): void {
  const now = performance.now();
  while (busy < slots && line.length > 0) {
    busy++;
    const done = line.shift()!;
    const endsAt = Math.max(now - CALL_MS, freeAt.shift() ?? now) + CALL_MS;
    setTimeout(
      () => {
        busy--;
        // A slot that no longer exists, because the capacity was reduced, is not given again.
        if (busy < slots) freeAt.push(endsAt);
        done();
        serve();
      },
      Math.max(0, endsAt - now),
    );
  }
  // An idle worker does not save up work.
  if (line.length === 0) freeAt = [];
}

function handler(_request: unknown, response: ServerResponse): void {
  line.push(() => response.end('done'));
  serve();
}

const inside = peers('127.0.0.1');
const shedding = shed({ inside, tenant: (exchange) => exchange.header('x-tenant') });
const parts = [deadline({ inside, timeout: '5s' }), shedding];
const server = createServer({ keepAliveTimeout: 0 }, isProtected ? guard(parts, handler) : handler);
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);

process.on('message', ({ perSecond }: ServiceOrder) => {
  slots = perSecond / (1000 / CALL_MS);
  freeAt = [];
  serve();
});
process.once('disconnect', () => process.exit(0));
