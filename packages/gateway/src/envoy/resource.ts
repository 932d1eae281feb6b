/** A part of Envoy's configuration, as it is written in JSON. */
export type Resource = Readonly<Record<string, unknown>>;

const extensions = 'type.googleapis.com/envoy.extensions';

/** The configuration of an extension, with its type. `type` begins after `envoy.extensions.`. */
export function typed(type: string, fields: Resource = {}): Resource {
  return { '@type': `${extensions}.${type}`, ...fields };
}

export function extension(name: string, type: string, fields?: Resource): Resource {
  return { name, typed_config: typed(type, fields) };
}

/** A duration as Protocol Buffers write it in JSON. Envoy counts in ms. */
export function seconds(ms: number): string {
  return `${Math.max(0, Math.round(ms)) / 1000}s`;
}

/** The fields that are defined. */
export function present(fields: Readonly<Record<string, unknown>>): Resource {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function socketAddress(host: string, port: number): Resource {
  return { socket_address: { address: host.replace(/^\[|\]$/g, ''), port_value: port } };
}
