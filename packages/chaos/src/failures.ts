import { getSystemErrorMap } from 'node:util';

export interface Destination {
  readonly host: string;
  readonly port: number;
}

/** The name of the system call that Node's own errors have, by error code. */
const syscalls: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect',
  ETIMEDOUT: 'connect',
  EHOSTUNREACH: 'connect',
  ENETUNREACH: 'connect',
  ECONNRESET: 'read',
  EPIPE: 'write',
  ENOTFOUND: 'getaddrinfo',
  EAI_AGAIN: 'getaddrinfo',
};

const undici: Readonly<Record<string, readonly [name: string, message: string]>> = {
  UND_ERR_SOCKET: ['SocketError', 'other side closed'],
  UND_ERR_CONNECT_TIMEOUT: ['ConnectTimeoutError', 'Connect Timeout Error'],
  UND_ERR_HEADERS_TIMEOUT: ['HeadersTimeoutError', 'Headers Timeout Error'],
  UND_ERR_BODY_TIMEOUT: ['BodyTimeoutError', 'Body Timeout Error'],
};

/** Returns the error with which `fetch` rejects if it got no answer. `cause` is the reason. */
export function fetchFailed(cause: Error): TypeError {
  return new TypeError('fetch failed', { cause });
}

/** Returns the error that the reader of a body gets if the body breaks after `fetch` has resolved. */
export function terminated(cause: Error): TypeError {
  return new TypeError('terminated', { cause });
}

/**
 * Creates an error with this code. It has the same properties as an error of Node or undici (Node's HTTP
 * client).
 */
export function failure(
  code: string,
  message?: string,
  to?: Destination,
  syscall: string | undefined = syscalls[code],
): Error {
  const known = undici[code];
  if (known) {
    const [name, says] = known;
    return Object.assign(named(name, message ?? says), { code, ...socketOf(name, to) });
  }
  if (syscall === undefined) return Object.assign(new Error(message ?? code), { code });
  return Object.assign(new Error(message ?? [syscall, code, ...placeOf(syscall, to)].join(' ')), {
    errno: errnoOf(code),
    code,
    syscall,
    ...detailsOf(syscall, to),
  });
}

/** Creates an error with this `name`, because loggers print the name. */
function named(name: string, message: string): Error {
  const error = new Error(message);
  Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  return error;
}

function socketOf(name: string, to: Destination | undefined): object {
  if (name !== 'SocketError') return {};
  // `bytesWritten: 0` would mean that no byte of the request was sent. That is true only for a refused
  // connection.
  return { socket: { remoteAddress: to?.host, remotePort: to?.port, bytesWritten: 1, bytesRead: 0 } };
}

function placeOf(syscall: string, to: Destination | undefined): string[] {
  if (to === undefined) return [];
  if (syscall === 'connect') return [`${to.host}:${to.port}`];
  return syscall === 'getaddrinfo' ? [to.host] : [];
}

function detailsOf(syscall: string, to: Destination | undefined): object {
  if (to === undefined) return {};
  if (syscall === 'connect') return { address: to.host, port: to.port };
  return syscall === 'getaddrinfo' ? { hostname: to.host } : {};
}

function errnoOf(code: string): number | undefined {
  for (const [errno, [name]] of getSystemErrorMap()) if (name === code) return errno;
  return undefined;
}
