import { Server as HttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Http2SecureServer, Http2Server, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import { Server as HttpsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import os from 'node:os';
import { isatty } from 'node:tty';
import { type Clock, type Duration, later, OptionsError, sleep, systemClock, Timer } from 'holdfast';
import { callback, duration, type Field, type FieldsOf, flag, list, readTable } from 'holdfast/fields';
import { onResponseEnd } from '../node/response-end.ts';
import { clockField, objectWith, readOptions } from '../option-fields.ts';
import type { PartEnvironment } from '../part-environment.ts';
import type { HealthPart } from './health.ts';
import { QuietConnections } from './quiet-connections.ts';
import { withTimeout } from './with-timeout.ts';

/** The options of `gracefulShutdown`. */
export interface GracefulShutdownOptions {
  /**
   * The part that `health()` returns. Its `/readyz` fails from the beginning of the shutdown. Default: none.
   */
  health?: HealthPart | undefined;
  /**
   * How long new requests are still accepted after the shutdown began. Meanwhile, load balancers notice that
   * `/readyz` fails. Ctrl-C in a terminal skips this delay, because no load balancer is there. Default: `5s`.
   */
  drainDelay?: Duration | undefined;
  /**
   * How long running requests may continue after `drainDelay`. After this time, their connections are closed.
   * Default: `25s`.
   */
  patience?: Duration | undefined;
  /** The signals (sent to the process) that begin the shutdown. Default: `SIGTERM`, `SIGINT`. */
  signals?: NodeJS.Signals | readonly NodeJS.Signals[] | undefined;
  /** Called when the shutdown begins. The shutdown waits for a returned promise. Default: none. */
  before?: (() => unknown) | undefined;
  /**
   * Called when the server is closed, for example to close stores. The shutdown waits for a returned promise.
   * Default: none.
   */
  after?: (() => unknown) | undefined;
  /**
   * Whether the process exits after a shutdown by a signal. The exit code is 0, or 1 if requests were cut
   * off. Default: `true`.
   */
  exit?: boolean | undefined;
}

const signalField: Field<NodeJS.Signals, NodeJS.Signals> = {
  kind: 'a signal such as "SIGTERM"',
  read: (value) => (canBeCaught(value) ? value : undefined),
};

function canBeCaught(value: unknown): value is NodeJS.Signals {
  if (value === 'SIGKILL' || value === 'SIGSTOP') return false;
  return typeof value === 'string' && Object.hasOwn(os.constants.signals, value);
}

export const gracefulShutdownFields = {
  health: objectWith<HealthPart>('what health() gives', 'drain'),
  drainDelay: duration('5s'),
  patience: duration('25s'),
  signals: list(signalField, ['SIGTERM', 'SIGINT']),
  before: callback<() => unknown>(),
  after: callback<() => unknown>(),
  exit: flag(true),
} satisfies FieldsOf<GracefulShutdownOptions>;

/** The clock, and whether the process has a terminal. Tests can replace them. */
export interface GracefulShutdownEnvironment extends PartEnvironment {
  /** Whether the process is attached to a terminal. Default: whether its standard input or output is one. */
  readonly isTerminal?: boolean | undefined;
}

const environmentFields = { clock: clockField, isTerminal: flag() };

/** Shuts a server down once, when a signal arrives or when `shutdown` is called. */
export interface GracefulShutdown {
  /** Starts the shutdown, as a signal does. Resolves with the number of requests that were cut off. */
  shutdown(): Promise<number>;
  /** Aborts when the shutdown begins. Other loops in this process can use it to stop. */
  readonly signal: AbortSignal;
  /** Removes the listeners for the signals of the process. */
  dispose(): void;
}

/** The servers that `gracefulShutdown` can shut down. */
export type ShutdownServer = Server | Http2Server | Http2SecureServer;

/** An application that owns its server, such as a Fastify app. */
export interface ShutdownApp {
  readonly server: ShutdownServer;
  /** Called when the server is closed. In Fastify, it runs the `onClose` hooks. */
  close(): unknown;
}

/**
 * Shuts a server down without failing a request. First, `/readyz` fails for `drainDelay`. After that, running
 * requests get at most `patience` to finish. A second signal ends the process at once. Pass a Fastify app
 * itself, so that its `onClose` hooks run.
 */
export function gracefulShutdown(
  serverOrApp: ShutdownServer | ShutdownApp,
  options: GracefulShutdownOptions = {},
  environment: GracefulShutdownEnvironment = {},
): GracefulShutdown {
  const settings = readOptions(gracefulShutdownFields, options, 'gracefulShutdown', '{ health }');
  const { clock = systemClock, isTerminal = inTerminal() } = readTable(
    environmentFields,
    environment,
    'gracefulShutdown.',
  );
  const app = 'server' in Object(serverOrApp) ? (serverOrApp as ShutdownApp) : undefined;
  const given = assertServer(app ? app.server : serverOrApp);
  // Servers of HTTP/2 do not have these two methods. Their sessions are closed instead.
  const server = given as Server & Partial<Pick<Server, 'closeIdleConnections' | 'closeAllConnections'>>;
  const controller = new AbortController();
  let ending: Promise<number> | undefined;
  const running = new Set<ServerResponse | Http2ServerResponse>();
  const sockets = new Set<Socket>();
  const quiet = new QuietConnections(() => clock.now());
  let lastConnectedIn = -Infinity;
  let turn = 0;

  /**
   * Connections that were opened during the shutdown. They stay open while the server listens; otherwise
   * clients would reconnect all the time.
   */
  const openedInDrain = new WeakSet<Socket>();
  const connected = (socket: Socket) => {
    lastConnectedIn = turn;
    if (ending) openedInDrain.add(socket);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  server.on('connection', connected).on('secureConnection', connected);
  // A TLS connection has two sockets (TCP and TLS). Only the TLS socket counts the bytes of requests.
  const isSecure = given instanceof HttpsServer;
  const isHttp1 = isSecure || given instanceof HttpServer;
  if (isHttp1)
    server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => quiet.opened(socket));
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  server.prependListener(
    'request',
    ({ socket }: IncomingMessage, response: ServerResponse | Http2ServerResponse) => {
      running.add(response);
      quiet.begun(socket);
      onResponseEnd(response as ServerResponse, () => {
        running.delete(response);
        quiet.ended(socket);
      });
      if (ending && !(server.listening && openedInDrain.has(socket))) announceClose(response);
    },
  );

  /**
   * Waits for a short iteration of the event loop without a new connection, and then stops listening.
   * Otherwise the operating system would reset connections that are not accepted yet.
   */
  async function stopListening(): Promise<{ closed: Promise<void> }> {
    const startedAt = clock.now();
    let endsAt = startedAt;
    let tookMs: number;
    do {
      turn++;
      await new Promise<void>(later);
      tookMs = clock.now() - endsAt;
      endsAt += tookMs;
      // A busy server may never have a short iteration. So the longer this loop has waited, the longer the
      // last iteration may be.
    } while (
      (lastConnectedIn === turn || tookMs > (endsAt - startedAt) / 1000) &&
      endsAt - startedAt < settleMaxMs
    );
    // `close` of an HTTP server would also close connections on which a request is just arriving.
    return { closed: new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve())) };
  }

  async function drainAndClose(drainDelayMs: number): Promise<number> {
    settings.health?.drain();
    controller.abort();
    for (const response of running) announceClose(response);
    await settings.before?.();
    if (drainDelayMs > 0) await sleep(clock, drainDelayMs);
    const { closed } = await stopListening();
    for (const response of running) announceClose(response);
    // An HTTP/2 client can finish its running requests on a closing session.
    for (const session of sessions) session.close();
    if (!isHttp1) server.closeIdleConnections?.();
    const closing = closeQuiet(clock, quiet);
    await withTimeout(clock, settings.patience, closed);
    closing.clear();
    const cutOff = running.size;
    // `close` also ends internal timers of the server. After that, the remaining connections are closed, also
    // upgraded ones such as WebSockets.
    server.close();
    server.closeAllConnections?.();
    for (const socket of sockets) socket.destroy();
    await closed;
    await app?.close();
    await settings.after?.();
    return cutOff;
  }

  function begin(drainDelayMs: number): Promise<number> {
    ending ??= drainAndClose(drainDelayMs);
    return ending;
  }

  let signalledAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (signalledAt !== undefined) {
      if (settings.exit && clock.now() - signalledAt >= sameSignalMs) process.exit(1);
      return;
    }
    signalledAt = clock.now();
    const isCtrlC = signal === 'SIGINT' && isTerminal;
    begin(isCtrlC ? 0 : settings.drainDelay).then(
      (cutOff) => {
        if (settings.exit) process.exit(cutOff > 0 ? 1 : 0);
      },
      (error: unknown) => {
        console.error(error);
        if (settings.exit) process.exit(1);
      },
    );
  };
  for (const signal of settings.signals) process.on(signal, onSignal);

  return {
    shutdown: () => begin(settings.drainDelay),
    signal: controller.signal,
    dispose() {
      for (const signal of settings.signals) process.off(signal, onSignal);
    },
  };
}

/**
 * Signals within this time (ms) count as one. After Ctrl-C, the terminal and `npm start` both send a signal.
 */
const sameSignalMs = 200;

/** The file descriptors are asked, because reading `process.stdin` would open the stream. */
function inTerminal(): boolean {
  return isatty(0) || isatty(1);
}

function assertServer(given: unknown): ShutdownServer {
  if (given instanceof NetServer) return given as ShutdownServer;
  const shown = given === null || given === undefined ? given : typeof given;
  const expected = 'the server that createServer() or app.listen() returns, or a Fastify app';
  throw new OptionsError('gracefulShutdown.server', shown, expected);
}

/** The server stops listening after this time (ms), even if new connections keep arriving. */
const settleMaxMs = 1000;

/** Asks the client to send no other request on this connection. HTTP/2 forbids this header. */
function announceClose(response: ServerResponse | Http2ServerResponse): void {
  if (!('stream' in response) && !response.headersSent) response.setHeader('connection', 'close');
}

/** Closes connections without requests repeatedly, until the returned timer is cleared. */
function closeQuiet(clock: Clock, quiet: QuietConnections): Timer {
  const timer = new Timer(clock, () => timer.setIn(quiet.close()));
  timer.setIn(0);
  return timer;
}
