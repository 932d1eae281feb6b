import { type Clock, sleep } from 'holdfast';

export interface BodyFault {
  readonly clock: Clock;
  readonly signal: AbortSignal | null | undefined;
  /** The speed limit of the body. Infinity: no limit. */
  readonly bytesPerSecond: number;
  /** The body breaks after this many bytes. Infinity: it does not break. */
  readonly bytesMax: number;
  /** Creates the error that the reader of the body gets when the body breaks. */
  broken(): Error;
}

/** A slow body is delivered in this many slices per second, one every 20 ms. */
const slicesPerSecond = 50;

/**
 * Returns a copy of a body that is slow, or that breaks after `bytesMax` bytes. A body with fewer bytes ends
 * normally.
 */
export function faultyBody(
  body: ReadableStream<Uint8Array>,
  { clock, signal, bytesPerSecond, bytesMax, broken }: BodyFault,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const left = new AbortController();
  const leaving = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
  const sliceMax = Math.max(1, Math.ceil(bytesPerSecond / slicesPerSecond));
  let held = new Uint8Array();
  let passed = 0;

  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      // If the reader has cancelled this stream, `controller` throws, and that error is ignored below. If
      // `signal` aborts, the reader of this stream gets the reason of the signal.
      try {
        while (held.length === 0) {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            // A reader with its own buffer (BYOB) waits until its request is answered, so answer it with 0
            // bytes.
            controller.byobRequest?.respond(0);
            return;
          }
          held = value as Uint8Array<ArrayBuffer>;
        }
        if (passed >= bytesMax) {
          // The reader gets the error of `broken()`, so an error of `cancel` can be ignored.
          reader.cancel().catch(() => {});
          controller.error(broken());
          return;
        }
        const slice = held.subarray(0, Math.min(sliceMax, bytesMax - passed));
        if (bytesPerSecond < Infinity) await sleep(clock, (slice.length / bytesPerSecond) * 1000, leaving);
        held = held.subarray(slice.length);
        passed += slice.length;
        controller.enqueue(slice.slice());
      } catch (error) {
        if (left.signal.aborted) return;
        reader.cancel(error).catch(() => {});
        controller.error(error);
      }
    },
    cancel(reason) {
      left.abort(reason);
      return reader.cancel(reason);
    },
  });
}
