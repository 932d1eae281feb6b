import type { ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Socket } from 'node:net';

/** A request or response of HTTP/2 has a stream; of HTTP/1 it has none. */
export interface MaybeHttp2 {
  readonly stream?: Http2Stream | undefined;
}

/** Calls `ended`, once, when the response has been sent, or when the client has disconnected before. */
export function onResponseEnd(response: ServerResponse, ended: (completed: boolean) => void): void {
  const { stream } = response as MaybeHttp2;
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    // An HTTP/2 stream that its client resets is finished as well, although the response was not ended.
    ended(response.writableEnded && response.writableFinished);
  };
  // The events may have been emitted already.
  if (response.closed || stream?.destroyed) queueMicrotask(end);
  else {
    response.on('close', end);
    // An HTTP/2 response closes only when the client has sent everything as well, which may be never.
    stream?.once('finish', end);
    if (response.socket === null) onConnectionLost(response, end);
  }
}

/** The client has closed the connection, or reset the stream, of a response that has not ended. */
export function isClosed(response: ServerResponse): boolean {
  const { stream } = response as MaybeHttp2;
  // The response to a pipelined request has no socket before its turn, but the request has one.
  return stream ? stream.closed : response.closed || response.req.socket.destroyed;
}

/** The callbacks of pipelined responses that have not had their turn, by connection. */
const lossListeners = new WeakMap<Socket, Set<() => void>>();

/** When a connection is lost, Node 22 closes only the first of its pipelined responses. One socket listener serves the others. */
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
