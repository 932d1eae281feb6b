import { getEventListeners, setMaxListeners } from 'node:events';
import { setImmediate as breathe, setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createFetch, retryInterceptor } from '@holdfast/http';
import { policy } from 'holdfast';
import { Agent, request } from 'undici';
import type { DrillOptions } from '../scripts/drill.ts';
import { startUpstream } from './http/upstream.ts';

const REQUESTS = 1_000_000;
const CONCURRENCY = 64;
/** The share of the run after which memory must not grow any more. */
const WARM_UP = 0.2;
const LOOKS = 10;
/** What may come on top of the least that was seen after the warm-up. */
const GROWTH_MAX_BYTES = 12_000_000;

/** One exchange in five meets a fault of the network; the server adds its own. */
const faults = {
  seed: 7,
  faults: [
    { kind: 'reset', rate: 0.08 },
    { kind: 'reset', rate: 0.04, direction: 'request' },
    { kind: 'truncate', rate: 0.03, afterBytes: 200 },
    { kind: 'hang', rate: 0.003 },
    { kind: 'latency', rate: 0.05, delay: { distribution: 'exponential', mean: '5ms', cap: '50ms' } },
  ],
} as const;

/** Requests through the chaos proxy at 20 % faults: nothing may leak, and no error may go unheard. */
export async function drill({ times = REQUESTS }: Partial<DrillOptions>): Promise<Record<string, number>> {
  const unheard: unknown[] = [];
  const hear = (error: unknown) => unheard.push(error);
  process.on('unhandledRejection', hear);
  process.on('warning', hear);
  try {
    await using upstream = await startUpstream();
    await upstream.set(faults);
    const before = await resources();
    const counts = await soak(upstream.origin, times);
    await settled(before);
    const after = await resources();
    const { repeatedPosts } = await upstream.executed();
    must(unheard.length === 0, `no error goes unheard, got ${unheard.length}: ${unheard[0]}`);
    must(after.sockets <= before.sockets, `no socket is left, got ${after.sockets - before.sockets}`);
    must(after.timers <= before.timers, `no timer is left, got ${after.timers - before.timers}`);
    must(counts.listeners === 0, `no abort listener is left, got ${counts.listeners}`);
    must(counts.growthBytes <= GROWTH_MAX_BYTES, `memory stays flat, it grew by ${counts.growthBytes} bytes`);
    must(repeatedPosts === 0, `no POST without a key is executed twice, got ${repeatedPosts}`);
    must(counts.succeeded > times * 0.9, `nine in ten succeed, got ${counts.succeeded} of ${times}`);
    return {
      ...counts,
      repeatedPosts,
      leftSockets: after.sockets - before.sockets,
      leftTimers: after.timers - before.timers,
    };
  } finally {
    process.off('unhandledRejection', hear);
    process.off('warning', hear);
  }
}

async function soak(origin: string, times: number) {
  const shared = policy({
    patience: '5s',
    attemptTimeout: '300ms',
    backoff: { base: '2ms', cap: '20ms' },
    budget: { ratio: 1 },
    breaker: false,
  });
  const fetch = createFetch({ policy: shared });
  const agent = new Agent({ connections: CONCURRENCY });
  const dispatcher = agent.compose(retryInterceptor(shared));
  // One signal for all calls: a listener that is never removed shows up.
  const caller = new AbortController();
  setMaxListeners(0, caller.signal);
  const heaps: number[] = [];
  let [left, succeeded, failed, brokenBodies] = [times, 0, 0, 0];

  async function send(number: number): Promise<void> {
    const isPost = number % 5 === 0;
    const method = isPost ? 'POST' : number % 5 === 1 ? 'PUT' : 'GET';
    const headers = { 'x-id': String(number) };
    const body = method === 'GET' ? null : 'kelp';
    try {
      if (number % 2 === 0) {
        const response = await fetch(`${origin}/odd`, { method, headers, body, signal: caller.signal });
        await response.text().catch(() => brokenBodies++);
        if (response.ok) succeeded++;
        else failed++;
      } else {
        const response = await request(`${origin}/odd`, {
          method,
          headers,
          body,
          dispatcher,
          signal: caller.signal,
        });
        await response.body.text().catch(() => brokenBodies++);
        if (response.statusCode < 400) succeeded++;
        else failed++;
      }
    } catch {
      failed++;
    }
  }

  const look = Math.max(1, Math.floor(times / LOOKS));
  const sender = async () => {
    while (left > 0) {
      const number = left--;
      await send(number);
      if (number % look === 0) heaps.push(heapBytes());
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, sender));
  const seconds = (performance.now() - startedAt) / 1000;
  await fetch.close();
  await agent.close();
  await collected(caller.signal);

  const warm = heaps.slice(Math.ceil(heaps.length * WARM_UP));
  const half = Math.ceil(warm.length / 2);
  const growthBytes = Math.max(0, Math.min(...warm.slice(half)) - Math.min(...warm.slice(0, half)));
  const { attempts, operations } = shared.counters;
  return {
    requests: times,
    succeeded,
    failed,
    brokenBodies,
    attempts,
    operations,
    requestsPerSecond: Math.round(times / seconds),
    heapMegabytes: Math.round(Math.min(...warm) / 1e6),
    growthBytes,
    listeners: getEventListeners(caller.signal, 'abort').length,
  };
}

let collect: (() => void) | undefined;

function heapBytes(): number {
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
  return process.memoryUsage().heapUsed;
}

/** The platform's own listeners on a signal go with the requests that they belong to. */
async function collected(signal: AbortSignal): Promise<void> {
  for (let look = 0; look < 50 && getEventListeners(signal, 'abort').length > 0; look++) {
    heapBytes();
    await pause(20);
  }
}

async function resources(): Promise<{ sockets: number; timers: number }> {
  await breathe();
  const all = process.getActiveResourcesInfo();
  return {
    sockets: all.filter((each) => each === 'TCPSocketWrap' || each === 'TCPWrap' || each === 'ConnectWrap')
      .length,
    timers: all.filter((each) => each === 'Timeout').length,
  };
}

/** What is closing takes a moment. */
async function settled(before: { sockets: number; timers: number }): Promise<void> {
  for (let look = 0; look < 100; look++) {
    const { sockets, timers } = await resources();
    if (sockets <= before.sockets && timers <= before.timers) return;
    await pause(20);
  }
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`The soak promised that ${what}.`);
}
