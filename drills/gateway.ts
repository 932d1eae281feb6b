import { setTimeout as pause } from 'node:timers/promises';
import type { ChaosSpec } from '@holdfast/chaos';
import type { DrillOptions } from '../scripts/drill.ts';
import { type Instances, startInstances } from './gateway/instances.ts';
import { type Answered, type LoadKind, loadProgram, send } from './gateway/load.ts';
import { type RunningGateway, runGateway } from './gateway/running-gateway.ts';

export interface GatewayDrillSize {
  /** The load while one instance fails. */
  readonly faultSeconds: number;
  /** The load while all instances die and return. */
  readonly outageSeconds: number;
  readonly reloadSeconds: number;
  readonly killSeconds: number;
  /** The share of GETs, and of POSTs with keys, that may fail while one instance fails. */
  readonly errorShareMax: number;
}

/** One trial, with its figures. */
export interface DrillCase {
  readonly id: string;
  readonly pass: boolean;
  readonly [figure: string]: number | boolean | string;
}

const full: GatewayDrillSize = {
  faultSeconds: 60,
  outageSeconds: 20,
  reloadSeconds: 20,
  killSeconds: 10,
  errorShareMax: 0.001,
};

const INSTANCES = 5;
const LOAD_MAX = 1.2;
/** On top of how long a breaker stays open and how often health is checked. */
const RECOVERY_MAX_MS = 5_000;
const REPLACED_MAX_MS = 30_000;
const dead: ChaosSpec = { faults: [{ kind: 'refuse', cut: true }] };
const well: ChaosSpec = { faults: [] };

/** What clients see while instances fail, while the file is reloaded, and when a worker is killed. */
export async function drill(_: Partial<DrillOptions>): Promise<{ readonly cases: readonly DrillCase[] }> {
  return { cases: await gatewayDrill(full) };
}

const slow: ChaosSpec = { faults: [{ kind: 'latency', delay: '2s' }] };
const flapping: ChaosSpec = {
  faults: [{ kind: 'refuse', cut: true, flap: { up: '700ms', down: '700ms' } }],
};

const trials: Readonly<Record<string, (size: GatewayDrillSize) => Promise<DrillCase>>> = {
  'one-dies': (size) => oneFails('one-dies', dead, size),
  'one-slows': (size) => oneFails('one-slows', slow, size),
  'one-flaps': (size) => oneFails('one-flaps', flapping, size),
  'all-die-and-return': allDie,
  'reload-every-second': reloads,
  'worker-killed': workerKilled,
};

/** Runs all trials, or those whose id contains `only`. */
export async function gatewayDrill(size: GatewayDrillSize, only = ''): Promise<DrillCase[]> {
  const cases: DrillCase[] = [];
  for (const [id, trial] of Object.entries(trials)) {
    if (!id.includes(only)) continue;
    console.error(`${id} …`);
    cases.push(await trial(size));
  }
  return cases;
}

/** The first instance fails for the middle half of the time. */
async function oneFails(id: string, spec: ChaosSpec, size: GatewayDrillSize): Promise<DrillCase> {
  await using instances = await startInstances(INSTANCES);
  await using gateway = await runGateway(fileOf(instances));
  const seconds = size.faultSeconds;
  const sending = send({ url: gateway.url, seconds, connections: { get: 6, post: 2, keyedPost: 2 } });
  await pause(seconds * 250);
  await instances.set([0], spec);
  await pause(seconds * 500);
  await instances.set([0], well);
  const { get, post, keyedPost } = await sending;
  const { repeatedPlainPosts } = await instances.executed();
  const load = multiplication(await totals(gateway));
  const shares = { getErrorShare: shareOf(get), keyedPostErrorShare: shareOf(keyedPost) };
  return {
    id,
    pass:
      get.requests > 0 &&
      shares.getErrorShare <= size.errorShareMax &&
      shares.keyedPostErrorShare <= size.errorShareMax &&
      repeatedPlainPosts === 0 &&
      load <= LOAD_MAX,
    load: loadProgram,
    seconds,
    ...counted('get', get),
    ...counted('keyedPost', keyedPost),
    ...counted('post', post),
    ...shares,
    repeatedPosts: repeatedPlainPosts,
    loadMultiplication: load,
  };
}

/** All instances die, and return half a time later: clients are served again soon, and retries make no storm. */
async function allDie(size: GatewayDrillSize): Promise<DrillCase> {
  await using instances = await startInstances(INSTANCES);
  await using gateway = await runGateway(fileOf(instances));
  const all = instances.urls.map((_, index) => index);
  const connections = { get: 6, post: 2, keyedPost: 0 };
  const part = Math.max(1, Math.round(size.outageSeconds / 4));
  const calm = await send({ url: gateway.url, seconds: part, connections });
  const before = await totals(gateway);
  const servedBefore = (await instances.executed()).requests;
  await instances.set(all, dead);
  const down = await send({ url: gateway.url, seconds: part, connections });
  const during = await totals(gateway);
  await instances.set(all, well);
  const recoveryMs = await servedAgain(gateway.url, connections);
  const servedSince = (await instances.executed()).requests;
  const after = await send({ url: gateway.url, seconds: part, connections });
  const end = await totals(gateway);
  const { requests: servedAfter, repeatedPlainPosts } = await instances.executed();
  const loadWhileDown = multiplication(difference(during, before));
  const loadAfter = multiplication(difference(end, during));
  const sentAfter = after.get.requests + after.post.requests;
  const failedAfter = after.get.failed + after.post.failed;
  return {
    id: 'all-die-and-return',
    pass:
      recoveryMs <= RECOVERY_MAX_MS &&
      loadWhileDown <= LOAD_MAX &&
      loadAfter <= LOAD_MAX &&
      failedAfter <= sentAfter * 0.001 &&
      repeatedPlainPosts === 0,
    load: loadProgram,
    seconds: part * 3,
    ...counted('calm', calm.get),
    ...counted('down', down.get),
    ...counted('after', after.get),
    recoveryMs,
    loadMultiplicationWhileDown: loadWhileDown,
    loadMultiplicationAfter: loadAfter,
    servedWhileCalm: servedBefore,
    servedAfterReturn: servedAfter - servedSince,
    repeatedPosts: repeatedPlainPosts,
  };
}

/** Another file every second, with other weights, upstreams and routes: no request fails. */
async function reloads(size: GatewayDrillSize): Promise<DrillCase> {
  await using instances = await startInstances(INSTANCES);
  await using gateway = await runGateway(fileOf(instances));
  const seconds = size.reloadSeconds;
  const sending = send({ url: gateway.url, seconds, connections: { get: 6, post: 2, keyedPost: 2 } });
  const until = performance.now() + seconds * 1000 - 500;
  let [reloaded, refused] = [0, 0];
  while (performance.now() < until) {
    await pause(Math.min(1000, Math.max(0, until - performance.now())));
    reloaded++;
    if (!(await gateway.reload(fileOf(instances, reloaded)))) refused++;
  }
  const { get, post, keyedPost } = await sending;
  const failed = get.failed + post.failed + keyedPost.failed;
  return {
    id: 'reload-every-second',
    pass: failed === 0 && refused === 0 && get.requests > 0,
    load: loadProgram,
    seconds,
    requests: get.requests + post.requests + keyedPost.requests,
    failed,
    reloads: reloaded,
    refusedReloads: refused,
  };
}

/** A worker is killed: its requests in flight fail, at most one on each connection, and it is replaced. */
async function workerKilled(size: GatewayDrillSize): Promise<DrillCase> {
  await using instances = await startInstances(INSTANCES);
  await using gateway = await runGateway(fileOf(instances), 2);
  const seconds = size.killSeconds;
  const connections = 8;
  const sending = send({
    url: gateway.url,
    seconds,
    connections: { get: connections, post: 0, keyedPost: 0 },
  });
  await pause(seconds * 400);
  const [killed] = await gateway.workers();
  process.kill(killed!.pid, 'SIGKILL');
  const { get } = await sending;
  const workers = await replaced(gateway);
  return {
    id: 'worker-killed',
    pass:
      get.failed <= connections && workers.length === 2 && workers.every(({ pid }) => pid !== killed!.pid),
    load: loadProgram,
    seconds,
    ...counted('get', get),
    connections,
    workersAfter: workers.length,
  };
}

/** The workers when there are two again, or after a while those that there are. */
async function replaced(gateway: RunningGateway) {
  const until = performance.now() + REPLACED_MAX_MS;
  for (;;) {
    const workers = await gateway.workers();
    if (workers.length === 2 || performance.now() > until) return workers;
    await pause(100);
  }
}

/** One upstream with all protections. `version` changes what a reload can change, and nothing that clients see. */
function fileOf({ urls }: Instances, version = 0): string {
  const instances = urls.map((url, index) => `{ url: "${url}", weight: ${1 + ((index + version) % 2)} }`);
  return `
accessLog: false
upstreams:
  api${version % 3}:
    instances: [${instances.join(', ')}]
    healthCheck: { interval: 500ms, timeout: 400ms, unhealthyThreshold: 2, healthyThreshold: 2 }
    circuitBreaker: { failureThreshold: 5, timeout: 2s, halfOpenRequests: 2 }
    bulkhead: { maxConcurrentRequests: 200 }
    rateLimiting: { requestsPerSecond: 1000000, burstSize: 1000000 }
    retry: { attempts: 4, patience: 5s, backoff: { base: 10ms, cap: 100ms } }
routes:
  - name: api
    match: /
    upstream: api${version % 3}
  - name: other${version}
    match: /other${version}
    upstream: api${version % 3}
`;
}

interface Totals {
  readonly operations: number;
  readonly attempts: number;
}

async function totals(gateway: RunningGateway): Promise<Totals> {
  let [operations, attempts] = [0, 0];
  for (const { upstreams } of await gateway.workers())
    for (const { policies } of upstreams)
      for (const policy of policies) {
        operations += policy.operations;
        attempts += policy.attempts;
      }
  return { operations, attempts };
}

function difference(after: Totals, before: Totals): Totals {
  return {
    operations: after.operations - before.operations,
    attempts: after.attempts - before.attempts,
  };
}

function multiplication({ operations, attempts }: Totals): number {
  return operations === 0 ? 0 : Number((attempts / operations).toFixed(3));
}

/** How long it takes until no request fails in a whole second of load. */
async function servedAgain(url: string, connections: Readonly<Record<LoadKind, number>>): Promise<number> {
  const returnedAt = performance.now();
  for (;;) {
    const sinceMs = Math.round(performance.now() - returnedAt);
    const answered = Object.values(await send({ url, seconds: 1, connections }));
    if (answered.every(({ failed }) => failed === 0) || sinceMs > 10 * RECOVERY_MAX_MS) return sinceMs;
  }
}

function shareOf({ requests, failed }: Answered): number {
  return requests === 0 ? 1 : Number((failed / requests).toFixed(6));
}

function counted(name: LoadKind | 'calm' | 'down' | 'after', { requests, failed }: Answered) {
  return { [`${name}Requests`]: requests, [`${name}Failed`]: failed };
}
