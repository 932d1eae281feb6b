import { gatewayMetrics } from '../../packages/gateway/src/admin/gateway-metrics.ts';
import type { RouteState, WorkerState } from '../../packages/gateway/src/admin/worker-state.ts';
import { durationBounds } from '../../packages/gateway/src/route/route-counts.ts';
import { eventMetrics } from '../../packages/telemetry/src/consumers.ts';
import { type Metric, metrics } from '../../packages/telemetry/src/metrics.ts';
import { serverMetrics } from '../../packages/telemetry/src/server-parts.ts';
import { code, page, table } from './markdown.ts';

interface DescribedMetric extends Pick<Metric, 'name' | 'type' | 'help'> {
  readonly labels: readonly string[];
}

export function metricsPage(): string {
  const sections: [title: string, about: string, all: readonly DescribedMetric[]][] = [
    ['Policies', '`observe` of `@holdfast/telemetry`.', Object.values(metrics)],
    ['Consumers', '`observeConsumers` of `@holdfast/telemetry`.', Object.values(eventMetrics)],
    ['Servers', '`observeServer` of `@holdfast/telemetry`.', Object.values(serverMetrics)],
    [
      'The gateway',
      '`GET /metrics` of the admin API of `@holdfast/gateway`, summed over its workers.',
      metricsOfGateway(),
    ],
  ];
  return page(
    'Every metric',
    'As Prometheus names them. OpenTelemetry has a dot for the first underscore and no unit in the name: `holdfast.attempt`. ' +
      'What to look at first, a dashboard and alerts: [metrics, dashboards and alerts](../telemetry.md).',
    sections.map(([title, about, all]) => `## ${title}\n\n${about}\n\n${tableOf(all)}`),
  );
}

function tableOf(all: readonly DescribedMetric[]): string {
  const rows = all.map(({ name, type, labels, help }) => [
    code(name),
    type,
    unitOf(name),
    labels.map(code).join(', '),
    help,
  ]);
  return table(['name', 'type', 'unit', 'labels', 'what it is'], rows);
}

function unitOf(name: string): string {
  if (name.endsWith('_seconds')) return 'seconds';
  if (/_bytes(_total)?$/.test(name)) return 'bytes';
  if (/_(rate|ratio|multiplication)$/.test(name)) return 'ratio';
  return /_(state|unreachable)$/.test(name) ? '0 or 1, summed' : 'number';
}

/** The gateway writes its metrics straight from the state of its workers: one of everything shows all of them. */
function metricsOfGateway(): DescribedMetric[] {
  const text = gatewayMetrics([sampleWorker()]);
  return [...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name, help]) => {
    const [, type] = new RegExp(`^# TYPE ${name} (\\w+)$`, 'm').exec(text)!;
    const samples = text.matchAll(new RegExp(`^${name}(?:_bucket)?\\{(.*)\\} `, 'gm'));
    const labels = Array.from(samples, ([, all]) => all!.matchAll(/(\w+)="/g)).flatMap((all) =>
      Array.from(all, ([, label]) => label!),
    );
    return {
      name: name!,
      type: type as Metric['type'],
      help: help!,
      labels: [...new Set(labels)].filter((label) => label !== 'le'),
    };
  });
}

function sampleWorker(): WorkerState {
  const route: RouteState = {
    ...{ name: 'orders', upstream: 'orders', requests: 1, inFlight: 0, statuses: { '2xx': 1 }, retries: 0 },
    ...{ refused: 0, fallbacks: 0, bytes: 0, durationSum: 0, durations: [...durationBounds, 0].map(() => 0) },
  };
  return {
    ...{ pid: 1, startedAt: 0, isDraining: false, inFlight: 0, accessLogDropped: 0 },
    routes: [route],
    unmatched: { ...route, name: '', upstream: '' },
    upstreams: [
      {
        name: 'orders',
        insecure: true,
        policies: [
          {
            name: 'orders',
            operations: 1,
            attempts: 1,
            tokens: 1,
            stops: { attempts_exhausted: 1 },
            targets: [],
          },
        ],
        instances: [
          {
            ...{ name: 'one', zone: null, weight: 1, isHealthy: true, isDraining: false, isEjected: false },
            ...{ inFlight: 0, breaker: 'closed', forced: null, lastCheckError: null },
          },
        ],
      },
    ],
    protections: [
      { name: 'route orders rateLimiting', kind: 'rateLimiting', refused: 1, inFlight: null, queued: null },
    ],
  };
}
