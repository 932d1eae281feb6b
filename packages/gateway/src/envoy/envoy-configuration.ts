import path from 'node:path';
import type { GatewayConfig } from '../file/gateway-config.ts';
import { durationBounds } from '../route/route-counts.ts';
import { type Draining, envoyClusters } from './envoy-clusters.ts';
import { envoyListener, fileSource } from './envoy-listener.ts';
import { envoyRoutes } from './envoy-routes.ts';
import { type Resource, socketAddress } from './resource.ts';

/**
 * The contents of Envoy's configuration files. Envoy reads `bootstrap` once, and the others whenever they are
 * replaced.
 */
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

/** The folder of Envoy's files, and the port of its admin interface. */
export interface EnvoyOptions {
  /** The folder for Envoy's configuration files. Required. */
  readonly folder: string;
  /**
   * The port of Envoy's own admin interface, on loopback because it has no token. 0: any free port. Required.
   */
  readonly adminPort: number;
  /** Instances that get no new requests. Default: none. */
  readonly draining?: Draining | undefined;
}

/**
 * Translates a checked gateway file to an Envoy v3 configuration. `envoyLosses` lists what Envoy can not do.
 */
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
