import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type Address, isLoopback, readAddress, showAddress } from './address.ts';
import type { ChaosProxy } from './proxy.ts';
import type { ChaosSpec } from './spec.ts';

/** The options of `chaosControl`. */
export interface ChaosControlOptions {
  /** The address on which the control API listens. Default: a free port of loopback. */
  readonly listen?: Address | undefined;
  /**
   * The bearer token that every request must have. It is required for addresses other than loopback. Default:
   * none.
   */
  readonly token?: string | undefined;
}

const known: Readonly<Record<keyof ChaosControlOptions, true>> = { listen: true, token: true };

/** An HTTP server that changes the faults of a proxy while the proxy runs. */
export interface ChaosControl {
  /** The address on which the server listens, such as `127.0.0.1:6433`. */
  readonly address: string;
  close(): Promise<void>;
}

const bodyMaxBytes = 256 * 1024;

class Refusal extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;
  constructor(status: number, sentence: string, headers: Record<string, string> = {}) {
    super(sentence);
    this.status = status;
    this.headers = headers;
  }
}

type Action = (proxy: ChaosProxy, request: IncomingMessage) => unknown;

const actions: Readonly<Record<string, Readonly<Record<string, Action>>>> = {
  '/state': { GET: () => {} },
  '/spec': { PUT: async (proxy, request) => proxy.set(await readJson(request)) },
  '/reset': { POST: (proxy) => proxy.resetCounters() },
  '/cut': { POST: (proxy) => proxy.cut() },
  '/heal': { POST: (proxy) => proxy.heal() },
};

/** Starts an HTTP server that controls a proxy. Every successful answer is the state of the proxy. */
export async function chaosControl(
  proxy: ChaosProxy,
  options: ChaosControlOptions = {},
): Promise<ChaosControl> {
  assertKnownFields(known, options);
  const { listen = 0, token } = options;
  const { host, port } = readAddress(listen, 'control');
  if (token === '') throw new OptionsError('token', token, 'a text that is not empty');
  if (token === undefined && !isLoopback(host)) {
    throw new OptionsError('control', listen, 'an address of loopback, or a token');
  }
  const server = createServer(async (request, response) => {
    try {
      assertCaller(request, token);
      await actionFor(request)(proxy, request);
      answer(response, 200, proxy.state());
    } catch (error) {
      if (error instanceof OptionsError) answer(response, 400, { error: `${error.message}.` });
      else if (error instanceof Refusal) {
        answer(response, error.status, { error: error.message }, error.headers);
      } else answer(response, 500, { error: `The request failed: ${(error as Error).message}.` });
    }
  });
  // A slow request must time out before the test that sends it times out. Node's default is five minutes.
  server.requestTimeout = 10_000;
  server.listen(port, host);
  await once(server, 'listening');
  return {
    address: showAddress({ host, port: (server.address() as AddressInfo).port }),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/**
 * Refuses requests from web pages and requests with a wrong token. If no token is set, it checks the host
 * name, to prevent DNS rebinding attacks.
 */
function assertCaller({ headers }: IncomingMessage, token: string | undefined): void {
  if (headers.origin !== undefined) throw new Refusal(403, 'Web pages may not use this.');
  if (token === undefined) {
    const name = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
    if (name !== 'localhost' && !isIP(name)) {
      throw new Refusal(403, `Without a token the host must be an address or localhost, not "${name}".`);
    }
    return;
  }
  const given = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (given === undefined || !timingSafeEqual(digest(given), digest(token))) {
    throw new Refusal(401, 'The header "authorization: Bearer <token>" is missing or wrong.', {
      'www-authenticate': 'Bearer',
    });
  }
}

/**
 * Hashes a token. All hashes have the same length, so the time to compare them reveals nothing about the
 * token.
 */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function actionFor({ method = '', url = '' }: IncomingMessage): Action {
  const path = url.replace(/\?.*$/s, '');
  const methods = Object.hasOwn(actions, path) ? actions[path] : undefined;
  if (methods === undefined) {
    throw new Refusal(404, `There is no ${path.slice(0, 80)}; there are ${Object.keys(actions).join(', ')}.`);
  }
  const action = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (action === undefined) {
    const allow = Object.keys(methods).join(', ');
    throw new Refusal(405, `${path} takes ${allow}, not ${method}.`, { allow });
  }
  return action;
}

async function readJson(request: IncomingMessage): Promise<ChaosSpec> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    // A document that is too large is read to its end, and its bytes are dropped. If the connection were
    // closed instead, the client would not see the error.
    if (size <= bodyMaxBytes) chunks.push(chunk);
  }
  if (size > bodyMaxBytes) throw new Refusal(413, `The document is larger than ${bodyMaxBytes} bytes.`);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch (error) {
    throw new Refusal(400, `The document is not JSON: ${(error as Error).message}.`);
  }
}

function answer(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  if (response.destroyed) return;
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
