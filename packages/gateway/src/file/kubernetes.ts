import type { SettingsOf } from 'holdfast/fields';
import type { routeFields, serviceFields, upstreamFields } from './gateway-file.ts';

export type ReadService = SettingsOf<typeof serviceFields>;
export type ReadUpstream = Partial<SettingsOf<typeof upstreamFields>> &
  Pick<SettingsOf<typeof upstreamFields>, 'instances'>;
export type ReadRoute = Partial<SettingsOf<typeof routeFields>> &
  Pick<SettingsOf<typeof routeFields>, 'match' | 'upstream'>;

export function isService(data: object): boolean {
  return Object.hasOwn(data, 'kind') || Object.hasOwn(data, 'apiVersion');
}

/** Without `instances`, the only instance is the host name of the service in its cluster. */
export function upstreamOf({ metadata, spec }: ReadService): ReadUpstream | undefined {
  const { instances, ports, resilience } = spec;
  const port = ports?.[0];
  const host = metadata.namespace === undefined ? metadata.name : `${metadata.name}.${metadata.namespace}`;
  const found =
    instances ?? (port && [new URL(`${port.port === 443 ? 'https' : 'http'}://${host}:${port.port}`).origin]);
  return found && { ...resilience, instances: found };
}

/** Without `routes`, one route gets all requests. */
export function routesOf({ metadata, spec }: ReadService): ReadRoute[] {
  const routes = spec.routes ?? [{ match: '/', rewrite: undefined }];
  return routes.map((route, index) => ({
    ...route,
    name: routes.length === 1 ? metadata.name : `${metadata.name}-${index + 1}`,
    upstream: metadata.name,
  }));
}
