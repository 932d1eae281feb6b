import { OptionsError } from 'holdfast';

/**
 * A host and a port: `'127.0.0.1:5432'`, `'[::1]:5432'`, `'db.internal:5432'`. A port without a host is a
 * port of 127.0.0.1.
 */
export type Address = string | number;

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

const loopback = '127.0.0.1';

/** Parses an address. If it is invalid, throws an `OptionsError` that names the option `path`. */
export function readAddress(address: Address, path: string, portMin = 0): HostAndPort {
  const [, bracketed, plain, digits] =
    /^(?:(?:\[([\da-f:.]+)\]|([^\s:[\]]*)):)?(\d{1,5})$/i.exec(String(address)) ?? [];
  const port = Number(digits);
  if (!(port >= portMin && port <= 65535)) {
    throw new OptionsError(path, address, 'an address such as "127.0.0.1:5432"');
  }
  return { host: bracketed || plain || loopback, port };
}

export function showAddress({ host, port }: HostAndPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
