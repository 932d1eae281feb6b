export type Resource = Readonly<Record<string, unknown>>;

const extensions = 'type.googleapis.com/envoy.extensions';

/** `type` is the type name after `envoy.extensions.`. */
export function typed(type: string, fields: Resource = {}): Resource {
  return { '@type': `${extensions}.${type}`, ...fields };
}

export function extension(name: string, type: string, fields?: Resource): Resource {
  return { name, typed_config: typed(type, fields) };
}

/** Formats a duration as Protocol Buffers do in JSON, such as `1.5s`. */
export function seconds(ms: number): string {
  return `${Math.max(0, Math.round(ms)) / 1000}s`;
}

export function present(fields: Readonly<Record<string, unknown>>): Resource {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function socketAddress(host: string, port: number): Resource {
  return { socket_address: { address: host.replace(/^\[|\]$/g, ''), port_value: port } };
}
