import { Pool } from 'undici';
import type { InstanceConfig, UpstreamConfig } from '../file/gateway-config.ts';

export class Instance {
  /**
   * The URL, such as `http://10.0.0.1:3000`. A host name is followed by its address: `http://orders:80
   * (10.0.0.1)`.
   */
  readonly name: string;
  readonly url: string;
  readonly pool: Pool;
  /** The host name that the TLS certificate must have. Undefined: there is no TLS. */
  readonly servername: string | undefined;
  weight: number;
  zone: string | undefined;
  /** An instance without a health check counts as healthy. */
  isHealthy = true;
  isDraining = false;
  /** When the instance last began to get requests. Its slow start is counted from here. */
  startedAt: number;
  failedChecks = 0;
  passedChecks = 0;
  lastCheckError: string | undefined = undefined;

  constructor(
    config: InstanceConfig,
    address: string | undefined,
    upstream: UpstreamConfig,
    startedAt: number,
  ) {
    this.url = config.url;
    this.name = instanceName(config.url, address);
    this.weight = config.weight;
    this.zone = config.zone;
    this.startedAt = startedAt;
    const { protocol, hostname } = new URL(config.url);
    const { tls, attempts } = upstream;
    const isSecure = protocol === 'https:';
    this.servername = isSecure ? (tls.servername ?? hostname.replace(/^\[|\]$/g, '')) : undefined;
    this.pool = new Pool(config.url, {
      connections: upstream.connectionsMax,
      pipelining: 1,
      // Idle connections are closed after 4 s, before most servers close them. If a server closes a
      // connection at the moment when a request is sent, the request fails.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 600_000,
      headersTimeout: 0,
      bodyTimeout: attempts.idleTimeoutMs < Infinity ? attempts.idleTimeoutMs : 0,
      allowH2: upstream.http2,
      ...(upstream.http2 && !isSecure && { useH2c: true }),
      connect: {
        timeout: attempts.connectTimeoutMs,
        ...(tls.ca !== undefined && { ca: tls.ca }),
        ...(tls.cert !== undefined && { cert: tls.cert }),
        ...(tls.key !== undefined && { key: tls.key }),
        rejectUnauthorized: !tls.insecureSkipVerify,
        ...(address !== undefined && { lookup: lookupOf(address) }),
      } as NonNullable<Pool.Options['connect']>,
    });
  }

  /** Closes the connections when the requests in flight have ended. */
  close(): Promise<void> {
    return this.pool.close();
  }
}

export function instanceName(url: string, address: string | undefined): string {
  return address === undefined ? url : `${url} (${address})`;
}

type LookupCallback = (
  error: Error | null,
  address: string | { address: string; family: number }[],
  family?: number,
) => void;

function lookupOf(address: string) {
  const family = address.includes(':') ? 6 : 4;
  return (_host: string, options: { all?: boolean }, callback: LookupCallback) => {
    if (options.all) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
