import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { DrillOptions } from '../scripts/drill.ts';
import { startInstances } from './gateway/instances.ts';
import { send } from './gateway/load.ts';
import { runGateway } from './gateway/running-gateway.ts';

const REQUESTS = 2_000_000;
const LOOKS = 10;
/** One in twenty fails. */
const FAULT_EVERY = 20;
/** The looks before this share of the run are not compared: caches and compiled code are still growing. */
const WARM_UP = 0.4;
const GROWTH_MAX_BYTES = 40_000_000;
const DESCRIPTORS_MAX = 30;
const LOAD = { get: 16, post: 8, keyedPost: 8 };

/** Requests through a gateway with faults in one of twenty: memory and descriptors stay flat. */
export async function drill({ times = REQUESTS }: Partial<DrillOptions>): Promise<Record<string, number>> {
  await using instances = await startInstances(3, FAULT_EVERY);
  await using gateway = await runGateway(`
upstreams:
  api:
    instances: [${instances.urls.map((url) => JSON.stringify(url)).join(', ')}]
    healthCheck: { interval: 1s, timeout: 500ms }
    circuitBreaker: { failureThreshold: 100, failureRatio: 1 }
    outlierEjection: false
    bulkhead: true
    retry: { patience: 5s, backoff: { base: 2ms, cap: 20ms } }
routes:
  - match: /
    upstream: api
    fallback: { stale: 1m }
`);
  const looks: { readonly bytes: number; readonly descriptors: number }[] = [];
  let [requests, failed] = [0, 0];
  const startedAt = performance.now();
  // The first slice tells how fast it goes here.
  let seconds = 1;
  while (requests < times) {
    const answered = await send({ url: gateway.url, seconds, connections: LOAD });
    for (const each of Object.values(answered)) {
      requests += each.requests;
      failed += each.failed;
    }
    const perSecond = requests / ((performance.now() - startedAt) / 1000);
    seconds = Math.max(1, Math.round(Math.min((times - requests) / perSecond, times / LOOKS / perSecond)));
    // Connections of wrk are closed by now.
    await pause(200);
    looks.push({ bytes: residentBytes(gateway.pid), descriptors: descriptorsOf(gateway.pid) });
  }
  const { repeatedPlainPosts } = await instances.executed();
  const warm = looks.slice(Math.floor(looks.length * WARM_UP));
  const half = Math.ceil(warm.length / 2);
  const least = (part: typeof looks) => Math.min(...part.map(({ bytes }) => bytes));
  const growthBytes = warm.length < 2 ? 0 : Math.max(0, least(warm.slice(half)) - least(warm.slice(0, half)));
  const descriptors = looks.map((look) => look.descriptors);
  // Connections to instances come and go with the load, so the most of each half are compared.
  const most = (part: typeof looks) => Math.max(...part.map((look) => look.descriptors));
  const descriptorGrowth =
    warm.length < 2 ? 0 : Math.max(0, most(warm.slice(half)) - most(warm.slice(0, half)));
  must(growthBytes <= GROWTH_MAX_BYTES, `memory stays flat, it grew by ${growthBytes} bytes`);
  must(descriptorGrowth <= DESCRIPTORS_MAX, `descriptors stay flat, there are ${descriptorGrowth} more`);
  must(failed <= requests * 0.05, `most requests succeed, ${failed} of ${requests} failed`);
  must(repeatedPlainPosts === 0, `no POST without a key is executed twice, ${repeatedPlainPosts} were`);
  return {
    requests,
    failed,
    repeatedPosts: repeatedPlainPosts,
    requestsPerSecond: Math.round(requests / ((performance.now() - startedAt) / 1000)),
    residentMegabytes: Math.round(looks.at(-1)!.bytes / 1e6),
    growthBytes,
    descriptors: descriptors.at(-1)!,
    descriptorGrowth,
  };
}

function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`The soak promised that ${what}.`);
}
