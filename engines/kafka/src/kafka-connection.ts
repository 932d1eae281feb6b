import type { ConnectionOptions } from 'node:tls';
import { OptionsError } from 'holdfast';

/** A login at Kafka: a user with a password, or a token for `OAUTHBEARER`. Passwords appear in no error. */
export interface KafkaSasl {
  /** How the password is sent. Required. */
  readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512' | 'OAUTHBEARER';
  /** The name of the user. Default: none. */
  readonly username?: string | undefined;
  /** The password of the user. Default: none. */
  readonly password?: string | undefined;
  /** The token of OAUTHBEARER, or a function that gets a fresh one. Default: none. */
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

/** Reads `kafka://host:9092,other:9092`, or `kafkas://…` for TLS. A user and a password are for SASL. */
export function readUrl(url: string): Pick<KafkaConnection, 'brokers' | 'tls' | 'sasl'> {
  const match = /^kafka(s?):\/\/(?:([^@/]*)@)?([^/@?#]+)\/?$/.exec(url);
  // The value is not shown: it may hold a password.
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
