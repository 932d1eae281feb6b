import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { openRedis } from '@holdfast/redis';
import { idempotency, type Part, rateLimit } from '@holdfast/server';
import { guard } from '@holdfast/server/node';
import { Agent, request } from 'undici';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';

export interface RedisOutageSize {
  readonly perSecond: number;
  readonly calmMs: number;
  readonly awayMs: number;
  /** How long it may take until the store is asked again. */
  readonly backMs: number;
}

const full: RedisOutageSize = { perSecond: 200, calmMs: 2_000, awayMs: 3_000, backMs: 3_000 };
const WAIT_MAX_MS = 60;

/** Redis hangs, is killed, and comes back, under load: no request waits long, and the limits hold again afterwards. */
export async function drill({ times = 1 }: Partial<DrillOptions>): Promise<Record<string, number>> {
  let worst: Record<string, number> = {};
  for (let time = 0; time < times; time++) {
    const counts = await outages(full);
    if (!(counts.longestWaitMs! < (worst.longestWaitMs ?? -1))) worst = counts;
    must(
      counts.longestWaitMs! <= WAIT_MAX_MS,
      `nobody waits longer than ${WAIT_MAX_MS} ms, one waited ${counts.longestWaitMs} ms`,
    );
  }
  return worst;
}

export async function outages(size: RedisOutageSize): Promise<Record<string, number>> {
  const redis = await ownService('redis');
  if (redis.missing !== undefined) throw new Error(`The drill needs Redis: ${redis.missing}.`);
  const { rateLimits, ledger, close } = openRedis({ url: redis.url });
  const waits: number[] = [];
  const limit = rateLimit({ rateLimits, limits: { rate: '60/m', burst: 10_000 } });
  const keys = idempotency({ ledger, scope: 'public' });
  const parts = [limit, keys].map((part) => timed(part, waits));
  const executed = new Map<string, number>();
  const server = createServer(
    guard(parts, (incoming, response) => {
      const key = String(incoming.headers['idempotency-key']);
      executed.set(key, (executed.get(key) ?? 0) + 1);
      response.end('done');
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dispatcher = new Agent({ connections: 64 });
  const statuses: Record<number, number> = {};
  const pending = new Set<Promise<void>>();
  let sent = 0;

  async function send(): Promise<void> {
    const headers = { 'idempotency-key': `k${sent++}` };
    const { statusCode, body } = await request(origin, { method: 'POST', body: 'x', headers, dispatcher });
    await body.dump();
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
  }
  // A busy machine may keep us waiting for Redis, too.
  const few = (0.02 * size.perSecond * size.calmMs) / 1000;
  // Connected, and with its scripts.
  await rateLimits.take([[{ key: 'warm', ratePerMs: 1, burst: 1 }]]);
  const timer = setInterval(() => {
    const sending = send().finally(() => pending.delete(sending));
    pending.add(sending);
  }, 1000 / size.perSecond);

  /** Requests that were refused in this time because the ledger was away. */
  async function refusedWithin(ms: number): Promise<number> {
    const before = keys.counts.failedClosed;
    await pause(ms);
    return keys.counts.failedClosed - before;
  }

  try {
    const before = await refusedWithin(size.calmMs);
    must(before <= few, `next to nothing is refused while Redis is there, ${before} were`);

    process.kill(redis.pid, 'SIGSTOP');
    const whileHung = await refusedWithin(size.awayMs);
    process.kill(redis.pid, 'SIGCONT');
    await pause(size.backMs);
    const afterHang = await refusedWithin(size.calmMs);

    await redis.end('kill');
    const whileDead = await refusedWithin(size.awayMs);
    await redis.start();
    await pause(size.backMs);
    const afterDeath = await refusedWithin(size.calmMs);

    clearInterval(timer);
    await Promise.all(pending);
    must(whileHung > 0 && whileDead > 0, 'keys are refused while Redis is away');
    must(afterHang <= few, `all is well after a hang, ${afterHang} were refused`);
    must(afterDeath <= few, `all is well after a death, ${afterDeath} were refused`);
    must(![...executed.values()].some((times) => times > 1), 'nothing is executed twice');
    const [look] = await rateLimits.take([
      [{ key: '{127.0.0.1}default', ratePerMs: 0.001, burst: 10_000, cost: 0 }],
    ]);
    must(look!.left[0]!.tokens < 10_000, 'the shared limit is used again');
    waits.sort((a, b) => a - b);
    return {
      requests: sent,
      served: statuses[200] ?? 0,
      failedClosed: keys.counts.failedClosed,
      limitsWithoutStore: limit.missed,
      whileHung,
      whileDead,
      longestWaitMs: Math.round(waits.at(-1)!),
      p99WaitMs: Math.round(waits[Math.floor(waits.length * 0.99)]!),
    };
  } finally {
    clearInterval(timer);
    await dispatcher.close();
    server.closeAllConnections();
    server.close();
    await close();
    await redis.stop();
  }
}

/** Notes how long a part keeps a request waiting. */
function timed(part: Part, waits: number[]): Part {
  return {
    ...part,
    enter(exchange) {
      const since = performance.now();
      const answer = part.enter(exchange);
      if (!(answer instanceof Promise)) return answer;
      return answer.finally(() => waits.push(performance.now() - since));
    },
  };
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`The outage of Redis promised that ${what}.`);
}
