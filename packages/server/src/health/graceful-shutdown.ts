import { Server as HttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Http2SecureServer, Http2Server, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import { Server as HttpsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import { type Clock, type Duration, later, sleep, systemClock, Timer } from 'holdfast';
import { anything, callback, duration, type FieldsOf, flag, list, readTable } from 'holdfast/fields';
import { onResponseEnd } from '../node/response-end.ts';
import { clockField, objectWith } from '../option-fields.ts';
import type { PartEnvironment } from '../part-environment.ts';
import type { HealthPart } from './health.ts';
import { QuietConnections } from './quiet-connections.ts';
import { withTimeout } from './with-timeout.ts';

/** The options of `gracefulShutdown`. */
export interface GracefulShutdownOptions {
  /** The part that `health()` returned. Its `/readyz` fails from the start of the shutdown. Default: none. */
  health?: HealthPart | undefined;
  /**
   * How long new requests are still served when the shutdown has begun, so that load balancers notice. Default: `5s`.
   */
  drainDelay?: Duration | undefined;
  /** How long running requests may take after `drainDelay`. Then they are cut off. Default: `25s`. */
  patience?: Duration | undefined;
  /** The signals of the process that begin the shutdown. Default: `SIGTERM`, `SIGINT`. */
  signals?: NodeJS.Signals | readonly NodeJS.Signals[] | undefined;
  /** Called when the shutdown begins. The shutdown waits for its promise. Default: none. */
  before?: (() => unknown) | undefined;
  /**
   * Called when the server is closed, for example to close stores. The shutdown waits for its promise. Default: none.
   */
  after?: (() => unknown) | undefined;
  /** Whether the process exits after a shutdown by a signal: 0, or 1 if requests were cut off. Default: `true`. */
  exit?: boolean | undefined;
}

export const gracefulShutdownFields = {
  health: objectWith<HealthPart>('what health() gives', 'drain'),
  drainDelay: duration('5s'),
  patience: duration('25s'),
  signals: list(anything<NodeJS.Signals>(), ['SIGTERM', 'SIGINT']),
  before: callback<() => unknown>(),
  after: callback<() => unknown>(),
  exit: flag(true),
} satisfies FieldsOf<GracefulShutdownOptions>;

/** Ends a server in an orderly way, once, by a signal or by `shutdown`. */
export interface GracefulShutdown {
  /** Starts the shutdown, like a process signal. Resolves with the number of requests that were cut off. */
  shutdown(): Promise<number>;
  /** Aborts when the shutdown begins. Other loops of this process can use it to stop. */
  readonly signal: AbortSignal;
  /** Removes the listeners for process signals. */
  dispose(): void;
}

/**
 * Shuts a server down without failing a request. First `/readyz` fails for `drainDelay`, so that load balancers choose
 * other servers. Then running requests get at most `patience` to finish.
 */
export function gracefulShutdown(
  given: Server | Http2Server | Http2SecureServer,
  options: GracefulShutdownOptions = {},
  environment: PartEnvironment = {},
): GracefulShutdown {
  const settings = readTable(gracefulShutdownFields, options, 'gracefulShutdown.');
  const { clock = systemClock } = readTable({ clock: clockField }, environment, 'gracefulShutdown.');
  // The servers of HTTP/2 have the same events. They have sessions instead of connections to close.
  const server = given as Server & Partial<Pick<Server, 'closeIdleConnections' | 'closeAllConnections'>>;
  const controller = new AbortController();
  let ending: Promise<number> | undefined;
  const running = new Set<ServerResponse | Http2ServerResponse>();
  const sockets = new Set<Socket>();
  const quiet = new QuietConnections(() => clock.now());
  let lastConnectedIn = -Infinity;
  let turn = 0;

  /**
   * Connections that were opened during the drain. They are kept until the server stops listening: if each response
   * closed its connection, clients would connect anew all the time, also in the moment in which the listener closes.
   */
  const openedInDrain = new WeakSet<Socket>();
  const connected = (socket: Socket) => {
    lastConnectedIn = turn;
    if (ending) openedInDrain.add(socket);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  server.on('connection', connected).on('secureConnection', connected);
  // A TLS connection has two sockets, and only the second socket counts the bytes of requests.
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
   * Stops listening after a short turn of the event loop in which no connection arrived. The system resets connections
   * that wait to be accepted, and in a long turn some may have arrived.
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
      // A busy server may have no turn that is short. So the longer it takes, the longer a turn may be.
    } while (
      (lastConnectedIn === turn || tookMs > (endsAt - startedAt) / 1000) &&
      endsAt - startedAt < settleMaxMs
    );
    // `close` of an HTTP server would also close connections on which a request is just arriving.
    return { closed: new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve())) };
  }

  async function drainAndClose(): Promise<number> {
    settings.health?.drain();
    controller.abort();
    for (const response of running) announceClose(response);
    await settings.before?.();
    await sleep(clock, settings.drainDelay);
    const { closed } = await stopListening();
    for (const response of running) announceClose(response);
    // An HTTP/2 client can finish its running requests. For new requests it opens a session to another server.
    for (const session of sessions) session.close();
    if (!isHttp1) server.closeIdleConnections?.();
    const closing = closeQuiet(clock, quiet);
    await withTimeout(clock, settings.patience, closed);
    closing.clear();
    const cutOff = running.size;
    // Ends the checks of the server, and all connections but upgraded ones, such as WebSockets.
    server.close();
    server.closeAllConnections?.();
    for (const socket of sockets) socket.destroy();
    await closed;
    await settings.after?.();
    return cutOff;
  }

  function shutdown(): Promise<number> {
    ending ??= drainAndClose();
    return ending;
  }

  const onSignal = () => {
    shutdown().then(
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
    shutdown,
    signal: controller.signal,
    dispose() {
      for (const signal of settings.signals) process.off(signal, onSignal);
    },
  };
}

/** While connections keep arriving without a pause, the server listens for at most this time more. */
const settleMaxMs = 1000;

/** Asks the client to send no other request on this connection. HTTP/2 forbids the header; its sessions are closed. */
function announceClose(response: ServerResponse | Http2ServerResponse): void {
  if (!('stream' in response) && !response.headersSent) response.setHeader('connection', 'close');
}

/** Closes quiet connections again and again, until the timer is cleared. */
function closeQuiet(clock: Clock, quiet: QuietConnections): Timer {
  const timer = new Timer(clock, () => timer.setIn(quiet.close()));
  timer.setIn(0);
  return timer;
}
