import type { ConnectionOptions } from 'node:tls';
import { OptionsError } from 'holdfast';

/**
 * How to log in to Kafka: with a user and a password, or with a token. No error message contains the
 * password.
 */
export interface KafkaSasl {
  /** The SASL mechanism: how the password or the token is sent. Required. */
  readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512' | 'OAUTHBEARER';
  /** The name of the user. Default: none. */
  readonly username?: string | undefined;
  /** The password of the user. Default: none. */
  readonly password?: string | undefined;
  /** The token for `OAUTHBEARER`, or a function that gets a fresh token. Default: none. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
}

/** Where the servers are, and how to connect to them. */
export interface KafkaConnection {
  readonly brokers: readonly { readonly host: string; readonly port: number }[];
  readonly clientId: string;
  readonly tls: ConnectionOptions | undefined;
  readonly sasl: KafkaSasl | undefined;
}

const defaultPort = 9092;

/**
 * Reads an address such as `kafka://host:9092,other:9092`; `kafkas://…` means TLS. If the address contains a
 * user and a password, they are used for a SASL login.
 */
export function readUrl(url: string): Pick<KafkaConnection, 'brokers' | 'tls' | 'sasl'> {
  const match = /^kafka(s?):\/\/(?:([^@/]*)@)?([^/@?#]+)\/?$/.exec(url);
  // The error does not show the address, because the address may contain a password.
  if (!match)
    throw new OptionsError('url', undefined, 'an address such as "kafka://localhost:9092,other:9092"');
  const [, isSecure, credentials, hosts = ''] = match;
  const [username, ...password] = (credentials ?? '').split(':').map(decodeURIComponent);
  return {
    brokers: hosts.split(',').map((host) => readBroker('url', host)),
    tls: isSecure ? {} : undefined,
    sasl: credentials ? { mechanism: 'PLAIN', username, password: password.join(':') } : undefined,
  };
}

export function readBroker(path: string, text: string): { host: string; port: number } {
  const match = typeof text === 'string' ? /^(\[[^\]]+\]|[^:\s]+)(?::(\d{1,5}))?$/.exec(text) : null;
  const port = Number(match?.[2] ?? defaultPort);
  if (!match || port < 1 || port > 65_535)
    throw new OptionsError(path, text, 'a host and a port, such as "localhost:9092"');
  return { host: match[1]!.replace(/^\[|\]$/g, ''), port };
}
