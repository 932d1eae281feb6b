import { HoldfastError } from 'holdfast';
import { request } from 'undici';

/**
 * A client for Envoy's own admin interface. That interface has no token, so it must listen on loopback only.
 */
export class EnvoyAdmin {
  readonly url: string;

  constructor(url: string) {
    this.url = url.replace(/\/$/, '');
  }

  /** Returns counters, gauges and texts by name, without histograms. */
  async stats(filter: string): Promise<Map<string, number | string>> {
    const { stats } = (await this.#json(`/stats?format=json&filter=${encodeURIComponent(filter)}`)) as {
      stats: readonly { name?: string; value?: number | string }[];
    };
    return new Map(stats.flatMap(({ name, value }) => (name === undefined ? [] : [[name, value ?? 0]])));
  }

  async durations(filter: string): Promise<Map<string, Durations>> {
    const query = `format=json&histogram_buckets=disjoint&filter=${encodeURIComponent(filter)}`;
    const { stats } = (await this.#json(`/stats?${query}`)) as {
      stats: readonly { histograms?: Histograms }[];
    };
    const found = stats.flatMap(({ histograms }) => histogramsIn(histograms));
    return new Map(found.map(({ name, totals = [] }) => [name, { totals }]));
  }

  async clusters(): Promise<readonly ClusterStatus[]> {
    const { cluster_statuses: found = [] } = (await this.#json('/clusters?format=json')) as {
      cluster_statuses?: ClusterStatus[];
    };
    return found;
  }

  async portOf(listener: string): Promise<number | undefined> {
    const { listener_statuses: found = [] } = (await this.#json('/listeners?format=json')) as {
      listener_statuses?: { name: string; local_address: Address }[];
    };
    return found.find(({ name }) => name === listener)?.local_address.socket_address.port_value;
  }

  async isReady(): Promise<boolean> {
    const { statusCode, body } = await request(`${this.url}/ready`);
    await body.dump();
    return statusCode === 200;
  }

  async post(path: string): Promise<void> {
    const { statusCode, body } = await request(this.url + path, { method: 'POST' });
    const text = await body.text();
    if (statusCode !== 200) throw this.#refused(path, statusCode, text);
  }

  async #json(path: string): Promise<unknown> {
    const { statusCode, body } = await request(this.url + path);
    if (statusCode !== 200) throw this.#refused(path, statusCode, await body.text());
    return body.json();
  }

  #refused(path: string, status: number, text: string): HoldfastError {
    return new HoldfastError(
      'HOLDFAST_ENVOY',
      `Envoy's admin interface ${this.url}${path} gave ${status}: ${text.slice(0, 500)}`,
    );
  }
}

export interface Durations {
  /** The count of each bucket. `lower_bound` and `width` are in ms. */
  readonly totals: readonly {
    readonly lower_bound: number;
    readonly width: number;
    readonly count: number;
  }[];
}

export interface Address {
  readonly socket_address: { readonly address: string; readonly port_value: number };
}

export interface ClusterStatus {
  readonly name: string;
  readonly host_statuses?: readonly HostStatus[];
}

export interface HostStatus {
  readonly address: Address;
  readonly hostname?: string;
  readonly weight?: number;
  readonly stats: readonly { readonly name: string; readonly value?: string }[];
  readonly health_status: {
    readonly failed_active_health_check?: boolean;
    readonly failed_outlier_check?: boolean;
    readonly pending_active_hc?: boolean;
    readonly active_hc_timeout?: boolean;
  };
}

type Histogram = { name: string; totals?: Durations['totals'] };
type Histograms = readonly Histogram[] | { details?: readonly Histogram[] };

function histogramsIn(given: Histograms | undefined): readonly Histogram[] {
  if (given === undefined) return [];
  return 'details' in given ? (given.details ?? []) : (given as readonly Histogram[]);
}
