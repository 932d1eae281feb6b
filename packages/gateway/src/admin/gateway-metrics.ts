import { type Family, prometheus, type Sample } from '@holdfast/telemetry';
import { durationBounds } from '../route/route-counts.ts';
import type { RouteState, WorkerState } from './worker-state.ts';

type Labels = Readonly<Record<string, string>>;

class Sums {
  readonly #samples = new Map<string, { labels: Labels; value: number }>();

  add(labels: Labels, value: number): void {
    const key = JSON.stringify(labels);
    const sample = this.#samples.get(key) ?? { labels, value: 0 };
    sample.value += value;
    this.#samples.set(key, sample);
  }

  get samples(): Sample[] {
    return [...this.#samples.values()] as Sample[];
  }
}

export function gatewayMetrics(workers: readonly WorkerState[], workersLost = 0): string {
  const families: Family[] = [];
  const family = (
    name: string,
    type: Family['type'],
    help: string,
    fill: (add: (labels: Labels, value: number) => void, state: WorkerState) => void,
  ) => {
    const sums = new Sums();
    for (const state of workers) fill((labels, value) => sums.add(labels, value), state);
    families.push({ name, type, labels: [], help, samples: sums.samples });
  };

  family(
    'holdfast_gateway_requests_total',
    'counter',
    'Requests that ended, by class of status.',
    (add, state) => {
      for (const route of [...state.routes, state.unmatched]) {
        for (const [status, count] of Object.entries(route.statuses))
          if (count > 0) add({ ...routeLabels(route), status }, count);
      }
    },
  );
  family(
    'holdfast_gateway_retries_total',
    'counter',
    'Attempts beyond the first of a request.',
    (add, state) => {
      for (const route of state.routes) add(routeLabels(route), route.retries);
    },
  );
  family(
    'holdfast_gateway_refusals_total',
    'counter',
    'Requests that a protection refused before the upstream was called.',
    (add, state) => {
      for (const { name, kind, refused } of state.protections) add({ protection: name, kind }, refused);
    },
  );
  family(
    'holdfast_gateway_fallbacks_total',
    'counter',
    'Requests that another route answered.',
    (add, state) => {
      for (const route of state.routes) add(routeLabels(route), route.fallbacks);
    },
  );
  family('holdfast_gateway_response_bytes_total', 'counter', 'Bytes of response bodies.', (add, state) => {
    for (const route of state.routes) add(routeLabels(route), route.bytes);
  });
  family('holdfast_gateway_in_flight_requests', 'gauge', 'Requests that have not ended.', (add, state) => {
    for (const route of state.routes) add(routeLabels(route), route.inFlight);
  });
  family(
    'holdfast_gateway_attempts_total',
    'counter',
    'Attempts that were sent to an upstream.',
    (add, state) => {
      for (const { name, policies } of state.upstreams)
        for (const { attempts } of policies) add({ upstream: name }, attempts);
    },
  );
  family(
    'holdfast_gateway_stops_total',
    'counter',
    'Requests that ended without success, by stop reason.',
    (add, state) => {
      for (const { name, policies } of state.upstreams)
        for (const { stops } of policies)
          for (const [reason, count] of Object.entries(stops)) add({ upstream: name, reason }, count);
    },
  );
  family(
    'holdfast_gateway_budget_tokens',
    'gauge',
    'Retries that the budgets would pay for now.',
    (add, state) => {
      for (const { policies } of state.upstreams)
        for (const { name, tokens } of policies) if (tokens !== null) add({ policy: name }, tokens);
    },
  );
  family(
    'holdfast_gateway_instance_in_flight_attempts',
    'gauge',
    'Attempts in flight at an instance.',
    (add, state) => {
      for (const { name, instances } of state.upstreams)
        for (const each of instances) add({ upstream: name, instance: each.name }, each.inFlight);
    },
  );
  family(
    'holdfast_gateway_instance_state',
    'gauge',
    'In how many workers an instance is in this state: healthy, unhealthy, ejected, draining.',
    (add, state) => {
      for (const { name, instances } of state.upstreams)
        for (const each of instances) {
          const labels = { upstream: name, instance: each.name };
          add({ ...labels, state: 'healthy' }, each.isHealthy ? 1 : 0);
          add({ ...labels, state: 'unhealthy' }, each.isHealthy ? 0 : 1);
          add({ ...labels, state: 'ejected' }, each.isEjected ? 1 : 0);
          add({ ...labels, state: 'draining' }, each.isDraining ? 1 : 0);
        }
    },
  );
  family(
    'holdfast_gateway_breaker_state',
    'gauge',
    'In how many workers the breaker of an instance is in this state.',
    (add, state) => {
      for (const { name, instances } of state.upstreams)
        for (const { name: instance, breaker } of instances)
          for (const each of ['closed', 'open', 'half-open'])
            if (breaker !== null) add({ upstream: name, instance, state: each }, breaker === each ? 1 : 0);
    },
  );
  family('holdfast_gateway_workers', 'gauge', 'Processes that serve requests.', (add) => add({}, 1));
  families.push({
    name: 'holdfast_gateway_lost_workers_total',
    type: 'counter',
    labels: [],
    help: 'Processes that ended unexpectedly and were replaced.',
    samples: [{ labels: {}, value: workersLost }],
  });
  family(
    'holdfast_gateway_insecure_upstreams',
    'gauge',
    'Upstreams whose certificate is not verified.',
    (add, state) => {
      for (const { name, insecure } of state.upstreams) if (insecure) add({ upstream: name }, 1);
    },
  );
  families.push(durations(workers));
  return prometheus({ snapshot: () => families });
}

function routeLabels({ name, upstream }: RouteState): Labels {
  return name === '' ? { route: 'none' } : { route: name, upstream };
}

function durations(workers: readonly WorkerState[]): Family {
  const routes = new Map<string, { labels: Labels; sum: number; counts: number[] }>();
  for (const route of workers.flatMap((state) => state.routes)) {
    const labels = routeLabels(route);
    const key = JSON.stringify(labels);
    const entry = routes.get(key) ?? { labels, sum: 0, counts: route.durations.map(() => 0) };
    entry.sum += route.durationSum;
    entry.counts = entry.counts.map((count, index) => count + route.durations[index]!);
    routes.set(key, entry);
  }
  const samples = [...routes.values()].map(({ labels, sum, counts }) => {
    let total = 0;
    const buckets = durationBounds.map((le, index) => {
      total += counts[index]!;
      return { le, count: total };
    });
    return { labels, value: sum, count: total + counts.at(-1)!, buckets };
  });
  return {
    name: 'holdfast_gateway_request_seconds',
    type: 'histogram',
    labels: [],
    help: 'How long requests take, from the first byte to the last.',
    samples: samples as Sample[],
  };
}
