import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { subject } from '@holdfast/contracts';
import { getRequestListener } from '@hono/node-server';
import { OptionsError, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { ConsoleEngine, ConsoleOptions } from './console-options.ts';
import { assemblyHandlers } from './handlers/assembly-handlers.ts';
import { demoHandlers } from './handlers/demo-handlers.ts';
import { gatewayHandlers } from './handlers/gateway-handlers.ts';
import { generalHandlers } from './handlers/general-handlers.ts';
import { operationHandlers } from './handlers/operation-handlers.ts';
import { parkedHandlers } from './handlers/parked-handlers.ts';
import { policyHandlers } from './handlers/policy-handlers.ts';
import { simulatorHandlers } from './handlers/simulator-handlers.ts';
import { topicHandlers } from './handlers/topic-handlers.ts';
import { consoleApp } from './server/app.ts';
import { Sessions } from './server/sessions.ts';
import { StaticFiles } from './server/static-files.ts';
import { version } from './version.ts';
import { Live } from './watch/live.ts';
import { Observer } from './watch/observer.ts';

/** The address on which the console listens. Without options, that is port 7070 of the loopback address. */
export interface ListenOptions {
  /** The port; 0: any free port. Default: `7070`. */
  readonly port?: number | undefined;
  /** The address to listen on. Any other than loopback requires the option `token`. Default: `127.0.0.1`. */
  readonly host?: string | undefined;
}

/** A console for a store. It listens on a port only after a call of `listen`. */
export interface Console {
  /** The token that allows to view and to change things. */
  readonly token: string;
  /** Answers a request of the Fetch standard. Use it to serve the console from your own server. */
  fetch(request: Request): Promise<Response>;
  /**
   * Starts to listen. Returns the address and a link to the page. The link contains the token in its
   * fragment.
   */
  listen(
    options?: ListenOptions,
  ): Promise<{ readonly url: string; readonly link: string; readonly port: number }>;
  /**
   * Closes all connections and stops polling. Operations that were started here can be resumed. The engine
   * stays open.
   */
  close(): Promise<void>;
}

const known: Readonly<Record<keyof ConsoleOptions, true>> = {
  ...{ engine: true, token: true, viewToken: true, hosts: true, secure: true, storeName: true },
  ...{ redact: true, checks: true, assemblies: true, gateway: true, simulator: true, demo: true },
  ...{ onError: true, clock: true },
};

const tokenLengthMin = 32;
const loopback = ['localhost', '127.0.0.1', '[::1]'];
/** A request is aborted if its headers and body have not arrived after this time. */
const slowRequestMs = 20_000;

/** Opens a console for the store `engine`. Rejects if the store does not answer. */
export async function openConsole(options: ConsoleOptions): Promise<Console> {
  assertKnownFields(known, options);
  const { clock = systemClock, onError = () => {}, redact = [], checks = {}, secure = false } = options;
  const engine = assertEngine(options);
  for (const name of ['token', 'viewToken'] as const) assertToken(name, options[name]);
  const token = options.token ?? randomBytes(32).toString('base64url');
  const hosts = new Set([...loopback, ...(options.hosts ?? []).map((host) => host.toLowerCase())]);
  const store = {
    name: options.storeName ?? engine.name,
    engine: engine.name,
    durability: engine.durability,
  };
  const observer = new Observer({ engine, clock, onError });
  await observer.start();
  const sessions = new Sessions({ operateToken: token, viewToken: options.viewToken, clock });
  const live = new Live({ observer, triage: engine.triage, audit: engine.audit, clock, store, onError });
  const simulator = simulatorHandlers({ part: options.simulator, clock });
  const parts = {
    assemblies: options.assemblies !== undefined,
    gateway: options.gateway !== undefined,
    simulator: options.simulator !== undefined,
    demo: options.demo !== undefined,
  };
  const app = consoleApp({
    ...{ sessions, hosts, version, onError, isSecure: secure },
    files: new StaticFiles(path.join(import.meta.dirname, '..', 'dist', 'page')),
    help: new StaticFiles(path.join(import.meta.dirname, '..', 'dist', 'help')),
    handlers: {
      ...generalHandlers({
        engine,
        observer,
        live,
        sessions,
        clock,
        store,
        parts,
        version,
        isSecure: secure,
      }),
      ...parkedHandlers({ engine, observer, redact, checks }),
      ...operationHandlers({ engine, observer, clock, onError }),
      ...topicHandlers({ engine, observer }),
      ...policyHandlers({ engine, observer }),
      ...assemblyHandlers({ engine, part: options.assemblies }),
      ...gatewayHandlers({ engine, part: options.gateway }),
      ...simulator,
      ...demoHandlers(options.demo),
    },
    onRefused({ who, route, problem }) {
      const entry = {
        who,
        why: `refused: ${problem.kind}`,
        what: 'refused',
        subjects: [subject('session', route)],
      };
      engine.audit.record(entry).catch(onError);
    },
  });
  let server: Server | undefined;

  return {
    token,
    fetch: async (request) => app.fetch(request),

    async listen({ port = 7070, host = '127.0.0.1' } = {}) {
      if (!Number.isInteger(port) || port < 0 || port > 65_535)
        throw new OptionsError('port', port, 'a whole number from 0 to 65535');
      const isLoopback = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host);
      if (!isLoopback && options.token === undefined)
        throw new OptionsError(
          'host',
          host,
          `a loopback address such as "127.0.0.1", or a token of ${tokenLengthMin} characters that you give; put TLS in front of it`,
        );
      if (!isLoopback) hosts.add(host.toLowerCase());
      const made = createServer(
        {
          requestTimeout: slowRequestMs,
          headersTimeout: slowRequestMs,
          connectionsCheckingInterval: 1000,
          maxHeaderSize: 16_384,
        },
        getRequestListener(app.fetch as never),
      );
      // Each open page has a stream of events, a request that does not end. `Live` limits these streams.
      made.maxConnections = 1000;
      await new Promise<void>((resolve, reject) => {
        made.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
        made.listen(port, host, resolve);
      });
      server = made;
      const bound = (made.address() as AddressInfo).port;
      const name = host.includes(':') ? `[${host}]` : host;
      const url = `http://${name === '127.0.0.1' ? 'localhost' : name}:${bound}/`;
      return { url, link: `${url}#token=${token}`, port: bound };
    },

    async close() {
      observer.stop();
      simulator.close();
      if (!server) return;
      const closing = server;
      await new Promise<void>((resolve) => {
        closing.close(() => resolve());
        closing.closeAllConnections();
      });
    },
  };
}

function assertEngine({ engine }: ConsoleOptions): ConsoleEngine {
  for (const name of ['broker', 'triage', 'controls', 'audit', 'presence'] as const)
    if (!engine?.[name])
      throw new OptionsError(
        `engine.${name}`,
        engine?.[name],
        `an engine that has one, such as SQLite or PostgreSQL`,
      );
  return engine as ConsoleEngine;
}

function assertToken(name: string, token: string | undefined): void {
  if (token === undefined || (typeof token === 'string' && token.length >= tokenLengthMin)) return;
  // The value is a secret, so the error does not show it.
  throw new OptionsError(name, `${String(token).length} characters`, `at least ${tokenLengthMin} characters`);
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code !== 'EADDRINUSE') return error;
  return new OptionsError(
    'port',
    port,
    `a port that no other program uses on ${host}, or 0 for any that is free`,
  );
}
