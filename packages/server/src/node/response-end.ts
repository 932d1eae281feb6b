import type { ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Socket } from 'node:net';

/** What a request or a response of HTTP/2 is made of. */
export interface OnStream {
  readonly stream?: Http2Stream | undefined;
}

/** Calls `ended`, once, when the answer has been sent, or when the client has left before. */
export function whenEnded(response: ServerResponse, ended: (completed: boolean) => void): void {
  const { stream } = response as OnStream;
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    // A stream of HTTP/2 that its client resets is finished, too, though nobody has ended the answer.
    ended(response.writableEnded && response.writableFinished);
  };
  // Who asks late may have missed it.
  if (response.closed || stream?.destroyed) queueMicrotask(end);
  else {
    response.on('close', end);
    // It closes when the client, too, has sent all, and that may be never.
    stream?.once('finish', end);
    if (response.socket === null) whenLost(response, end);
  }
}

/** The client has closed the connection, or reset the stream, of a response that has not ended. */
export function isClosed(response: ServerResponse): boolean {
  const { stream } = response as OnStream;
  // A response that waits for its turn on a pipelined connection has no socket: its request has.
  return stream ? stream.closed : response.closed || response.req.socket.destroyed;
}

/** What is to be done when a connection is lost, for the responses that wait for their turn on it. */
const losses = new WeakMap<Socket, Set<() => void>>();

/** Of pipelined requests, Node 22 tells only the first that the connection is lost. One listener for all the others. */
function whenLost(response: ServerResponse, lost: () => void): void {
  const { socket } = response.req;
  const known = losses.get(socket);
  const all = known ?? new Set();
  if (!known) {
    losses.set(socket, all);
    socket.once('close', () => {
      for (const each of all) each();
    });
  }
  all.add(lost);
  response.once('close', () => all.delete(lost));
}
