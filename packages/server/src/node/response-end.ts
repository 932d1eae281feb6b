import type { ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Socket } from 'node:net';

export interface MaybeHttp2 {
  readonly stream?: Http2Stream | undefined;
}

/** Calls `ended` once, when the whole response is sent or the client has disconnected. */
export function onResponseEnd(response: ServerResponse, ended: (completed: boolean) => void): void {
  const { stream } = response as MaybeHttp2;
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    // After the client has reset an HTTP/2 stream, `writableFinished` is true, too. So `writableEnded` must
    // also be true.
    ended(response.writableEnded && response.writableFinished);
  };
  // A response that has ended emits no more events.
  if (response.closed || stream?.destroyed) queueMicrotask(end);
  else {
    response.on('close', end);
    // An HTTP/2 response emits `close` only after the whole request has arrived, which may never happen.
    stream?.once('finish', end);
    if (response.socket === null) onConnectionLost(response, end);
  }
}

export function isClosed(response: ServerResponse): boolean {
  const { stream } = response as MaybeHttp2;
  // A pipelined response has no socket while it waits for earlier responses. So the socket of its request is
  // checked.
  return stream ? stream.closed : response.closed || response.req.socket.destroyed;
}

/**
 * For each connection: the functions to call when it is lost. Each function belongs to a pipelined response,
 * which waits until the earlier responses on the connection are sent.
 */
const lossListeners = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls `lost` when the connection closes. Node 22 emits `close` only for the first response of a connection.
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
