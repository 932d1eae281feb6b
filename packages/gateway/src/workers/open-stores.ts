import type { Engine, Ledger } from '@holdfast/contracts';
import { type Clock, OptionsError, Timer } from 'holdfast';
import type { GatewayConfig } from '../file/gateway-config.ts';
import type { Stores } from '../route/route-parts.ts';

export interface OpenStores extends Stores {
  close(): Promise<void>;
}

/** How often (ms) expired idempotency keys are deleted, and how many in one call. */
const sweepMs = 10_000;
const sweepMax = 1000;

/** Without a store in the file, idempotency keys are kept in the memory of the process. */
export async function openStores({ stores, routes }: GatewayConfig, clock: Clock): Promise<OpenStores> {
  const needsLedger = routes.some(({ protections }) => protections.idempotency !== null);
  const engines = new Map<string, Engine>();
  const open = async (url: string): Promise<Engine> => {
    const known = engines.get(url) ?? (await openEngine(url));
    engines.set(url, known);
    return known;
  };
  const ledgerEngine = needsLedger ? await open(stores.ledger ?? 'memory:') : undefined;
  const limitsEngine = stores.rateLimits === undefined ? undefined : await open(stores.rateLimits);
  if (ledgerEngine && !ledgerEngine.ledger)
    throw new OptionsError('stores.ledger', schemeOf(stores.ledger!), 'a store that has a ledger');
  if (limitsEngine && !limitsEngine.rateLimits)
    throw new OptionsError('stores.rateLimits', schemeOf(stores.rateLimits!), 'a store that has rate limits');
  const timer = new Timer(clock, () => {
    for (const engine of engines.values()) {
      // If the store is down, the requests that need it report that.
      engine.sweep(sweepMax).catch(() => {});
    }
    timer.setIn(sweepMs);
  });
  if (engines.size > 0) timer.setIn(sweepMs);
  return {
    ledger: (ledgerEngine?.ledger ?? unused) as Ledger<never>,
    rateLimits: limitsEngine?.rateLimits,
    async close() {
      timer.clear();
      await Promise.all([...engines.values()].map((engine) => engine.close()));
    },
  };
}

const unused = { begin: () => Promise.reject(new Error('no route has idempotency keys')) };

async function openEngine(url: string): Promise<Engine> {
  const scheme = schemeOf(url);
  if (scheme === 'memory') {
    const { memoryEngine } = await import('@holdfast/contracts/memory');
    return memoryEngine() as Engine;
  }
  if (scheme === 'redis' || scheme === 'rediss') {
    const { openRedis } = await import('@holdfast/redis');
    return (await openRedis({ url })) as unknown as Engine;
  }
  if (scheme === 'postgres' || scheme === 'postgresql') {
    const { openPostgres } = await import('@holdfast/postgres');
    return (await openPostgres({ url })) as unknown as Engine;
  }
  if (scheme === 'sqlite') {
    const { openSqlite } = await import('@holdfast/sqlite');
    return (await openSqlite({ file: url.slice('sqlite:'.length) })) as unknown as Engine;
  }
  throw new OptionsError('stores', scheme, 'memory:, sqlite:<file>, postgres://… or redis://…');
}

/** Returns only the scheme for error messages, because the rest may contain a password. */
function schemeOf(url: string): string {
  return url.slice(0, Math.max(0, url.indexOf(':')));
}
