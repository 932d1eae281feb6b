/** The header is sent to the upstream unchanged. */
export const PASS = 0;
/** The header is meant for the client's connection only, so it is not sent to the upstream. */
export const DROP = 1;
export const HOST = 2;
export const CONNECTION = 3;
export const CONTENT_LENGTH = 4;
export const TRANSFER_ENCODING = 5;
export const EXPECT = 6;
export const UPGRADE = 7;
export const FORWARDED_FOR = 8;
/** The header says where the request came from. It is removed unless a trusted proxy sent it. */
export const FORWARDED = 9;
/** The header says how long the caller waits. It can only shorten the timeout of the route. */
export const PATIENCE = 10;
export const REQUEST_ID = 11;
export const IDEMPOTENCY_KEY = 12;
export const PSEUDO = 13;
export const FORWARDED_STANDARD = 14;

const kinds: Readonly<Record<string, number>> = {
  'keep-alive': DROP,
  'proxy-connection': DROP,
  'proxy-authenticate': DROP,
  'proxy-authorization': DROP,
  'http2-settings': DROP,
  te: DROP,
  trailer: DROP,
  host: HOST,
  connection: CONNECTION,
  'content-length': CONTENT_LENGTH,
  'transfer-encoding': TRANSFER_ENCODING,
  expect: EXPECT,
  upgrade: UPGRADE,
  'x-forwarded-for': FORWARDED_FOR,
  'x-forwarded-host': FORWARDED,
  'x-forwarded-proto': FORWARDED,
  'x-forwarded-port': FORWARDED,
  'x-forwarded-prefix': FORWARDED,
  'x-real-ip': FORWARDED,
  forwarded: FORWARDED_STANDARD,
  holdfast: PATIENCE,
  'x-request-timeout-ms': PATIENCE,
  'grpc-timeout': PATIENCE,
  'x-envoy-expected-rq-timeout-ms': PATIENCE,
  'x-request-id': REQUEST_ID,
  'idempotency-key': IDEMPOTENCY_KEY,
};

/**
 * The kinds of header names as received. Calling `toLowerCase` for every header of every request would be
 * slow.
 */
const known = new Map<string, number>();
const knownMax = 2000;

export function headerKind(name: string): number {
  const found = known.get(name);
  return found === undefined ? learn(name) : found;
}

function learn(name: string): number {
  const lower = name.toLowerCase();
  const kind = Object.hasOwn(kinds, lower)
    ? kinds[lower]!
    : lower.charCodeAt(0) === 58
      ? PSEUDO
      : lower.startsWith('x-envoy-')
        ? FORWARDED
        : PASS;
  if (known.size < knownMax) known.set(name, kind);
  return kind;
}

/**
 * The gateway removes each header that `Connection` names. If `Connection` names one of these headers, the
 * request is refused.
 */
const protectedNames = new Set([
  'authorization',
  'cookie',
  'host',
  'content-type',
  'content-encoding',
  'content-length',
  'cache-control',
  'idempotency-key',
  'x-request-id',
]);

export function isProtected(name: string): boolean {
  return protectedNames.has(name) || name.startsWith('x-forwarded-');
}

/**
 * The gateway does not pass these response headers on. They are meant for one connection, or the gateway
 * writes its own.
 */
const responseDropped = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'transfer-encoding',
  'trailer',
  'upgrade',
  'te',
  'http2-settings',
  'x-request-id',
]);

export function isResponseDropped(name: string): boolean {
  return responseDropped.has(name);
}
