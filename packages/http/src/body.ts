import { OptionsError } from 'holdfast';
import { type AbortListener, offAbort, onAbort } from 'holdfast/machines';

/**
 * The classes of bodies that can be sent more than once. All other objects are streams or iterators, which can be read
 * only once.
 */
const lasting = /^\[object (Blob|File|FormData|URLSearchParams|ArrayBuffer|SharedArrayBuffer)\]$/;

/** Whether `body` can be sent more than once. */
export function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true;
  return ArrayBuffer.isView(body) || lasting.test(Object.prototype.toString.call(body));
}

/** Streams and iterators that functions of the user have returned as a body. Each can be sent only once. */
const made = new WeakSet<object>();

/**
 * Calls `make`, which returns the body of one attempt. Throws if `make` returns a stream that an earlier attempt has
 * already got.
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
 * Reads the first bytes of a stream. Returns `whole`, all bytes, if the stream has at most `bytesMax`. For a longer
 * stream it returns `rest`, a stream of all bytes from the start, which can be read once. Rejects when `signal` aborts.
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
      // Reading a cancelled stream returns `done`, as if the stream had ended, so the signal is checked again.
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
