import { OptionsError } from 'holdfast';
import { type AbortListener, offAbort, onAbort } from 'holdfast/machines';

/**
 * The types of body objects that can be sent more than once. All other body objects are streams or iterators.
 */
const lasting = /^\[object (Blob|File|FormData|URLSearchParams|ArrayBuffer|SharedArrayBuffer)\]$/;

export function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true;
  return ArrayBuffer.isView(body) || lasting.test(Object.prototype.toString.call(body));
}

/** Streams and iterators that a user's body function has returned. Each of them can be sent only once. */
const made = new WeakSet<object>();

/**
 * Calls the user's function `make`, which returns the body of one attempt. Throws if it returns the same
 * stream twice.
 */
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
 * Reads the start of a stream. If the stream has at most `bytesMax` bytes, returns them as `whole`. Otherwise
 * returns `rest`, a new stream of all bytes.
 */
export async function firstBytes(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal | undefined,
): Promise<{ whole: Uint8Array<ArrayBuffer> } | { rest: ReadableStream<Uint8Array> }> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const listener: AbortListener = {
    aborted(reason) {
      reader.cancel(reason).catch(() => {});
    },
  };
  if (signal?.aborted) listener.aborted(signal.reason);
  else if (signal) onAbort(signal, listener);
  try {
    while (length <= bytesMax) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      // Check the signal again: a cancelled stream returns `done`, as if it had ended.
      signal?.throwIfAborted();
      if (done) return { whole: joined(chunks, length) };
      chunks.push(value);
      length += value.byteLength;
    }
  } finally {
    if (signal) offAbort(signal, listener);
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
