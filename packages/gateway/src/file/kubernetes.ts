import type { SettingsOf } from 'holdfast/fields';
import type { routeFields, serviceFields, upstreamFields } from './gateway-file.ts';

export type ReadService = SettingsOf<typeof serviceFields>;
export type ReadUpstream = Partial<SettingsOf<typeof upstreamFields>> &
  Pick<SettingsOf<typeof upstreamFields>, 'instances'>;
export type ReadRoute = Partial<SettingsOf<typeof routeFields>> &
  Pick<SettingsOf<typeof routeFields>, 'match' | 'upstream'>;

/** True if a document is a service in the form of Kubernetes, and not a gateway file. */
export function isService(data: object): boolean {
  return Object.hasOwn(data, 'kind') || Object.hasOwn(data, 'apiVersion');
}

/**
 * Returns the upstream of a service. Without `instances` it is the host name of the service in its cluster.
 */
export function upstreamOf({ metadata, spec }: ReadService): ReadUpstream | undefined {
  const { instances, ports, resilience } = spec;
  const port = ports?.[0];
  const host = metadata.namespace === undefined ? metadata.name : `${metadata.name}.${metadata.namespace}`;
  const found =
    instances ?? (port && [new URL(`${port.port === 443 ? 'https' : 'http'}://${host}:${port.port}`).origin]);
  return found && { ...resilience, instances: found };
}

/** Returns the routes of a service. Without `routes` one route gets all requests. */
export function routesOf({ metadata, spec }: ReadService): ReadRoute[] {
  const routes = spec.routes ?? [{ match: '/', rewrite: undefined }];
  return routes.map((route, index) => ({
    ...route,
    name: routes.length === 1 ? metadata.name : `${metadata.name}-${index + 1}`,
    upstream: metadata.name,
  }));
}
