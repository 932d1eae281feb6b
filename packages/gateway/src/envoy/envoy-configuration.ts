import path from 'node:path';
import type { GatewayConfig } from '../file/gateway-config.ts';
import { durationBounds } from '../route/route-counts.ts';
import { type Draining, envoyClusters } from './envoy-clusters.ts';
import { envoyListener, fileSource } from './envoy-listener.ts';
import { envoyRoutes } from './envoy-routes.ts';
import { type Resource, socketAddress } from './resource.ts';

/** Envoy's files: `bootstrap` is read once, the others again each time they are replaced. */
export interface EnvoyConfiguration {
  readonly bootstrap: Resource;
  readonly listeners: readonly Resource[];
  readonly routes: readonly Resource[];
  readonly clusters: readonly Resource[];
}

export const fileNames = {
  bootstrap: 'bootstrap.json',
  listeners: 'listeners.json',
  routes: 'routes.json',
  clusters: 'clusters.json',
} as const;

/** Where the files of Envoy are, and on which port its admin interface listens. */
export interface EnvoyOptions {
  /** The folder of the files. Required. */
  readonly folder: string;
  /**
   * Where Envoy's own admin interface listens; it has no token, so it belongs on loopback. 0: a free port. Required.
   */
  readonly adminPort: number;
  /** Instances that get no new requests. Default: none. */
  readonly draining?: Draining | undefined;
}

/** Translates a checked gateway file to Envoy's configuration, version 3. What Envoy cannot do: `envoyLosses`. */
export function envoyConfiguration(config: GatewayConfig, options: EnvoyOptions): EnvoyConfiguration {
  const { folder, adminPort, draining = new Set() } = options;
  const file = (name: keyof typeof fileNames) => path.join(folder, fileNames[name]);
  return {
    bootstrap: {
      node: { id: 'holdfast', cluster: 'gateway' },
      admin: { address: socketAddress('127.0.0.1', adminPort) },
      dynamic_resources: {
        lds_config: fileSource(file('listeners')),
        cds_config: fileSource(file('clusters')),
      },
      // Durations are counted as the Node data plane counts them, in ms.
      stats_config: {
        histogram_bucket_settings: [
          { match: { suffix: 'upstream_rq_time' }, buckets: durationBounds.map((bound) => bound * 1000) },
        ],
      },
    },
    listeners: [envoyListener(config, file('routes'))],
    routes: [envoyRoutes(config)],
    clusters: envoyClusters(config, draining),
  };
}
