import { setTimeout as pause } from 'node:timers/promises';
import { createFetch, type HoldfastFetch } from '@holdfast/http';
import { policy } from 'holdfast';
import type { DrillOptions } from '../scripts/drill.ts';
import { startUpstream } from './http/upstream.ts';

export interface OutageSize {
  readonly clients: number;
  /** Figures of each client. */
  readonly everyMs: number;
  readonly calmMs: number;
  readonly downMs: number;
  /** How long is looked on after the recovery, at most. */
  readonly afterMs: number;
}

const full: OutageSize = { clients: 100, everyMs: 200, calmMs: 5_000, downMs: 10_000, afterMs: 40_000 };
const LOAD_MAX = 1.2;
/** A client is back within this, on top of what its breaker and its next request let it wait. */
const BACK_WITHIN_MS = 1_000;

const SETTLED_AFTER_MS = 20;

interface Client {
  readonly fetch: HoldfastFetch;
  readonly plan: ReturnType<typeof policy>['plan'];
  readonly counters: ReturnType<typeof policy>['counters'];
  recoveredAt: number;
  admitsAt: number;
}

/** The server is down for a while: how much load do retries add, and how soon is everybody back? */
export async function drill({ times = 1 }: Partial<DrillOptions>): Promise<Record<string, number>> {
  let worst: Record<string, number> = {};
  for (let time = 0; time < times; time++) {
    const counts = await outage(full);
    if (!(counts.backAfterMs! < (worst.backAfterMs ?? -1))) worst = counts;
  }
  return worst;
}

export async function outage(size: OutageSize): Promise<Record<string, number>> {
  await using upstream = await startUpstream();
  const clients = Array.from({ length: size.clients }, client);
  const inFlight = new Set<Promise<void>>();
  let [sent, failed] = [0, 0];
  let recoveredAt = Infinity;

  async function send(who: Client, number: number): Promise<void> {
    const method = number % 2 === 0 ? 'GET' : 'POST';
    try {
      const response = await who.fetch(upstream.origin, {
        method,
        headers: { 'x-id': String(number) },
        body: method === 'POST' ? 'pay' : null,
      });
      await response.text();
      if (response.ok && performance.now() > recoveredAt)
        who.recoveredAt = Math.min(who.recoveredAt, performance.now());
      if (!response.ok) failed++;
    } catch {
      failed++;
    }
  }

  const timers = clients.map((who, index) => {
    // Spread evenly, so that the rate is what it is said to be.
    let timer: NodeJS.Timeout;
    const tick = () => {
      timer = setTimeout(tick, size.everyMs);
      const running = send(who, sent++).finally(() => inFlight.delete(running));
      inFlight.add(running);
    };
    timer = setTimeout(tick, (index * size.everyMs) / size.clients);
    return () => clearTimeout(timer);
  });

  try {
    await pause(size.calmMs);
    const before = totals(clients);
    await upstream.set({ faults: [{ kind: 'refuse', cut: true }] });
    await pause(size.downMs);
    const during = totals(clients);
    await upstream.set({ faults: [] });
    recoveredAt = performance.now();
    // What was sent before may still be refused, and a breaker that it probed for is open anew.
    await pause(SETTLED_AFTER_MS);
    for (const who of clients) who.admitsAt = admitsAt(who);
    const until = recoveredAt + size.afterMs;
    while (performance.now() < until && clients.some((who) => who.recoveredAt === Infinity)) await pause(10);
    for (const stop of timers) stop();
    await Promise.all(inFlight);

    const { posts, repeatedPosts } = await upstream.executed();
    const load = (during.attempts - before.attempts) / (during.operations - before.operations);
    const late = clients.map((who) => who.recoveredAt - Math.max(recoveredAt, who.admitsAt));
    const latest = Math.max(...late);
    must(load <= LOAD_MAX, `load stays below ${LOAD_MAX} times, it was ${load}`);
    must(
      latest <= BACK_WITHIN_MS + size.everyMs,
      `everybody is back soon, one took ${latest} ms longer than it had to`,
    );
    must(repeatedPosts === 0, `no POST is executed twice, ${repeatedPosts} were`);
    must(failed > 0, 'the server was down');
    return {
      requests: sent,
      failed,
      posts,
      repeatedPosts,
      loadMultiplication: Number(load.toFixed(3)),
      attemptsWhileDown: during.attempts - before.attempts,
      backAfterMs: Math.round(Math.max(...clients.map((who) => who.recoveredAt - recoveredAt))),
      lateMs: Math.round(latest),
    };
  } finally {
    for (const stop of timers) stop();
    await Promise.all(clients.map(({ fetch }) => fetch.close()));
  }
}

function client(): Client {
  const own = policy();
  return {
    fetch: createFetch({ policy: own }),
    plan: own.plan,
    counters: own.counters,
    recoveredAt: Infinity,
    admitsAt: 0,
  };
}

/** When its breaker lets the next request through. */
function admitsAt({ plan }: Client): number {
  const now = plan.clock.now();
  const waits = [...(plan.everyTarget?.() ?? [])].map(({ breaker }) => breaker?.reopensAt(now) ?? 0);
  return Math.max(0, ...waits);
}

function totals(clients: readonly Client[]): { attempts: number; operations: number } {
  let [attempts, operations] = [0, 0];
  for (const { counters } of clients) {
    attempts += counters.attempts;
    operations += counters.operations;
  }
  return { attempts, operations };
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`The outage promised that ${what}.`);
}
