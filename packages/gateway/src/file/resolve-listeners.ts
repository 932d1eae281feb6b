import type { SourceDocument } from '@holdfast/config';
import { peers } from '@holdfast/server';
import { readTable } from 'holdfast/fields';
import type { AdminConfig, ListenConfig } from './gateway-config.ts';
import { gatewayFields } from './gateway-file.ts';
import type { Problems, ReadFile } from './read-gateway.ts';

type Settings = ReadFile['settings'];
type ListenSettings = Extract<NonNullable<Settings['listen']>, { readonly maxHeaders: number }>;

const listenShape = gatewayFields.listen.of![1]!;

export function listenOf(
  { listen }: Settings,
  source: SourceDocument,
  problems: Problems,
  readText: (field: string, file: string) => string | undefined,
): ListenConfig {
  const given = {
    ...(readTable({ listen: listenShape }, { listen: {} }).listen as ListenSettings),
    ...(listen as object),
  };
  const { tls } = given;
  if (given.port > 65_535)
    problems.add(source, 'listen.port', `expected a port up to 65535, got ${given.port}`);
  try {
    peers(...given.trustedProxies);
  } catch (error) {
    problems.add(source, 'listen.trustedProxies', (error as Error).message);
  }
  const cert = tls && readText('listen.tls.cert', tls.cert);
  const key = tls && readText('listen.tls.key', tls.key);
  const clientCa = tls?.clientCa === undefined ? undefined : readText('listen.tls.clientCa', tls.clientCa);
  return {
    host: given.host,
    port: given.port,
    tls: tls ? { cert: cert ?? '', key: key ?? '', clientCa } : null,
    http2: given.http2 ?? tls !== undefined,
    trustedProxies: given.trustedProxies,
    headerBytesMax: given.maxHeaderSize,
    headersMax: given.maxHeaders,
    connectionsPerClientMax: given.maxConnectionsPerClient,
    headersTimeoutMs: given.headersTimeout,
    bodyTimeoutMs: given.bodyTimeout,
    writeTimeoutMs: given.writeTimeout,
    keepAliveMs: given.keepAlive,
  };
}

export function adminOf({ admin }: Settings): AdminConfig | null {
  if (admin === false || admin === undefined) return null;
  if (admin === true) return { host: '127.0.0.1', port: 9901, token: undefined };
  const { host, port, token } = admin as AdminConfig;
  return { host, port, token };
}
