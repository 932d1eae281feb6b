import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { closing } from '../../http/test/servers.ts';
import { type Gateway, type GatewayOptions, parseGateway, startGateway } from '../src/index.ts';

let started = 0;

/** Starts a gateway from the text of a file. It listens on free ports, and is closed after the test. */
export async function start(
  yaml: string,
  options: GatewayOptions = {},
): Promise<Gateway & { readonly url: string }> {
  const config = parseGateway(yaml, {
    environment: options.environment,
    file: new URL('gateway.yaml', import.meta.url).pathname,
  });
  const listen = { ...config.listen, port: 0 };
  const admin = config.admin && { ...config.admin, port: 0, token: 'a-token' };
  const prefix = options.prefix ?? `test-${++started}/`;
  const gateway = await startGateway(
    { ...config, listen, admin, shutdown: { delayMs: 0, drainMs: 300 } },
    { ...options, prefix },
  );
  closing(gateway);
  const scheme = config.listen.tls ? 'https' : 'http';
  const url = `${scheme}://${scheme === 'https' ? 'localhost' : '127.0.0.1'}:${gateway.address.port}`;
  return Object.defineProperties(
    { url } as Gateway & { url: string },
    Object.getOwnPropertyDescriptors(gateway),
  );
}

/** One upstream with these instances, and one route for everything. */
export function simple(
  instances: readonly { readonly url: string }[],
  upstream = '',
  route = '',
  top = '',
): string {
  const urls = instances.map(({ url }) => JSON.stringify(url)).join(', ');
  return `
admin: { token: a-token }
${top}
upstreams:
  api:
    instances: [${urls}]
    ${upstream.trim().replaceAll('\n', '\n    ')}
routes:
  - name: everything
    upstream: api
    ${route.trim().replaceAll('\n', '\n    ')}
`;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
}

/** Sends a request with `node:http`, which changes nothing about it and follows nothing. */
export async function send(
  url: string,
  path = '/',
  options: RequestOptions & { body?: string | Buffer | undefined } = {},
): Promise<Answered> {
  const { body, ...rest } = options;
  const request = httpRequest(url + path, { agent: false, ...rest });
  request.end(body);
  const [response] = await once(request, 'response');
  const received = await text(response);
  const { statusCode, headers, trailers } = response;
  return { status: statusCode, headers, body: received, trailers };
}

export interface AdminAnswer {
  readonly status: number;
  /** Undefined if it is not JSON. */
  readonly body: unknown;
  readonly text: string;
}

/** Asks the admin API. */
export async function ask(
  gateway: Gateway,
  path: string,
  options: { method?: string; body?: unknown; token?: string } = {},
): Promise<AdminAnswer> {
  const { method = 'GET', body, token = 'a-token' } = options;
  const { status, body: received } = await send(`http://127.0.0.1:${gateway.adminAddress!.port}`, path, {
    method,
    headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const isJson = received.startsWith('{') || received.startsWith('[');
  return { status, body: isJson ? JSON.parse(received) : undefined, text: received };
}

/** A connection on which a test writes what it likes. */
export class RawClient {
  readonly socket: Socket;
  received = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      this.received += chunk;
    });
    socket.on('error', () => {});
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  write(bytes: string): void {
    this.socket.write(bytes, 'latin1');
  }

  /** Resolves when `pattern` has come; rejects when the connection closes before. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.received)) {
      if (this.socket.closed) throw new Error(`closed after ${JSON.stringify(this.received)}`);
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')]);
    }
    return this.received;
  }

  async closed(): Promise<string> {
    if (!this.socket.closed) await once(this.socket, 'close');
    return this.received;
  }

  /** The statuses of all responses so far. */
  get statuses(): number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  }

  end(): void {
    this.socket.destroy();
  }
}

/** Repeats `look` until it gives something. */
export async function eventually<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
