import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, later, systemClock } from 'holdfast';
import {
  anything,
  callback,
  duration,
  flag,
  list,
  readTable,
  refuseUnknown,
  type SpecOf,
} from 'holdfast/fields';
import { whenEnded } from '../node/response-end.ts';
import { able } from '../option-fields.ts';
import { pause, within } from '../pause.ts';
import type { HealthPart } from './health.ts';

const fields = {
  health: able<HealthPart>('what health() gives', 'drain'),
  drainDelay: duration('5s'),
  patience: duration('25s'),
  signals: list(anything<NodeJS.Signals>(), ['SIGTERM', 'SIGINT']),
  before: callback<() => unknown>(),
  after: callback<() => unknown>(),
  exit: flag(),
};

export type GracefulShutdownOptions = SpecOf<typeof fields>;

export interface GracefulShutdown {
  /** As a signal would; the same promise for all who ask. Gives how many requests had to be cut off. */
  shutdown(): Promise<number>;
  /** Aborts when it begins, for loops and consumers of the same process. */
  readonly signal: AbortSignal;
  /** Takes the listeners for signals away. */
  dispose(): void;
}

/**
 * Ends a server without a failed request: not ready, so that balancers look elsewhere; a while of serving on, in which
 * connections are closed after their next answer; no new connections; until what runs is done, or patience is over.
 */
export function gracefulShutdown(
  server: Server,
  options: GracefulShutdownOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): GracefulShutdown {
  const settings = readTable(fields, options, 'gracefulShutdown.');
  refuseUnknown({ clock: true }, environment, 'gracefulShutdown.');
  const { clock = systemClock } = environment;
  const controller = new AbortController();
  let ending: Promise<number> | undefined;
  let running = 0;
  const sockets = new Set<Socket>();

  const connected = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  // Over TLS there are two for a connection: what was asked on it only the second knows.
  server.on('connection', connected).on('secureConnection', connected);
  server.prependListener('request', (_request: unknown, response: ServerResponse) => {
    running++;
    whenEnded(response, () => {
      running--;
      // It had begun before, and its connection was kept for another request that must not come.
      if (!server.listening) later(() => server.closeIdleConnections());
    });
    if (ending) response.setHeader('connection', 'close');
  });

  async function end(): Promise<number> {
    settings.health?.drain();
    controller.abort();
    const early = [...sockets];
    await settings.before?.();
    await pause(clock, settings.drainDelay);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    // To Node a connection is not idle before its first request. Browsers and balancers open some in advance: who has asked
    // for nothing in all that time is not waited for.
    for (const socket of early) if (socket.bytesRead === 0) socket.destroy();
    await within(clock, settings.patience, closed);
    const cutOff = running;
    server.closeAllConnections();
    // Those that became something else, as WebSockets do, are not the server's any more.
    for (const socket of sockets) socket.destroy();
    await closed;
    await settings.after?.();
    return cutOff;
  }

  function shutdown(): Promise<number> {
    ending ??= end();
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
