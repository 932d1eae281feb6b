import type { ChaosSpec } from '@holdfast/chaos';
import type { DrillOptions } from '../scripts/drill.ts';
import { startInstances } from './gateway/instances.ts';
import { send } from './gateway/load.ts';
import { type RunningGateway, runGateway } from './gateway/running-gateway.ts';
import type { DrillCase } from './gateway.ts';

const FLEET = 4;
const LIMIT = 300;
/** What a fleet may add to a single process: a breaker is opened in each worker by its own failures. */
const OUTAGE_LOAD_MAX = 1.2;
const LIMIT_RATIO_MAX = 1.15;

const dead: ChaosSpec = { faults: [{ kind: 'refuse', cut: true }] };

export interface FleetSize {
  readonly seconds: number;
}

/** How far several workers, each with breakers and budgets of its own, are from a single process. */
export async function drill({ times = 10 }: Partial<DrillOptions>): Promise<{ cases: readonly DrillCase[] }> {
  return { cases: await fleetDrill({ seconds: times }) };
}

export async function fleetDrill({ seconds }: FleetSize): Promise<DrillCase[]> {
  return [await outage(seconds), await rateLimit(seconds)];
}

/** All instances are dead: how many attempts are made for a request, alone and as a fleet? */
async function outage(seconds: number): Promise<DrillCase> {
  const measured: Record<string, number> = {};
  for (const [name, workers] of Object.entries({ single: 1, fleet: FLEET })) {
    await using instances = await startInstances(3);
    await using gateway = await runGateway(
      `
upstreams:
  api:
    instances: [${instances.urls.map((url) => JSON.stringify(url)).join(', ')}]
    circuitBreaker: { failureThreshold: 10, timeout: 1s, halfOpenRequests: 3 }
    retry: { patience: 2s, backoff: { base: 5ms, cap: 50ms } }
routes: [{ match: /, upstream: api }]
`,
      workers,
    );
    const connections = { get: 16, post: 0, keyedPost: 0 };
    await send({ url: gateway.url, seconds: 1, connections });
    const before = await totals(gateway);
    await instances.set([0, 1, 2], dead);
    await send({ url: gateway.url, seconds, connections });
    const after = await totals(gateway);
    const operations = after.operations - before.operations;
    const attempts = after.attempts - before.attempts;
    Object.assign(measured, {
      [`${name}Requests`]: operations,
      [`${name}Attempts`]: attempts,
      [`${name}Load`]: round(attempts / Math.max(1, operations)),
      [`${name}AttemptsPerSecond`]: Math.round(attempts / seconds),
    });
  }
  return { id: 'outage', pass: measured.fleetLoad! <= OUTAGE_LOAD_MAX, seconds, workers: FLEET, ...measured };
}

/** The rate of the file, without a shared store: each worker has its share of it. */
async function rateLimit(seconds: number): Promise<DrillCase> {
  const measured: Record<string, number> = {};
  for (const [name, workers] of Object.entries({ single: 1, fleet: FLEET })) {
    await using instances = await startInstances(1);
    await using gateway = await runGateway(
      `
upstreams: { api: { instances: [${JSON.stringify(instances.urls[0])}] } }
routes:
  - match: /
    upstream: api
    rateLimiting: { requestsPerSecond: ${LIMIT}, burstSize: ${LIMIT / 10} }
`,
      workers,
    );
    const { get } = await send({
      url: gateway.url,
      seconds,
      connections: { get: 16, post: 0, keyedPost: 0 },
    });
    measured[`${name}AdmittedPerSecond`] = Math.round((get.requests - get.failed) / seconds);
  }
  const ratio = round(measured.fleetAdmittedPerSecond! / LIMIT);
  return {
    ...{ id: 'rate-limit', pass: ratio <= LIMIT_RATIO_MAX, seconds, workers: FLEET, limit: LIMIT },
    ...measured,
    fleetRatio: ratio,
  };
}

async function totals(gateway: RunningGateway): Promise<{ operations: number; attempts: number }> {
  const policies = (await gateway.workers()).flatMap(({ upstreams }) =>
    upstreams.flatMap((upstream) => upstream.policies),
  );
  return {
    operations: policies.reduce((sum, policy) => sum + policy.operations, 0),
    attempts: policies.reduce((sum, policy) => sum + policy.attempts, 0),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
