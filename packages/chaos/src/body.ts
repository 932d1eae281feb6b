import { type Clock, sleep } from 'holdfast';

export interface BodyFault {
  readonly clock: Clock;
  readonly signal: AbortSignal | null | undefined;
  /** The speed limit; Infinity: no limit. */
  readonly bytesPerSecond: number;
  /** The number of bytes that pass before the connection breaks; Infinity: it does not break. */
  readonly bytesMax: number;
  /** The error that the reader gets when the connection breaks. */
  broken(): Error;
}

/** A slow body is delivered in slices of 20 ms. */
const slicesPerSecond = 50;

/** Copies a body slowly, or breaks it off after `bytesMax` bytes. A shorter body ends normally. */
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
      // After `cancel` the controller must not be used, so errors after `cancel` are ignored. If `signal` aborts, the
      // reader gets the reason of the abort as its error.
      try {
        while (held.length === 0) {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            // A reader that brings its own buffer waits until its request for bytes is answered, so it gets 0 bytes
            // here.
            controller.byobRequest?.respond(0);
            return;
          }
          held = value as Uint8Array<ArrayBuffer>;
        }
        if (passed >= bytesMax) {
          // The result of `cancel` does not matter: the reader gets the error of the broken connection.
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
