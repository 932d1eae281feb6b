import { isIPv6 } from 'node:net';
import type { GatewayConfig } from '../file/gateway-config.ts';
import { limitFilter } from './envoy-limits.ts';
import { routesName } from './envoy-routes.ts';
import { extension, present, type Resource, seconds, socketAddress, typed } from './resource.ts';

export const listenerName = 'gateway';

export const statPrefix = 'gateway';

/** These headers say where a request came from. Only trusted proxies may send them. */
const forwardedHeaders = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'forwarded',
];

/** A client could change Envoy's behavior with these headers, so they are removed. */
const envoyHeaders = [
  'x-envoy-retry-on',
  'x-envoy-max-retries',
  'x-envoy-upstream-rq-timeout-ms',
  'x-envoy-upstream-rq-per-try-timeout-ms',
  'x-envoy-upstream-alt-stat-name',
  'x-envoy-hedge-on-per-try-timeout',
  'x-envoy-retriable-status-codes',
  'x-envoy-retriable-header-names',
  'x-envoy-upstream-stream-duration-ms',
  'x-envoy-expected-rq-timeout-ms',
  'x-envoy-internal',
  'x-envoy-external-address',
  'x-envoy-decorator-operation',
  'x-envoy-force-trace',
];

export function envoyListener(config: GatewayConfig, routesFile: string): Resource {
  const { listen } = config;
  const { trustedProxies } = listen;
  const chain = (isTrusted: boolean) =>
    present({
      name: isTrusted ? 'trusted proxies' : 'everybody',
      filter_chain_match: isTrusted ? { source_prefix_ranges: trustedProxies.map(prefixRange) } : undefined,
      transport_socket: listen.tls ? secureTransport(listen) : undefined,
      filters: [
        extension(
          'http',
          'filters.network.http_connection_manager.v3.HttpConnectionManager',
          connectionManager(config, routesFile, isTrusted),
        ),
      ],
    });
  return {
    '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
    name: listenerName,
    address: socketAddress(listen.host, listen.port),
    per_connection_buffer_limit_bytes: 1_048_576,
    connection_balance_config: { exact_balance: {} },
    filter_chains: [...(trustedProxies.length > 0 ? [chain(true)] : []), chain(false)],
  };
}

function connectionManager(config: GatewayConfig, routesFile: string, isTrusted: boolean): Resource {
  const { listen, serverTiming: _, accessLog, shutdown } = config;
  const limits = limitFilter(config);
  return present({
    stat_prefix: statPrefix,
    codec_type: listen.http2 ? 'AUTO' : 'HTTP1',
    rds: { route_config_name: routesName, config_source: fileSource(routesFile) },
    http_filters: [...(limits ? [limits] : []), extension('router', 'filters.http.router.v3.Router', router)],
    // The client's address is that of the connection, or what a trusted proxy sends.
    ...(isTrusted
      ? {
          use_remote_address: false,
          original_ip_detection_extensions: [
            extension('forwarded', 'http.original_ip_detection.xff.v3.XffConfig', {
              xff_trusted_cidrs: { cidrs: listen.trustedProxies.map(prefixRange) },
              skip_xff_append: true,
            }),
          ],
        }
      : { use_remote_address: true, skip_xff_append: true }),
    early_header_mutation_extensions: [
      extension('strangers', 'http.early_header_mutation.header_mutation.v3.HeaderMutation', {
        mutations: [...(isTrusted ? [] : forwardedHeaders), ...envoyHeaders].map((remove) => ({ remove })),
      }),
    ],
    generate_request_id: true,
    preserve_external_request_id: isTrusted,
    always_set_request_id_in_response: true,
    server_header_transformation: 'PASS_THROUGH',
    normalize_path: false,
    merge_slashes: false,
    path_with_escaped_slashes_action: 'REJECT_REQUEST',
    proxy_100_continue: true,
    upgrade_configs: [{ upgrade_type: 'websocket', enabled: false }],
    max_request_headers_kb: Math.min(8192, Math.max(1, Math.ceil(listen.headerBytesMax / 1024))),
    common_http_protocol_options: {
      idle_timeout: seconds(listen.keepAliveMs),
      max_headers_count: listen.headersMax,
    },
    http_protocol_options: { allow_absolute_url: false, enable_trailers: true },
    request_headers_timeout: seconds(listen.headersTimeoutMs),
    request_timeout: seconds(Math.max(listen.headersTimeoutMs, listen.bodyTimeoutMs)),
    stream_flush_timeout: seconds(listen.writeTimeoutMs),
    drain_timeout: seconds(shutdown.drainMs),
    local_reply_config: {
      body_format: {
        json_format: { type: 'about:blank', title: '%LOCAL_REPLY_BODY%', status: '%RESPONSE_CODE%' },
        content_type: 'application/problem+json',
      },
    },
    access_log: accessLog === false ? undefined : [accessLogger(accessLog)],
  });
}

const router = { suppress_envoy_headers: true };

function accessLogger(to: true | string): Resource {
  const format = {
    json_format: {
      time: '%START_TIME%',
      id: '%REQ(X-REQUEST-ID)%',
      client: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%',
      method: '%REQ(:METHOD)%',
      host: '%REQ(:AUTHORITY)%',
      path: '%PATH(NQ)%',
      route: '%ROUTE_NAME%',
      upstream: '%UPSTREAM_CLUSTER%',
      instance: '%UPSTREAM_HOST%',
      attempts: '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
      status: '%RESPONSE_CODE%',
      reason: '%RESPONSE_CODE_DETAILS%',
      flags: '%RESPONSE_FLAGS%',
      durationMs: '%DURATION%',
      bytes: '%BYTES_SENT%',
    },
  };
  return to === true
    ? extension('log', 'access_loggers.stream.v3.StdoutAccessLog', { log_format: format })
    : extension('log', 'access_loggers.file.v3.FileAccessLog', { path: to, log_format: format });
}

function secureTransport({ tls, http2 }: GatewayConfig['listen']): Resource {
  const { cert, key, clientCa } = tls!;
  return {
    name: 'tls',
    typed_config: typed('transport_sockets.tls.v3.DownstreamTlsContext', {
      ...(clientCa !== undefined && { require_client_certificate: true }),
      common_tls_context: {
        alpn_protocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
        tls_certificates: [
          { certificate_chain: { inline_string: cert }, private_key: { inline_string: key } },
        ],
        ...(clientCa !== undefined && { validation_context: { trusted_ca: { inline_string: clientCa } } }),
      },
    }),
  };
}

/** Envoy reads the file again when another file is moved to its path. */
export function fileSource(path: string): Resource {
  return { resource_api_version: 'V3', path_config_source: { path } };
}

function prefixRange(network: string): Resource {
  const [address = '', length] = network.split('/');
  const whole = isIPv6(address) ? 128 : 32;
  return { address_prefix: address, prefix_len: length === undefined ? whole : Number(length) };
}
