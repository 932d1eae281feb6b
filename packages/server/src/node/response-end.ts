import type { ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Socket } from 'node:net';

/** A request or response of Node. Only HTTP/2 has a `stream`. */
export interface MaybeHttp2 {
  readonly stream?: Http2Stream | undefined;
}

/** Calls `ended` once, when the whole response has been sent or the client has disconnected. */
export function onResponseEnd(response: ServerResponse, ended: (completed: boolean) => void): void {
  const { stream } = response as MaybeHttp2;
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    // Check both: `writableFinished` alone is also true if the client reset the HTTP/2 stream.
    ended(response.writableEnded && response.writableFinished);
  };
  // If the response has already ended, it emits no more events.
  if (response.closed || stream?.destroyed) queueMicrotask(end);
  else {
    response.on('close', end);
    // An HTTP/2 response emits `close` only after the client has sent its whole request, which may never
    // happen. So listen for `finish`, too.
    stream?.once('finish', end);
    if (response.socket === null) onConnectionLost(response, end);
  }
}

/** True: the HTTP/1 connection or the HTTP/2 stream is closed. */
export function isClosed(response: ServerResponse): boolean {
  const { stream } = response as MaybeHttp2;
  // A pipelined response has no socket while it waits for earlier responses. Its request always has one.
  return stream ? stream.closed : response.closed || response.req.socket.destroyed;
}

/** For each connection: the callbacks of pipelined responses, which wait until earlier responses are sent. */
const lossListeners = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls `lost` when the connection of a pipelined response is closed. Node 22 emits `close` only for the
 * first response of a connection.
 */
function onConnectionLost(response: ServerResponse, lost: () => void): void {
  const { socket } = response.req;
  const known = lossListeners.get(socket);
  const all = known ?? new Set();
  if (!known) {
    lossListeners.set(socket, all);
    socket.once('close', () => {
      for (const each of all) each();
    });
  }
  all.add(lost);
  response.once('close', () => all.delete(lost));
}
