import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, later, sleep, systemClock } from 'holdfast';
import { anything, callback, duration, flag, list, readTable, type SpecOf } from 'holdfast/fields';
import { onResponseEnd } from '../node/response-end.ts';
import { clockField, objectWith } from '../option-fields.ts';
import type { HealthPart } from './health.ts';
import { withTimeout } from './with-timeout.ts';

const fields = {
  health: objectWith<HealthPart>('what health() gives', 'drain'),
  drainDelay: duration('5s'),
  patience: duration('25s'),
  signals: list(anything<NodeJS.Signals>(), ['SIGTERM', 'SIGINT']),
  before: callback<() => unknown>(),
  after: callback<() => unknown>(),
  exit: flag(),
};

export type GracefulShutdownOptions = SpecOf<typeof fields>;

export interface GracefulShutdown {
  /**
   * Starts the same shutdown that a process signal starts. Later calls return the same promise, which resolves with the
   * number of requests that were cut off.
   */
  shutdown(): Promise<number>;
  /** Aborts when the shutdown begins. Loops and consumers of the same process can use it to stop. */
  readonly signal: AbortSignal;
  /** Removes the listeners for process signals. */
  dispose(): void;
}

/**
 * Shuts a server down without failing a request. First `/readyz` fails (with the option `health`), so that load
 * balancers choose other servers. For `drainDelay` the server still handles requests, and closes each connection after
 * its next response. Then it accepts no new connections and waits until the running requests are done, for at most
 * `patience`.
 */
export function gracefulShutdown(
  server: Server,
  options: GracefulShutdownOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): GracefulShutdown {
  const settings = readTable(fields, options, 'gracefulShutdown.');
  const { clock = systemClock } = readTable({ clock: clockField }, environment, 'gracefulShutdown.');
  const controller = new AbortController();
  let ending: Promise<number> | undefined;
  let running = 0;
  const sockets = new Set<Socket>();

  const connected = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  // A TLS connection has two sockets, and only the second one counts the bytes of requests.
  server.on('connection', connected).on('secureConnection', connected);
  server.prependListener('request', (_request: unknown, response: ServerResponse) => {
    running++;
    onResponseEnd(response, () => {
      running--;
      // If the request began before the shutdown, its connection was kept alive. It is idle now and can be closed.
      if (!server.listening) later(() => server.closeIdleConnections());
    });
    if (ending) response.setHeader('connection', 'close');
  });

  async function drainAndClose(): Promise<number> {
    settings.health?.drain();
    controller.abort();
    const openBefore = [...sockets];
    await settings.before?.();
    await sleep(clock, settings.drainDelay);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    // Browsers and load balancers open connections in advance. Node does not count them as idle before their first
    // request, so those that sent nothing during `drainDelay` are closed here.
    for (const socket of openBefore) if (socket.bytesRead === 0) socket.destroy();
    await withTimeout(clock, settings.patience, closed);
    const cutOff = running;
    server.closeAllConnections();
    // `closeAllConnections` does not close upgraded connections, such as WebSockets.
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
        if (settings.exit ?? true) process.exit(cutOff > 0 ? 1 : 0);
      },
      (error: unknown) => {
        console.error(error);
        if (settings.exit ?? true) process.exit(1);
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
