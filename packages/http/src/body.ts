import { OptionsError } from 'holdfast';
import { follow, unfollow } from './abort-listeners.ts';

/** Bodies that stay as they are when they are sent: the others are streams of some kind, and can be read once. */
const lasting = /^\[object (Blob|File|FormData|URLSearchParams|ArrayBuffer|SharedArrayBuffer)\]$/;

/** Whether `body` can be sent again as it is. */
export function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true;
  return ArrayBuffer.isView(body) || lasting.test(Object.prototype.toString.call(body));
}

/** Streams and iterators that functions have made: what gives one of them again has nothing left to send. */
const made = new WeakSet<object>();

/** What `make` gives for one attempt. Throws where an earlier attempt has had the same, and read it. */
export function madeBy<T>(make: () => T): T {
  const body = make();
  const { getReader, pipe, next } = Object(body) as Record<'getReader' | 'pipe' | 'next', unknown>;
  if (typeof (getReader ?? pipe ?? next) !== 'function') return body;
  if (made.has(body as object)) {
    throw new OptionsError(
      'body',
      'the same stream again',
      'a function that makes a new body for each attempt',
    );
  }
  made.add(body as object);
  return body;
}

/**
 * What a stream begins with, and whether that is all of it. Of one that is longer than `bytesMax`, `rest` has everything, from
 * the start, and can be read once. Ends with `signal`.
 */
export async function firstBytes(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal | undefined,
): Promise<{ whole: Uint8Array<ArrayBuffer> } | { rest: ReadableStream<Uint8Array> }> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const cancelling = {
    signalAborted(reason: unknown) {
      reader.cancel(reason).catch(() => {});
    },
  };
  if (signal) follow(signal, cancelling);
  try {
    while (length <= bytesMax) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      // What is cancelled ends as if it were whole.
      signal?.throwIfAborted();
      if (done) return { whole: joined(chunks, length) };
      chunks.push(value);
      length += value.byteLength;
    }
  } finally {
    if (signal) unfollow(signal, cancelling);
  }
  const rest = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const kept = chunks.shift();
      if (kept) return controller.enqueue(kept);
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { rest };
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
