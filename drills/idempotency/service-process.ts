import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DatabaseSync } from 'node:sqlite';
import { openPostgres, type PostgresTransaction } from '@holdfast/postgres';
import { openRedis } from '@holdfast/redis';
import { contextOf, type IdempotentRequest, idempotency, type PlainResponse } from '@holdfast/server';
import { guard, sendResponse } from '@holdfast/server/node';
import { openSqlite } from '@holdfast/sqlite';
import type { Place } from './place.ts';

/** Takes orders, each of which is an effect, and dies at the requested point. */

const { engine, address, effects, leaseMs } = JSON.parse(process.argv[2] ?? '') as Place;
const isTransactional = engine !== 'redis';
const { ledger } = await open();

function open() {
  if (engine === 'sqlite') return openSqlite({ file: address });
  if (engine === 'postgres') return openPostgres({ url: address });
  return openRedis({ url: address });
}

function dieAt(here: string, wanted: unknown): void {
  if (here === wanted) process.kill(process.pid, 'SIGKILL');
}

const answerTo = (order: string) => ({ status: 201, headers: {}, body: `ordered ${order}` });

/** The effect is in the same database as the key, and there with it or not at all. */
function inTransaction(request: IdempotentRequest<never>, order: string, death: unknown) {
  if (engine === 'sqlite') {
    return (request as IdempotentRequest<DatabaseSync>).commit((database) => {
      database.prepare('INSERT INTO effect VALUES (?)').run(order);
      dieAt('in the transaction', death);
      return answerTo(order);
    });
  }
  return (request as IdempotentRequest<PostgresTransaction>).commit(async (tx) => {
    await tx.query('INSERT INTO effect VALUES ($1)', [order]);
    dieAt('in the transaction', death);
    return answerTo(order);
  });
}

const part = idempotency({
  ledger,
  scope: 'public',
  lease: leaseMs,
  transactional: isTransactional,
  timeout: '2s',
});
const server = createServer(
  guard([part], async (request, response) => {
    const death = request.headers['x-die'];
    const order = String(request.headers['x-order']);
    const idempotent = contextOf(request)!.idempotent as IdempotentRequest<never>;
    dieAt('before the effect', death);
    let answer: PlainResponse = answerTo(order);
    if (isTransactional) answer = await inTransaction(idempotent, order, death);
    // As a payment would be: outside of what any transaction of ours can undo.
    else appendFileSync(effects, `${order}\n`);
    dieAt('after the effect', death);
    sendResponse(response, answer);
    response.once('close', () => dieAt('after the answer', death));
  }),
);
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit(0));
