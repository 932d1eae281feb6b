import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Peers } from '@holdfast/server';
import type { Priority } from 'holdfast';
import { type HeaderSource, readRequest } from 'holdfast/wire';
import type { Route } from '../route/route.ts';
import {
  CONNECTION,
  CONTENT_LENGTH,
  DROP,
  EXPECT,
  FORWARDED,
  FORWARDED_FOR,
  FORWARDED_STANDARD,
  HOST,
  headerKind,
  IDEMPOTENCY_KEY,
  isProtected,
  PASS,
  PATIENCE,
  PSEUDO,
  REQUEST_ID,
  TRANSFER_ENCODING,
  UPGRADE,
} from './header-kinds.ts';
import type { Tunnel } from './tunnel.ts';

/** The invalid part of a request. Undefined: the request is valid. */
export type Malformed =
  | 'path'
  | 'host'
  | 'content-length'
  | 'transfer-encoding'
  | 'connection'
  | 'body'
  | 'expect'
  | undefined;

export interface HeadSettings {
  readonly trusted: Peers | undefined;
  readonly makeId: () => string;
}

/**
 * Matches paths that servers read differently, for example those with `..` or encoded slashes. The upstream
 * could see another path than the gateway.
 */
const ambiguous = /[^!-~]|\\|#|\/\.{1,2}(?=\/|$)|%(?:2e|2f|5c|00)|^\/\//i;
const validHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;
const validId = /^[\w.:/=+-]{1,128}$/;

/**
 * The first line and the headers of a request. One loop both checks the headers and collects those for the
 * upstream, which saves time.
 */
export class RequestHead {
  declare readonly request: IncomingMessage;
  declare readonly method: string;
  declare readonly url: string;
  declare path: string;
  declare host: string;
  declare readonly peer: string;
  declare private readonly trusted: Peers | undefined;
  declare readonly isTrusted: boolean;
  declare requestId: string;
  /** Headers for the upstream, as the flat list of undici: name, value, name, value. */
  declare readonly headers: string[];
  declare forwardedFor: string | undefined;
  declare forwarded: string | undefined;
  declare idempotencyKey: string | undefined;
  /** The length of the body in bytes. −1: unknown. */
  declare contentLength: number;
  declare hasBody: boolean;
  declare expectsContinue: boolean;
  declare upgrade: string | undefined;
  declare hasPatience: boolean;
  declare patienceMs: number;
  declare ownedUpstream: boolean;
  declare priority: Priority | undefined;
  declare malformed: Malformed;
  declare route: Route | undefined;
  /** It is set only for a WebSocket request. */
  declare tunnel: Tunnel | undefined;

  constructor(request: IncomingMessage, settings: HeadSettings) {
    const { rawHeaders, url = '', method = '' } = request;
    this.request = request;
    this.method = method;
    this.url = url;
    const query = url.indexOf('?');
    this.path = query < 0 ? url : url.slice(0, query);
    this.host = '';
    this.peer = plainAddress(request.socket.remoteAddress ?? '');
    this.trusted = settings.trusted;
    this.isTrusted = settings.trusted?.has(this.peer) ?? false;
    this.requestId = '';
    this.headers = [];
    this.forwardedFor = undefined;
    this.forwarded = undefined;
    this.idempotencyKey = undefined;
    this.contentLength = 0;
    this.hasBody = false;
    this.expectsContinue = false;
    this.upgrade = undefined;
    this.hasPatience = false;
    this.patienceMs = Infinity;
    this.ownedUpstream = false;
    this.priority = undefined;
    this.malformed = undefined;
    this.route = undefined;
    this.tunnel = undefined;

    // This refuses `*` and the forms that only a forward proxy needs (`http://host/`, `host:443`).
    if (url.charCodeAt(0) !== 47 || ambiguous.test(this.path) || url.includes('#')) this.malformed = 'path';
    let connection: string | undefined;
    let hosts = 0;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!;
      const kind = headerKind(name);
      if (kind === PASS) this.headers.push(name, rawHeaders[index + 1]!);
      else if (kind === HOST) {
        hosts++;
        this.host = rawHeaders[index + 1]!;
      } else if (kind === CONNECTION)
        connection =
          connection === undefined ? rawHeaders[index + 1]! : `${connection},${rawHeaders[index + 1]!}`;
      else if (kind !== DROP) this.#note(kind, name, rawHeaders[index + 1]!);
    }
    if (hosts > 1 || (hosts > 0 && !validHost.test(this.host))) this.malformed ??= 'host';
    if (connection !== undefined && connection !== 'keep-alive' && connection !== 'close')
      this.#dropListed(connection);
    if (request.httpVersionMajor === 2) this.#readHttp2(request);
    if (this.hasPatience) this.#readPatience(request.headers);
    if (this.requestId === '') this.requestId = settings.makeId();
    if (this.hasBody && (method === 'GET' || method === 'HEAD' || method === 'TRACE'))
      this.malformed ??= 'body';
  }

  get hostName(): string {
    const { host } = this;
    const end = host.startsWith('[') ? host.indexOf(']') + 1 : host.indexOf(':');
    return (end > 0 ? host.slice(0, end) : host).toLowerCase();
  }

  /** The client's address. In `X-Forwarded-For`, only the addresses that trusted proxies added are used. */
  get client(): string {
    let client = this.peer;
    if (this.forwardedFor === undefined) return client;
    for (const hop of this.forwardedFor.split(',').toReversed()) {
      const address = plainAddress(hop.trim());
      if (isIP(address) === 0) break;
      client = address;
      if (!this.trusted!.has(address)) break;
    }
    return client;
  }

  header(name: string): string | undefined {
    const { headers } = this;
    for (let index = 0; index < headers.length; index += 2) {
      const each = headers[index]!;
      if (each.length === name.length && each.toLowerCase() === name) return headers[index + 1];
    }
    return undefined;
  }

  #note(kind: number, name: string, value: string): void {
    switch (kind) {
      case CONTENT_LENGTH:
        if (!/^\d{1,15}$/.test(value)) this.malformed ??= 'content-length';
        this.contentLength = Number(value);
        this.hasBody = this.contentLength > 0;
        break;
      case TRANSFER_ENCODING:
        // Node also accepts other codings, such as gzip before chunked. An upstream might read such a body
        // differently.
        if (value.toLowerCase() !== 'chunked') this.malformed ??= 'transfer-encoding';
        this.contentLength = -1;
        this.hasBody = true;
        break;
      case EXPECT:
        if (value.toLowerCase() === '100-continue') this.expectsContinue = true;
        else this.malformed ??= 'expect';
        break;
      case UPGRADE:
        this.upgrade = value.toLowerCase();
        break;
      case FORWARDED_FOR:
        if (this.isTrusted)
          this.forwardedFor = this.forwardedFor === undefined ? value : `${this.forwardedFor}, ${value}`;
        break;
      case FORWARDED_STANDARD:
        if (this.isTrusted)
          this.forwarded = this.forwarded === undefined ? value : `${this.forwarded}, ${value}`;
        break;
      case FORWARDED:
        if (this.isTrusted) this.headers.push(name, value);
        break;
      case PATIENCE:
        this.hasPatience = true;
        break;
      case REQUEST_ID:
        if (this.isTrusted && validId.test(value)) this.requestId = value;
        break;
      case IDEMPOTENCY_KEY:
        this.idempotencyKey = value;
        this.headers.push(name, value);
        break;
      case PSEUDO:
        if (name === ':authority') this.host ||= value;
        break;
    }
  }

  /**
   * Removes the headers that `Connection` names: they are meant for this connection only. Naming a protected
   * one, such as `Authorization`, is an error.
   */
  #dropListed(connection: string): void {
    for (const each of connection.toLowerCase().split(',')) {
      const name = each.trim();
      if (name === '' || name === 'keep-alive' || name === 'close' || name === 'upgrade') continue;
      if (isProtected(name)) {
        this.malformed ??= 'connection';
        return;
      }
      const { headers } = this;
      for (let index = headers.length - 2; index >= 0; index -= 2)
        if (headers[index]!.toLowerCase() === name) headers.splice(index, 2);
    }
  }

  /** An HTTP/2 request has a body unless its headers ended the stream. */
  #readHttp2(request: IncomingMessage): void {
    const { stream } = request as unknown as { stream: { readonly endAfterHeaders: boolean } };
    if (!validHost.test(this.host)) this.malformed ??= 'host';
    if (stream.endAfterHeaders) this.hasBody = false;
    else if (!this.hasBody) {
      this.hasBody = true;
      this.contentLength = -1;
    }
  }

  #readPatience(headers: HeaderSource): void {
    const { patienceMs, owner, priority } = readRequest(headers);
    const text = (headers as Record<string, string | undefined>)['x-request-timeout-ms'] ?? '';
    const given = patienceMs ?? (/^\d{1,9}$/.test(text) ? Number(text) : undefined);
    if (given !== undefined) this.patienceMs = given;
    this.ownedUpstream = owner === true;
    // Only a trusted proxy may set a priority, because any client could claim to be critical.
    if (this.isTrusted) this.priority = priority;
  }
}

/** Dual-stack sockets report an IPv4 address as `::ffff:10.0.0.1`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}

const headKey: unique symbol = Symbol('holdfast.gateway.head');

export function attachHead(request: IncomingMessage, head: RequestHead): void {
  (request as { [headKey]?: RequestHead })[headKey] = head;
}

export function headOf(request: object): RequestHead {
  return (request as { [headKey]: RequestHead })[headKey];
}
