import type { AnswerOf } from '../../src/api/routes.ts';
import type { State } from '../parts/glyph.tsx';

/** The fields of the gateway's admin API that the page shows. */
export interface GatewayState {
  readonly isDraining: boolean;
  readonly lastReload: Reload | null;
  readonly workers: readonly Worker[];
}

export interface Reload {
  readonly ok: boolean;
  readonly at: number;
  readonly files: readonly string[];
  readonly error?: string;
  readonly problems?: readonly {
    readonly file: string;
    readonly line: number;
    readonly column: number;
    readonly path: string;
    readonly message: string;
  }[];
}

interface Worker {
  readonly pid: number;
  readonly startedAt: number;
  readonly routes: readonly Route[];
  readonly upstreams: readonly {
    readonly name: string;
    readonly insecure: boolean;
    readonly policies: readonly {
      readonly name: string;
      readonly targets: readonly {
        readonly target: string | null;
        readonly latencyMs?: { readonly p50: number; readonly p99: number };
        readonly window?: { readonly calls: number; readonly failures: number };
      }[];
    }[];
    readonly instances: readonly WorkerInstance[];
  }[];
}

interface Route {
  readonly name: string;
  readonly upstream: string;
  readonly requests: number;
  readonly inFlight: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly retries: number;
  readonly refused: number;
  readonly fallbacks: number;
}

interface WorkerInstance {
  readonly name: string;
  readonly isHealthy: boolean;
  readonly isDraining: boolean;
  readonly isEjected: boolean;
  readonly inFlight: number;
  readonly breaker: string | null;
  readonly forced: 'open' | 'closed' | null;
  readonly lastCheckError: string | null;
}

export interface Instance extends WorkerInstance {
  readonly calls: number;
  readonly failures: number;
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

export interface Upstream {
  readonly name: string;
  readonly insecure: boolean;
  readonly policies: readonly string[];
  readonly instances: readonly Instance[];
}

export interface RequestStory {
  readonly time: string;
  readonly id: string;
  readonly client: string;
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly route: string | null;
  readonly upstream: string | null;
  readonly instance: string | null;
  readonly status: number;
  readonly ms: number;
  readonly attempts: number;
  readonly stop?: string;
  readonly fallback?: string;
  readonly says: string;
  readonly log: readonly {
    readonly attempt: number;
    readonly instance: string | null;
    readonly endedAtMs: number;
    readonly class: string;
    readonly outcome: string;
    readonly verdict: string;
    readonly because: string | null;
    readonly delayMs: number | null;
  }[];
}

export function gatewayState({ state }: AnswerOf<'GET /gateway'>): GatewayState {
  return state as unknown as GatewayState;
}

/** Adds up the numbers of all workers. An instance gets the worst state that any worker reports. */
export function upstreamsOf({ workers }: GatewayState): readonly Upstream[] {
  const names = [...new Set(workers.flatMap(({ upstreams }) => upstreams.map(({ name }) => name)))];
  return names.map((name) => {
    const own = workers.flatMap(({ upstreams }) => upstreams.filter((each) => each.name === name));
    const targets = own.flatMap(({ policies }) => policies.flatMap((policy) => policy.targets));
    const instances = own.flatMap((each) => each.instances);
    return {
      name,
      insecure: own.some(({ insecure }) => insecure),
      policies: [...new Set(own.flatMap(({ policies }) => policies.map((policy) => policy.name)))],
      instances: [...new Set(instances.map((each) => each.name))].map((instance) =>
        together(
          instances.filter((each) => each.name === instance),
          targets.filter(({ target }) => target === instance),
        ),
      ),
    };
  });
}

type Targets = Worker['upstreams'][number]['policies'][number]['targets'];

function together(seen: readonly WorkerInstance[], targets: Targets): Instance {
  const first = seen[0]!;
  const latencies = targets.flatMap(({ latencyMs }) => latencyMs ?? []);
  const sum = (of: (target: Targets[number]) => number) =>
    targets.reduce((total, each) => total + of(each), 0);
  return {
    ...first,
    isHealthy: seen.every(({ isHealthy }) => isHealthy),
    isDraining: seen.some(({ isDraining }) => isDraining),
    isEjected: seen.some(({ isEjected }) => isEjected),
    inFlight: seen.reduce((total, { inFlight }) => total + inFlight, 0),
    breaker: seen.find(({ breaker }) => breaker === 'open')?.breaker ?? first.breaker,
    calls: sum(({ window }) => window?.calls ?? 0),
    failures: sum(({ window }) => window?.failures ?? 0),
    p50: latencies.length > 0 ? Math.max(...latencies.map(({ p50 }) => p50)) : undefined,
    p99: latencies.length > 0 ? Math.max(...latencies.map(({ p99 }) => p99)) : undefined,
  };
}

export function instanceWord(instance: Instance): { readonly state: State; readonly says: string } {
  if (instance.isDraining) return { state: 'waiting', says: 'drained' };
  if (instance.forced) return { state: 'waiting', says: `kept ${instance.forced}` };
  if (!instance.isHealthy) return { state: 'parked', says: 'fails its checks' };
  if (instance.isEjected) return { state: 'refused', says: 'ejected' };
  if (instance.breaker === 'open') return { state: 'refused', says: 'breaker open' };
  if (instance.breaker === 'half_open') return { state: 'retrying', says: 'half-open' };
  return { state: 'ok', says: 'in use' };
}
