import { createServer } from 'node:http';
import { memoryEngine } from '@holdfast/contracts/memory';
import { deadline, gracefulShutdown, health, idempotency, rateLimit, shed } from '@holdfast/server';
import { guard } from '@holdfast/server/node';

const { ledger } = memoryEngine(); // for a first try; SQLite, PostgreSQL or Redis for more than one process
const ready = health();

let orders = 0;
const server = createServer(
  guard(
    [
      ready,
      deadline({ timeout: '2s' }),
      rateLimit({ limits: { rate: '5/m' } }),
      shed(),
      idempotency({ ledger, scope: 'public' }),
    ],
    (_request, response) => void response.end(`order ${++orders}\n`),
  ),
);
gracefulShutdown(server, { health: ready, drainDelay: 0 });
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('ready'));
